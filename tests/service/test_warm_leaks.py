"""Many warm runs: each has its own result, and afterwards nobody holds more than before. Ten thousand: tests/soak."""
import pytest

import left
from rules import MANY
from support import tiers, warm_load


@pytest.mark.parametrize("runs", tiers.amounts(40, 1000, "BRIG_WARM_RUNS"))
def test_warm_runs_leak_nothing_and_mix_up_nothing(only_basic, start_daemon, runs):
    there = left.Snapshot()
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(only_basic)})
    daemon.settle()
    assert warm_load.is_warm_again(daemon), daemon.words()
    warm_load.run_many(daemon, 60) # what is done for the first time
    daemon.rest() # all cells stand ready again: a zygote holds some fifteen descriptors for each
    before = warm_load.held(daemon)
    ends, wrong = warm_load.run_many(daemon, runs)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:5])
    assert sum(ends.values()) == runs and ends["exited, warm"] > runs * .98, f"{dict(ends)}\n{daemon.words()}"
    more = warm_load.grown_since(daemon, before)
    assert not more, more
    assert daemon.stop() == 0
    assert not left.wrong(there), left.wrong(there)
