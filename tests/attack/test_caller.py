"""What of the caller reaches the program, and what becomes of the program when the caller goes away."""
import ast
import os
import pty
import signal
import socket
import subprocess
import termios

import pytest

from support import brig as tool
from support import host

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
ATTEMPT = """
import errno, os, sys
def attempt(what, *args):
    try: what(*args); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
    except ValueError: return "ValueError"
"""

# --- a terminal (A17) -------------------------------------------------------------------------------------

TYPE = ATTEMPT + """
import fcntl, json
answers = {}
for name in ("/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "/dev/tty", "/dev/pts/0", "/dev/ptmx", "/dev/console"):
    def push(): fcntl.ioctl(os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK), 0x5412, b"Z")
    answers[name] = attempt(push)
for fd in range(3): answers[fd] = attempt(fcntl.ioctl, fd, 0x5412, b"Z")
print(json.dumps(answers))
"""


@pytest.fixture
def terminal():
    """run(argv) -> what was typed into its controlling terminal meanwhile."""
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, mode)

    def run(argv):
        script = f"import fcntl, os, sys; fcntl.ioctl(0, {termios.TIOCSCTTY}, 0); os.execv(sys.argv[1], sys.argv[1:])"
        child = subprocess.Popen([host.PYTHON, "-c", script, *map(str, argv)], stdin=slave, stdout=slave, stderr=slave,
                                 start_new_session=True, env=tool.environment())
        assert child.wait(host.HANG) == 0
        os.set_blocking(slave, False)
        try:
            return os.read(slave, 100)
        except BlockingIOError:
            return b""
    yield run
    os.close(master)
    os.close(slave)


@pytest.mark.row("A17")
def test_nothing_is_typed_into_the_callers_terminal(jail, brig, terminal, tmp_path):
    (tmp_path / "type.py").write_text(TYPE)
    assert terminal([brig, "run", "--stdin", "-", "--timeout", "5", tmp_path / "type.py"]) == b""


@pytest.mark.control("A17")
def test_control_a_terminal_is_typed_into_without_a_jail(needs_root, terminal, tmp_path):
    (tmp_path / "type.py").write_text(TYPE)
    assert b"Z" in terminal([host.PYTHON, tmp_path / "type.py"])


# --- sockets (F9) -----------------------------------------------------------------------------------------

SEND = ATTEMPT + """
import socket
for fd in range(3):
    def send():
        with socket.socket(fileno=os.dup(fd)) as s: socket.send_fds(s, [b"x"], [fd] * 250)
    print(fd, attempt(send), file=sys.stderr)
"""


def run_on_sockets(argv, program):
    """The program's stderr, and how many descriptors came through its stdin and stdout."""
    ours, theirs = zip(*(socket.socketpair() for _ in range(2)))
    done = subprocess.run([*argv, program], stdin=theirs[0], stdout=theirs[1], stderr=subprocess.PIPE, text=True, timeout=host.HANG,
                          env=tool.environment())
    came = 0
    for end in (*theirs, *ours):
        end.setblocking(False)
    for end in ours:
        try:
            fds = socket.recv_fds(end, 10, 253)[1]
        except BlockingIOError:
            fds = []
        came += len(fds)
        for fd in fds:
            os.close(fd)
    for end in (*ours, *theirs):
        end.close()
    return done.stderr, came


@pytest.mark.row("F9")
def test_no_descriptor_is_sent_though_brigs_own_ends_are_sockets(jail, brig, tmp_path):
    (tmp_path / "send.py").write_text(SEND)
    said, came = run_on_sockets([brig, "run", "--stdin", "-", "--timeout", "5"], tmp_path / "send.py")
    assert said == "".join(f"{fd} ENOTSOCK\n" for fd in range(3)) and came == 0, said


@pytest.mark.control("F9")
def test_control_descriptors_are_sent_through_sockets_without_a_jail(tmp_path):
    (tmp_path / "send.py").write_text(SEND)
    said, came = run_on_sockets([host.PYTHON], tmp_path / "send.py")
    assert "1 ok" in said and came == 500, said


# --- a listener of a filter (A20) -------------------------------------------------------------------------

LISTEN = """
import ctypes, struct, time
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000)) # allow all
libc.prctl(38, 1, 0, 0, 0)
print(libc.syscall(317, 1, 8, ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))) >= 0, flush=True)
time.sleep(600)
"""


def listeners():
    """Processes that hold a listener of some filter."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:
            continue
        if "anon_inode:seccomp notify" in links:
            found.add(int(pid))
    return found


@pytest.mark.row("A20")
@pytest.mark.private("its launcher holds it")
def test_only_what_watches_a_run_holds_a_listener_while_it_runs(jail, start_brig, token):
    child = start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    assert "brig-launcher" in {host.read(f"/proc/{pid}/comm").strip() for pid in listeners()} <= {"brig-launcher", "brig-supervisor"} # other services


# All at once: refused calls of threads, with signals that are handled while they wait, and children that are stopped, continued and killed at the same time.
PRESS = """
import collections, ctypes, errno, os, signal, threading, time
libc = ctypes.CDLL(None, use_errno=True)
seen = collections.Counter()
def press():
    while time.monotonic() < end:
        for call in (lambda: libc.mount(b"a", b"/tmp", b"tmpfs", 0, None), lambda: libc.unshare(0x10000000), lambda: libc.socket(16, 3, 0)):
            answer = call()
            seen[answer, errno.errorcode.get(ctypes.get_errno())] += 1
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, .001, .001)
end = time.monotonic() + 1
threads = [threading.Thread(target=press) for _ in range(4)]
for t in threads: t.start()
answered, says = os.pipe()
while time.monotonic() < end:
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, 0, 0)
        os.write(says, b".") # it has been answered once: a slow machine kills no child before it asks
        while True: libc.ptrace(0, 0, 0, 0)
    os.read(answered, 1)
    for number in signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL:
        time.sleep(.005)
        os.kill(child, number)
    os.waitpid(child, 0)
for t in threads: t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print(sorted(seen))
"""
REFUSED = {(-1, "EPERM"), (-1, "EAFNOSUPPORT"), (-1, "EINTR")}


@pytest.mark.row("A20")
def test_what_is_refused_stays_refused_whatever_signals_and_siblings_do(jail, run_brig):
    """With calls that wait for an answer, other sandboxes have let one through, lost one, or hung when the caller died."""
    ran = run_brig(program=PRESS)
    assert ran.status == 0 and set(ast.literal_eval(ran.out)) <= REFUSED, str(ran)
    rows = {row["call"]: row["count"] for row in ran.record["refused"]}
    assert set(rows) == {"mount", "unshare", "socket", "ptrace"}, str(ran)


@pytest.mark.row("A20")
def test_a_storm_of_refused_calls_rests_and_a_program_cannot_count_for_itself(jail, run_brig):
    """Sixteen answers, then two milliseconds: neither the program nor the process that answers can keep others from running (tests/attack)."""
    storm = "import ctypes, os, time\nptrace = ctypes.CDLL(None).ptrace\nend = time.monotonic() + 1\nfor _ in range(3): os.fork()\n" \
            "while time.monotonic() < end: ptrace(0, 0, 0, 0)\nprint('{\"refused\": [{\"call\": \"none\"}]}')"
    ran = run_brig(program=storm)
    row, = ran.record["refused"]
    assert row["call"] == "ptrace" and 100 <= row["count"] <= 16 * (ran.record["wall_ms"] / 2 + 1), str(ran)


@pytest.mark.row("A20")
@pytest.mark.private("its launcher is found below brig")
def test_a_program_ends_with_a_launcher_that_was_asked(jail, start_brig, token, nothing_left):
    child = start_brig("--timeout", "300", program="import ctypes\nprint('ready', flush=True)\nwhile True: ctypes.CDLL(None).ptrace(0, 0, 0, 0)", args=[token],
                       json_record=False)
    assert child.line() == "ready", child.wait(1)
    os.kill(host.jail_below(child.pid)["launcher"], signal.SIGKILL)
    assert child.wait().status == 143
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.control("A20")
def test_control_a_listener_is_seen():
    child = subprocess.Popen([host.PYTHON, "-c", LISTEN], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "True\n" and child.pid in listeners()
    finally:
        child.kill()
        child.communicate()


# --- the caller goes away (D7, D13) -----------------------------------------------------------------------

@pytest.mark.row("D7")
def test_a_program_ends_with_its_brig(jail, start_brig, token, nothing_left):
    child = start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False)
    assert child.line() == "ready"
    child.signal(signal.SIGKILL)
    child.wait()
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.row("D7")
def test_a_program_that_writes_ends_with_its_reader(jail, start_brig, token, nothing_left):
    program = "import time\nwhile True: print('ready', flush=True); time.sleep(0.05)"
    child = start_brig("--timeout", "300", program=program, args=[token], json_record=False)
    assert child.line() == "ready"
    child.process.stdout.close()
    child.process.stdout = None
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.control("D6")
@pytest.mark.control("D7")
def test_control_a_program_outlives_whoever_started_it_without_a_jail(token):
    parent = subprocess.Popen(["sh", "-c", f"{host.PYTHON} -c \"{SLEEP}\" {token} & wait"], stdout=subprocess.PIPE, text=True)
    parent.stdout.readline()
    parent.kill()
    parent.wait()
    left = host.with_token(token)
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    parent.stdout.close()
    assert len(left) == 1 and host.poll(lambda: not host.with_token(token))


DEAF = """
import signal, sys, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
print("ready", flush=True)
try: time.sleep(600)
finally: time.sleep(600)
"""


@pytest.mark.row("D13")
@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["terminated", "interrupted"])
def test_a_deaf_program_does_not_hold_up_a_cancel(jail, start_brig, token, nothing_left, number, status):
    child = start_brig("--timeout", "300", program=DEAF, args=[token], json_record=False)
    assert child.line() == "ready"
    child.signal(number)
    assert child.wait().status == status
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.control("D13")
def test_control_a_deaf_program_lives_on_without_a_jail():
    child = subprocess.Popen([host.PYTHON, "-c", DEAF], stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        child.terminate()
        assert host.poll(lambda: host.rests(child.pid)) and child.poll() is None
    finally:
        child.kill()
        child.communicate()


# --- a port of the jail's (G11) ---------------------------------------------------------------------------

SERVE = """
import socket, time
s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(600)
"""


def host_can_connect(port):
    for address in ("127.0.0.1", "127.1.2.3", socket.gethostname()):
        try:
            socket.create_connection((address, port), 1).close()
            return True
        except OSError:
            pass
    return False


@pytest.mark.row("G11")
def test_what_listens_in_a_jail_is_not_reachable_from_the_host(jail, start_brig, token):
    child = start_brig("--timeout", "300", program=SERVE, args=[token], json_record=False)
    assert not host_can_connect(int(child.line()))


@pytest.mark.control("G11")
def test_control_what_listens_without_a_jail_is_reachable():
    child = subprocess.Popen([host.PYTHON, "-c", SERVE], stdout=subprocess.PIPE, text=True)
    try:
        assert host_can_connect(int(child.stdout.readline()))
    finally:
        child.kill()
        child.communicate()


# --- its scheduling ---------------------------------------------------------------------------------------

@pytest.mark.private("its processes begin with brig's own scheduling")
@pytest.mark.parametrize("policy, seen", [("--idle", os.SCHED_IDLE), ("--batch", os.SCHED_BATCH), ("--fifo", os.SCHED_OTHER), ("--rr", os.SCHED_OTHER)])
def test_a_program_keeps_what_takes_less_of_the_cpu_and_nothing_that_takes_more(jail, brig, tmp_path, policy, seen):
    """A service with CPUSchedulingPolicy=idle could start none: the kernel lets a plain id leave it only with RLIMIT_NICE."""
    program = tmp_path / "program.py"
    program.write_text("import os; print(os.sched_getscheduler(0))")
    argv = ["chrt", policy, "0" if policy in ("--idle", "--batch") else "1", brig, "run", program]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=host.HANG, env=tool.environment())
    if "failed to set pid 0's policy" in done.stderr:
        pytest.skip(f"this user may not have {policy[2:]}")
    assert done.stdout == f"{seen}\n", done
