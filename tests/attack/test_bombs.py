"""Each bomb does what its row says, for a moment; what it does to others is measured by ./dev test neighbours."""
import pytest

from support import host, neighbours

import bombs

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_a_bomb_goes_off_and_ends_as_its_row_says(jail, run_brig, name):
    bomb = bombs.BOMBS[name]
    seconds = 0.2 * host.SLOWER if bomb.ends == "exited" else 20 # the others end by themselves, when they have had the time for it
    text = f"{host.read(bombs.__file__)}\nmain({name!r}, {seconds})\n"
    run = run_brig("--output", "64K", *bomb.limits, program=text)
    assert run.reason == bomb.ends, str(run)
    if bomb.ends == "exited":
        report = neighbours.report(run)
        assert report["rounds"] > 0 and set(report["met"]) <= bomb.meets, str(run)
