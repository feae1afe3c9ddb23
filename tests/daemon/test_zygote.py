"""Zygotes that are killed, stand still or cannot start: no run is lost without a word, and nothing is left."""
import json
import os
import signal

import pytest

from rules import MANY
from support import daemon as daemons
from support import host, warm


@pytest.fixture
def folder(built):
    scratch, profiles = warm.scratch_profiles()
    yield profiles
    scratch.cleanup()


def zygote_of(daemon, profile="basic"):
    """The zygote that answers for it: profiles are told, and their spawners made, in the order of their names."""
    names = sorted(path.stem for path in (host.REPO / "profiles").glob("*.json"))
    spawner = daemon.of_kind("spawner")[names.index(profile)]
    found = [pid for pid in daemons.children(spawner) if daemons.kind_of(pid) == "zygote"]
    return found[0] if found else None


def new_zygote(daemon, old):
    assert host.poll(lambda: zygote_of(daemon) not in (None, old), 10), f"{daemon.tree()}\n{daemon.words()}"
    return zygote_of(daemon)


def test_a_zygote_that_is_killed_is_replaced(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        for _ in range(3):
            old = zygote_of(daemon)
            daemons.kill(old)
            new_zygote(daemon, old)
            assert talk.run("print(1)").stdout == "1\n"
        assert host.poll(lambda: talk.run("print(1)").record["warm"], 5)
    assert "another one is started" in daemon.words()


def test_a_run_whose_zygote_dies_has_an_honest_end(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        run = talk.start("import time; print('here', flush=True); time.sleep(30)")
        assert run.line() == "here"
        daemons.kill(zygote_of(daemon))
        record = run.wait(5)
        assert record["exit_reason"] == "cancelled" and "zygote" in json.dumps(run.ended), run.ended
        run.close()


def test_a_zygote_that_stands_still_is_killed_and_its_run_asked_of_the_next(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        stopped = zygote_of(daemon)
        os.kill(stopped, signal.SIGSTOP)
        late = [talk.run(f"print({n})") for n in range(3)]
        assert [run.stdout for run in late] == ["0\n", "1\n", "2\n"], late
        assert new_zygote(daemon, stopped)


def test_a_run_that_is_killed_ends_though_its_zygote_stands_still(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder)})
    with daemon.connect() as talk:
        warm.wait(talk)
        run = talk.start("import time; print('here', flush=True); time.sleep(30)", limits={"wall_ms": 1000})
        assert run.line() == "here"
        os.kill(zygote_of(daemon), signal.SIGSTOP)
        assert run.wait(15)["exit_reason"] == "timeout_wall", run.ended
        run.close()


NO_ZYGOTE = """#!/bin/sh
[ ! -e /workspace/zygote.so ] || exit 1
exec /usr/bin/python3.11 "$@"
"""


def test_a_rootfs_whose_python_cannot_be_a_zygote_runs_cold(nothing_left, folder, start_daemon, tmp_path):
    """It is said once, and tried again after a while."""
    for way in (tmp_path, *tmp_path.parents[:2]):
        way.chmod(way.stat().st_mode & 0o7777 | 0o055) # pytest's own folders are closed to the door's account
    store = tmp_path / "store"

    host.copy_rootfs("basic", store)
    root = (store / "names/basic").resolve() / "tree"
    (root / "usr/bin/python3").unlink()
    (root / "usr/bin/python3").write_text(NO_ZYGOTE)
    (root / "usr/bin/python3").chmod(0o755)
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder), "BRIG_STORE": str(store)})
    with daemon.connect() as talk:
        for n in range(5):
            run = talk.run(f"print({n})")
            assert run.stdout == f"{n}\n" and run.record["warm"] is False, run
    assert 1 <= daemon.words().count("profile basic has no zygote") <= host.SLOWER, daemon.words()


def most_descriptors(daemon, zygote):
    """With those of the cells that wait: when as many are built as there shall be."""
    daemon.settle()
    held = [daemons.descriptors(zygote)]

    def is_steady():
        held.append(daemons.descriptors(zygote))
        return len(held) > 20 and len(set(held[-20:])) == 1
    assert host.poll(is_steady, 10), held
    return held[-1]


def test_many_warm_runs_leave_nothing(nothing_left, folder, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(folder)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        zygote = zygote_of(daemon)
        held = most_descriptors(daemon, zygote), daemons.resident(zygote)
        for n in range(100):
            assert talk.run(f"print({n})").stdout == f"{n}\n"
        assert zygote_of(daemon) == zygote and most_descriptors(daemon, zygote) == held[0]
        assert daemons.resident(zygote) < held[1] + (1 << 20)


def all_zygotes(daemon):
    return set(daemon.of_kind("zygote"))


@pytest.mark.parametrize("rule", [{"zygote_runs": 5}, {"zygote_ms": 1000}])
def test_a_zygote_is_replaced_and_no_run_notices(nothing_left, start_daemon, built, rule):
    scratch, profiles = warm.scratch_profiles("basic", **rule)
    daemon = start_daemon(MANY, env={"BRIG_PROFILES": str(profiles)})
    daemon.settle()
    with daemon.connect() as talk:
        warm.wait(talk)
        long = talk.start("import sys; print('long', flush=True); print(sys.stdin.read())", stdin=True)
        assert long.line() == "long"
        first, seen, seeds = zygote_of(daemon), set(), set()

        def is_replaced():
            run = talk.run("print(hash('a'))")
            assert run.record["warm"], daemon.words()
            seen.update(all_zygotes(daemon))
            seeds.add(run.stdout)
            return len(seeds) > 2
        assert host.poll(is_replaced, 20), f"{seen}\n{daemon.words()}"
        assert first in all_zygotes(daemon), "the one that still has a program is gone"
        long.feed(b"end")
        assert long.finish().stdout.endswith("end\n") and long.ended["record"]["warm"]
        assert host.poll(lambda: first not in all_zygotes(daemon), 5)
    daemon.close()
    scratch.cleanup()
    assert "zygote" not in daemon.words(), daemon.words()
