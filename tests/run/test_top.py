"""brig top, and what brig stats says of zygotes, against a brigd that says what a test wants."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from support import brig as tool
from support import fake_server as fake
from support import host

MIB = 1 << 20
ZYGOTE = {"state": "serving", "generation": 3, "age_ms": 245000, "runs": 512, "memory_bytes": 9 * MIB, "own_bytes": 4 * MIB, "forks": 2,
          "fork_memory_bytes": 3 * MIB // 4, "fork_own_bytes": MIB // 2}
UNKNOWN = {**dict.fromkeys(ZYGOTE), "state": "none", "generation": 0}
ROW = {"name": "basic", "warm": "ready", "ready": 2, "building": 0, "running": 1, "zygote": ZYGOTE}
STATS = {"reply": "stats", "brig": "0.1.0", "started_at": 1700000000.5, "uptime_ms": 93784000, "runs": {"started": 5, "ended": {"exited": 3}}, "running": 1, "waiting": 0, "refused": {"busy": 1, "bad_field": 1}, "connections": 4, "connected": 9, "audit": None,
         "profiles": [ROW, {**ROW, "name": "strict", "warm": "never", "zygote": None}], "door": {"pid": 9, "memory_bytes": 3 * MIB, "cpu_ms": 12.3},
         "keeper": None, "confinement": ["seccomp"]}
LIST = {"reply": "list", "left_out": 0, "runs": [
    {"run": fake.STARTED["run"], "profile": "basic", "uid": 1000, "pid": 77, "comm": "a\x1b[1mb", "state": "running", "age_ms": 1234, "mine": True}]}


def answering(stats=None, runs=None):
    """Whatever is asked, for as long as somebody asks."""
    def script(server):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError): # who asked was killed
            while (request := server.receive()):
                server.send((stats or STATS) if request["op"] == "stats" else runs or LIST)
    return script


def once(*options, script=None, verb="top"):
    with fake.server(script or answering()) as env:
        return tool.Child([str(tool.binary()), verb, *options], env=env).wait()


def test_a_page_has_a_line_for_each_profile_and_each_run():
    ran = once("--once")
    assert ran.status == 0 and ran.stderr == "", ran
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["basic", "ready", "2", "0", "1", "serving", "3", "4:05", "512", "9.0M", "4.0M", "2", "0.8M", "0.5M"] in lines
    assert ["strict", "never", "2", "0", "1", "-", "-", "-", "-", "-", "-", "-", "-", "-"] in lines
    assert [fake.STARTED["run"], "basic", "running", "1.2", "1000", "77", "a?[1mb"] in lines


def test_what_is_not_known_is_no_0():
    ran = once("--once", script=answering({**STATS, "profiles": [{**ROW, "zygote": UNKNOWN}]}))
    assert ["basic", "ready", "2", "0", "1", "none", "0", *["-"] * 7] in [line.split() for line in ran.stdout.splitlines()], ran


def test_in_a_pipe_it_prints_once_and_without_control_characters():
    ran = once()
    assert ran.status == 0 and ran.stdout.startswith("up ") and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", ran.stdout), ran


def test_as_json_both_answers_come_in_one_object():
    said = json.loads(once("--json").stdout)
    assert said == {**{key: value for key, value in STATS.items() if key != "reply"}, "list": {"left_out": 0, "runs": LIST["runs"]}}


@pytest.mark.parametrize("options, status", [(["--delay", "0"], 2), (["--delay", "nan"], 2), (["--delay", "1x"], 2), (["word"], 2), (["--color"], 2), (["--help"], 0)],
                         ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_words(options, status):
    done = tool.Child([str(tool.binary()), "top", *options]).wait()
    assert done.status == status and (status == 0 or len(done.stderr.splitlines()) == 1), done


@pytest.mark.requirement("A63")
def test_stats_says_what_zygotes_cost():
    ran = once(verb="stats")
    assert "zygote      basic: serving, generation 3, for 245 s and 512 runs, memory 9.0 MiB (4.0 its own); ready forks 2, memory 0.8 MiB (0.5 its own)\n" in ran.stdout, ran
    assert "strict: ready 2, building 0, running 1, warm never\n" in ran.stdout and ran.stdout.count("zygote ") == 1
    ran = once(verb="stats", script=answering({**STATS, "profiles": [{**ROW, "zygote": UNKNOWN}]}))
    assert "zygote      basic: none\n" in ran.stdout, ran


# --- in a terminal ----------------------------------------------------------------------------------------

class Terminal:
    """brig top as somebody sees it."""

    def __init__(self, *options, env, rows=30, columns=120):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([tool.binary(), "top", *options], stdin=slave, stdout=slave, stderr=slave, env=tool.environment({"TERM": "xterm", **env}),
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave, self.said = slave, b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, until):
        """Everything since the last read; ends with what until matches."""
        end = time.monotonic() + host.HANG
        while not (found := re.search(until, self.said, re.S)):
            assert time.monotonic() < end, self.said
            if select.select([self.master], [], [], 0.1)[0]:
                self.said += os.read(self.master, 65536)
        said, self.said = self.said[:found.end()], self.said[found.end():]
        return said

    def key(self, data):
        os.write(self.master, data)

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(request):
    with fake.server(answering(*getattr(request, "param", ()))) as env:
        t = Terminal("--delay", "0.1", env=env)
        yield t
        t.close()


LEFT = rb"\x1b\[\?7h\x1b\[\?25h\x1b\[\?1049l$"


@pytest.mark.parametrize("how", [b"q", b"\x03", b"\x04", signal.SIGTERM, signal.SIGHUP], ids=["q", "Ctrl-C", "Ctrl-D", "SIGTERM", "SIGHUP"])
def test_however_it_ends_the_terminal_is_as_it_was(terminal, how):
    terminal.read(rb"q: quit")
    assert not terminal.is_as_before()
    if isinstance(how, bytes):
        terminal.key(how)
    else:
        terminal.process.send_signal(how)
    terminal.read(LEFT)
    assert terminal.process.wait(host.HANG) == 0 and terminal.is_as_before()


def test_pages_follow_each_other(terminal):
    for _ in range(3):
        assert b"basic" in terminal.read(rb"\x1b\[H.*?q: quit")


def test_a_page_fits_the_terminal_as_it_is_now(terminal):
    terminal.read(rb"q: quit")
    terminal.resize(8, 20)
    terminal.process.send_signal(signal.SIGWINCH)
    seen = []

    def fits():
        page = terminal.read(rb"\x1b\[H[^H]*?\x1b\[J").rpartition(b"\x1b[H")[2]
        seen.append([line.replace(b"\x1b[K", b"").replace(b"\x1b[J", b"").rstrip(b"\r") for line in page.split(b"\r\n")])
        return len(seen[-1]) <= 8 and max(map(len, seen[-1])) <= 20
    assert host.poll(fits), seen


@pytest.mark.parametrize("terminal", [(None, {**LIST, "runs": [{**LIST["runs"][0], "comm": "\x1b]0;x\x07\x9b1m\u202e\n\r"}]})], indirect=True)
def test_what_a_process_calls_itself_moves_no_cursor(terminal):
    page = terminal.read(rb"q: quit")
    assert set(re.findall(rb"\x1b[^A-Za-z]*.", page)) <= {b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?7l", b"\x1b[H", b"\x1b[K", b"\x1b[J"} and b"\x07" not in page, page


def test_stopped_it_gives_the_terminal_back_and_goes_on_when_continued(terminal):
    terminal.read(rb"q: quit")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.read(LEFT)
    assert host.poll(lambda: os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)) and terminal.is_as_before()
    terminal.process.send_signal(signal.SIGCONT)
    terminal.read(rb"\x1b\[\?1049h.*q: quit")
    terminal.key(b"q")
    assert terminal.process.wait(host.HANG) == 0 and terminal.is_as_before()


def test_a_service_that_goes_is_told_on_the_terminal_as_it_was():
    def script(server):
        server.receive()
        server.send(STATS)
        server.receive()
        server.send(LIST)
        server.receive()
    with fake.server(script) as env:
        t = Terminal("--delay", "0.1", env=env)
        said = t.read(rb"brig top: [^\r\n]*")
        status = t.process.wait(host.HANG)
        same = t.is_as_before()
        t.close()
    assert status == 1 and same and b"\x1b[?1049l" in said
