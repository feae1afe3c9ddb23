"""What a program reports of itself, and brig check: hostile bytes on a pipe that only look like an answer."""
import contextlib
import json
import os
import re
import socket
import subprocess

import pytest

from support import brig as tool
from support import fake_server as fake
from support import host

KEYS = ("result", "result_repr", "error", "variables", "security_event", "security_warnings")
NOTHING = {key: None for key in KEYS}
REPORT = {"result": {"a": [1, 2.5, None]}, "result_repr": "{'a': [1, 2.5, None]}", "error": None, "variables": ["a", "ä"], "exit_code": 0,
          "security_event": None, "security_warnings": []}
RAISED = {"type": "ValueError", "message": "no\x1b[2J", "traceback": "Traceback ...", "line": 3, "offset": None, "text": "raise"}
MIB = 1 << 20


def said(record):
    return {key: record[key] for key in KEYS}


def with_report(data, *options, streams=("result",), **kw):
    """brig run, where a runner has written these bytes."""
    def script(server):
        assert server.receive()["mode"] == "report"
        server.start(*streams)
        with contextlib.suppress(BrokenPipeError):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(server.pipes["result"], rest):]
        server.send(fake.ended())
    with fake.server(script) as env:
        return tool.run(*options, env=env, program="pass", **kw)


# --- what becomes of a report -------------------------------------------------------------------------------

def test_a_report_is_in_the_record():
    ran = with_report(json.dumps(REPORT).encode())
    assert said(ran.record) == {key: REPORT[key] for key in KEYS} and list(ran.record) == [*fake.RECORD, "stdout", "stderr"], ran


def test_what_was_shown_is_in_the_record():
    more = {"figures": 2, "displays": [{"text/plain": "x", "image/png": "iVBORw0KGgo="}, {}], "bundle": {"application/json": {"a": [1.5, "\0"]}}, "left_out": ["one\x1b[2J"]}
    ran = with_report(json.dumps({**REPORT, **more}).encode(), "--verbose")
    assert {key: ran.record.get(key) for key in more} == more and "one" not in ran.stderr, ran


def test_an_exception_is_the_error_of_the_record_and_in_none_of_our_words():
    ran = with_report(json.dumps({**REPORT, "error": RAISED}).encode(), "--verbose")
    assert ran.record["error"] == RAISED and "no" not in ran.stderr.replace("not in force", ""), ran


@pytest.mark.parametrize("key, value", [("exit_reason", "oom"), ("exit_code", 7), ("run_id", "x"), ("limits_hit", [1]), ("refused", [1]), ("stdout", "x")])
def test_a_report_cannot_say_what_the_kernel_says(key, value):
    ran = with_report(json.dumps({**REPORT, key: value}).encode())
    assert ran.record[key] == {**fake.RECORD, "stdout": ""}[key] and ran.status == 0, ran


def test_no_report_is_null_and_no_warning():
    assert said(with_report(b"").record) == NOTHING


GARBAGE = [
    ("text", b"Hello"), ("half a report", json.dumps(REPORT).encode()[:-1]), ("two reports", json.dumps(REPORT).encode() * 2), ("a list", b"[]"),
    ("a NUL byte", b"\0"), ("no UTF-8", b'{"result": "\xff"}'), ("a key that is unknown", json.dumps({**REPORT, "files": []}).encode()),
    ("a key less", json.dumps({key: REPORT[key] for key in KEYS}).encode()), ("an error that is none", json.dumps({**REPORT, "error": "E"}).encode()),
    ("brackets", b"[" * 100000), ("an escape sequence", b"\x1b]0;owned\x07"), ("201 variables", json.dumps({**REPORT, "variables": ["v"] * 201}).encode()),
    ("more than fits", json.dumps(REPORT).encode() + b" " * 8 * MIB), ("a large result", json.dumps({**REPORT, "result": "x" * (MIB + 1)}).encode()),
    ("a picture that is none", json.dumps({**REPORT, "displays": [{"image/png": "*"}]}).encode()), ("a type of nobody's", json.dumps({**REPORT, "bundle": {"text/x": "x"}}).encode()), ("a repr without end", json.dumps({**REPORT, "result_repr": "x" * 40000}).encode()),
]


@pytest.mark.parametrize("data", [row[1] for row in GARBAGE], ids=[row[0] for row in GARBAGE])
def test_what_is_no_report_is_a_warning_and_nothing_else(data):
    ran = with_report(data)
    warnings = ran.record["security_warnings"]
    assert len(warnings) == 1 and re.fullmatch(r"What the program reported cannot be used: [ -~]{3,300}", warnings[0]), ran
    assert said(ran.record) == {**NOTHING, "security_warnings": warnings} and (ran.status, ran.stderr) == (0, ""), ran


def test_a_flood_of_reports_asks_for_the_end_once():
    asked = []

    def script(server):
        server.receive()
        server.start("result")
        for _ in range(66 * MIB >> 16):
            os.write(server.pipes["result"], b"x" * 65536)
        asked.append(server.receive())
        server.send(fake.ended(exit_reason="output_limit", exit_code=None))
    with fake.server(script) as env:
        ran = tool.run(env=env, program="pass")
    assert asked == [{"op": "cancel", "run": fake.STARTED["run"], "reason": "output_limit"}] and ran.status == 153, ran
    assert "more than 8388608 bytes" in ran.record["security_warnings"][0] and "--output" not in ran.stderr, ran


def test_a_pipe_that_stays_open_does_not_hold_brig():
    def script(server):
        server.receive()
        server.start("result")
        os.write(server.pipes["result"], json.dumps(REPORT).encode())
        server.send(fake.ended())
        assert server.receive() is None, "brig is gone while we hold the other end"
    with fake.server(script) as env:
        ran = tool.run(env=env, program="pass")
    assert ran.record["result"] == REPORT["result"], ran


# --- programs in a jail --------------------------------------------------------------------------------------

def test_what_a_program_is_worth_and_leaves(jail, run_brig):
    ran = run_brig(program="import math\nx = 6\ndef f(): pass\nx * 7")
    assert said(ran.record) == {**NOTHING, "result": 42, "result_repr": "42", "variables": ["x", "f"], "security_warnings": []}, ran


def test_an_exception_is_told_with_its_line(jail, run_brig):
    ran = run_brig(program="a = 1\nb = 0\nprint(a / b)\n")
    error = ran.record["error"]
    assert (ran.status, error["type"], error["message"], error["line"], error["text"]) == (1, "ZeroDivisionError", "division by zero", 3, "print(a / b)"), ran
    assert error["traceback"] == ran.record["stderr"], ran


def test_without_json_there_is_no_runner_and_no_pipe(jail, run_brig):
    program = "import os, sys\nprint(sys.argv, sys.orig_argv, [n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')])\n42"
    ran = run_brig(program=program, json_record=False)
    assert ran.stdout == "['main.py'] ['python3', '-I', 'main.py'] []\n", ran


def test_a_command_has_no_report(jail, run_brig):
    ran = run_brig(verb="exec", args=["--", "sh", "-c", "echo x >&5"])
    assert ran.status != 0 and said(ran.record) == NOTHING, ran


HOSTILE = [
    # sentence, program, reason, exit code, what is warned of
    ("garbage", "import os; os.write(5, b'garbage'); os.close(5)", "exited", 0, "cannot be used"),
    ("a lie", "import json, os; os.write(5, json.dumps({'result': 'lie', 'exit_reason': 'oom'}).encode()); os._exit(3)", "exited", 3, "no such key"),
    ("a flood", "import os\nwhile True: os.write(5, b'x' * 65536)", "output_limit", None, "more than 8388608 bytes"),
    ("a flood of three processes", "import os\nfor n in range(2): os.fork()\nos.set_inheritable(5, True)\n"
     "fd = os.open('/proc/2/fd/5', os.O_WRONLY)\nwhile True: os.write(fd, b'x' * 65536)", "output_limit", None, "more than"),
    ("a full pipe at the end", "import fcntl, os\nfcntl.fcntl(5, fcntl.F_SETFL, os.O_NONBLOCK)\ntry:\n  while True: os.write(5, b'x' * 512)\n"
     "except OSError: os._exit(4)", "exited", 4, "cannot be used"),
    ("nothing", "import os; os._exit(5)", "exited", 5, None),
    ("a descriptor that is closed", "import os; os.close(5); x = 1", "exited", 0, None),
    ("a death", "import os, signal; os.kill(2, signal.SIGKILL)", "signaled", 137, None),
    ("a child that keeps it", "import os, time\nfd = os.dup(5)\nif os.fork() == 0: os.setsid(); time.sleep(600)\n'kept'", "exited", 0, None),
    ("a time limit", "import os, time\nos.write(5, b'{')\ntime.sleep(600)", "timeout_wall", None, "cannot be used"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("program, reason, code, warned", [row[1:] for row in HOSTILE], ids=[f"{row[0]} on the pipe changes nothing" for row in HOSTILE])
def test_hostile(jail, run_brig, program, reason, code, warned):
    ran = run_brig("--timeout", "2" if reason == "timeout_wall" else "50", program=program)
    assert (ran.reason, ran.record["exit_code"]) == (reason, code), ran
    warnings = ran.record["security_warnings"] or []
    assert [bool(re.search(warned, text)) for text in warnings] == [True] if warned else warnings == [], ran


def test_an_end_that_is_given_away_does_not_hold_brig(jail, run_brig, tmp_path):
    """Through a socket below --ro: somebody outside then has the writing end of the pipe."""
    folder = tmp_path / "shown"
    folder.mkdir(mode=0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        os.chmod(folder / "s", 0o777)
        listening.listen()
        program = """
import socket
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect("/workspace/shown/s")
    socket.send_fds(s, [b"x"], [5])
except OSError: pass
"given"
"""
        ran = run_brig("--ro", folder, program=program) # what was sent waits here meanwhile, and holds the pipe open
    assert ran.reason == "exited" and ran.record["result"] == "given", ran


def test_a_rootfs_without_a_runner_is_told_how_to_get_one(jail, run_brig, tmp_path):
    """In a store of our own, with a copy of the tree."""
    store, whole = tmp_path / "store", (host.store_dir() / "names/basic").resolve()
    (store / "names").mkdir(parents=True)
    (store / "trees").mkdir()
    subprocess.run(["cp", "-a", "--reflink=auto", whole, store / "trees"], check=True)
    (store / "names/basic").symlink_to(f"../trees/{whole.name}")
    (store / "trees" / whole.name / "tree/usr/lib/brig/guest.pyc").unlink()
    env = {"BRIG_STORE": str(store)}
    ran = run_brig(program="print(1)", env=env)
    assert (ran.status, ran.reason, ran.record["error"]["type"]) == (125, "setup_failed", "MISSING"), ran
    assert "no guest runner" in ran.stderr and "brig rootfs build basic" in ran.stderr and "doctor" not in ran.stderr, ran
    assert run_brig(program="print(1)", env=env, json_record=False).stdout == "1\n", "who wants no report needs no runner"
