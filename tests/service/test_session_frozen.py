"""Sessions without a call: their processes are frozen where control groups are of version 2, until something is asked of them.

With version 1 nothing is frozen, the list says so, and all else is the same.
"""
import os

import pytest

from support import daemon as daemons
from support import host, warm_load
from support.sessions import open_session

FREEZES = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
LONG_MS = 600 # without a call, by far longer than until it is frozen

# A thread that never waits, and what it has used since `begin`: seconds of CPU, of all.
SPIN = """
import threading, time
def used(): return time.process_time(), time.monotonic()
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
begin = used()
"""
SINCE = "[now - then for now, then in zip(used(), begin)]"


@pytest.fixture(scope="module")
def service(built, no_stock):
    """Its sessions are forks that stand ready, in cells that were there before them."""
    scratch, profiles = warm_load.only_basic("ready")
    with scratch, daemons.Daemon({"freeze_ms": 100}, env={"BRIG_PRESETS": str(profiles)}) as made:
        assert warm_load.is_warm_again(made), made.words()
        yield made


@pytest.fixture
def talk(service):
    with service.connect() as made:
        yield made


@pytest.fixture
def session(talk):
    return open_session(talk)


def rest(session):
    """Until nothing was asked of it for long; whether it is frozen then."""
    host.poll(lambda: session.row()["idle_ms"] >= LONG_MS and session.row()["frozen"] == FREEZES)
    return session.row()["frozen"]


def since(session):
    return session.value(SINCE)


def test_an_idle_session_uses_no_cpu_until_the_next_call(session):
    session.run(SPIN)
    assert rest(session) == FREEZES
    cpu, seconds = since(session)
    assert seconds > LONG_MS / 1000
    if FREEZES:
        assert cpu < seconds / 2
    assert not session.row()["frozen"], "the call has woken it"
    assert session.value(f"until = {SINCE}[0] + 0.1\nwhile {SINCE}[0] < until: pass\n1") == 1, "and what was there goes on"


def test_whatever_is_asked_of_a_frozen_session_is_done(session):
    session.run("x = 7")
    rest(session)
    assert session.command("echo", "1").out == "1\n"
    rest(session)
    assert session.put({"a": b"1"}) == {}
    rest(session)
    assert session.get("a")[0] == {b"a": b"1"} and session.value("x") == 7
    rest(session)
    session.restart()
    rest(session)
    assert session.run("x").report["error"]["type"] == "NameError"
    rest(session)
    assert session.close()["exit_reason"] == "exited"


def stay(session, token):
    """A process that no call waits for."""
    assert session.run(f"import subprocess; subprocess.Popen(['sh', '-c', 'exec > /dev/null 2>&1; sleep 600; : {token}'])").status == 0


@pytest.mark.nightly
def test_a_frozen_session_ends_as_another_one(service, token):
    """Cancelled, with its client, and when its time is over."""
    with service.connect() as talk:
        killed, left, idle = open_session(talk), open_session(talk), open_session(talk, limits={"idle_ms": 3000})
        for one in killed, left, idle:
            stay(one, token)
        rest(killed), rest(left)
        talk.ask("cancel", run=killed.id)
        assert killed.ended()["exit_reason"] == "cancelled"
        assert idle.ended()["exit_reason"] == "exited"
        assert host.with_token(token)
    assert host.poll(lambda: not host.with_token(token)), host.with_token(token)


def test_the_memory_of_a_frozen_session_can_be_used_up_by_the_next_call(session):
    session.run("x = 7")
    rest(session)
    assert session.run("bytearray(1 << 40)").report["error"]["type"] == "MemoryError"
    assert session.command("python3", "-c", "bytearray(600 << 20)").reason == "oom"
    assert session.value("x") == 7


def test_a_session_with_a_detached_command_or_files_on_their_way_is_not_frozen(session):
    assert session.shell("sleep 600 > /dev/null 2>&1 & echo $! > pid", detach=True).status == 0
    host.poll(lambda: session.row()["idle_ms"] >= LONG_MS)
    assert not session.row()["frozen"]
    assert session.shell("kill $(cat pid)").status == 0
    assert rest(session) == FREEZES
    with session.files() as moved:
        moved.say(1, b"half", 2)
        moved.sock.sendall(b"1")
        host.poll(lambda: session.row()["idle_ms"] >= LONG_MS)
        assert not session.row()["frozen"]
        moved.sock.sendall(b"2")
        assert moved.exchange({}, []) == ({}, {})
    assert rest(session) == FREEZES and session.get("half")[0] == {b"half": b"12"}


def test_a_session_with_a_call_under_way_is_not_frozen(session):
    run = session.start_command("cat", stdin=True)
    old = session.row()["age_ms"]
    assert host.poll(lambda: session.row()["age_ms"] >= old + LONG_MS)
    assert not session.row()["frozen"]
    assert run.finish().status == 0 and rest(session) == FREEZES
