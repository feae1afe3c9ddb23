"""Rows I1, I4, I5 and I7: whatever one client sends, holds or does not read, the daemon stays as it was and serves the others."""
import contextlib
import json
import os
import random
import socket
import struct
import subprocess

import pytest

import hostile
import slow_files
from hostile import CODE, MANY_DESCRIPTORS, Flat, hear_out, say, with_descriptors
from rules import ANN, BOB, LONG, SLEEP
from support import client, host, tiers
from support import daemon as daemons

SEED = 1
MUTANTS = 3000
VALID = [
    # a datagram, and what comes with it
    ({"op": "hello", "version": 1, "tag": 1}, ()),
    ({"op": "run", "profile": "basic", "limits": {"wall_ms": 2000, "memory_bytes": "64M", "cpus": 0.5, "pids": 16}, "args": ["a", "b"], "env": ["A=b"],
      "stdin": True, "cold": True, "tag": 2}, ("code",)),
    ({"op": "run", "ro": ["shown"], "limits": {"wall_ms": 2000}, "tag": 3}, ("code", "directory")),
    ({"op": "exec", "profile": "strict", "argv": ["true", "x"], "env": ["A=b"], "limits": {"wall_ms": 2000}, "tag": 4}, ()),
    ({"op": "cancel", "run": "00000000-0000-4000-8000-000000000000", "reason": "cancelled", "tag": 5}, ()),
    ({"op": "list", "tag": 6}, ()), ({"op": "stats", "tag": 7}, ()), ({"op": "explain", "profile": "basic", "tag": 8}, ()),
    ({"op": "metrics", "profile": "basic", "tag": 9}, ()),
]
# All are JSON but the last ones; what parsers and ranges trip over.
VALUES = ["null", "true", "-1", "0", "-0", "1e308", "-1e308", "1e-320", "9223372036854775807", "9223372036854775808", "18446744073709551616", "0.1", "1E2",
          '""', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"' + "x" * 5000 + '"', '"../../etc"', '"%s%n"', '"\u202e"', "[]", "{}", "[[[[[]]]]]", '{"a":{"a":{}}}',
          "[" * 33 + "]" * 33, '"64M"', '"99999999999999999999T"', '"-1M"', "01", "+1", "NaN", "Infinity", "0x10", "'a'", "[1,]", "{,}", "\x01", "\x7f", "//"]
KEYS = ["op", "tag", "run", "uid", "profile", "limits", "argv", "args", "ro", "", "__proto__", "op\\u0000", "memory_bytes"]


class Mutants:
    """Datagrams that are nearly right; the same ones every time."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def one(self):
        message, beside = self.dice.choice(VALID)
        change = self.dice.choice([self.value] * 4 + [self.key] * 2 + [self.beside] * 2 + [self.bytes, self.twice, self.size])
        return change(json.dumps(message, ensure_ascii=False).encode(), list(beside))

    def value(self, data, beside):
        """Another value in the place of one of them, at any depth."""
        marked = self.with_mark(json.loads(data), self.dice.randrange(12))
        return json.dumps(marked).replace('"\\u0001"', self.dice.choice(VALUES)).encode(errors="surrogatepass"), beside

    def with_mark(self, part, n):
        keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) and part else None
        if keys is None or not len(keys):
            return "\x01"
        key = keys[n % len(keys)]
        deep = isinstance(part[key], (dict, list)) and self.dice.random() < 0.7
        part[key] = self.with_mark(part[key], n // 2) if deep else "\x01"
        return part

    def key(self, data, beside):
        message = json.loads(data)
        if self.dice.random() < 0.4 and message:
            message.pop(self.dice.choice(list(message)))
        text = json.dumps(message)
        return text.replace("}", f', "{self.dice.choice(KEYS)}": {self.dice.choice(VALUES)}}}', 1).encode(), beside

    def bytes(self, data, beside):
        data = bytearray(data)
        for _ in range(self.dice.randint(1, 4)):
            at = self.dice.randrange(len(data) + 1)
            match self.dice.randrange(4):
                case 0: data[at:at + 1] = bytes([self.dice.randrange(256)])
                case 1: del data[at:at + self.dice.randint(1, 9)]
                case 2: data[at:at] = data[self.dice.randrange(len(data) + 1):][:20]
                case 3: data[at:at] = self.dice.randbytes(self.dice.randint(1, 9))
        return bytes(data) or b" ", beside

    def twice(self, data, beside):
        return data + self.dice.choice([b"", b" ", b"\n", b"\x00", b","]) + data, beside

    def size(self, data, beside):
        filler = self.dice.choice([b" ", b"[", b'{"a":', b"\xff", b"\x00", b'"'])
        longer = data[:self.dice.randrange(len(data))] + filler * self.dice.choice([100, 5000, 12000, 66000])
        return longer[:150000], beside # what a socket takes at once

    def beside(self, data, beside):
        kinds = [self.dice.choice(list(hostile.KINDS)) for _ in range(self.dice.randint(0, 5))]
        return data, self.dice.choice([kinds, beside + kinds, kinds[:1] + beside[1:]])


@pytest.mark.row("I1")
@pytest.mark.row("I4")
@pytest.mark.parametrize("many", tiers.amounts(500, MUTANTS))
def test_hostile_datagrams_are_each_answered(daemon, many):
    mutants, seen, flat = Mutants(SEED), {}, None
    with daemon.connect() as talk:
        for n in range(many):
            data, kinds = mutants.one()
            try:
                say(talk, data, with_descriptors(kinds))
                what = hear_out(talk)
            except (TimeoutError, client.Closed, OSError) as e:
                pytest.fail(f"seed {SEED}, datagram {n}: {e!r}: {data[:300]} with {kinds}\n{daemon.words()}")
            seen[what] = seen.get(what, 0) + 1
            if n == many // 5:
                flat = Flat(daemon)
            if n % (many // 5) == 0:
                assert daemon.run("print('others are served')").stdout == "others are served\n"
    assert not (grown := flat.grown()), grown
    assert {"bad_message", "bad_field", "bad_descriptors", "ended", "hello"} <= set(seen), f"too tame: {seen}"
    assert not {"broken", "unavailable"} & set(seen), seen


@pytest.mark.control("I1")
@pytest.mark.control("I4")
@pytest.mark.parametrize("message, beside", VALID, ids=lambda value: value["op"] if isinstance(value, dict) else "")
def test_control_what_the_mutants_are_made_of_is_answered_well(talk, message, beside):
    say(talk, json.dumps(message).encode(), with_descriptors(beside))
    assert hear_out(talk) == ("not_found" if message["op"] == "cancel" else "ended" if message["op"] in ("run", "exec") else message["op"])


# --- I4: descriptors -----------------------------------------------------------------------------------------------

@pytest.mark.row("I4")
@pytest.mark.parametrize("kind", tiers.few(sorted(hostile.KINDS), "socket"))
def test_253_descriptors_are_refused_and_closed(daemon, talk, kind):
    hostile.check_253(daemon, talk, kind)


@pytest.mark.row("I4")
def test_sockets_that_hold_each_other_are_let_go(daemon):
    """A socket that travels over itself keeps itself alive until the kernel looks for such loops."""
    flat = Flat(daemon)
    for _ in range(200):
        with daemon.connect() as talk, daemon.connect() as other:
            talk.send({"op": "hello"}, [talk.sock.fileno(), other.sock.fileno()])
            other.send({"op": "run"}, [talk.sock.fileno()])
            assert {hear_out(talk), hear_out(other)} == {"bad_descriptors"}
    assert not (grown := flat.grown()), grown


@pytest.mark.row("I4")
def test_descriptors_that_nobody_asked_for_come_without_a_message(daemon, talk):
    """The whole answer is about them, whatever the text is."""
    for data in (b"", b" ", b"x"):
        try:
            say(talk, data, with_descriptors(["pipe"] * 3))
        except OSError:
            continue
        try:
            assert hear_out(talk) in ("bad_message", "bad_descriptors")
        except client.Closed: # no bytes are how such a socket says its end
            talk = daemon.connect()
    assert talk.ask("hello")["version"] == 1


@pytest.mark.row("I4")
def test_a_message_without_a_byte_leaves_none_of_its_descriptors_open(daemon):
    """It looks like the end of the connection."""
    flat = Flat(daemon)
    for _ in range(20):
        with daemon.connect() as talk:
            say(talk, b"", with_descriptors(["pipe"] * 3))
            with pytest.raises(client.Closed):
                talk.next()
    assert not (grown := flat.grown()), grown


# What waits for somebody else's file system: the client mounts it (fusermount3 lets every user) and answers when he likes.
KNOWN = pytest.mark.xfail(strict=True, reason="known: the server waits for the server of a client's file system when it closes a file of it")
SLOW = {
    # what the server does: what comes with the request
    "close": ({"op": "run"}, ["program"]), "statfs": ({"op": "run", "ro": ["a"]}, ["code", "."]),
}


@pytest.mark.row("I4")
@pytest.mark.parametrize("call", [pytest.param("close", marks=KNOWN), "statfs"])
def test_a_file_whose_server_does_not_answer_stops_nobody_else(start_daemon, call):
    if host.lacks("file:/dev/fuse"):
        pytest.skip(host.lacks("file:/dev/fuse"))
    message, names = SLOW[call]
    with slow_files.SlowFiles() as files, start_daemon() as daemon, daemon.connect() as talk:
        fds = [client.sealed(CODE) if name == "code" else os.open(f"{files.folder}/{name}", os.O_PATH if name == "." else os.O_RDONLY) for name in names]
        talk.send(message, fds)
        try:
            with daemon.connect(1 if call == "close" else host.HANG) as other: # what is known need not be waited for
                assert other.run("print('served')").stdout == "served\n", files.asked
        finally:
            files.hang_up()
            for fd in fds:
                with contextlib.suppress(OSError): # our own end of what has hung up
                    os.close(fd)


@pytest.mark.row("I4")
def test_an_open_file_whose_server_answers_the_server_and_nothing_else_stops_no_process_behind_the_server(start_daemon):
    """Each process that has it open waits when it closes it. So what is shown is passed on without being open."""
    if host.lacks("file:/dev/fuse"):
        pytest.skip(host.lacks("file:/dev/fuse"))
    with slow_files.SlowFiles(closes=2) as files, start_daemon() as daemon, daemon.connect() as talk:
        fds = [client.sealed(CODE), os.open(f"{files.folder}/program", os.O_RDONLY)]
        talk.send({"op": "run", "ro": ["a"], "limits": {"wall_ms": 60000}}, fds)
        try:
            with daemon.connect() as other:
                run = other.run(SLEEP, limits={"wall_ms": 300})
                assert run.reason == "timeout_wall", (run, files.asked)
        finally:
            files.hang_up()
            for fd in fds:
                with contextlib.suppress(OSError):
                    os.close(fd)
        assert hear_out(talk) == "ended", "the file is shown, or its file system did not answer"


@contextlib.contextmanager
def lingering():
    """A TCP socket of which the last close waits for its other end, which reads nothing and goes when this is over."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        end, _ = server.accept()
        with end:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    one.send(bytes(1 << 16))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
            yield one


@pytest.mark.row("I4")
def test_a_socket_that_lingers_stops_nobody_else(daemon):
    with lingering() as one, daemon.connect() as talk:
        talk.send({"op": "run"}, [one.fileno()])
        one.close()
        with daemon.connect() as other:
            assert other.run("print('served')").stdout == "served\n"


# --- I5: many, slow and silent clients ------------------------------------------------------------------------------

FLOOD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held, refused = [], 0
for n in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.settimeout(0.2)
    try:
        one.connect(sys.argv[1])
        held.append(one)
    except OSError:
        refused += 1
        if refused > 20:
            break
print(len(held), refused, flush=True)
sys.stdin.read()
"""
TWO = {"access": [{"uid": uid, "profiles": ["basic"], "runs": 8} for uid in (0, ANN, BOB)]}


def as_user(uid, *argv, **popen):
    words = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *map(str, argv)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **popen)


@pytest.fixture
def two(start_daemon):
    """Ann and Bob may connect."""
    made = start_daemon(TWO)
    made.path.chmod(0o666)
    return made


def serve(daemon, uid):
    """That user's greeting and run are answered."""
    with daemon.connect_as(uid) as talk:
        talk.ask("hello")
        assert talk.command("true").reason == "exited"


@pytest.mark.row("I5")
def test_two_thousand_idle_connections_of_one_user_hold_up_nobody_else(two):
    server = two.one("server")
    serve(two, ANN)
    before = daemons.lasting_descriptors(server)
    flood = as_user(BOB, host.PYTHON, "-c", FLOOD, two.path, 2000)
    try:
        held, _ = map(int, flood.stdout.readline().split())
        assert held > 0, "the flood could not even begin"
        serve(two, ANN)
        with two.connect() as talk:
            assert talk.ask("hello")["version"] == 1
        assert daemons.lasting_descriptors(server) < 1024, "as many as anybody likes are held"
    finally:
        flood.communicate()
    assert host.poll(lambda: daemons.lasting_descriptors(server) <= before), f"{daemons.lasting_descriptors(server)} descriptors, there were {before}"
    serve(two, BOB) # who has stopped


@pytest.mark.row("I5")
@pytest.mark.parametrize("many", tiers.amounts(1000, 10000))
def test_connections_one_after_the_other_leave_nothing(daemon, many):
    flat = Flat(daemon)
    for n in range(many):
        with daemon.connect() as talk:
            if n % 100 == 0:
                talk.ask("hello")
    assert not (grown := flat.grown()), grown


@pytest.mark.control("I5")
def test_control_the_same_user_is_served_when_nobody_floods(two):
    serve(two, BOB)
    serve(two, ANN)


@pytest.mark.row("I5")
def test_a_client_that_reads_no_answer_is_no_burden(daemon):
    flat = Flat(daemon)
    with daemon.connect() as deaf:
        deaf.sock.settimeout(0.2)
        sent = 0
        try:
            while sent < 50000:
                deaf.sock.send(b'{"op":"hello"}')
                sent += 1
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 50000, "the daemon keeps answers without bound"
        assert daemon.run("print('served')").stdout == "served\n"
        assert host.poll(lambda: host.rests(daemon.one("server"))), "the server runs in circles"
    assert not (grown := flat.grown()), grown


@pytest.mark.row("I5")
def test_a_half_closed_connection_is_no_burden(daemon, token):
    with daemon.connect() as talk:
        run = talk.start(SLEEP, args=[token], limits=LONG)
        assert run.line() == "up"
        talk.sock.shutdown(socket.SHUT_WR)
        assert host.poll(lambda: not host.with_token(token)), "who says nothing any more still has a run"
        run.close()
        assert host.poll(lambda: host.rests(daemon.one("server"))), "the server runs in circles"
    assert daemon.run("print('served')").stdout == "served\n"


@pytest.mark.row("I5")
def test_a_connection_that_says_nothing_keeps_nobody_waiting(daemon):
    silent = [daemon.connect() for _ in range(20)]
    assert daemon.run("print('served')").stdout == "served\n"
    for talk in silent:
        assert talk.ask("hello")["version"] == 1
        talk.close()


# --- I7: nobody's full pipe stops anybody else ------------------------------------------------------------------------

FILL = "import os, sys; os.write(2, b'up\\n')\nwhile True: os.write(2, b'x' * 65536)"


@pytest.mark.row("I7")
def test_programs_that_fill_pipes_that_nobody_reads_stop_only_themselves(daemon):
    """They would for minutes. A run that waited for one of their pipes would be there when they are cancelled, and not before."""
    with daemon.connect() as talk:
        runs = [talk.start(FILL, limits=LONG) for _ in range(4)]
        for run in runs:
            assert run.line("stderr") == "up"
        for _ in range(15):
            assert daemon.run("print('beside')").stdout == "beside\n"
        assert {run.id for run in runs} <= {row["run"] for row in talk.ask("list")["runs"]}
        for run in runs:
            talk.ask("cancel", run=run.id, reason="cancelled")
            assert run.wait()["exit_reason"] == "cancelled"
            run.close()


def full_pipe():
    """Both ends; whoever writes to it blocks."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    return reading, writing


@pytest.mark.row("I7")
def test_a_daemon_whose_log_nobody_reads_serves_all_the_same(start_daemon):
    reading, writing = full_pipe()
    try:
        daemon = start_daemon(stderr=writing)
        with daemon.connect() as talk:
            for _ in range(200):
                say(talk, b"no JSON", [])
                assert hear_out(talk) == "bad_message"
            assert host.poll(lambda: is_served(talk))
        assert daemon.stop() == 0
    finally:
        client.close_all([reading, writing])


def is_served(talk):
    """A run that is given to a supervisor which is just dying, or has just died, is told so."""
    try:
        return talk.run("print('served')").stdout == "served\n"
    except client.NotStarted as e:
        assert e.record["exit_reason"] in ("cancelled", "setup_failed") and e.record["error"], e
        return False


@pytest.mark.row("I7")
def test_a_monitor_whose_messages_are_not_read_goes_on(start_daemon):
    """It prints that a supervisor ended; a process that holds the other end of its standard error must not stop it by not reading."""
    reading, writing = full_pipe()
    try:
        daemon = start_daemon(stderr=writing)
        daemon.settle()
        for pid in daemon.of_kind("supervisor"):
            daemons.kill(pid)
        with daemon.connect() as talk:
            assert host.poll(lambda: is_served(talk))
        assert daemon.stop() == 0
    finally:
        client.close_all([reading, writing])



@pytest.mark.row("I7")
def test_a_server_of_ones_own_does_not_wait_for_the_callers_log(jail):
    reading, writing = full_pipe()
    try:
        with daemons.Private(stderr=writing) as own:
            say(own.client, b"no JSON", [])
            assert hear_out(own.client) == "bad_message"
            ended = own.client.run("import sys; print('served'); print('told', file=sys.stderr)")
            assert (ended.stdout, ended.stderr) == ("served\n", "told\n")
    finally:
        client.close_all([reading, writing])


@pytest.mark.control("I7")
def test_control_the_pipe_is_full_and_stops_a_program_that_writes(jail):
    reading, writing = full_pipe()
    child = subprocess.Popen(["sh", "-c", "echo told >&2"], stderr=writing)
    try:
        assert host.poll(lambda: host.rests(child.pid)) and child.poll() is None
    finally:
        child.kill()
        child.wait()
        client.close_all([reading, writing])
