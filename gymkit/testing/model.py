"""A scripted model server: says what a list, a generator or a function says, faults, latency and token ids included.

::

    model = ScriptedModel("policy_model", ScriptedModelConfig(), script=Script(["one", [call("f", n=1)], Fault(503)]))
    with serve(model) as hosted:             # gymkit.servers.hosting
        openai.OpenAI(base_url=f"{hosted.url}/v1", api_key="none")

In a notebook ``gymkit.Model.scripted(...)`` makes one.
"""

from __future__ import annotations

from gymkit.models.script import Script as Script
from gymkit.models.scripted import ScriptedModel as ScriptedModel
from gymkit.models.scripted import ScriptedModelConfig as ScriptedModelConfig
from gymkit.servers.fault import Fault as Fault
