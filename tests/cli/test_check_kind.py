"""``gymkit check --kind`` in a process of its own."""

from __future__ import annotations

from gymkit.servers.hosting import serve
from tests.cli.conftest import Gymkit
from tests.testing.test_conformance import Bent, counter, status


def test_status_0_for_a_server_that_keeps_the_contract_and_1_for_one_that_does_not(gymkit: Gymkit) -> None:
    with serve(counter()) as hosted:
        ended = gymkit("check", "--kind", "resources", hosted.url)
    assert (ended.status, "14 pass" in ended.out) == (0, True), ended
    with serve(Bent(counter(), "/close_session", status(500, 200))) as hosted:
        ended = gymkit("check", "--kind", "resources", hosted.url)
    assert (ended.status, "FAIL  repeated close" in ended.out) == (1, True), ended
    assert gymkit("check", "--kind", "robot", "http://127.0.0.1:1").status == 2
