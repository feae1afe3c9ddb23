"""brig shell, as people use it: at a terminal, in sessions of a service and in their own."""
import os
import re
import signal
import subprocess

import pytest

from support import brig as tool
from support import daemon as daemons
from support import client, host, tiers, warm_load
from support import fake_server as fake
from support.screen import PROMPT, Terminal

LEAVES = "\x1d" * 3


@pytest.fixture(scope="module", params=tiers.few(["ready", "private"], "ready"))
def way(request, built, no_stock):
    """None for a private brigd."""
    if request.param == "private":
        yield None
        return
    scratch, profiles = warm_load.only_basic(request.param)
    with scratch, daemons.Daemon(None, env={"BRIG_PRESETS": str(profiles)}) as made:
        made.settle()
        yield made
        assert made.alive(), made.words()


def env_of(way):
    return tool.environment({"BRIG_SOCKET": str(way.path) if way else None, "TERM": "xterm"})


@pytest.fixture
def shell(way, tmp_path):
    """shell(WORD...): a terminal at which brig shell runs."""
    made = []

    def start(*words, **more):
        made.append(Terminal([tool.binary(), "shell", *words], env_of(way), cwd=tmp_path, **more))
        return made[-1]
    yield start
    for one in made:
        one.__exit__()
    if way:
        assert host.poll(lambda: not sessions(way)), sessions(way)


in_service = pytest.mark.parametrize("way", ["ready"], indirect=True, scope="module") # a session that others use needs one


def brig(service, *words):
    return subprocess.run([tool.binary(), *words], capture_output=True, text=True, env=env_of(service), timeout=host.HANG, check=False)


def sessions(service):
    with service.connect() as talk:
        return talk.ask("list")["sessions"]


@pytest.fixture
def work(way):
    """A session that was opened for terminals."""
    done = brig(way, "session", "open", "work", "--terminal")
    assert done.returncode == 0, done
    yield "work"
    brig(way, "session", "close", "work")


# --- a session of its own -------------------------------------------------------------------------------------------------

def test_exit_leaves_with_the_status_of_the_shell_and_the_terminal_is_as_before(shell):
    at = shell()
    assert "bash in a session of its own" in at.until(PROMPT) and at.is_raw()
    at.type("exit 7\n")
    status, _ = at.ends()
    assert (status, at.now()) == (7, at.modes)


def test_the_shell_has_a_terminal_of_the_jail_with_the_size_of_ours(shell):
    at = shell(rows=33, columns=101)
    at.until(PROMPT)
    assert at.run("stty size; tty; echo $TERM") == "33 101\n/dev/pts/0\nxterm"
    at.resize(50, 60)
    assert host.poll(lambda: at.run("stty size") == "50 60")
    assert host.poll(lambda: at.run("python3 -c 'import os; print(*os.get_terminal_size())'") == "60 50") # a shell that hears of a size may show its prompt again


def test_a_program_hears_of_another_size(shell):
    at = shell()
    at.until(PROMPT)
    at.type("python3 -c 'import os, signal; signal.pthread_sigmask(0, [28]); print(\"wai\" + \"ting\"); signal.sigwait([28]); print(*os.get_terminal_size())'\n")
    at.until("waiting")
    at.resize(44, 99)
    assert "99 44" in at.until("44")


# It says when it has the terminal: a key that is typed before that is the shell's. The signal is blocked, so that none comes between two waits.
JOB = "python3 -c \"import signal; signal.pthread_sigmask(0, [18]); print('run' + 'ning', flush=True); [print('go' + 'es on', flush=True) for _ in iter(lambda: signal.sigwaitinfo([18]), 0)]\"\n"


def test_keys_of_job_control_reach_the_job_and_not_the_shell_nor_brig(shell):
    at = shell(columns=200)
    at.until(PROMPT)
    at.type(JOB)
    at.until("running\r\n")
    at.type("\x1a")
    assert "Stopped" in at.until(PROMPT) and not at.is_stopped()
    assert "Stopped" in at.run("jobs")
    at.type("fg\n")
    at.until("goes on\r\n")
    at.type("\x03")
    at.until(PROMPT)
    assert at.run("jobs; echo $?") == "0"
    at.type(JOB)
    at.until("running\r\n")
    at.type("\x1c")
    assert "Quit" in at.until(PROMPT)


def test_a_job_in_the_background_that_reads_is_stopped(shell):
    at = shell()
    at.until(PROMPT)
    at.run("cat &")
    assert host.poll(lambda: "Stopped" in at.run("jobs"))


def test_what_the_shell_left_ends_with_it(shell, token):
    at = shell()
    at.until(PROMPT)
    at.run(f"(trap '' HUP; sh -c 'sleep 600; : {token}' > /dev/null 2>&1 &)")
    assert host.poll(lambda: host.with_token(token))
    at.type("exit\n")
    assert at.ends()[0] == 0 and not host.with_token(token)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_brig_ends_what_the_shell_started_and_gives_the_terminal_back(shell, token, number):
    at = shell()
    at.until(PROMPT)
    at.type(f"sh -c 'trap : HUP TERM INT; while :; do sleep 600; : {token}; done'\n")
    assert host.poll(lambda: host.with_token(token))
    at.send(number)
    status, _ = at.ends()
    assert status != 0 and at.now() == at.modes
    assert host.poll(lambda: not host.with_token(token))


def test_a_terminal_that_is_closed_ends_what_the_shell_started(way, tmp_path, token):
    at = Terminal([tool.binary(), "shell"], env_of(way), cwd=tmp_path)
    at.until(PROMPT)
    at.type(f"sh -c 'trap : HUP; while :; do sleep 600; : {token}; done'\n")
    assert host.poll(lambda: host.with_token(token))
    os.close(at.slave)
    os.close(at.master)
    at.process.wait(host.HANG)
    assert host.poll(lambda: not host.with_token(token))


def test_three_times_the_key_that_leaves_ends_a_shell_that_hears_nothing(shell):
    at = shell("--", "python3", "-c", "import signal, sys, tty\ntty.setraw(0)\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: sys.stdin.read(1)")
    at.until("deaf")
    at.type("\x03\x04\x1a\x1d\x1dx")
    at.type(LEAVES)
    status, _ = at.ends()
    assert status != 0 and at.now() == at.modes


def test_a_program_that_reads_nothing_can_be_left_when_much_was_typed(shell):
    at = shell("--", "python3", "-c", "import time, tty\ntty.setraw(0)\nprint('deaf', flush=True)\ntime.sleep(600)")
    at.until("deaf")
    for _ in range(60):
        at.type("x" * 2000)
    at.type(LEAVES)
    assert at.ends()[0] != 0 and at.now() == at.modes


def test_a_program_that_floods_and_reads_nothing_can_be_left_when_much_was_typed(shell):
    at = shell("--", "sh", "-c", "stty raw -echo; echo flo''od; exec yes")
    at.until("flood")
    at.flood("x" * 50_000)
    at.flood(LEAVES)
    assert at.ends_while_it_shows() != 0 and at.now() == at.modes


def test_a_terminal_that_shows_nothing_any_more_keeps_nothing_from_ending(shell, token):
    at = shell("--", "sh", "-c", f"echo flo''od; yes; : {token}")
    at.until("flood")
    assert host.poll(at.is_full)
    at.send(signal.SIGTERM)
    assert host.poll(lambda: at.now() == at.modes)
    assert host.poll(lambda: at.process.poll() is not None or at.send(signal.SIGTERM)) # a second one: its last words have no place either
    assert host.poll(lambda: not host.with_token(token))


@pytest.mark.nightly
@in_service
def test_a_signal_that_comes_just_before_a_write_to_a_full_terminal_ends_it_too(shell):
    """It came after the look at the terminal and before the write, which then waited for another one."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    at = shell("--", "sh", "-c", "read go; echo much; sleep 600")
    assert host.poll(at.is_raw)
    pid = at.process.pid
    with subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-e", "trace=rt_sigprocmask", "-e", "inject=rt_sigprocmask:delay_exit=60000000", "-p", str(pid)]) as strace:
        try:
            assert host.poll(lambda: f"TracerPid:\t{strace.pid}\n" in host.read(f"/proc/{pid}/status"))
            at.type("\n")
            assert host.poll(lambda: host.read(f"/proc/{pid}/syscall").startswith("14 ")) # rt_sigprocmask: brig is about to show it
            at.fill()
            at.send(signal.SIGTERM)
        finally:
            strace.terminate() # brig goes on, with the signal and then with the write
    assert host.poll(lambda: at.now() == at.modes)


def test_a_signal_ends_a_shell_whose_command_has_ended_before_its_output_was_shown(shell):
    at = shell("--", "sh", "-c", "stty -echo; echo re''ady; read go; echo much")
    at.until("ready")
    at.fill()
    at.type("\n")
    assert host.poll(lambda: host.rests(at.process.pid))
    at.send(signal.SIGTERM)
    assert host.poll(lambda: at.process.poll() is not None) and at.now() == at.modes


def test_a_job_that_keeps_the_terminal_and_goes_on_writing_does_not_keep_the_shell(shell, token):
    at = shell()
    at.until(PROMPT)
    at.type(f"(trap '' HUP TERM; while :; do echo still he''re: {token}; done) &\n")
    at.until("still here")
    at.type("\nexit 3\n")
    assert at.ends_while_it_shows() == 3 and at.now() == at.modes and not host.with_token(token)


def test_the_last_of_very_many_sizes_is_the_size(shell):
    at = shell()
    at.until(PROMPT)
    for n in range(3000):
        at.resize(10 + n % 90, 20 + n % 180)
    at.resize(41, 77)
    assert host.poll(lambda: at.run("stty size") == "41 77")


@pytest.mark.parametrize("stopped", ["the command's parent", "the session server"])
def test_the_last_size_comes_also_when_no_message_about_it_fits(shell, token, stopped):
    """The kernel keeps some hundreds of messages for a process that does not read."""
    at = shell("--", "sh", "-c", f"while echo wai''ting; read key; do stty size; done; : {token}")
    at.until("waiting\r\n")
    [pid] = {pid for pid, _ in host.with_token(token)} - {at.process.pid}
    for _ in range(1 + (stopped == "the session server")):
        pid = host.parent(pid)
    os.kill(pid, signal.SIGSTOP)
    for n in range(5000):
        at.resize(10 + n % 90, 20 + n % 180)
    at.resize(41, 77)
    assert host.poll(lambda: host.rests(at.process.pid))
    os.kill(pid, signal.SIGCONT)
    assert host.poll(lambda: at.type("\n") or "41 77\r\n" in at.until("waiting\r\n"))


def test_a_stop_from_outside_gives_the_terminal_back_for_a_while(shell):
    at = shell()
    at.until(PROMPT)
    at.send(signal.SIGTSTP)
    assert host.poll(at.is_stopped) and at.now() == at.modes
    at.resize(41, 71)
    at.send(signal.SIGCONT)
    assert host.poll(at.is_raw)
    assert host.poll(lambda: at.run("stty size") == "41 71")


def test_much_output_comes_whole_and_in_order(shell):
    at = shell("--", "seq", "1", "100000")
    at.until("\n99999\r\n100000\r\n")
    assert at.ends()[0] == 0
    lines = [int(line) for line in at.text.split("\r\n") if line.isdigit()]
    assert lines == list(range(1, 100001))


def test_what_a_command_says_last_is_seen(shell):
    for n in range(40): # its size is said when it has started, and it may have ended by then
        at = shell("--", "sh", "-c", f"echo last {n}")
        assert f"last {n}" in at.until(f"last {n}\r\n") and at.ends()[0] == 0


@pytest.mark.parametrize("words, status, says", [(("--", "no-such-program"), 127, "no-such-program"), (("--", "/workspace"), 126, "/workspace"), (("-w", "/nowhere", "--", "true"), 127, "No such file or directory"),
                                                 (("-p", "nothing"), 125, "nothing"), (("a", "b"), 2, "a command stands behind --"), (("work", "--ro", "/tmp"), 2, "--ro"),
                                                 (("--memory", "900G"), 125, "--memory"), (("-p", "strict"), 125, "the policy of the profile does not allow it")], ids=lambda value: value[-1] if isinstance(value, tuple) else "")
def test_what_cannot_start_says_why_and_leaves_the_terminal_alone(shell, words, status, says):
    at = shell(*words)
    ended, seen = at.ends()
    assert (ended, at.now()) == (status, at.modes) and says in seen, seen


def test_limits_of_a_call_do_not_end_a_shell_unless_they_are_said_for_it(shell):
    at = shell("--timeout", "0.3", "--", "sleep", "600")
    status, seen = at.ends()
    assert status == 124 and "timeout" in seen, seen


def test_without_a_terminal_the_command_names_what_scripts_use(way, tmp_path):
    done = subprocess.run([tool.binary(), "shell"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env_of(way), cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "") and "brig session exec" in done.stderr


@pytest.mark.parametrize("request_number", [0x5412, 0x541c, 0x541d], ids=["TIOCSTI", "TIOCLINUX", "TIOCCONS"])
def test_a_program_cannot_type_into_its_terminal(shell, request_number):
    """The positive control is another request to the same terminal: FIONREAD."""
    at = shell("--", "python3", "-c", f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
byte = ctypes.create_string_buffer(b"x" * 8)
print("control", libc.ioctl(0, 0x541b, byte))
print("typed", libc.ioctl(0, {request_number}, byte), ctypes.get_errno())""")
    assert "control 0\r\ntyped -1 25\r\n" in at.until("25\r\n") and at.ends()[0] == 0


def test_terminals_of_a_session_are_bounded_and_none_of_the_host_is_among_them(shell):
    at = shell("--", "python3", "-c", """
import os
print("there:", sorted(os.listdir("/dev/pts")))
made = []
try:
    while len(made) < 100:
        made.append(os.openpty())
except OSError as error:
    print("made", len(made), error.strerror, "all")""")
    seen = at.until(" all\r\n")
    assert "there: ['0', 'ptmx']" in seen and "made 7 No space left on device" in seen and at.ends()[0] == 0


def test_programs_of_a_shell_cannot_change_other_terminals_of_their_jail(shell):
    """What is mounted is read-only: its owner, mode and name are the kernel's."""
    at = shell("--", "python3", "-c", """
import os
for change in (lambda: os.chmod("/dev/pts/0", 0o666), lambda: os.unlink("/dev/pts/0"), lambda: open("/dev/pts/x", "w")):
    try:
        print("done", change())
    except OSError as error:
        print("refused")""")
    assert at.ends()[0] == 0 and at.text.count("refused") == 3, at.text


# --- a session that is there ----------------------------------------------------------------------------------------------

@in_service
def test_a_shell_in_a_session_sees_its_files_and_leaves_it_open(way, shell, work):
    assert brig(way, "session", "run", work, "-c", "open('note', 'w').write('hello\\n')").returncode == 0
    at = shell(work)
    at.until(PROMPT)
    assert at.run("cat note; echo more > second") == "hello"
    at.type("exit\n")
    assert at.ends()[0] == 0
    assert brig(way, "session", "exec", work, "cat", "second").stdout == "more\n"
    brig(way, "session", "close", work)


@in_service
def test_a_shell_keeps_a_session_that_would_be_closed_as_idle(way, shell):
    assert brig(way, "session", "open", "short", "--terminal", "--idle", f"{0.4 * host.SLOWER:g}").returncode == 0
    at = shell("short")
    at.until(PROMPT)
    assert at.run(f"sleep {host.SLOWER:g}; echo still here") == "still here"
    at.type("exit\n")
    at.ends()
    assert host.poll(lambda: not sessions(way))


@in_service
def test_a_session_without_terminals_has_none_and_says_how_to_get_one(way, shell):
    assert brig(way, "session", "open", "plain").returncode == 0
    status, seen = shell("plain").ends()
    assert status == 125 and "brig session open --terminal" in seen, seen
    status, seen = shell("other").ends()
    assert status == 125 and 'you have no session "other"' in seen, seen
    brig(way, "session", "close", "plain")


@in_service
def test_an_ordinary_session_and_an_ordinary_run_have_no_terminals(way):
    program = "import os; print(os.path.isdir('/dev/pts') and os.listdir('/dev/pts'))\ntry:\n os.openpty()\nexcept OSError as error:\n print('none')"
    assert brig(way, "session", "open", "bare").returncode == 0
    assert brig(way, "session", "exec", "bare", "--", "python3", "-c", program).stdout == "[]\nnone\n"
    brig(way, "session", "close", "bare")
    assert brig(way, "exec", "--", "python3", "-c", program).stdout == "[]\nnone\n"


FLOOD = """
import os
while True:
    try:
        terminal = os.open("/dev/pts/0", os.O_WRONLY | os.O_NOCTTY)
        while True:
            os.write(terminal, b"from elsewhere\\n")
    except OSError:
        pass
"""


@in_service
def test_another_call_that_writes_to_the_terminal_does_not_keep_the_shell(way, shell, work):
    """All of a session is one program's: its calls can write to each other's terminals, and nothing else."""
    at = shell(work)
    at.until(PROMPT)
    assert brig(way, "session", "exec", work, "--detach", "--", "sh", "-c", f"python3 -c '{FLOOD}' > /dev/null 2>&1 &").returncode == 0
    at.until("from elsewhere")
    at.type("\nexit 5\n")
    assert at.ends_while_it_shows() == 5 and at.now() == at.modes
    brig(way, "session", "close", work)


# Writes until nobody takes any more of it, and ends.
FILL = """
import os, time
os.set_blocking(1, False)
left = 50
while left:
    try:
        os.write(1, b"x" * 1000)
        left = 50
    except BlockingIOError:
        left -= 1
        time.sleep(0.01)
"""


@in_service
def test_a_client_that_reads_nothing_of_its_terminal_costs_the_session_no_more_than_the_call(way, work, token):
    """The command has ended, and what its terminal holds waits for the client. The whole session was ended when the call was to end."""
    with way.connect() as talk:
        run = talk.start_command("python3", "-c", FILL, token, session=work, terminal=True)
        assert host.poll(lambda: host.with_token(token)) and host.poll(lambda: not host.with_token(token))
        talk.ask("cancel", run=run.id)
        ended = talk.until(lambda body: body.get("event") == "ended" and body.get("run") == run.id)
        assert ended.body["record"]["exit_reason"] in ("cancelled", "exited"), ended
        client.close_all(run.stream.values())
        assert talk.start_command("echo", "still there", session=work).finish().stdout == "still there\n"


@in_service
def test_a_call_with_a_terminal_leaves_nothing_running(way, work):
    with way.connect() as talk, pytest.raises(client.Refused) as refused:
        talk.ask("exec", session=work, argv=["true"], terminal=True, detach=True)
    assert (refused.value.code, refused.value.field) == ("bad_field", "detach")


@pytest.mark.parametrize("size", [{"rows": 0, "columns": 80}, {"rows": 24, "columns": 10_000}, {"rows": -1, "columns": 80}, {"rows": "24", "columns": 80}], ids=str)
@in_service
def test_a_size_that_no_terminal_has_is_refused(way, work, size):
    for words in {"op": "exec", "session": work, "argv": ["true"], "terminal": True}, {"op": "resize", "run": "0" * 36}:
        with way.connect() as talk, pytest.raises(client.Refused) as refused:
            talk.ask(**words, **size)
        assert refused.value.code == "bad_field" and refused.value.field in size


@in_service
def test_a_session_that_is_closed_ends_its_shells(way, shell, work):
    at = shell(work)
    at.until(PROMPT)
    brig(way, "session", "close", work)
    status, _ = at.ends()
    assert status != 0 and at.now() == at.modes


def test_a_service_that_is_killed_gives_the_terminal_back(built, start_daemon, tmp_path, token):
    service = start_daemon(None)
    with Terminal([tool.binary(), "shell"], env_of(service), cwd=tmp_path) as at:
        at.until(PROMPT)
        at.run(f"sh -c 'sleep 600; : {token}' &")
        assert host.poll(lambda: host.with_token(token))
        service.process.kill()
        status, seen = at.ends()
        assert status != 0 and at.now() == at.modes and "brigd was killed" in seen, seen
        assert host.poll(lambda: not host.with_token(token))


def test_a_program_that_writes_when_the_shell_has_ended_keeps_nobody(built, tmp_path):
    """It has the pipe open, as another program of the session can, and writes as fast as brig reads."""
    def serve(one):
        one.receive()
        one.start("stdin")
        writing.append(subprocess.Popen(["yes"], stdout=one.pipes["stdout"], stderr=subprocess.DEVNULL))
        assert host.poll(lambda: int(re.search(r"wchar: (\d+)", host.read(f"/proc/{writing[0].pid}/io"))[1]) > 1 << 17) # brig reads it
        one.send(fake.ended(exit_code=3))
    writing = []
    with fake.server(serve) as env, Terminal([tool.binary(), "shell", "work"], tool.environment({**env, "TERM": "xterm"}), cwd=tmp_path) as at:
        assert at.ends_while_it_shows() == 3
        assert writing[0].wait(host.HANG) == -signal.SIGPIPE
