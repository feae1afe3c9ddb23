"""Row I1: whatever a client calls itself, its program and its words, the audit keeps one line of JSON for each attempt, and no terminal obeys it."""
import collections
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import threading

import pytest

from rules import MANY, SLEEP, audit_log
from support import brig as tool
from support import client, host, terminal
from support import daemon as daemons

JOURNAL = "/run/systemd/journal/socket"
WORDS = [
    # a request with a hostile word in it, and whether a program comes with it
    ({"op": "{}"}, False), ({"op": "run", "{}": 1}, True), ({"op": "run", "profile": "{}"}, True), ({"op": "exec", "argv": ["true"], "profile": "{}"}, False),
    ({"op": "run", "limits": {"{}": 1}}, True), ({"op": "run", "limits": {"pids": "{}"}}, True), ({"op": "run", "mode": "{}"}, True), ({"op": "run", "imports": ["{}"], "mode": "check"}, True),
    ({"op": "run", "env": ["{}=1"]}, True), ({"op": "run", "env": ["LD_{}=1"]}, True), ({"op": "run", "ro": ["a/{}"]}, True), ({"op": "cancel", "run": "{}"}, False),
    ({"op": "cancel", "run": "x", "reason": "{}"}, False), ({"op": "explain", "profile": "{}"}, False), ({"op": "hello", "tag": "{}"}, False),
    ({"op": "exec", "argv": ["{}", "{}"]}, False), ({"op": "exec", "argv": ["./{}/x"], "env": ["A={}"]}, False), ({"op": "run", "args": ["{}"]}, True),
]


def call(name):
    with open("/proc/self/comm", "wb") as comm:
        comm.write(name if isinstance(name, bytes) else name.encode())


@contextlib.contextmanager
def called(name):
    """This process has that name: the kernel keeps 15 bytes of it, whatever they are."""
    before = host.read("/proc/self/comm").removesuffix("\n")
    call(name)
    try:
        yield
    finally:
        call(before)


def filled(part, name):
    if isinstance(part, str):
        return part.replace("{}", name)
    if isinstance(part, list):
        return [filled(one, name) for one in part]
    return {filled(key, name): filled(value, name) for key, value in part.items()} if isinstance(part, dict) else part


def say(talk, message, code):
    """Says it, and returns all that is answered, as bytes."""
    fds = [client.sealed("pass")] if code else []
    talk.send(message, fds)
    client.close_all(fds)
    heard = [talk.next()]
    while heard[-1].body.get("event") == "started":
        client.close_all(heard[-1].fds)
        heard.append(talk.next())
    return [one.body for one in heard]


class Journal:
    """Whoever listens at the journal's socket; messages are [(field, value)]."""

    def __init__(self):
        self.datagrams, self.messages = [], []
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        os.makedirs(os.path.dirname(JOURNAL), exist_ok=True)
        self.sock.bind(JOURNAL)
        os.chmod(JOURNAL, 0o666)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while data := self.sock.recv(1 << 16):
            self.datagrams.append(data) # and no more, so that few are lost

    @staticmethod
    def fields(data):
        """A value stands behind its length, so that it may hold anything, or behind "=" up to the end of the line."""
        while data:
            name, _, data = data.partition(b"\n")
            if b"=" in name:
                name, _, value = name.partition(b"=")
            else:
                size, = struct.unpack_from("<Q", data)
                value, data = data[8:8 + size], data[9 + size:]
            yield name.decode(), value

    def close(self):
        """What was sent before has been read then."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", JOURNAL)
        self.reader.join(host.HANG)
        self.messages += [list(self.fields(data)) for data in self.datagrams]
        self.sock.close()
        os.unlink(JOURNAL)


class Told:
    """What a service with an audit says of clients and requests with all of those names, while each client has a run whose program begins with its name."""

    def __init__(self, daemon, file, journal):
        self.names, self.answers, talks = [*terminal.NAMES.values(), b"\xff\xfe\xc2"], [], []
        for name in self.names:
            with called(name):
                talks.append(daemon.connect())
                run = talks[-1].start(f"1 # {name}\n{SLEEP}" if isinstance(name, str) else SLEEP)
                assert run.line() == "up"
                run.close()
        for message, code in WORDS: # the audit writes so many refusals a minute: each name comes with the first ones
            for name, talk in zip(terminal.NAMES.values(), talks):
                self.answers += say(talk, filled(message, name), code)
        self.pages = {words: self.ask(daemon, *words.split()) for words in ("ps", "ps --json", "top --once", "top --json", "stats")}
        for talk in talks:
            talk.close()
        with daemon.connect() as talk:
            assert host.poll(lambda: not talk.ask("list")["runs"])
        assert daemon.stop() == 0
        self.log, self.said, self.journal = file.read_bytes(), daemon.words(), journal and journal.messages
        if journal:
            journal.close()
        self.pages |= {words: self.ask(daemon, *words.split(), "--file", str(file)) for words in ("audit", "audit --json")}

    @staticmethod
    def ask(daemon, *words):
        done = subprocess.run([tool.binary(), *words], env=tool.environment({"BRIG_SOCKET": str(daemon.path)}), capture_output=True, timeout=host.HANG)
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout


@pytest.fixture(scope="module")
def told(built):
    with audit_log() as file:
        journal = None if os.path.exists(JOURNAL) else Journal()
        with daemons.Daemon({**MANY, "audit": {"file": str(file)}}) as daemon:
            yield Told(daemon, file, journal)


@pytest.mark.row("I1")
def test_each_attempt_is_one_line_of_json_in_the_audit_and_says_no_more_than_it_did(told):
    entries = [json.loads(line) for line in told.log.decode("ascii").splitlines()]
    assert told.log.endswith(b"\n") and not terminal.obeyed(told.log)
    assert {entry["peer_uid"] for entry in entries} == {0} and len({frozenset(entry) for entry in entries}) == 1, "a name has become a key, or a line"
    assert {entry["profile"] for entry in entries} >= set(terminal.NAMES.values()), "cut, or left out"
    assert {entry["peer_comm"] for entry in entries} == {terminal.plain(name) for name in told.names}


@pytest.mark.row("I1")
def test_each_attempt_is_one_message_of_the_journal_with_no_field_more_or_is_counted_there_as_lost(told):
    if told.journal is None:
        pytest.skip(f"{JOURNAL} belongs to another program here: tests/worker has a /run of its own")
    entries = [json.loads(line) for line in told.log.splitlines()]
    known = {"PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE", *(f"BRIG_{key.upper()}" for key in entries[0])}
    missing, lost = collections.Counter(entry["peer_comm"] for entry in entries), 0
    for fields in told.journal:
        message = dict(fields)
        assert len(fields) == len(message) and message.keys() <= known, fields
        assert b"\n" not in message["MESSAGE"] and not terminal.obeyed(message["MESSAGE"]), fields
        if again := re.fullmatch(rb"audit: journal: written again, without (\d+) lines", message["MESSAGE"]): # this test reads slower than brigd writes
            lost += int(again[1])
            continue
        assert (message["SYSLOG_IDENTIFIER"], message["BRIG_PEER_UID"]) == (b"brigd", b"0"), fields
        missing[message["BRIG_PEER_COMM"].decode()] -= 1
    assert all(count >= 0 for count in missing.values()) and sum(missing.values()) == lost, (missing, lost)


@pytest.mark.row("I1")
@pytest.mark.parametrize("words", ["ps", "ps --json", "top --once", "top --json", "stats", "audit", "audit --json"])
def test_no_terminal_obeys_what_is_printed(told, words):
    page = told.pages[words]
    assert not terminal.obeyed(page), page
    if words.endswith("--json"):
        listed = json.loads(page) if words != "audit --json" else {"runs": [json.loads(line) for line in page.splitlines()]}
        rows = listed.get("list", listed)["runs"]
        assert {row.get("comm") or row.get("peer_comm") for row in rows} == {terminal.plain(name) for name in told.names}
    elif words != "stats":
        assert page.count(b"?[2J?[1;1Hx") >= 1 and b"a???cba" in page, "the names are not there at all"


@pytest.mark.row("I1")
def test_no_answer_and_no_word_of_the_service_has_what_a_terminal_obeys(told):
    assert {body["error"]["code"] for body in told.answers if "error" in body} == {"unknown_request", "bad_field", "not_found"}
    assert not terminal.obeyed(told.said), told.said
    assert not (bad := [body for body in told.answers if terminal.obeyed(str([*body.get("error", {}).values(), body.get("record", {}).get("error")]))]), bad


@pytest.mark.control("I1")
def test_control_the_names_are_what_processes_can_have(needs_root):
    for name in terminal.NAMES.values():
        with called(name):
            assert host.read("/proc/self/comm") == name + "\n" and (terminal.obeyed(name) or name.isprintable() or "\n" in name)
