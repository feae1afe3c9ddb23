"""brig-mcp at the other end of a pipe: bytes, descriptors, slow clients and ends. Programs run in test_mcp_stdio_runs.py."""
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import pytest

import raw_server
from raw_server import request
from support import brig, host, mcp

EVERY_WAY = pytest.mark.parametrize("way", raw_server.WAYS.values(), ids=raw_server.WAYS)


@pytest.fixture(autouse=True)
def is_built():
    if not mcp.binary().exists():
        pytest.fail(f"{mcp.binary()} is missing: ./dev build")


def open_files(pid):
    """{number: what it is}"""
    return {int(path.name): os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}


def cpu_ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def memory_kib(pid, key="VmRSS"):
    return int(re.search(rf"{key}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


# --- what is at its ends --------------------------------------------------------------------------------------

@EVERY_WAY
def test_it_answers_whatever_its_ends_are(way):
    with way() as server:
        assert server.ask(1, "server/discover")["result"]["supportedVersions"] == [mcp.MODERN]
        assert server.ask("two", "tools/list")["id"] == "two"


@EVERY_WAY
def test_the_protocol_is_not_on_the_standard_descriptors(way):
    """A child that reads stdin, or a library that prints, cannot reach the client."""
    with way() as server:
        server.ask(1, "server/discover")
        files = open_files(server.process.pid)
        assert files[0] == "/dev/null" and files[1] == files[2]
        ends = [number for number, what in files.items() if number > 2 and what.startswith(("pipe:", "socket:"))]
        assert len(ends) == 2 and min(ends) >= 10, files
        flags = {number: pathlib.Path(f"/proc/{server.process.pid}/fdinfo/{number}").read_text() for number in ends}
        assert all(int(re.search(r"flags:\s+(\d+)", text)[1], 8) & os.O_CLOEXEC for text in flags.values()), flags


@EVERY_WAY
def test_the_flags_of_inherited_files_stay_as_they_were(way):
    """They are shared with whoever else holds them: a shell whose stdin does not block any more reads its end."""
    kept = []

    class Keeping(raw_server.Raw):
        def __init__(self, theirs, *rest, **kw):
            kept.extend(os.dup(fd) for fd in theirs)
            super().__init__(theirs, *rest, **kw)
    original, raw_server.Raw = raw_server.Raw, Keeping
    try:
        server = way()
    finally:
        raw_server.Raw = original
    try:
        with server:
            server.ask(1, "tools/list")
            assert [fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in kept] == [0, 0]
    finally:
        for fd in kept:
            os.close(fd)


def test_a_file_can_be_its_input(tmp_path):
    said = b"".join(request(i, "tools/list") for i in range(300)) + request("last", "server/discover").rstrip()
    (tmp_path / "in").write_bytes(said)
    with open(tmp_path / "in", "rb") as lines, open(tmp_path / "out", "wb") as out:
        done = subprocess.run([mcp.binary()], stdin=lines, stdout=out, stderr=subprocess.PIPE, env=brig.environment(), timeout=20, check=False)
    answers = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [answer["id"] for answer in answers] == [*range(300), "last"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "</dev/null", "</dev/null >/dev/null"])
def test_without_a_client_it_ends(closed):
    done = subprocess.run(["/bin/sh", "-c", f'exec "$0" {closed}', mcp.binary()], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: pipes of another user")
def test_pipes_of_another_user_are_read_and_written_without_waiting():
    """They cannot be opened again: what can be written at once is asked for."""
    with tempfile.TemporaryDirectory() as folder: # pytest's own is closed to others, as the build tree may be
        os.chmod(folder, 0o755)
        program = shutil.copy(mcp.binary(), folder)
        server = raw_server.with_pipes(program=program, user=65534, group=65534, extra_groups=[], env={"HOME": folder})
        with server:
            assert server.ask("first", "tools/list")["id"] == "first"
            answer_all(server, 1000)
            server.shut()
            assert server.wait() == 0


def answer_all(server, number):
    """Writes as long as that is taken, and reads when it is not."""
    os.set_blocking(server.to, False)
    said, heard = memoryview(b"".join(request(i, "tools/list") for i in range(number))), []
    server.methods |= {str(i): "tools/list" for i in range(number)}
    while len(heard) < number:
        try:
            said = said[os.write(server.to, said):] if said else said
        except BlockingIOError:
            heard.append(server.hear()["id"])
        if not said:
            heard.append(server.hear()["id"])
    assert heard == list(range(number))


# --- bytes -----------------------------------------------------------------------------------------------------

def test_a_line_of_4_mib_is_read_and_a_longer_one_refused():
    """And the rest of it is not taken for another message."""
    with mcp.McpStdio() as client:
        limit = 4 << 20
        line = request(1, "tools/list")[:-1]
        client.send(line + b" " * (limit - len(line)) + b"\n")
        assert client.stray()["id"] == 1
        client.send(b'{"jsonrpc":"2.0","id":2,"method":"' + b"a" * limit)
        assert client.stray()["error"]["code"] == -32700, "it is told before the newline has come"
        client.send(b'b","x":\n{"jsonrpc":"2.0","id":3,"method":"ping"}\n')
        said = client.stray()
        assert said == {"jsonrpc": "2.0", "id": 3, "result": {}}
        assert memory_kib(client.pid) < 16 * 1024, "what the long line needed is given back"


def test_messages_that_arrive_together_are_all_answered_at_once():
    with raw_server.with_pipes() as server:
        began = time.monotonic()
        server.say(b"".join(request(i, "tools/list") for i in range(50)))
        assert sorted(server.hear()["id"] for _ in range(50)) == list(range(50))
        assert time.monotonic() - began < 2 * host.SLOWER


def test_a_message_that_comes_byte_by_byte_is_read():
    with raw_server.with_pipes() as server:
        server.methods["1"] = "server/discover"
        for byte in request(1, "server/discover"):
            os.write(server.to, bytes([byte]))
        assert server.hear()["id"] == 1


def test_half_a_line_makes_nobody_wait():
    with mcp.McpStdio() as client:
        client.send(b'{"jsonrpc":"2.0","id":1,')
        before = cpu_ticks(client.pid)
        time.sleep(0.3) # a busy loop would show
        assert cpu_ticks(client.pid) - before <= 2
        client.send(b'"method":"ping"}\n')
        assert client.stray()["id"] == 1


# --- a client that does not read -----------------------------------------------------------------------------

@EVERY_WAY
def test_a_client_that_does_not_read_is_not_read_either(way):
    """What waits for it is bounded, it costs no time, and nothing is lost when it reads on."""
    with way() as server:
        os.set_blocking(server.to, False)
        line, sent = request(0, "tools/list"), 0
        end = time.monotonic() + 20 * host.SLOWER
        rest, silent_since = b"", time.monotonic()
        while time.monotonic() - silent_since < 0.5 and time.monotonic() < end:
            try:
                if not rest:
                    rest = request(sent, "tools/list")
                    server.methods[str(sent)] = "tools/list"
                    sent += 1
                rest = rest[os.write(server.to, rest):]
                silent_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        assert time.monotonic() < end, f"it has read {sent} requests of {len(line)} bytes without an end"
        assert memory_kib(server.process.pid) < 12 * 1024
        before = cpu_ticks(server.process.pid)
        time.sleep(0.3)
        assert cpu_ticks(server.process.pid) - before <= 2, "it waits busily"
        whole = sent - (1 if rest else 0)
        assert [server.hear()["id"] for _ in range(whole)] == list(range(whole))


def test_a_client_that_never_reads_and_goes_is_not_waited_for():
    with raw_server.with_pipes() as server:
        os.set_blocking(server.to, False)
        try:
            while True:
                os.write(server.to, request(1, "server/discover"))
        except BlockingIOError:
            pass
        server.shut()
        began = time.monotonic()
        assert server.wait(5) == 0
        assert time.monotonic() - began < 2.2 * host.SLOWER


# --- ends -----------------------------------------------------------------------------------------------------

@EVERY_WAY
def test_the_end_of_input_ends_it_at_once(way):
    with way() as server:
        server.ask(1, "tools/list")
        began = time.monotonic()
        if way is raw_server.with_one_socket:
            socket.socket(fileno=os.dup(server.to)).shutdown(socket.SHUT_WR)
        else:
            server.shut()
        assert server.hear() is None and server.wait() == 0
        assert time.monotonic() - began < 2 * host.SLOWER


@EVERY_WAY
def test_what_was_asked_before_the_end_is_answered(way):
    with way() as server:
        server.say(b"".join(request(i, "tools/list") for i in range(20)))
        if way is raw_server.with_one_socket:
            socket.socket(fileno=os.dup(server.to)).shutdown(socket.SHUT_WR)
        else:
            server.shut()
        assert [server.hear()["id"] for _ in range(20)] == list(range(20))
        assert server.hear() is None and server.wait() == 0


@EVERY_WAY
def test_a_client_that_is_gone_for_good_ends_it(way):
    with way() as server:
        server.ask(1, "tools/list")
        server.deafen()
        server.shut()
        assert server.wait() == 0


def test_a_reader_that_is_gone_ends_it_before_the_next_word():
    """The client has closed its end of stdout and holds stdin open: nobody would ever tell."""
    with raw_server.with_pipes() as server:
        server.ask(1, "tools/list")
        server.deafen()
        assert server.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_status_0(number):
    with raw_server.with_pipes() as server:
        server.ask(1, "tools/list")
        began = time.monotonic()
        server.process.send_signal(number)
        assert server.wait() == 0 and time.monotonic() - began < 2 * host.SLOWER
        assert server.process.stderr.read() == b""


def test_sigpipe_does_not_end_it():
    with raw_server.with_pipes() as server:
        server.ask(1, "tools/list")
        server.process.send_signal(signal.SIGPIPE)
        assert server.ask(2, "tools/list")["id"] == 2


# --- what it costs, and what it does before it is asked ---------------------------------------------------------

def traced(tmp_path, said):
    """What it calls when that is said to it and its input ends."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    log = tmp_path / "strace"
    done = subprocess.run(["strace", "-f", "-qq", "-o", log, mcp.binary()], input=said, capture_output=True, timeout=60, env=brig.environment(), check=False)
    assert done.returncode == 0, done.stderr
    return log.read_text(), done.stdout


SIDE_EFFECTS = re.compile(r"^\d+\s+(connect|execveat|execve|socket|socketpair|fork|vfork|clone3?|mkdir\w*|unlink\w*|rename\w*|bind|flock|kill|"
                          r"open\w*\(.*O_(CREAT|WRONLY|RDWR))\b")


def test_before_the_first_tool_call_it_touches_nothing(tmp_path):
    """Clients start it twice, or only to ask for the list: no connection, no process, no file."""
    asked = request(1, "server/discover") + request(2, "tools/list") + b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in (
        {"id": 3, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}, {"id": 4, "method": "tools/list"}))
    log, said = traced(tmp_path, asked)
    found = [line for line in log.splitlines() if SIDE_EFFECTS.match(line)]
    assert len(said.splitlines()) == 4
    own = [line for line in found if "execve(" in line or re.search(r'"/proc/self/fd/\d+", O_WRONLY\|O_NOCTTY\|O_NONBLOCK\|O_CLOEXEC', line)]
    assert [line for line in found if line not in own] == [] and sum("execve(" in line for line in own) == 1, found


def test_control_a_tool_call_does_touch_something(tmp_path):
    log, _ = traced(tmp_path, raw_server.execute(1, "1"))
    assert any(re.match(r"^\d+\s+(connect|socketpair)\b", line) for line in log.splitlines())


def test_a_silent_client_is_waited_for_without_an_end(tmp_path):
    """No idle limit: a chat may rest for a night."""
    log = tmp_path / "strace"
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", log, mcp.binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=brig.environment())
    try:
        process.stdin.write(request(1, "tools/list"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        assert host.poll(lambda: re.search(r"epoll_wait\(\d+, *$", log.read_text()), 5)
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
    assert set(re.findall(r"epoll_wait\(.*, (-?\d+)\) = ", log.read_text())) == {"-1"}


def test_it_answers_within_20_ms_of_its_start():
    def once():
        began = time.monotonic()
        with raw_server.with_pipes() as server:
            server.ask(1, "server/discover")
            return time.monotonic() - began
    took = [once() for _ in range(15)]
    assert min(took) < 0.020 * host.SLOWER, f"{[round(seconds * 1000, 1) for seconds in took]} ms" # a busy machine makes some of them longer


def test_an_idle_one_has_8_mib_at_most():
    with mcp.McpStdio() as client:
        client.request("tools/list")
        assert memory_kib(client.pid) <= 8 * 1024


def test_the_list_is_answered_in_a_fifth_of_a_millisecond():
    """p50, with what the test itself costs beside it."""
    with raw_server.with_pipes() as server:
        line, medians = request(1, "tools/list"), []
        for _ in range(3): # a machine may be busy for some tenths of a second
            took = []
            for _ in range(100):
                began = time.monotonic()
                os.write(server.to, line)
                while not os.read(server.from_, 1 << 20).endswith(b"\n"):
                    pass
                took.append(time.monotonic() - began)
            medians.append(statistics.median(took))
        assert min(medians) < 0.0004 * host.SLOWER, f"{min(medians) * 1e6:.0f} us"


def test_a_lack_of_descriptors_is_told():
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)) # noqa: E731
    done = subprocess.run([mcp.binary()], stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit, timeout=10, check=False)
    assert done.returncode == 1 and b"brig-mcp: " in done.stderr and done.stdout == b""


# --- words for people --------------------------------------------------------------------------------------------

def test_what_is_printed_for_people_goes_to_stdout():
    for option, has in (("--version", "brig-mcp "), ("--help", "usage"), ("--print-config", "timeout")):
        done = subprocess.run([mcp.binary(), option], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False)
        assert done.returncode == 0 and has in done.stdout.lower() and done.stderr == "", (option, done)


def test_a_bad_option_is_refused_before_anything_is_served():
    done = subprocess.run([mcp.binary(), "--fly"], input=b"", capture_output=True, timeout=10, check=False)
    assert done.returncode == 2 and b"--fly" in done.stderr and done.stdout == b""
