"""Ten thousand warm runs and two hundred kills of who takes part in them. Figures go to docs/long-run.log.

BRIG_WARM_LONG_RUNS, BRIG_WARM_LONG_KILLS and BRIG_LONG_SEED change length and sequence.
"""
import os
import resource
import time

import pytest

from support import daemon as daemons
from support import host, longlog, warm_load

RUNS = int(os.environ.get("BRIG_WARM_LONG_RUNS", "10000"))
KILLS = int(os.environ.get("BRIG_WARM_LONG_KILLS", "200"))
SEED = int(os.environ.get("BRIG_LONG_SEED", time.time_ns() % 1000000))
MANY = {"runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000}]}
pytestmark = pytest.mark.long


@pytest.fixture(params=["demand", "ready"])
def service(request, jail):
    lack = daemons.lacks_binaries("brigd", "monitor")
    if lack:
        pytest.fail(lack)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20000)), hard))
    scratch, profiles = warm_load.only_basic(request.param)
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        daemon.way = request.param
        daemon.settle()
        assert warm_load.is_warm_again(daemon), daemon.words()
        yield daemon
    scratch.cleanup()


def table(rows):
    """One line for each figure, one column for each moment."""
    yield f"{'runs':24}" + "".join(f"{runs:>8}" for runs, _ in rows)
    for name in rows[0][1]:
        yield f"{name:24}" + "".join(f"{row[name]:>8}" for _, row in rows)


def settled(service):
    service.rest()
    return warm_load.held(service)


def test_ten_thousand_warm_runs_leak_nothing_and_mix_up_nothing(service):
    part = max(RUNS // 10, 40)
    warm_load.run_many(service, 200)
    rows, bad, ends, began = [(0, settled(service))], [], {}, time.monotonic()
    for done in range(part, RUNS + 1, part):
        seen, wrong = warm_load.run_many(service, part)
        bad += wrong
        ends = {how: ends.get(how, 0) + seen[how] for how in {*ends, *seen}}
        rows.append((done, settled(service)))
    more = warm_load.grown_since(service, rows[0][1])
    longlog.write(f"warm runs, {service.way}", [
        f"{RUNS} runs of one service, 4 at a time, in {time.monotonic() - began:.0f} s: " + ", ".join(f"{how} {n}" for how, n in sorted(ends.items())),
        f"with a wrong result: {len(bad)}", f"held afterwards, more than may move: {', '.join(more) or 'nothing'}", "",
        "held by the service; of each kind of process by the largest:", *table(rows)])
    assert not bad, "\n".join(bad[:5])
    assert not more, more
    assert ends.get("exited, warm", 0) > RUNS * .99, ends


def test_two_hundred_kills_lose_no_run(service):
    groups, began = host.abandoned_groups(), time.monotonic()
    ends, hit, wrong = warm_load.kill_under_load(service, KILLS, SEED)
    healed = warm_load.is_warm_again(service)
    longlog.write(f"kills under warm runs, {service.way}", [
        f"{KILLS} kills under the load of 3 clients in {time.monotonic() - began:.0f} s; seed {SEED}: " + ", ".join(f"{who} {n}" for who, n in hit.items()),
        *(f"{n:6} {how}" for how, n in sorted(ends.items())), f"lost, or with another's result: {len(wrong)}"])
    assert not wrong, f"seed {SEED}: {len(wrong)}\n" + "\n".join(wrong[:5]) + service.words()
    assert healed, service.words()
    assert host.poll(lambda: not host.abandoned_groups() - groups), host.abandoned_groups() - groups
