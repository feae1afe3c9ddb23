"""A plain `brig run` is over before its C library would have begun (jail/cli/run/early.h), and nobody can tell but by a clock."""
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios

import pytest

from support import brig as tool
from support import fake_server as fake
from support import host

OBJECT = host.build_dir() / "CMakeFiles/brig.dir/jail/cli/early/early.c.o"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def built():
    if not tool.binary().exists():
        pytest.skip("no brig: ./dev build")
    if not OBJECT.exists():
        pytest.skip("this brig is linked dynamically: it has no start of its own")


def out(server, data, name="stdout"):
    os.write(server.pipes[name], data)


def output(*parts, **ended):
    """What a program writes, and how it ends."""
    def script(server):
        server.start()
        for data in parts:
            out(server, data)
        server.send(fake.ended(**ended))
    return script


REFUSED = [{"call": "ptrace", "argument": None, "count": 2, "answer": "EPERM"}]


def errors(server):
    server.start()
    out(server, b"to stderr\n", "stderr")
    out(server, b"to stdout\n")
    server.send(fake.ended(exit_code=2))


def closed_streams(server):
    server.start()
    out(server, b"last words")
    for name in ("stdout", "stderr"):
        os.close(server.pipes.pop(name))
    server.send(fake.ended(exit_code=9))


def much(server):
    server.start(output_bytes=MIB)
    for _ in range(16):
        out(server, b"x" * 40000)
    server.send(fake.ended())


def flood(server):
    server.start()
    out(server, b"x" * 20000)
    assert server.receive()["reason"] == "output_limit"
    server.send(fake.ended(exit_reason="output_limit", exit_code=None))


def limit(server):
    server.start()
    out(server, b"so far")
    server.send({"event": "limit", "run": fake.STARTED["run"], "name": "wall_ms", "value": 500, "ends": True})
    server.send(fake.ended(exit_reason="timeout_wall", exit_code=None))


def second_start(server):
    server.start()
    out(server, b"1")
    server.start()


def answers(*messages, fds=()):
    def script(server):
        for message in messages:
            server.send(message, fds)
    return script


def waits(server):
    server.send({"event": "waiting", "run": fake.STARTED["run"], "why": "8 runs at once: your quota is used up"})
    output(b"1\n")(server)


def too_large(server):
    server.start()
    server.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MIB)
    server.send(b" " * 70000)


PLAIN = {
    "an exit": output(b"1\n"),
    "another status": output(b"1\n", exit_code=7),
    "the highest status": output(exit_code=255),
    "a refused call of a program that ended well": output(b"1\n", refused=REFUSED),
    "a failure without one, and a text like it": output(b"1\n", exit_code=3, rootfs='x","refused":[{'),
    "nothing said": output(),
    "two streams": errors,
    "streams that end first": closed_streams,
    "much output": much,
    "what looks like a record in a text": output(b"1\n", rootfs='x","exit_reason":"exited","exit_code":0,"signal":null,"', exit_code=3),
    "bytes that are no text": output(b"\0\xff\x1b[2J"),
}
REST = {
    "a refused call of a program that failed": output(b"1\n", exit_code=3, refused=REFUSED),
    "the same, in which a text says there was none": output(b"1\n", exit_code=3, rootfs='x","refused":[],', refused=REFUSED),
    "refused calls that are not known": output(b"1\n", exit_code=3, refused=None),
    "output that just fits": output(b"x" * 1024),
    "output that does not fit": output(b"x" * 1025, exit_code=4),
    "a flood": flood,
    "a limit": limit,
    "a signal": output(exit_reason="signaled", exit_code=139, signal="SIGSEGV"),
    "an end without a status": output(exit_code=None),
    "a status that is none": output(exit_code=256),
    "an unknown reason": output(exit_reason="new_reason"),
    "something lost": output(b"1\n", lost=[{"layers": ["pids-limit"], "why": "no cgroup"}]),
    "something left": output(b"1\n", left="a directory"),
    "no such command": output(exec_error="ENOENT", exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "x: not in the rootfs"}),
    "a wait": waits,
    "a refusal": answers(fake.refusal("busy", "8 runs at once", retry_after_ms=40)),
    "a word that brig has not": answers({"event": "news"}),
    "no JSON": answers(b"\0"),
    "nothing at all": answers(),
    "a start without streams": answers(fake.STARTED),
    "a second start": second_start,
    "silence after the start": lambda server: server.start(),
    "a start with another stream": lambda server: server.start("result"),
    "a start of a run without a name": lambda server: server.start(run="../../../../etc/passwd-0000-00000000"),
    "a message that is too large": too_large,
}


def ask(script, *options, args=()):
    """What brig did, and what it had asked for."""
    requests = []

    def serve(server):
        requests.append((server.receive(), [os.pread(fd, 100, 0) for fd in server.fds]))
        script(server)
    with fake.server(serve) as env:
        ran = tool.run(*options, program="print(1)\n", args=args, env=env, json_record=False)
    return (requests, ran.status, ran.stdout, re.sub(r"/\S*", "PATH", ran.stderr))


EVERY = {**PLAIN, **REST}


@pytest.mark.parametrize("name", EVERY)
def test_both_ways_tell_the_same(name):
    """-pNAME in one word is not taken early."""
    assert ask(EVERY[name], "-p", "basic", args=["a", "b c"]) == ask(EVERY[name], "-pbasic", args=["a", "b c"])


@pytest.mark.parametrize("words", [["--", "-x"], ["ä"], ['"'], ["\\"], ["a\nb"], ["x" * 20000], [""]], ids=lambda words: ascii(words[0][:5]))
def test_arguments_arrive_as_they_are(words):
    (request, code), = ask(PLAIN["an exit"], args=words)[0]
    assert request["args"] == words and code == [b"print(1)\n"]


def has_heap(pid):
    with open(f"/proc/{pid}/maps") as f:
        return "[heap]" in f.read()


@pytest.mark.parametrize("options, early", [([], True), (["-p", "basic"], True), (["--verbose"], False), (["--json"], False), (["--env", "A=1"], False)],
                         ids=lambda value: " ".join(value) or "plain" if isinstance(value, list) else "")
def test_only_the_plain_case_does_without_a_c_library(options, early):
    seen, told = [], []

    def serve(server):
        server.receive()
        server.start()
        out(server, b"here\n")
        host.poll(lambda: told)
        seen.append(has_heap(told[0]))
        server.send(fake.ended())
    with fake.server(serve) as env:
        child = tool.start(*options, program="pass", env=env, json_record=False)
        told.append(child.pid)
        assert child.wait().status == 0
    assert seen == [not early]


def test_it_has_no_privilege_while_output_comes_in():
    seen, told = [], []

    def serve(server):
        server.receive()
        server.start()
        host.poll(lambda: told)
        with open(f"/proc/{told[0]}/status") as f:
            seen.append(dict(line.split(":\t", 1) for line in f.read().splitlines() if line.startswith(("CapEff", "CapPrm", "NoNewPrivs"))))
        server.send(fake.ended())
    with fake.server(serve) as env:
        child = tool.start(program="pass", env=env, json_record=False)
        told.append(child.pid)
        assert child.wait().status == 0
    kill = f"{1 << 5:016x}" if os.geteuid() == 0 else f"{0:016x}"
    assert seen == [{"CapPrm": kill, "CapEff": kill, "NoNewPrivs": "1"}]


def test_output_that_nobody_reads_any_more_cancels_the_run():
    reading, writing = os.pipe()
    os.close(reading)
    seen = []

    def serve(server):
        server.receive()
        server.start()
        out(server, b"1\n")
        seen.append(server.receive()["op"])
        server.send(fake.ended(exit_reason="cancelled", exit_code=None))
    with fake.server(serve) as env:
        child = subprocess.run([tool.binary(), "run", "/dev/stdin"], input=b"pass", stdout=writing, stderr=subprocess.PIPE, env=tool.environment(env), timeout=host.HANG)
        assert (child.returncode, seen) == (141, ["cancel"])
    seen.clear()
    with fake.server(serve) as env:
        argv = tool.command(program="pass", json_record=False)
        child = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, env=tool.environment(env), timeout=host.HANG)
    os.close(writing)
    assert (child.returncode, seen, child.stderr) == (141, ["cancel"], b"")


def test_a_signal_that_the_caller_ignores_ends_nothing():
    def serve(server):
        server.receive()
        server.start()
        assert host.poll(lambda: told)
        os.kill(told[0], signal.SIGHUP)
        assert host.poll(lambda: has_heap(told[0])) # somebody took over, and looked at it
        out(server, b"still here\n")
        server.send(fake.ended())
    told = []
    with fake.server(serve) as env:
        argv = tool.command(program="pass", json_record=False)
        child = subprocess.Popen(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *argv], stdout=subprocess.PIPE, env=tool.environment(env))
        told.append(child.pid)
        said, _ = child.communicate(timeout=host.HANG)
    assert (child.returncode, said) == (0, b"still here\n")


def test_what_runs_first_needs_no_library_and_no_relocation():
    """Nothing is relocated yet, there is no thread pointer: a call of memcpy would be the end."""
    undefined = subprocess.run(["nm", "-u", OBJECT], capture_output=True, text=True, check=True).stdout.split()
    assert set(undefined) - {"U", "w"} == {"_start", "early_run"}
    sections = subprocess.run(["objdump", "-h", OBJECT], capture_output=True, text=True, check=True).stdout
    assert ".text" in sections and ".data.rel" not in sections and ".tdata" not in sections and ".init_array" not in sections


def test_nothing_in_brig_loads_a_name_service():
    """In a static program glibc's own functions for accounts would load libraries of another C library; brig has others (common/static)."""
    names = subprocess.run(["nm", tool.binary()], capture_output=True, text=True, check=True).stdout
    assert " early_main" in names and not re.search(r" \w __nss_(database|module|lookup)", names)


INSTALLED = """
mount -t tmpfs tmpfs "$(dirname "$1")"
cp "$2" "$1"
mount -t tmpfs tmpfs /run
mkdir -p /run/brig /run/user/0/brig
for socket in /run/brig /run/user/0/brig; do
    test "$3" != "$socket" || ln -s "$4" $socket/brig.sock
done
shift 4
exec "$@"
"""


@pytest.mark.parametrize("folder", ["/run/brig", "/run/user/0/brig"])
def test_an_installed_brig_finds_the_usual_services_by_itself(needs_root, folder, tmp_path):
    """By strace, which sees that it needed no C library for that."""
    place = re.search(rb"(/[!-~]{1,100}/brig)\0", b"".join(re.findall(rb"/[!-~]{1,100}/bin/brig\0", tool.binary().read_bytes())))[1].decode()
    if not shutil.which("strace") or not os.path.isdir(os.path.dirname(place)):
        pytest.skip(f"needs strace, and {os.path.dirname(place)}, to put a brig there in a mount namespace of its own")
    log = tmp_path / "log"
    (tmp_path / "x.py").write_text("pass")

    def script(server):
        server.receive()
        PLAIN["an exit"](server)
    with fake.server(script) as env:
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", INSTALLED, "sh", place, tool.binary(), folder, env["BRIG_SOCKET"],
                               "strace", "-o", log, place, "run", tmp_path / "x.py"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=host.HANG)
    assert (done.returncode, done.stdout) == (0, "1\n"), done
    assert "brk(" not in log.read_text()


@pytest.mark.parametrize("blocks", [True, False], ids=["a pipe that blocks", "a pipe that does not"])
def test_a_slow_reader_gets_everything(blocks):
    reading, writing = os.pipe()
    os.set_blocking(writing, blocks)
    sent = os.urandom(MIB // 2)

    def serve(server):
        server.receive()
        server.start(output_bytes=MIB)
        with open(os.dup(server.pipes["stdout"]), "wb") as pipe:
            pipe.write(sent)
        server.send(fake.ended())
    with fake.server(serve) as env:
        child = subprocess.Popen(tool.command(program="pass", json_record=False), stdout=writing, env=tool.environment(env))
        os.close(writing)
        came = b""
        while (part := os.read(reading, 1500)):
            came += part
        assert child.wait(host.HANG) == 0 and came == sent
    os.close(reading)


def in_pipe(fd):
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("option", [("-p", "basic"), ("-pbasic",)], ids=["early", "as always"])
def test_a_signal_cancels_a_run_whose_output_nobody_reads_for_now_and_loses_none_of_it(option, number):
    reading, writing = os.pipe()
    sent = os.urandom(MIB // 4)
    written = []

    def serve(server):
        server.receive()
        server.start(output_bytes=MIB)
        with open(os.dup(server.pipes["stdout"]), "wb") as pipe:
            pipe.write(sent[:MIB // 8])
            pipe.flush()
            assert host.poll(lambda: told and in_pipe(reading) == 1 << 16) # full
            os.kill(told[0], number)
            assert server.receive()["op"] == "cancel"
            written.append(True)
            pipe.write(sent[MIB // 8:])
        server.send(fake.ended(exit_reason="cancelled", exit_code=None))
    told = []
    with fake.server(serve) as env:
        child = subprocess.Popen(tool.command(*option, program="pass", json_record=False), stdout=writing, stderr=subprocess.PIPE, env=tool.environment(env))
        told.append(child.pid)
        os.close(writing)
        assert host.poll(lambda: written or child.poll() is not None)
        with open(reading, "rb") as pipe:
            assert pipe.read() == sent
        child.communicate(timeout=host.HANG)
    assert child.returncode == 128 + number


def test_stopped_and_continued_it_goes_on():
    def serve(server):
        server.receive()
        server.start()
        assert host.poll(lambda: told)
        os.kill(told[0], signal.SIGSTOP)
        assert host.poll(lambda: os.waitid(os.P_PID, told[0], os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
        out(server, b"meanwhile\n")
        os.kill(told[0], signal.SIGCONT)
        server.send(fake.ended())
    told = []
    with fake.server(serve) as env:
        child = tool.start(program="pass", env=env, json_record=False)
        told.append(child.pid)
        ran = child.wait()
    assert (ran.status, ran.stdout) == (0, "meanwhile\n"), ran


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_two_signals_end_brig_although_nobody_answers(number):
    def serve(server):
        server.receive()
        server.start()
        assert host.poll(lambda: told)
        os.kill(told[0], number)
        assert server.receive()["op"] == "cancel"
        os.kill(told[0], number)
        server.receive()
    told = []
    with fake.server(serve) as env:
        child = tool.start(program="pass", env=env, json_record=False)
        told.append(child.pid)
        assert child.wait().status == -number
