"""Rows J1 to J9: programs of a session against what holds it together, against each other's calls, against the files on their way, and other users' sessions."""
import base64
import os
import re
import stat
import uuid

import pytest

from support import client, host, tiers, warm_load
from support import daemon as daemons
from support.sessions import GET, Answer, open_session
from support.traced import Traced

ANN, BOB = host.own_id(5), host.own_id(6)
USERS = {"runs": 64, "access": [{"uid": uid, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000} for uid in (0, ANN, BOB)]}


@pytest.fixture(scope="module", params=tiers.few(["ready", "private"], "ready"))
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
    way.path.chmod(0o666)
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


@pytest.mark.row("J3")
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


@pytest.mark.row("J3")
def test_who_stops_what_holds_a_session_together_makes_nobody_wait_for_long(talk):
    session = open_session(talk)
    session.run("1", context="other")
    run = session.start(STOP % "STOP" + "\nprint('done')\nwhile True: pass")
    assert run.line() == "done"
    talk.ask("cancel", run=run.id)
    record = run.wait()
    assert (record["exit_reason"], record["session"]["state"]) == ("cancelled", "lost"), record
    assert session.ended()["exit_reason"] == "cancelled"
    with pytest.raises(client.Refused, match="a call in it could not be ended"):
        session.run("1", context="other")
    run.close()


OVERWRITE = LOOK + r"""
import os, sys

def writes(path):
    "Ways in which a file can be changed."
    found = []
    for name, flags in ("write", os.O_WRONLY), ("truncate", os.O_WRONLY | os.O_TRUNC), ("append", os.O_WRONLY | os.O_APPEND):
        try: os.close(os.open(path, flags)); found.append(name)
        except OSError: pass
    for name, flags in ("held", os.O_RDONLY), ("held by name", os.O_PATH):
        try:
            fd = os.open(path, flags)
            os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)); found.append(name)
        except OSError: pass
    for name, work in (("chmod", lambda: os.chmod(path, 0o777)), ("rename", lambda: os.rename(path, path + "x")), ("unlink", lambda: os.unlink(path)),
                       ("link", lambda: os.link(path, "/workspace/second"))):
        try: work(); found.append(name)
        except OSError: pass
    return found
of_processes = {pid: found for pid in range(1, 100) if (found := writes(f"/proc/{pid}/exe"))}
paths = {os.path.realpath(path) for path in (sys.executable, "/bin/sh", "/usr/bin/sleep", "/usr/bin/env", "/lib64/ld-linux-x86-64.so.2", "/proc/self/exe")}
[of_processes, {path: found for path in paths if (found := writes(path))}, len(paths)]
"""
PLANT = "#!/bin/sh\necho planted\n"


@pytest.mark.row("J2")
def test_no_program_that_is_executed_in_a_session_can_be_changed_or_replaced(session):
    """CVE-2019-5736: what enters is overwritten by way of /proc/PID/exe. Nothing enters, and what is executed lies where nothing can be written."""
    beside = session.start_command("sleep", "600")
    with session.files():
        of_processes, of_files, looked_at = session.value(OVERWRITE)
    assert (of_processes, of_files) == ({}, {}) and looked_at >= 4, (of_processes, of_files)
    session.value("import os\nos.environ['PATH'] = '/workspace:/tmp'\nfor name in ('sh', 'python3', 'sleep'):\n    open(name, 'w').write(%r); os.chmod(name, 0o755)\n1" % PLANT)
    assert session.shell("echo real").out == "real\n" and session.command("python3", "-c", "print('real')").out == "real\n"
    assert session.command("./sh").out == "planted\n", "it is executed by its own name, with the rights that every program has"
    assert session.command("/proc/self/exe", "-c", "import os; print(os.getuid() == os.geteuid(), open('/proc/self/status').read().count('CapEff:\\t0000000000000000'))").out == "True 1\n"
    session.talk.ask("cancel", run=beside.id)
    beside.finish()


# --- what a call leaves -----------------------------------------------------------------------------------------------------

DAEMONS = """
import os, signal, sys
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33}:
    signal.signal(number, signal.SIG_IGN)
for n in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.close(1), os.close(2)
            os.execv("/bin/sh", ["sh", "-c", "sleep 600; : " + TOKEN])
        os._exit(0)
for n in range(3): os.wait()
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


@pytest.mark.parametrize("way_out", tiers.few(["", HIDDEN], HIDDEN), ids=["daemons", "hidden daemons"])
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


def test_what_an_interpreter_has_started_ends_with_it(session, token):
    session.run(DAEMONS.replace("TOKEN", repr(token)))
    assert host.poll(lambda: len(host.with_token(token)) == 3), "they go on between calls"
    session.restart()
    assert session.run("1").state == "reset" and not host.with_token(token), host.with_token(token)


@pytest.mark.alone("forks as fast as it can")
@pytest.mark.parametrize("text", tiers.few([BOMB, HIDDEN + BOMB, RUNNER, HIDDEN + RUNNER], HIDDEN + RUNNER), ids=["bomb", "hidden bomb", "runner", "hidden runner"])
def test_a_fork_bomb_ends_with_its_command_and_the_session_goes_on(session, text):
    session.command("python3", "-c", text, limits={"wall_ms": 300})
    assert mine(session) == 0 and session.shell("echo goes on").out == "goes on\n"


@pytest.mark.alone("forks as fast as it can")
def test_what_forks_faster_than_the_process_beside_it_looks_ends_too(session, token, tmp_path):
    """Once all that it had seen were over when it looked at them, and the one that they had forked meanwhile went on."""
    going = session.start_command("sh", "-c", f"sleep 600; : {token}")
    assert host.poll(lambda: host.with_token(token)), "its first process is there before it has its arguments"
    server = host.parent(host.parent(host.with_token(token)[0][0]))
    session.talk.ask("cancel", run=going.id)
    going.finish()
    with Traced(server, tmp_path / "log", "-e", "trace=waitid", "-e", "inject=waitid:delay_enter=1000"):
        session.command("python3", "-c", RUNNER, limits={"wall_ms": 300})
    assert mine(session) == 0 and session.shell("echo goes on").out == "goes on\n"


@pytest.mark.alone("forks as fast as it can")
def test_a_fork_bomb_of_an_interpreter_ends_with_a_restart_and_the_files_stay(session):
    session.put({"kept": b"1"})
    run = session.start(BOMB, limits={"wall_ms": 300})
    assert run.wait()["exit_reason"] == "timeout_wall"
    run.close()
    session.restart()
    assert session.run("1").state == "reset" and session.get("kept")[0] == {b"kept": b"1"} and mine(session) == 1


# --- lies -------------------------------------------------------------------------------------------------------------------

CHANNEL = """
import array, os, socket, time

def channel():
    for name in os.listdir("/proc/self/fd"):
        try: is_socket = os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError: continue
        if is_socket and (found := socket.socket(fileno=os.dup(int(name)))).type == socket.SOCK_SEQPACKET: return found
server = channel()
"""
ANSWER = "server.send(b'{\"call\": %d, \"exit_code\": 0}' % CALL)\n"
LIES = {
    "no JSON": "server.send(b'\\xff' * 4000)", "nothing": "server.send(b'')", "too deep": "server.send(b'[' * 4000)", "too large": "server.send(b'1' * 100000)",
    "a long number": "server.send(b'{\"call\": 1%s, \"exit_code\": 1}' % (b'0' * 3900))", "another call": "server.send(b'{\"call\": 99, \"exit_code\": 0}')",
    "no number": "server.send(b'{\"call\": true, \"exit_code\": 1e400}')", "an end": "server.shutdown(2)", "a flood": "while True: server.send(b'x' * 200)",
    "descriptors": "server.sendmsg([b'{'], [(1, 1, array.array('i', [0] * 200))])", "two answers": ANSWER + ANSWER,
    "a struct": "server.send((3).to_bytes(4, 'little') + (CALL + 1).to_bytes(4, 'little') + bytes(16))",
}


@pytest.mark.row("J8")
def test_an_interpreter_that_lies_loses_itself_and_nothing_else(session):
    session.run("x = 7", context="other")
    answer = session.run(CHANNEL + ANSWER.replace("CALL", "2") + "print('after')")
    assert (answer.reason, answer.status, answer.state) == ("exited", 0, "new"), "it may say that its own call has ended"
    for name, lie in LIES.items():
        calls = session.row()["calls"]
        answer = session.run(CHANNEL + lie.replace("CALL", str(calls + 1)) + "\nimport time; time.sleep(600)")
        assert (answer.state, answer.record["exit_code"]) in (("lost", 137), ("kept", 0)), f"{name}: {answer}"
        answer = session.run("1 + 1")
        assert answer.state == "reset" and answer.report["result"] == 2, f"{name}: {answer}"
    assert session.value("x", context="other") == 7


@pytest.mark.row("J7")
def test_no_output_forges_a_record_or_the_end_of_another_call(session):
    other = session.start("import time; print('up', flush=True); time.sleep(600)", context="other")
    assert other.line() == "up"
    forged = '{"event":"ended","run":"%s","record":{"exit_reason":"exited","exit_code":0}}' % other.id
    answer = session.run(f"import os\nfor fd in range(30):\n    try: os.write(fd, {forged.encode() + bytes([10])!r})\n    except OSError: pass\nraise SystemExit(9)")
    assert (answer.reason, answer.status, answer.state) == ("signaled", 137, "lost"), "what it wrote to the server is no answer"
    assert other.id in session.row()["running"] and not other.events
    session.talk.ask("cancel", run=other.id)
    assert other.wait()["exit_reason"] == "cancelled"
    other.close()


BOMB_OF_PIXELS = """
import struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Picture:
    def __init__(self, png): self.png = png
    def _repr_png_(self): return self.png
packer = zlib.compressobj()
lines = b"".join(packer.compress(bytes(1 << 20)) for _ in range(50)) + packer.flush()
display(Picture(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 65535, 65535, 8, 6, 0, 0, 0)) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")))
display(Picture(b"GIF89a"))
len(lines)
"""


@pytest.mark.row("J7")
def test_a_picture_that_is_a_bomb_or_none_is_passed_on_unopened(session):
    """17 GB of pixels, says its head. What a picture is worth is the client's to judge; that of MCP looks at its first bytes (tests/mcp/test_mcp_pictures.py)."""
    answer = session.run(BOMB_OF_PIXELS)
    bomb, none = (base64.b64decode(bundle["image/png"]) for bundle in answer.report["displays"])
    assert answer.report["result"] < len(bomb) < 1 << 20 and none == b"GIF89a" and answer.record["wall_ms"] < 20000, answer
    assert session.run("1").state == "kept"


# --- what runs out ----------------------------------------------------------------------------------------------------------

CHILDREN = "import os, time\ntry:\n    while os.fork(): pass\n    os.close(1), os.close(2)\n    time.sleep(600)\nexcept OSError as error: print(error.errno)"
IN_FLIGHT = """
import array, os, socket
kept, fds = [], [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
try:
    while True:
        kept.append(socket.socketpair())
        kept[-1][0].setblocking(False)
        try:
            while True: kept[-1][0].sendmsg([b"x"], [(1, 1, array.array("i", fds))])
        except BlockingIOError: pass
except OSError as error: print(error.errno)
"""


def told(asked):
    """What is said in the place of a call."""
    with pytest.raises(client.NotStarted) as found:
        asked()
    record = found.value.record
    assert record["exit_reason"] == "setup_failed" and found.value.exec_error is None, record
    return record["error"]["message"]


@pytest.mark.row("J4")
def test_where_a_program_has_taken_all_processes_a_call_hears_so_and_a_restart_helps(session):
    session.run("1", context="first")
    assert session.run(CHILDREN).lines == ["11"]
    assert "the command could not be started: Resource temporarily" in told(lambda: session.shell("true"))
    assert "the interpreter could not be started: Resource temporarily" in told(lambda: session.run("1", context="third"))
    with pytest.raises((client.Closed, OSError)), session.files() as moved: # its client sees the end of the socket
        moved.exchange({}, [(GET, "*")])
    assert session.value("1 + 1") == 2 and session.value("2 + 2", context="first") == 4, "those that are there go on"
    session.restart()
    assert session.shell("echo again").out == "again\n" and session.value("1", context="third") == 1 and session.list() == {}


@pytest.mark.row("J4")
def test_where_a_program_has_as_many_descriptors_under_way_as_it_may_a_call_hears_so_and_a_restart_helps(session):
    assert session.run(IN_FLIGHT).lines == ["109"]
    for asked in (lambda: session.shell("true"), lambda: session.run("1"), lambda: session.run("1", context="other")):
        assert "Too many references" in told(asked)
    assert session.row()["contexts"] == ["main"] or session.row()["contexts"] == []
    session.restart()
    assert session.shell("echo again").out == "again\n" and session.value("1", context="other") == 1


@pytest.mark.row("J4")
def test_where_the_server_has_no_descriptor_left_a_call_hears_so(talk):
    session, runs = open_session(talk, limits={"files": 16}), []
    session.run("1")
    said = told(lambda: [runs.append(session.start_command("sleep", "600")) for _ in range(20)])
    assert "Too many open files" in said and "Too many open files" in told(lambda: session.run("1"))
    for run in runs:
        talk.ask("cancel", run=run.id)
        assert run.wait()["exit_reason"] == "cancelled"
        run.close()
    assert session.run("1").state == "kept" and session.shell("echo again").out == "again\n"


@pytest.mark.row("J4")
def test_a_memory_bomb_ends_as_oom_and_costs_no_other_interpreter(session, bystander):
    session.run("x = 7", context="other")
    for _ in range(2):
        answer = session.run("bytearray(400 << 20)")
        assert (answer.reason, answer.state) == ("oom", "lost"), answer
    assert session.command("python3", "-c", "bytearray(400 << 20)").reason == "oom"
    assert session.value("x", context="other") == 7


@pytest.mark.row("J4")
def test_a_file_that_takes_all_memory_leaves_nothing_and_costs_no_interpreter(session):
    """/workspace may be as large as the memory of the session. What writes the file is told that there is no room, or is what ends for it: that depends on
    the kernel, and on which process asks for memory first. Its client hears of both."""
    session.run("x = 7")
    with session.files() as moved:
        moved.sock.setblocking(True)
        try:
            moved.say(1, b"large", 300 << 20)
            piece = bytes(1 << 20)
            for _ in range(300):
                moved.sock.sendall(piece)
            assert moved.exchange({}, []) == ({}, {b"large": "room"})
        except (client.Closed, BrokenPipeError, ConnectionResetError):
            pass
    assert session.value("x") == 7 and host.poll(lambda: session.list() == {}), session.list()
    assert session.put({"small": b"1"}) == {} and session.list() == {b"small": 1}


KILL_OTHERS = """
import os, time
spared, killed = {1, os.getppid(), *map(int, os.listdir("/proc/self/task"))}, 0
while not killed: # it may not be there yet
    for pid in range(2, 500):
        try:
            if pid not in spared: os.kill(pid, 9); killed += 1
        except ProcessLookupError:
            pass
killed
"""


def test_what_writes_a_file_can_be_killed_and_leaves_nothing(session):
    """Any program of the session can do that, and so does the kernel where memory is short."""
    with session.files() as moved:
        moved.say(1, b"half", 2 << 20)
        moved.sock.sendall(bytes(1 << 20))
        assert session.value(KILL_OTHERS) == 1
        with pytest.raises((client.Closed, BrokenPipeError, ConnectionResetError)):
            while True:
                moved.next()
    assert session.list() == {}
    assert session.put({"half": b"1"}) == {} and session.get("half")[0] == {b"half": b"1"}


def test_a_put_replaces_a_file_and_no_directory(session):
    session.run("import os; os.mkdir('/workspace/taken'); open('/workspace/old', 'w').write('old')")
    assert session.put({"old": b"new", "taken": b"1"}) == {b"taken": "unwritable"}
    assert session.get("*") == ({b"old": b"new"}, {})


# --- files on their way -----------------------------------------------------------------------------------------------------

FULL = r"""
import os, socket
os.chdir("/workspace")
os.symlink("/etc/passwd", "link"); os.symlink("/", "root"); os.symlink("target", "linked"); os.mkdir("target"); os.mkfifo("fifo"); os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
for name in (b"n\xff\xfe", b"new\nline", b"a" * 255, b"-rf", b"*", b" ", b"\xf0\x9f"):
    open(name, "wb").write(b"1")
with open("holes", "wb") as file: file.truncate(400 << 20)
open("shut", "w").write("x"); os.chmod("shut", 0)
os.mkdir("closed"); open("closed/f", "w").write("x"); os.chmod("closed", 0)
os.makedirs("deep/" + "d/" * 31 + "d"); open("deep/" + "d/" * 30 + "f", "w").write("1"); open("deep/" + "d/" * 31 + "d/f", "w").write("1")
os.makedirs("long/" + "/".join(["e" * 250] * 4)); open("long/" + "/".join(["e" * 250] * 4) + "/" + "f" * 60, "w").write("1")
"""
SENT = {b"n\xff\xfe", b"new\nline", b"a" * 255, b"-rf", b"*", b" ", b"\xf0\x9f", b"deep/" + b"d/" * 30 + b"f"}
LEFT_OUT = {b"link": "link", b"root": "link", b"linked": "link", b"fifo": "special", b"pipe": "special", b"socket": "special", b"holes": "size", b"shut": "unreadable",
            b"closed": "unreadable", b"deep/" + b"d/" * 30 + b"d": "deep"}
REFUSED = {name: b"x" for name in ("root/tmp/x", "linked/x", "pipe/x", "target", "../x", "a/../x", "/tmp/x", "", ".", "..", "closed/g", "b" * 256, "a/" * 32 + "b", "nul\0", "fifo/x", "link/x", "a//b")}
REPLACED = ("link", "fifo", "socket", "shut")


@pytest.mark.row("J5")
def test_no_link_and_no_special_file_is_followed_or_waited_for_and_no_name_leads_out(session):
    session.run(FULL)
    found, left = session.get("*")
    long = {name: why for name, why in left.items() if name.startswith(b"long/")}
    assert set(long.values()) == {"deep"} and left == {**LEFT_OUT, **long} and set(found) == SENT, (left, set(found))
    assert {name: len(data) for name, data in found.items()} == dict.fromkeys(SENT, 1) and set(session.list()) == SENT | {b"holes", b"shut"}, session.list()
    left = session.put({**REFUSED, **dict.fromkeys(REPLACED, b"2"), b"x\xff/y": b"3"})
    assert left == dict.fromkeys((name.encode() for name in REFUSED), "unwritable"), left
    found, _ = session.get(*REPLACED, "x?")
    assert found == {**{name.encode(): b"2" for name in REPLACED}, b"x\xff/y": b"3"}, found
    outside = session.value("import os; [open('/etc/passwd').read(4), os.path.exists('/tmp/x'), os.listdir('/workspace/target'), [n for n in os.listdir('/workspace') if n.startswith('.')]]")
    assert outside == ["root", False, [], []], outside


@pytest.mark.row("J5")
def test_no_path_that_is_renamed_removed_made_or_described_leads_out_or_over_a_link(session):
    session.run("""import os
os.symlink("/tmp", "out"); os.symlink("target", "in"); os.mkdir("target"); os.symlink("/etc/passwd", "passwd"); os.mkdir("full"); os.mkdir("/tmp/dir"); os.mkfifo("fifo")
for name in "/tmp/kept", "/tmp/dir/kept", "target/kept", "full/f", "a": open(name, "w").write(name)
os.symlink("/tmp/dir", "full/link")""")
    for path in "out/kept", "in/kept", "../tmp/kept", "target/../../tmp/kept", "/tmp/kept", "passwd/x", "", ".", "..", "a//b", "a/" * 32 + "b", "nul\0", "x" * 256:
        name = path.encode()
        assert set(session.remove(path, tree=True).values()) == set(session.rename(path, "stolen").values()) == {"unwritable"}, path
        assert set(session.rename("a", path).values()) == {"unwritable"}, path
        assert path == "" or session.stat(path)[1].get(name) in ("missing", "unreadable"), path
    assert session.remove("full") == {b"full": "not_empty"} and session.rename("none", "b") == session.remove("none") == {b"none": "missing"}
    found, left = session.stat("passwd")
    assert (stat.S_IFMT(found[b"passwd"][0]), found[b"passwd"][3], left) == (stat.S_IFLNK, b"/etc/passwd", {})
    found, left = session.stat("", 2)
    assert left == {} and set(found) == {b"", b"a", b"fifo", b"full", b"full/f", b"full/link", b"in", b"out", b"passwd", b"target", b"target/kept"} and found[b"a"][1] == 1, found
    # what may be done: links themselves, a directory with a link in it, a new name
    assert session.remove("passwd") == session.rename("in", "out") == session.remove("full", tree=True) == session.mkdir("new/deeper") == session.rename("a", "new/b") == {}
    outside = session.value("[open('/etc/passwd').read(4), sorted(os.listdir('/tmp')), os.listdir('/tmp/dir'), sorted(os.listdir('/workspace')), os.readlink('out'), open('new/b').read()]")
    assert outside == ["root", ["dir", "kept"], ["kept"], ["fifo", "new", "out", "target"], "target", "a"], outside


@pytest.mark.row("J6")
def test_a_tree_that_is_removed_while_links_take_its_place_is_all_that_is_removed(session):
    """A directory becomes a link to another one while it is emptied; the other one keeps its files."""
    session.run("""import os, threading
os.mkdir("safe"); open("safe/kept", "w").close(); os.symlink("/workspace/safe", "link")
def swap():
    while True:
        try:
            os.makedirs("tree/inner", exist_ok=True); open("tree/inner/f", "w").close()
            os.rename("tree/inner", "aside"); os.rename("link", "tree/inner"); os.rename("tree/inner", "link"); os.rename("aside", "tree/inner")
        except OSError:
            if not os.path.lexists("link"): os.symlink("/workspace/safe", "link")
            if os.path.isdir("aside"): os.system("rm -rf aside")
threading.Thread(target=swap, daemon=True).start()""")
    for _ in range(30):
        session.remove("tree", tree=True)
        session.stat("", 32)
    assert session.value("os.listdir('safe')") == ["kept"]


SWAPS = """
import os, threading
os.chdir("/workspace"); os.mkdir("r"); os.mkfifo("r/pipe"); os.symlink("/etc/passwd", "r/link")
open("r/f", "wb").write(b"z" * (1 << 20)); open("r/last", "w").write("1")

def work():
    while True:
        for other in ("pipe", "link"):
            try:
                os.rename("r/f", "r/g"); os.rename(f"r/{other}", "r/f"); os.rename("r/f", f"r/{other}"); os.rename("r/g", "r/f")
                os.truncate("r/f", 1 << 19); os.truncate("r/f", 0); open("r/f", "ab").write(b"z" * (1 << 20))
            except OSError: pass
threading.Thread(target=work, daemon=True).start()
"""


@pytest.mark.row("J6")
def test_a_file_that_is_exchanged_or_changes_while_it_is_read_is_told_and_hangs_nobody(session):
    session.run(SWAPS)
    for _ in range(40):
        found, left = session.get("r/*")
        assert found[b"r/last"] == b"1" and b"root" not in b"".join(found.values()), (found.keys(), left)
        for name, data in found.items():
            assert data.rstrip(b"\0") == b"z" * len(data.rstrip(b"\0")) or name == b"r/last"
            assert len(data) == data.count(b"z") or left.get(name) == "changed" or name == b"r/last", (name, len(data), data.count(b"z"), left)


@pytest.mark.row("J6")
def test_a_tree_that_moves_about_while_it_is_read_comes_to_an_end(session):
    session.run("""
import os, threading
os.chdir("/workspace")
for name in "abcdefgh": os.makedirs(f"t/{name}/x/y")

def work():
    while True:
        for name in "abcdefg":
            try: os.rename(f"t/{name}/x", "t/h/z"); os.rename("t/h/z/y", "t/h/y"); os.rename("t/h/y", "t/h/z/y"); os.rename("t/h/z", f"t/{name}/x")
            except OSError: pass
threading.Thread(target=work, daemon=True).start()
""")
    for _ in range(20):
        session.list()


# --- other users ------------------------------------------------------------------------------------------------------------

@pytest.mark.row("J9")
def test_nobody_sees_or_uses_the_session_of_another(service):
    """By its id, its name, a call's id, a list or a guess; its own user can, over any connection."""
    with service.connect_as(ANN) as ann, service.connect_as(ANN) as again, service.connect_as(BOB) as bob:
        hers = open_session(ann, name="work", stays=True)
        call = hers.start("import time; print('up', flush=True); time.sleep(600)")
        assert call.line() == "up"
        hers.put({"secret": b"1"})
        his = open_session(bob, name="work") # names are the user's own
        for name in hers.id, hers.id.upper(), str(uuid.uuid4()), "main", call.id:
            theirs = type(hers)(bob, None, {"session": name})
            for asked in (lambda: theirs.run("1"), lambda: theirs.shell("true"), theirs.list, theirs.restart, lambda: theirs.renew(1000), lambda: bob.ask("close", session=name)):
                with pytest.raises(client.Refused) as refused:
                    asked()
                assert refused.value.error == {"code": "not_found", "message": f'you have no session "{name}"', "field": "session"}, refused.value.error
        for op, fields in ("cancel", {"run": call.id}), ("interrupt", {"run": call.id}), ("cancel", {"run": hers.id}), ("tools", {"run": call.id, "waiting": True}):
            with pytest.raises(client.Refused) as refused:
                bob.ask(op, **fields)
            assert refused.value.code == "not_found", (op, refused.value)
        listed = bob.ask("list")
        assert [row["session"] for row in listed["sessions"]] == [his.id] and hers.id not in str(listed) and call.id not in str(listed)
        assert type(his)(bob, None, {"session": "work"}).list() == {} and hers.on(again).list() == {b"secret": 1}
        assert hers.on(again).renew(600000)["session"] == hers.id
        again.ask("interrupt", run=call.id)
        assert call.finish().record["exit_code"] == 130 and hers.on(again).row()["mine"]
        hers.close()
        with pytest.raises(client.Refused, match="you have no session"): # nor why it ended
            type(hers)(bob, None, {"session": hers.id}).run("1")


# --- clocks -----------------------------------------------------------------------------------------------------------------

def test_no_program_makes_its_call_or_its_session_last_longer(talk):
    """It may ignore what interrupts it, fork, catch every exception and every signal, and be busy all the time."""
    session = open_session(talk, limits={"idle_ms": 1500, "lifetime_ms": 86400000})
    busy = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nif os.fork(): print('up', flush=True)\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass"
    session.run("1") # has an interpreter, whose start takes no time of the call
    run = session.start(busy, limits={"wall_ms": round(200 * host.SLOWER)})
    assert run.line() == "up"
    record = run.wait()
    run.close()
    assert (record["exit_reason"], record["session"]["state"]) == ("timeout_wall", "lost") and record["wall_ms"] < 20000, record
    session.run("import threading, time\nthreading.Thread(target=lambda: [print(n) or time.sleep(0.01) for n in range(100000)], daemon=True).start()")
    assert session.ended()["exit_reason"] == "exited"
    with pytest.raises(client.Refused, match="it was idle for 1.5 s"):
        session.run("1")
    with pytest.raises(client.Refused, match="lifetime_ms"):
        open_session(talk, limits={"lifetime_ms": 86400001})
    session = open_session(talk, limits={"lifetime_ms": round(1000 * host.SLOWER)})
    run = session.start("import time; time.sleep(600)")
    assert run.wait()["session"]["state"] == "lost" and session.ended()["wall_ms"] >= 900 * host.SLOWER # from the start of its first process
    run.close()


def test_cpu_time_ends_a_call_that_takes_it_and_not_the_session(session):
    answer = session.run("while True: pass", limits={"cpu_ms": 200})
    assert (answer.reason, answer.status) == ("timeout_cpu", None) and answer.record["cpu_ms"] >= 200 and answer.state == "new", answer
    answer = session.command("python3", "-c", "while True: pass", limits={"cpu_ms": 1000})
    assert answer.reason == "timeout_cpu" and answer.record["cpu_ms"] >= 500, answer # the kernel's limit of one process counts ticks
    assert session.run("1").state == "kept"
