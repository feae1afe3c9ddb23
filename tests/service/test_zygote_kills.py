"""kill -9 of who takes part in warm runs, at random moments under load: every run is answered or refused, and every answer is its own.

BRIG_ZYGOTE_KILLS changes the number, BRIG_ZYGOTE_SEED the moments.
"""
import os
import signal

import pytest

import left
from rules import LONG, MANY, SLEEP
from support import daemon as daemons
from support import host, tiers, warm_load
from support.warm_load import KILLED, is_warm_again, kill_under_load

SEED = int(os.environ.get("BRIG_ZYGOTE_SEED", "1"))


@pytest.mark.parametrize("kills", tiers.amounts(5, 80, "BRIG_ZYGOTE_KILLS"))
def test_no_run_is_lost_when_helpers_are_killed_under_load(only_basic, start_daemon, kills):
    there = left.Snapshot()
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(only_basic)})
    daemon.settle()
    assert is_warm_again(daemon), daemon.words()
    ends, hit, wrong = kill_under_load(daemon, kills, SEED)
    assert not wrong, f"seed {SEED}: {len(wrong)}\n" + "\n".join(wrong[:5]) + f"\n{dict(ends)} {dict(hit)}\n{daemon.words()}"
    assert daemon.alive() and is_warm_again(daemon), daemon.words()
    assert sum(n for how, n in ends.items() if how.startswith("exited")) >= kills // 4, f"the load was none: {dict(ends)}"
    assert all(hit[who] >= kills // len(KILLED) * .4 for who in KILLED), f"the table is not what it says: {dict(hit)}"
    assert daemon.stop() == 0
    assert not left.wrong(there), left.wrong(there)


@pytest.mark.parametrize("way", [pytest.param("demand", marks=pytest.mark.nightly), "ready"])
@pytest.mark.parametrize("runs", tiers.amounts(50, 600))
def test_no_run_notices_under_load_that_zygotes_are_replaced(built, start_daemon, way, runs):
    scratch, profiles = warm_load.only_basic(way, zygote_runs=20)
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
    daemon.settle()
    assert is_warm_again(daemon), daemon.words()
    ends, wrong = warm_load.run_many(daemon, runs)
    scratch.cleanup()
    assert not wrong, f"{len(wrong)}, {dict(ends)}\n" + "\n".join(wrong[:3])


# --- a cell that is killed while its zygote has no time for it ----------------------------------------------------------

def zygote_of(daemon):
    found = daemon.of_kind("zygote")
    assert len(found) == 1, daemon.tree()
    return found[0]


@pytest.mark.diagonal("only_basic")
@pytest.mark.parametrize("reason", ["cancelled", "timeout_wall"])
def test_a_killed_cell_is_reaped_though_its_zygote_stands_still(only_basic, start_daemon, token, reason):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(only_basic)})
    daemon.settle()
    with daemon.connect() as talk:
        assert is_warm_again(daemon)
        run = talk.start(SLEEP, args=[token], limits={"wall_ms": 1000} if reason == "timeout_wall" else LONG)
        assert run.line() == "up"
        stopped = zygote_of(daemon)
        os.kill(stopped, signal.SIGSTOP)
        try:
            if reason == "cancelled":
                talk.ask("cancel", run=run.id, reason=reason)
            record = run.wait()
            assert record["warm"] and record["exit_reason"] == reason, record
            assert host.poll(lambda: not host.with_token(token)), host.with_token(token)
        finally:
            daemons.kill(stopped, signal.SIGCONT)
        run.close()
        assert is_warm_again(daemon)
