"""Section J: programs of a session against what holds it together, against each other's calls, against the files on their way, and other users' sessions."""
import os
import re
import subprocess
import uuid

import pytest

from support import client, host, warm_load
from support import daemon as daemons
from support.sessions import GET, Answer, open_session

ANN, BOB = host.own_id(5), host.own_id(6)
USERS = {"runs": 64, "access": [{"uid": uid, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000} for uid in (0, ANN, BOB)]}


@pytest.fixture(scope="module", params=["ready", "private"])
def way(request, jail):
    """None for a private brigd."""
    if request.param == "private":
        yield None
        return
    scratch, profiles = warm_load.only_basic(request.param)
    with scratch, daemons.Daemon(USERS, env={"BRIG_PRESETS": str(profiles)}) as made:
        assert warm_load.is_warm_again(made), made.words()
        yield made


@pytest.fixture
def talk(way):
    if way is None:
        with daemons.Private() as private:
            yield private.connect()
        return
    with way.connect() as made:
        yield made
    assert way.alive(), way.words()


@pytest.fixture
def session(talk):
    return open_session(talk)


@pytest.fixture
def service(way):
    if way is None:
        pytest.skip("a private brigd has one user")
    return way


# --- what holds a session together ------------------------------------------------------------------------------------------

LOOK = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)

def look(pid):
    "What can be had of a process."
    found = []
    for name in ("mem", "environ", "maps", "auxv", "io", "smaps", "pagemap", "syscall"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                file.seek(0)
            found.append(name)
        except OSError: pass
    for name in ("fd", "fdinfo", "map_files", "task"):
        try: os.listdir(f"/proc/{pid}/{name}"); found.append(name)
        except OSError: pass
    for name in ("cwd", "root", "exe", "ns/pid"):
        try: os.readlink(f"/proc/{pid}/{name}"); found.append(name)
        except OSError: pass
    for name in ("oom_score_adj", "comm", "coredump_filter", "timerslack_ns", "clear_refs"):
        try:
            os.close(os.open(f"/proc/{pid}/{name}", os.O_WRONLY)); found.append(f"write {name}")
        except OSError: pass
    calls = {"ptrace": (101, 16, pid, 0, 0), "process_vm_readv": (310, pid, 0, 0, 0, 0, 0), "process_vm_writev": (311, pid, 0, 0, 0, 0, 0), "kcmp": (312, pid, os.getpid(), 0, 0, 0),
             "prlimit64": (302, pid, 7, 0, 0), "move_pages": (279, pid, 0, 0, 0, 0, 0)}
    for name, call in calls.items():
        if libc.syscall(*call) >= 0: found.append(name)
    try:
        process = os.pidfd_open(pid)
        if libc.syscall(438, process, 3, 0) >= 0: found.append("pidfd_getfd")
        os.close(process)
    except OSError: pass
    return found
"""
OF_OTHERS = LOOK + """
def is_there(pid):
    try: os.kill(pid, 0); return True
    except ProcessLookupError: return False
    except PermissionError: return True
hidden = [pid for pid in range(1, 100) if str(pid) not in os.listdir("/proc") and is_there(pid)]
[os.getppid() in hidden, len(hidden), [look(pid) for pid in hidden]]
"""
OF_A_CHILD = LOOK + """
import time
pid = os.fork()
if not pid: time.sleep(600)
found = look(pid)
os.kill(pid, 9)
sorted(found)
"""


@pytest.mark.row("J1")
@pytest.mark.control("J1")
def test_what_holds_a_session_together_shows_nothing_of_itself_and_takes_nothing(session):
    """PID 1, the server, the process beside a command, the helper for files; each other process of the jail shows nearly all of it."""
    beside = session.start_command("sleep", "600")
    with session.files():
        is_server_hidden, hidden, found = session.value(OF_OTHERS)
        assert is_server_hidden and hidden == 4 and not any(found), found
    of_child = session.value(OF_A_CHILD)
    assert {"mem", "environ", "fd", "cwd", "root", "exe", "maps"} <= set(of_child), of_child
    session.talk.ask("cancel", run=beside.id)
    assert beside.wait()["exit_reason"] == "cancelled"
    beside.close()


STOP = "import os, signal\nos.kill(os.getppid(), signal.SIG%s)"


@pytest.mark.row("J2")
def test_who_ends_what_holds_a_session_together_ends_the_session_and_all_hear_why(talk, token):
    session = open_session(talk)
    beside = session.start_command("sh", "-c", f"sleep 600; : {token}")
    assert host.poll(lambda: host.with_token(token)), "it does not run"
    assert session.run(STOP % "KILL").state == "lost"
    assert beside.wait()["session"]["state"] == "lost" and session.ended()["exit_reason"] == "signaled"
    assert not host.with_token(token), host.with_token(token)
    with pytest.raises(client.Refused, match="has ended: it was ended by something in it"):
        session.run("1")
    beside.close()


@pytest.mark.row("J2")
def test_who_stops_what_holds_a_session_together_makes_nobody_wait_for_long(talk):
    session = open_session(talk)
    session.run("1", context="other")
    run = session.start(STOP % "STOP" + "\nwhile True: pass")
    talk.ask("cancel", run=run.id)
    record = run.wait()
    assert (record["exit_reason"], record["session"]["state"]) == ("cancelled", "lost"), record
    assert session.ended()["exit_reason"] == "cancelled"
    with pytest.raises(client.Refused, match="a call in it could not be ended"):
        session.run("1", context="other")
    run.close()


# --- what a call leaves -----------------------------------------------------------------------------------------------------

DAEMONS = """
import os, signal, sys
for number in set(signal.valid_signals()) - {9, 19}:
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for n in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.close(1), os.close(2)
            os.execv("/bin/sh", ["sh", "-c", "sleep 600; : " + TOKEN])
        os._exit(0)
    os.wait()
"""
HIDDEN = "import ctypes; libc = ctypes.CDLL(None); libc.prctl(4, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0)\n" # not dumpable, and a subreaper itself
BOMB = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
RUNNER = """
import os
if os.fork(): os._exit(0)
os.setsid()
os.fork(), os.fork(), os.close(1), os.close(2)
while True: # always another process
    try:
        if os.fork(): os._exit(0)
    except OSError: pass
"""


def mine(session):
    """How many processes the session has but for those that hold it together: a fork bomb is seen in the kernel's count."""
    return session.value("import os; sum(name.isdigit() for name in os.listdir('/proc'))", context="looks") - 1


@pytest.mark.row("J3")
@pytest.mark.control("J3")
@pytest.mark.parametrize("way_out", ["", HIDDEN], ids=["daemons", "hidden daemons"])
def test_nothing_that_a_command_has_started_lives_on_when_it_has_ended(session, token, way_out):
    text = way_out + DAEMONS.replace("TOKEN", repr(token))
    assert session.command("python3", "-c", text, detach=True).status == 0
    assert host.poll(lambda: len(host.with_token(token)) == 3), "with detach they go on"
    session.command("python3", "-c", text.replace(token, token + "x"))
    assert not host.with_token(token + "x"), host.with_token(token + "x")
    assert len(host.with_token(token)) == 3, "those before were to go on"
    session.close()
    assert not host.with_token(token), "nothing outlives a session"


@pytest.mark.row("J3")
def test_who_kills_the_process_beside_his_command_wins_nothing(session, token):
    text = DAEMONS.replace("TOKEN", repr(token)) + "\nos.kill(os.getppid(), 9)\nimport time; time.sleep(600)"
    assert session.command("python3", "-c", text).reason == "signaled"
    assert not host.with_token(token), host.with_token(token)
    assert session.shell("echo goes on").out == "goes on\n"


@pytest.mark.row("J3")
def test_what_an_interpreter_has_started_ends_with_it(session, token):
    session.run(DAEMONS.replace("TOKEN", repr(token)))
    assert host.poll(lambda: len(host.with_token(token)) == 3), "they go on between calls"
    session.restart()
    assert session.run("1").state == "reset" and not host.with_token(token), host.with_token(token)


@pytest.mark.row("J4")
@pytest.mark.parametrize("text", [BOMB, HIDDEN + BOMB, RUNNER, HIDDEN + RUNNER], ids=["bomb", "hidden bomb", "runner", "hidden runner"])
def test_a_fork_bomb_ends_with_its_command_and_the_session_goes_on(session, text):
    session.command("python3", "-c", text, limits={"wall_ms": 300})
    assert mine(session) == 0 and session.shell("echo goes on").out == "goes on\n"


@pytest.mark.row("J4")
def test_a_fork_bomb_of_an_interpreter_ends_with_a_restart_and_the_files_stay(session):
    session.put({"kept": b"1"})
    run = session.start(BOMB, limits={"wall_ms": 300})
    assert run.wait()["exit_reason"] == "timeout_wall"
    run.close()
    session.restart()
    assert session.run("1").state == "reset" and session.get("kept")[0] == {b"kept": b"1"} and mine(session) == 1
