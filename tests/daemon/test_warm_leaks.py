"""A thousand warm runs: each has its own result, and afterwards nobody holds more than before. Ten thousand: tests/long."""
import os

import left
from rules import MANY
from support import host, warm_load

RUNS = int(os.environ.get("BRIG_WARM_RUNS", "1000"))


def test_a_thousand_warm_runs_leak_nothing_and_mix_up_nothing(only_basic, start_daemon):
    there = left.Snapshot()
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(only_basic)})
    daemon.settle()
    assert warm_load.is_warm_again(daemon), daemon.words()
    warm_load.run_many(daemon, 60) # what is done for the first time
    daemon.settle()
    before = warm_load.held(daemon)
    ends, wrong = warm_load.run_many(daemon, RUNS)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:5])
    assert sum(ends.values()) == RUNS and ends["exited, warm"] > RUNS * .98, f"{dict(ends)}\n{daemon.words()}"
    daemon.settle()
    more = []
    host.poll(lambda: more.clear() or more.extend(warm_load.grown(before, warm_load.held(daemon))) or not more, 5)
    assert not more, more
    assert daemon.stop() == 0
    assert not left.wrong(there), left.wrong(there)
