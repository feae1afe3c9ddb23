"""What brig stats and brig top say of a zygote is true."""
import os
import re
import signal
import subprocess

import pytest

from rules import MANY
from support import brig as tool
from support import daemon as daemons
from support import host, warm


@pytest.fixture(scope="module")
def service(built):
    scratch, profiles = warm.scratch_profiles("basic", zygote_runs=12)
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as one, scratch:
        one.settle()
        with one.connect() as talk:
            warm.wait(talk, "basic")
        yield one


@pytest.fixture
def talk(service):
    with service.connect() as made:
        yield made


def row(talk, name="basic"):
    return next(row for row in talk.ask("stats")["profiles"] if row["name"] == name)


def wait_for(talk, wanted):
    """The zygote of basic, when it is as is wanted."""
    found = host.poll(lambda: wanted(row(talk)["zygote"]) and [row(talk)["zygote"]])
    assert found, row(talk)
    return found[0]


def measured(zygote):
    return zygote["state"] == "serving" and zygote["memory_bytes"] is not None


def processes(name):
    """(pid, memory, memory that others share with it counted whole) of each, as root sees it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/smaps_rollup") as rollup:
                if comm.read().strip() == name:
                    lines = dict(line.split(":") for line in rollup.read().splitlines()[1:])
                    yield int(pid), *(int(lines[which].split()[0]) * 1024 for which in ("Pss", "Rss"))
        except (OSError, ValueError):
            continue


def test_a_zygote_is_told_with_its_memory(talk):
    zygote = wait_for(talk, measured)
    assert zygote["generation"] >= 1 and zygote["age_ms"] > 0 and zygote["runs"] > 0, zygote
    assert 0 < zygote["own_bytes"] <= zygote["memory_bytes"] and 1 << 20 < zygote["memory_bytes"] < 100 << 20, zygote # a fork that has not run yet shares all
    near = [pid for pid, pss, rss in processes("brig-zygote") if pss / 2 < zygote["memory_bytes"] <= rss] # its share halves when it forks
    assert near, (zygote, list(processes("brig-zygote")))


def test_a_profile_that_is_cold_has_none(talk):
    assert (row(talk, "strict")["warm"], row(talk, "strict")["zygote"]) == ("never", None)


def test_after_as_many_runs_as_the_profile_says_it_is_another(talk):
    before = wait_for(talk, measured)["generation"]
    for _ in range(30):
        talk.run("pass")
    after = wait_for(talk, lambda zygote: zygote["generation"] > before and measured(zygote))
    assert after["runs"] < 30


@pytest.mark.nightly
def test_it_is_replaced_again_and_again_while_runs_go_on_one_after_the_other(built):
    """Each cell is built in the place of the last one, with no message of the monitor: a successor that was started then was once never listened to."""
    scratch, profiles = warm.scratch_profiles("basic", warm="demand", zygote_runs=10)
    with scratch, daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as one, one.connect() as talk:
        one.settle()
        warm.wait(talk, "basic")
        for _ in range(400):
            talk.run("import time; time.sleep(0.005)")
        assert row(talk)["zygote"]["generation"] >= 12, row(talk)["zygote"] # 34 on two processors; 3 to 6 before that was mended


def test_one_that_was_killed_is_not_told_any_more(talk, service):
    before = wait_for(talk, measured)
    below = host.below(service.pid)
    ours = [pid for pid, *_ in processes("brig-zygote") if pid in below]
    for pid in ours:
        os.kill(pid, signal.SIGKILL)
    assert ours and wait_for(talk, lambda zygote: zygote["generation"] > before["generation"] and measured(zygote))


def test_top_shows_it(service, talk):
    wait_for(talk, measured)
    done = subprocess.run([tool.binary(), "top", "--once"], env=tool.environment({"BRIG_SOCKET": str(service.path)}), capture_output=True, text=True, timeout=host.HANG)
    line = next(line.split() for line in done.stdout.splitlines() if line.startswith("basic "))
    assert line[5] == "serving" and line[9].endswith("M") and line[10].endswith("M"), done


def private_kib_of_ready_forks(daemon):
    forks = [pid for pid in daemon.of_kind("python3") if host.number_inside(pid) == 2]
    rollups = [host.read(f"/proc/{pid}/smaps_rollup") for pid in forks] # empty: it has ended
    return [int(re.search(r"^Private_Dirty:\s+(\d+)", text, re.M)[1]) for text in rollups if text]


def test_a_ready_fork_has_copied_what_the_guest_runner_writes_to_only_where_runs_have_it(built):
    """One that has not rehearsed has less than 200 KiB of its own. The forks of `network`, which has no run, are among them."""
    scratch, profiles = warm.scratch_profiles("basic", warm="ready", ready=2)
    with scratch, daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as one, one.connect() as talk:
        warm.wait(talk)
        have = lambda: private_kib_of_ready_forks(one)
        assert host.poll(lambda: len(found := have()) >= 2 and min(found) > 500), have()
        plain = max(have())
        for _ in range(3): # the forks that waited, and one more
            assert talk.run("pass", mode="report").record["warm"]
        assert host.poll(lambda: max(have(), default=0) > 1.25 * plain), (plain, have())
