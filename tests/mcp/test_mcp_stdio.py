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
import subprocess
import tempfile

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
        done = subprocess.run([mcp.binary()], stdin=lines, stdout=out, stderr=subprocess.PIPE, env=brig.environment(), timeout=host.HANG, check=False)
    answers = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [answer["id"] for answer in answers] == [*range(300), "last"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "</dev/null", "</dev/null >/dev/null"])
def test_without_a_client_it_ends(closed):
    done = subprocess.run(["/bin/sh", "-c", f'exec "$0" {closed}', mcp.binary()], stdin=subprocess.DEVNULL, capture_output=True, timeout=host.HANG, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.nightly
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
        refused = client.stray()
        assert (refused["id"], refused["error"]["code"]) == (2, -32700), "it is told before the newline has come"
        client.send(b'b","x":\n{"jsonrpc":"2.0","id":3,"method":"ping"}\n')
        said = client.stray()
        assert said == {"jsonrpc": "2.0", "id": 3, "result": {}}
        assert memory_kib(client.pid) < 16 * 1024, "what the long line needed is given back"


def test_a_request_that_cannot_be_read_is_refused_under_its_id():
    """Else its client would wait until its time is over."""
    faults = ['"seed":99999999999999999999999', '"x":1e999', f'"x":{"[" * 100}{"]" * 100}', '"x":1,"x":2', f'"x":"{"a" * (5 << 20)}"']
    with mcp.McpStdio() as client:
        for fault in faults:
            client.send(f'{{"jsonrpc":"2.0","method":"tools/call","params":{{{fault}}},"id":"q"}}\n'.encode())
            refused = client.stray()
            assert (refused["id"], refused["error"]["code"]) == ("q", -32700), fault[:40]


def test_messages_that_arrive_together_are_all_answered():
    with raw_server.with_pipes() as server:
        server.say(b"".join(request(i, "tools/list") for i in range(50)))
        assert sorted(server.hear()["id"] for _ in range(50)) == list(range(50))


def test_a_message_that_comes_byte_by_byte_is_read():
    with raw_server.with_pipes() as server:
        server.methods["1"] = "server/discover"
        for byte in request(1, "server/discover"):
            os.write(server.to, bytes([byte]))
        assert server.hear()["id"] == 1


def test_half_a_line_makes_nobody_wait():
    with mcp.McpStdio() as client:
        client.send(b'{"jsonrpc":"2.0","id":1,')
        assert host.poll(lambda: host.rests(client.pid)), "it waits busily"
        client.send(b'"method":"ping"}\n')
        assert client.stray()["id"] == 1


# --- a client that does not read -----------------------------------------------------------------------------

@pytest.mark.sample(1)
@EVERY_WAY
def test_a_client_that_does_not_read_is_not_read_either(way):
    """What waits for it is bounded, it costs no time, and nothing is lost when it reads on."""
    with way() as server:
        os.set_blocking(server.to, False)
        sent, rest = 0, b""
        while True:
            try:
                if not rest:
                    rest = request(sent, "tools/list")
                    server.methods[str(sent)] = "tools/list"
                    sent += 1
                rest = rest[os.write(server.to, rest):]
            except BlockingIOError:
                if host.rests(server.process.pid):
                    break
            assert sent < 5000, "it reads requests without an end"
        assert memory_kib(server.process.pid) < 12 * 1024
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
        assert server.wait() == 0


# --- ends -----------------------------------------------------------------------------------------------------

@EVERY_WAY
def test_the_end_of_input_ends_it(way):
    with way() as server:
        server.ask(1, "tools/list")
        if way is raw_server.with_one_socket:
            socket.socket(fileno=os.dup(server.to)).shutdown(socket.SHUT_WR)
        else:
            server.shut()
        assert server.hear() is None and server.wait() == 0


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
        server.process.send_signal(number)
        assert server.wait() == 0
        assert server.process.stderr.read() == b""


def test_sigpipe_does_not_end_it():
    with raw_server.with_pipes() as server:
        server.ask(1, "tools/list")
        server.process.send_signal(signal.SIGPIPE)
        assert server.ask(2, "tools/list")["id"] == 2


# --- which profiles there are -------------------------------------------------------------------------------------

def instructions(method, folder):
    """Of a server that has these profiles and no others."""
    env = brig.environment({"BRIG_PROFILES": str(folder), "BRIG_PRESETS": str(folder)})
    asked = request(1, method) if method == "server/discover" else \
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"protocolVersion": "2025-06-18"}}).encode() + b"\n"
    done = subprocess.run([mcp.binary()], input=asked, capture_output=True, timeout=host.HANG, env=env, check=True)
    return json.loads(done.stdout)["result"]["instructions"]


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_the_handshake_names_the_profiles_that_are_built_here(tmp_path, method):
    rows = {"mine": "numpy and my own things; much more memory", "brackets": "polars (of last week)", "missing": "what nobody has built", "basic": "plain"}
    for name, description in rows.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"description": description, "rootfs": "nosuch" if name == "missing" else "basic", "policy": "python"}))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "fifo.json").mkdir()
    said = instructions(method, tmp_path)
    assert "The argument profile may name brackets (polars), mine (numpy and my own things)" in said, said
    assert not any(word in said for word in ("nobody", "missing", "broken", "basic (", "/")), said


def test_without_profiles_beside_the_preset_the_handshake_names_none(tmp_path):
    assert "may name" not in instructions("initialize", tmp_path)


# --- what it costs, and what it does before it is asked ---------------------------------------------------------

def traced(tmp_path, said):
    """What it calls when that is said to it and its input ends."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    log = tmp_path / "strace"
    done = subprocess.run(["strace", "-f", "-qq", "-o", log, mcp.binary()], input=said, capture_output=True, timeout=host.HANG, env=brig.environment(), check=False)
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
        assert host.poll(lambda: re.search(r"epoll_wait\(\d+, *$", log.read_text()))
    finally:
        process.stdin.close()
        process.wait(host.HANG)
        process.stdout.close()
    assert set(re.findall(r"epoll_wait\(.*, (-?\d+)\) = ", log.read_text())) == {"-1"}


def test_its_start_to_the_first_answer_takes_few_system_calls(tmp_path):
    """How soon it is there is measured by bench/mcp.py."""
    log, _ = traced(tmp_path, request(1, "server/discover"))
    before, first, _ = log.partition(" write(")
    assert first and before.count("\n") < 150, before # thirty of them read which profiles are built here


def test_an_idle_one_has_8_mib_at_most():
    with mcp.McpStdio() as client:
        client.request("tools/list")
        assert memory_kib(client.pid) <= 8 * 1024


def test_the_list_takes_few_system_calls(tmp_path):
    """How soon it is there is measured by bench/mcp.py."""
    one, all_ = (traced(tmp_path, b"".join(request(i, "tools/list") for i in range(n)))[0].splitlines() for n in (1, 101))
    assert len(all_) - len(one) <= 100 * 4, f"{(len(all_) - len(one)) / 100} calls for each"


def test_it_waits_for_nothing_when_its_input_has_ended(tmp_path):
    log, _ = traced(tmp_path, request(1, "tools/list"))
    *_, end, after = re.split(r'(read\(\d+, "", \d+\) += 0\n)', log)
    assert end and "epoll_wait" not in after and "exit_group(0)" in after, after


def test_a_lack_of_descriptors_is_told():
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)) # noqa: E731
    done = subprocess.run([mcp.binary()], stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit, timeout=host.HANG, check=False)
    assert done.returncode == 1 and b"brig-mcp: " in done.stderr and done.stdout == b""


# --- words for people --------------------------------------------------------------------------------------------

def test_what_is_printed_for_people_goes_to_stdout():
    for option, has in (("--version", "brig-mcp "), ("--help", "usage"), ("--print-config", "timeout")):
        done = subprocess.run([mcp.binary(), option], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG, check=False)
        assert done.returncode == 0 and has in done.stdout.lower() and done.stderr == "", (option, done)


def test_a_bad_option_is_refused_before_anything_is_served():
    done = subprocess.run([mcp.binary(), "--fly"], input=b"", capture_output=True, timeout=host.HANG, check=False)
    assert done.returncode == 2 and b"--fly" in done.stderr and done.stdout == b""
