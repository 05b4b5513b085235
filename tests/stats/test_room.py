"""The room as others see it."""

import json
import subprocess
import sys

from gymkit import stats


def test_all_names_are_there_sorted_and_documented() -> None:
    assert sorted(stats.__all__) == stats.__all__
    for name in stats.__all__:
        assert (getattr(stats, name).__doc__ or "").strip(), name


def test_importing_loads_pandas_and_numpy_but_no_scipy_and_no_other_room() -> None:
    code = "import json, sys, gymkit.stats; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert "pandas" in modules
    assert not [name for name in modules if name.split(".")[0] in {"scipy", "statsmodels", "ipywidgets", "aiohttp"}]
    rooms = {name.split(".")[1] for name in modules if name.startswith("gymkit.")}
    assert rooms == {"stats", "errors", "nearest"}


def test_every_formula_names_its_source() -> None:
    formulas = [
        "wilson",
        "cluster_se",
        "effective_size",
        "tango",
        "paired_difference",
        "mcnemar_exact",
        "sign_flip",
        "holm",
    ]
    for name in [*formulas, "pass_at_k", "pass_hat_k", "majority_at_k", "minimum_detectable", "spread"]:
        text = getattr(stats, name).__doc__
        assert "Source" in text or "arXiv" in text, name
