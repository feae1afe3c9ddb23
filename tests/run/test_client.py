"""brig as a client: what it asks, and what it makes of whatever a brigd may say."""
import contextlib
import fcntl
import json
import os
import queue
import re
import signal
import struct
import subprocess
import termios

import pytest

from support import brig as tool
from support import fake_server as fake
from support import host

SEALS = 1 | 2 | 4 | 8 # SEAL, SHRINK, GROW, WRITE


def run(script, *options, **kw):
    """One brig run against script; one without a program asks for `pass`."""
    if "program" not in kw and kw.get("verb") != "exec":
        kw["program"] = "pass"
    with fake.server(script) as env:
        return tool.run(*options, env=env, **kw)


def asked(*options, answer=fake.refusal("busy", "no room"), **kw):
    """What brig sent, and what look() saw of its descriptors."""
    seen = []

    def script(server):
        request = server.receive()
        seen.append((request, [describe(fd) for fd in server.fds]))
        server.send(answer)
    run(script, *options, **kw)
    return seen[0]


def describe(fd):
    try:
        return os.pread(fd, 100, 0).decode(), fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS
    except OSError:
        return os.readlink(f"/proc/self/fd/{fd}")


# --- what is asked ----------------------------------------------------------------------------------------

def test_a_run_asks_for_nothing_that_was_not_said():
    request, fds = asked(program="print(1)", json_record=False)
    assert request == {"op": "run", "profile": "basic", "args": [], "limits": {}, "env": [], "ro": [], "wait_ms": 60000}
    assert fds == [("print(1)", SEALS)]


def test_a_run_that_prints_its_record_asks_for_a_report():
    request, _ = asked(program="print(1)")
    assert request == {"op": "run", "mode": "report", "profile": "basic", "args": [], "limits": {}, "env": [], "ro": [], "wait_ms": 60000}


def test_everything_that_was_said_is_in_the_request(tmp_path):
    shown = tmp_path / "shown"
    shown.mkdir()
    request, fds = asked("-p", "strict", "--timeout", "1.5", "--memory", "64M", "--cpus", "0.1", "--pids", "5", "--env", "A=ä", "--ro", shown, "--ro",
                         tmp_path / "shown" / "..", "--stdin", "/dev/null", "--cold", "--wait", "1.5", program="pass", args=["--json", "x y"])
    assert request == {"op": "run", "profile": "strict", "args": ["--json", "x y"], "env": ["A=ä"], "ro": ["shown", tmp_path.name], "stdin": True, "cold": True, "mode": "report", "wait_ms": 1500,
                       "limits": {"wall_ms": 1500, "memory_bytes": 64 << 20, "cpus": 0.1, "pids": 5}}
    assert fds == [("pass", SEALS), str(shown), str(tmp_path)]


def test_exec_sends_its_words_and_no_code():
    request, fds = asked(verb="exec", args=["--", "ls", "-l"])
    assert (request["op"], request["argv"], fds) == ("exec", ["ls", "-l"], [])


NO_TEXT = [
    # what is no UTF-8, options, arguments, words
    ("an argument", [], [b"\xff"], "arguments: "), ("a variable", ["--env", b"A=\xff"], [], "--env A: the value is not UTF-8"),
    ("a profile", ["-p", b"\xff"], [], "does not exist"),
]


@pytest.mark.parametrize("options, args, words", [row[1:] for row in NO_TEXT], ids=[f"{row[0]} that is no UTF-8 is refused" for row in NO_TEXT])
def test_no_text(brig, tmp_path, options, args, words):
    """JSON could not carry it: nothing is asked at all."""
    (tmp_path / "x.py").write_text("pass")
    ran = tool.Child([brig, "run", *options, tmp_path / "x.py", *args], env={"BRIG_SOCKET": "/nonexistent/socket"}).wait()
    assert ran.status == 125 and words in ran.stderr and len(ran.stderr.splitlines()) == 1, ran


def test_more_than_a_message_holds_is_refused_and_says_what_to_do():
    ran = run(lambda server: server.receive(), args=["x" * 70000], json_record=False)
    assert ran.status == 125 and "of at most 65536" in ran.stderr and "arguments" in ran.stderr and len(ran.stderr.splitlines()) == 1, ran


# --- refusals ---------------------------------------------------------------------------------------------

REFUSALS = [
    # code, sentence, field, more, exit_reason, what brig says
    ("above_ceiling", "2G is above the ceiling 1G of profile basic", "limits.memory_bytes", {}, "denied", "--memory 2G is above the ceiling 1G of profile basic"),
    ("bad_field", "0 is outside 1..9", "limits.pids", {}, "denied", "--pids: 0 is outside 1..9"),
    ("denied", "refused", "env[1]", {}, "denied", "--env B: refused"),
    ("bad_descriptors", "holds no files", "ro[0]", {}, "denied", "--ro /usr: holds no files"),
    ("bad_field", "is empty", "code", {}, "denied", "stdin: is empty"),
    ("bad_field", "at most 5", "args", {}, "denied", "arguments: at most 5"),
    ("unknown_profile", "there is none", "profile", {}, "denied", "there is none"),
    ("missing", "no rootfs", None, {}, "setup_failed", "no rootfs"),
    ("busy", "8 runs at once", None, {"retry_after_ms": 40}, "busy", "8 runs at once; try again in 40 ms"),
    ("unavailable", "about to end", None, {}, "setup_failed", "about to end"),
    ("denied", "a\n\x1b[1mb", "env[7]", {}, "denied", "a??[1mb"),
    ("bad_field", "odd", "ro[1", {}, "denied", "odd"),
]


@pytest.mark.parametrize("code, sentence, field, more, reason, says", REFUSALS, ids=[f"{row[0]} {row[2]}" for row in REFUSALS])
def test_refusal(code, sentence, field, more, reason, says):
    def script(server):
        server.receive()
        server.send(fake.refusal(code, sentence, field, **more))
    ran = run(script, "--env", "A=1", "--env", "B=2", "--ro", "/usr", verb="run", file="-", input=b"", program=None)
    status = 75 if code == "busy" else 125
    assert (ran.status, ran.reason, ran.record["error"]["message"]) == (status, reason, says) and ran.stderr == f"brig: {says}\n", ran


def test_who_does_not_want_to_wait_does_not_ask_to():
    assert "wait_ms" not in asked("--wait", "0", program="pass")[0]


@pytest.mark.parametrize("wait, words", [("-1", "-1"), ("x", "x"), ("", ""), ("3601", "3601"), ("nan", "nan"), ("1e3", "1e3")])
def test_no_time_to_wait(brig, tmp_path, wait, words):
    (tmp_path / "x.py").write_text("pass")
    ran = tool.Child([brig, "run", "--wait", wait, tmp_path / "x.py"], env={"BRIG_SOCKET": "/nonexistent/socket"}).wait()
    assert ran.status == 2 and ran.stderr.startswith("brig run: --wait: ") and words in ran.stderr and len(ran.stderr.splitlines()) == 1, ran


WAITING = {"event": "waiting", "run": fake.STARTED["run"], "why": "16 runs at once: your\x1b[1m quota"}


def ends_after_waiting(server):
    server.receive()
    server.send(WAITING)
    server.start()
    os.write(server.pipes["stdout"], b"1\n")
    server.send(fake.ended())


def test_in_a_terminal_it_is_told_what_is_waited_for(brig, tmp_path):
    (tmp_path / "x.py").write_text("pass")
    ours, theirs = os.openpty()
    with fake.server(ends_after_waiting) as env:
        done = subprocess.run([brig, "run", tmp_path / "x.py"], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **env}, timeout=host.HANG)
    os.close(theirs)
    told = os.read(ours, 1000).decode()
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, b"1\n") and told == "brig: waiting (16 runs at once: your?[1m quota); Ctrl-C gives up\r\n", (done, told)


@pytest.mark.parametrize("words", [["run"], ["exec", "--"], ["session", "open"]], ids=lambda words: words[0])
def test_the_first_ctrl_c_gives_up_a_run_that_waits(brig, tmp_path, words):
    (tmp_path / "x.py").write_text("pass")
    children, asked = [], []

    def script(server):
        asked.append(server.receive())
        server.send(WAITING)
        assert host.poll(lambda: children)
        children[0].send_signal(signal.SIGINT)
        asked.append(server.receive())
        server.send(fake.refusal("busy", "cancelled while it waited"))
    with fake.server(script) as env:
        children.append(subprocess.Popen([brig, *words, *([] if words[0] == "session" else [tmp_path / "x.py"])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, env={**os.environ, **env}))
        _, told = children[0].communicate(timeout=host.HANG)
    assert (children[0].returncode, asked[1]) == (130, {"op": "cancel", "run": fake.STARTED["run"]}) and told == b"brig: cancelled while it waited\n", (told, asked)


def test_elsewhere_nothing_is_told_but_what_the_program_says():
    ran = run(ends_after_waiting, program="pass", json_record=False)
    assert (ran.status, ran.out, ran.stderr) == (0, "1\n", ""), ran


# --- the end ----------------------------------------------------------------------------------------------

NO_COMMAND = "the program (in the rootfs): No such file or directory"


@pytest.mark.parametrize("verb, args, told", [
    ("exec", ["--", "no\x1bsuch"], "brig: no?such (in the rootfs): No such file or directory\n"), ("run", [], f"brig: {NO_COMMAND}\n")],
                         ids=["a command that is not there is told by its name", "a rootfs without an interpreter is no fault of the file"])
def test_exec_error(verb, args, told):
    def script(server):
        server.receive()
        server.send(fake.ended(exec_error="ENOENT", exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": NO_COMMAND}))
    ran = run(script, verb=verb, args=args, json_record=False)
    assert (ran.status, ran.stderr) == (127, told), ran


def test_streams_reach_the_record():
    def script(server):
        server.receive()
        server.start()
        os.write(server.pipes["stdout"], b"out" + b"x" * 2000)
        os.write(server.pipes["stderr"], b"err")
        server.send(fake.ended(exit_code=3))
    ran = run(script)
    want = {**fake.RECORD, "exit_code": 3, "stdout": "out" + "x" * 1021, "stderr": "err", "stdout_bytes": 2003, "stderr_bytes": 3, "truncated": True}
    assert ran.record == want and ran.status == 3, ran
    assert list(ran.record) == list(want), "the order of the keys"


def test_stdin_is_pumped_and_closed(tmp_path):
    text = os.urandom(300000)
    (tmp_path / "input").write_bytes(text)
    came = []

    def script(server):
        assert server.receive()["stdin"] is True
        server.start("stdin")
        with open(server.pipes.pop("stdin"), "rb") as pipe:
            came.append(pipe.read())
        server.send(fake.ended())
    ran = run(script, "--stdin", tmp_path / "input")
    assert ran.status == 0 and came == [text]


ENDS = [
    # event ended, limits before, status, words
    (fake.ended(exit_reason="timeout_wall", exit_code=None), [("wall_ms", 500)], 124, "timeout_wall (--timeout 0.5), wall 1.5 ms"),
    (fake.ended(exit_reason="oom", exit_code=None), [("pids", 5, False), ("memory_bytes", 32 << 20)], 137, "oom (--memory 32M), wall"),
    (fake.ended(exit_reason="cancelled", exit_code=None), [("cpu_ms", 5)], 143, "cancelled, wall"),
    (fake.ended(exit_reason="signaled", exit_code=139, signal="SIGSEGV"), [], 139, "signaled SIGSEGV, wall"),
    (fake.ended("ENOENT", exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "x: not in the rootfs"}), [], 127, "x: not in the rootfs"),
    (fake.ended("EACCES", exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "x: not allowed"}), [], 126, "x: not allowed"),
    (fake.ended(exit_reason="exited", exit_code=None), [], 125, ""),
    (fake.ended(exit_reason="new_reason", exit_code=0), [], 125, "new_reason"),
]


@pytest.mark.parametrize("event, limits, status, words", ENDS, ids=[f"{row[0]['record']['exit_reason']} {row[0]['exec_error']} is {row[2]}" for row in ENDS])
def test_end(event, limits, status, words):
    def script(server):
        server.receive()
        if not event["exec_error"]:
            server.start()
        for name, value, *ends in limits:
            server.send({"event": "limit", "run": fake.STARTED["run"], "name": name, "value": value, "ends": not ends})
        server.send(event)
    ran = run(script)
    assert ran.status == status and words in ran.stderr and "doctor" not in ran.stderr, ran


def test_a_step_that_failed_points_to_the_doctor():
    def script(server):
        server.receive()
        server.send(fake.ended(exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "set-up step x: no"}))
    ran = run(script, json_record=False)
    assert (ran.status, ran.stderr) == (125, "brig: set-up step x: no; brig doctor says what this host lacks\n")


def test_what_stays_behind_is_told():
    def script(server):
        server.receive()
        server.start()
        server.send(fake.ended(left="control group /x"))
    assert run(script, json_record=False).stderr == "brig: left behind: control group /x\n"


# --- a brigd that is not as it should be ------------------------------------------------------------------

@pytest.mark.parametrize("started", [False, True], ids=["before the start", "after it"])
def test_a_brigd_that_vanishes_is_told(started):
    def script(server):
        server.receive()
        if started:
            server.start()
            os.write(server.pipes["stdout"], b"half")
    ran = run(script)
    assert (ran.status, ran.reason) == (143, "cancelled") and "brigd was killed, or could not report how the run ended" in ran.stderr, ran
    assert len(ran.stderr.splitlines()) == 1 and ran.record["stdout"] == ("half" if started else None), ran


LIES = {
    "what is no JSON": b"\xff\xfe",
    "nothing that it may": {"event": "party"},
    "a key too many": {**fake.ended(), "more": 1},
    "a second start": None,
    "a start without its descriptors": fake.STARTED,
    "a number for a reason": {**fake.ended(), "left": 7},
}


@pytest.mark.parametrize("lie", LIES, ids=lambda name: f"a brigd that says {name} is not believed")
def test_lie(lie):
    def script(server):
        server.receive()
        server.start()
        server.start() if LIES[lie] is None else server.send(LIES[lie])
        assert server.receive() is None, "brig goes away, which ends the run"
    ran = run(script)
    assert ran.status == 143 and "brigd broke the protocol" in ran.stderr and len(ran.stderr.splitlines()) == 1, ran


def test_streams_of_a_later_brigd_are_let_go():
    def script(server):
        server.receive()
        server.start("sound")
        with pytest.raises(BrokenPipeError):
            while True:
                os.write(server.pipes["sound"], b"x" * 4096)
        server.send(fake.ended())
    assert run(script).status == 0


def test_the_last_word_of_a_brigd_that_cannot_serve_is_told():
    def script(server):
        server.send(fake.refusal("broken", "no descriptor is left"))
        server.close()
    ran = run(script)
    assert (ran.status, ran.reason, ran.stderr) == (125, "setup_failed", "brig: no descriptor is left\n"), ran


def test_a_named_brigd_that_is_not_there_is_an_error_and_no_other_is_asked(tmp_path):
    ran = tool.run(program="print('ran')", env={"BRIG_SOCKET": str(tmp_path / "no.sock")}, json_record=False)
    assert ran.status == 125 and ran.stdout == "" and f"BRIG_SOCKET: {tmp_path}/no.sock: there is no such socket" in ran.stderr, ran


# --- the end that brig asks for ---------------------------------------------------------------------------

def cancels(server):
    request = server.receive()
    return (request["op"], request["run"], request.get("reason", "cancelled"))


def test_a_flood_is_asked_to_end_once():
    seen = []

    def script(server):
        server.receive()
        server.start()
        for _ in range(20):
            os.write(server.pipes["stdout"], b"x" * 1024)
        seen.append(cancels(server))
        os.write(server.pipes["stdout"], b"x" * 60000)
        server.send({"reply": "cancel", "run": fake.STARTED["run"]})
        server.send(fake.ended(exit_reason="output_limit", exit_code=None))
        seen.append(server.receive())
    ran = run(script)
    assert seen == [("cancel", fake.STARTED["run"], "output_limit"), None] and ran.status == 153 and "(--output 1K)" in ran.stderr, ran


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=lambda n: str(int(n)))
@pytest.mark.parametrize("early", [False, True], ids=["after the start", "before it"])
def test_a_signal_becomes_a_cancel(number, status, early):
    children, seen = queue.Queue(), []

    def script(server):
        server.receive()
        child = children.get(timeout=host.HANG)
        if early:
            interrupt(child, number)
        server.start()
        if not early:
            os.write(server.pipes["stdout"], b"x")
            assert host.poll(lambda: is_read(server.pipes["stdout"]))
            child.signal(number)
        seen.append(cancels(server))
        server.send(fake.ended(exit_reason="cancelled", exit_code=None))
    with fake.server(script) as env:
        child = tool.start(program="pass", env=env, json_record=False)
        children.put(child)
        ran = child.wait()
    assert seen == [("cancel", fake.STARTED["run"], "cancelled")] and ran.status == status and "cancelled" in ran.stderr, ran


def is_read(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)) == (0,)


def interrupt(child, number):
    """Sent when brig looks out for it, and taken before this returns."""
    bit = 1 << (number - 1)
    assert host.poll(lambda: (status_bits(child, "SigBlk") | status_bits(child, "SigCgt")) & bit)
    child.signal(number)
    assert host.poll(lambda: not (status_bits(child, "SigBlk") | status_bits(child, "SigCgt")) & bit) # the first one sets it back


def status_bits(child, name):
    with open(f"/proc/{child.pid}/status") as f:
        return int(next(line for line in f if line.startswith(name)).split()[1], 16)


def test_a_cancel_that_came_too_late_changes_nothing():
    def script(server):
        server.receive()
        server.start()
        for _ in range(20):
            os.write(server.pipes["stdout"], b"x" * 1024)
        cancels(server)
        server.send(fake.refusal("not_found", "no such run", "run"))
        server.send(fake.ended())
    ran = run(script)
    assert (ran.status, ran.reason) == (0, "exited"), ran


# --- ps, kill, stats --------------------------------------------------------------------------------------

RUNS = {"reply": "list", "left_out": 3, "runs": [
    {"run": fake.STARTED["run"], "profile": "basic", "uid": 1000, "pid": 77, "comm": "a\x1b[1m", "state": "running", "age_ms": 1234, "mine": True}]}
STATS = {"reply": "stats", "brig": "0.1.0", "started_at": 1700000000.5, "uptime_ms": 93784000, "runs": {"started": 5, "ended": {"exited": 3, "oom": 1, "denied": 0}}, "running": 1, "waiting": 3, "refused": {"busy": 1, "bad_field": 1}, "connections": 4, "connected": 9, "audit": None,
         "profiles": [{"name": "basic", "warm": "never", "ready": 2, "building": 0, "running": 1, "zygote": None}], "door": {"pid": 9, "memory_bytes": 3 << 20, "cpu_ms": 12.3}, "keeper": None,
         "confinement": ["seccomp", "no-caps"]}


def ask(answer, *argv):
    """(what was asked, how it ended)"""
    seen = []

    def script(server):
        seen.append(server.receive())
        server.send(answer)
    with fake.server(script) as env:
        done = tool.Child([str(tool.binary()), *argv], env=env).wait()
    return seen[0], done


@pytest.mark.requirement("A63")
def test_ps_prints_a_line_for_each_run():
    request, done = ask(RUNS, "ps")
    assert request == {"op": "list"} and done.status == 0, done
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["RUN", "PROFILE", "STATE", "SECONDS", "UID", "PID", "COMMAND"],
        [fake.STARTED["run"], "basic", "running", "1.2", "1000", "77", "a?[1m"], ["and", "3", "more"]]
    _, done = ask({**RUNS, "runs": [{**RUNS["runs"][0], "program": "x = 1\x1b"}]}, "ps")
    assert done.stdout.splitlines()[1].endswith(" x = 1?"), done


@pytest.mark.requirement("A63")
def test_stats_prints_what_is_known():
    request, done = ask(STATS, "stats")
    assert request == {"op": "stats"} and done.status == 0, done
    assert done.stdout == ("up          1 d 02:03:04, connections 4\nruns        started 5, running 1, waiting 3, refused 2\nended       exited 3, oom 1\n"
                           "profile     basic: ready 2, building 0, running 1, warm never\nserver      pid 9, memory 3.0 MiB, cpu 12 ms\nconfined by seccomp, no-caps\n")


def test_stats_prints_calls_of_tools_where_there_are_some():
    _, done = ask({**STATS, "tool_calls": {"ok": 7, "denied": 1, "failed": 0}}, "stats")
    assert "\ntool calls  ok 7, failed 0, denied 1\n" in done.stdout
    _, done = ask({**STATS, "tool_calls": {"ok": 0, "denied": 0, "failed": 0}}, "stats")
    assert done.status == 0 and "tool calls" not in done.stdout


@pytest.mark.parametrize("verb, answer", [("ps", RUNS), ("stats", STATS)])
def test_as_json_they_print_the_answer(verb, answer):
    _, done = ask({**answer, "tag": 5}, verb, "--json")
    assert json.loads(done.stdout) == {key: value for key, value in answer.items() if key != "reply"}


HISTOGRAM = {"sum": 0.5, "buckets": {"1": 1, "+Inf": 2}}
METRICS = {"reply": "metrics", "profile": "basic", "cold": {"exited": 1}, "warm": {"exited": 1},
           **dict.fromkeys(("wait_seconds", "setup_seconds", "wall_seconds", "cpu_seconds", "memory_peak_bytes"), HISTOGRAM)}


def ask_for_metrics(stats, answer):
    def script(server):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while (request := server.receive()):
                server.send(stats if request["op"] == "stats" else answer)
    with fake.server(script) as env:
        return tool.Child([str(tool.binary()), "metrics"], env=env).wait()


def test_metrics_asks_for_each_profile_and_prints_a_page():
    done = ask_for_metrics({**STATS, "profiles": [*STATS["profiles"], {**STATS["profiles"][0], "name": "strict"}]}, METRICS)
    assert (done.status, done.stderr) == (0, "") and done.stdout.count('brig_runs_total{profile="basic",reason="exited",warm="true"} 1\n') == 2, done


def test_a_name_that_a_brigd_makes_up_cannot_end_its_line():
    name = 'a"} 1\nbrig_lie 7\n\x1b\u00e9'
    done = ask_for_metrics({**STATS, "profiles": [{**STATS["profiles"][0], "name": name}], "brig": name}, {**METRICS, "profile": name, "cold": {name: 1}})
    assert done.status == 0 and not re.search("^brig_lie", done.stdout, re.M) and r'profile="a\"} 1\nbrig_lie 7\n???"' in done.stdout, done
    assert set(done.stdout) <= set(map(chr, range(32, 127))) | {"\n"}


def test_a_profile_that_went_between_two_questions_is_left_out():
    done = ask_for_metrics(STATS, fake.refusal("unknown_profile", "none"))
    assert (done.status, done.stderr) == (0, "") and "brig_runs_total{" not in done.stdout and 'brig_ready_cells{profile="basic"} 2' in done.stdout, done


@pytest.mark.parametrize("stats,answer", [
    (fake.refusal("denied", "no"), METRICS), ({**STATS, "waiting": "many"}, METRICS), ({**STATS, "more": 1}, METRICS), (STATS, {**METRICS, "warm": {"exited": -1}}),
    (STATS, {**METRICS, "cpu_seconds": {"sum": None, "buckets": {}}}), (STATS, {key: METRICS[key] for key in METRICS if key != "warm"}), (STATS, b"{"), (STATS, fake.STARTED),
], ids=["refused", "no number", "a key too many", "a negative count", "no sum", "a key missing", "no JSON", "an event"])
def test_of_what_brigd_may_not_say_no_page_is_made(stats, answer):
    done = ask_for_metrics(stats, answer)
    assert (done.status, done.stdout) == (1, "") and done.stderr.startswith("brig metrics: ") and len(done.stderr.splitlines()) == 1, done


def test_kill_asks_for_the_end_of_one_run():
    run = fake.STARTED["run"]
    request, done = ask({"reply": "cancel", "run": run}, "kill", run)
    assert request == {"op": "cancel", "run": run} and (done.status, done.stdout, done.stderr) == (0, "", "")
    _, done = ask(fake.refusal("not_found", "you have no run \"abc\"", "run"), "kill", run)
    assert (done.status, done.stderr) == (1, "brig kill: you have no run \"abc\"\n")


def end(*argv):
    """What brig kill asks of a service with three runs, one of another user, and how it ended."""
    runs = [{**RUNS["runs"][0], "run": run, "uid": uid} for run, uid in (("aa11", 1000), ("aa22", 1000), ("bb33", 1001))]
    cancelled = []

    def script(server):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while (request := server.receive()):
                if request["op"] == "list":
                    server.send({"reply": "list", "left_out": 0, "runs": runs})
                else:
                    cancelled.append(request["run"])
                    server.send({"reply": "cancel", "run": request["run"]} if len(request["run"]) == 4 else fake.refusal("not_found", "you have no such run", "run"))
    with fake.server(script) as env:
        done = tool.Child([str(tool.binary()), "kill", *argv], env=env).wait()
    return cancelled, done.status, done.stdout, done.stderr


@pytest.mark.parametrize("argv, cancelled, status, out, err", [
    (["b"], ["bb33"], 0, "", ""), (["aa"], [], 1, "", "brig kill: aa: 2 runs begin with it; write more of the id that brig ps prints\n"),
    (["c"], ["c"], 1, "", "brig kill: you have no such run\n"), (["--all"], ["aa11", "aa22", "bb33"], 0, "ended 3 runs\n", ""),
    (["--user", "1001"], ["bb33"], 0, "ended 1 run\n", "")], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_kill_takes_the_beginning_of_one_id_all_or_a_user(argv, cancelled, status, out, err):
    assert end(*argv) == (cancelled, status, out, err)


@pytest.mark.parametrize("argv, err", [
    (["--all", "b"], "brig kill: write: brig kill [--json] RUN | --all | --user USER\n"),
    (["--user", "no-such-user"], "brig kill: --user no-such-user: there is no such user in /etc/passwd; write a number\n")], ids=["all and one", "an unknown user"])
def test_kill_asks_no_service_for_what_it_cannot_read(brig, argv, err):
    done = tool.Child([str(brig), "kill", *argv]).wait()
    assert (done.status, done.stdout, done.stderr) == (2, "", err)


@pytest.mark.private("there is no service")
@pytest.mark.parametrize("argv", [["ps"], ["stats"], ["metrics"], ["kill", "x"]], ids=" ".join)
def test_without_a_brigd_they_say_what_to_do(brig, argv):
    done = tool.Child([str(brig), *argv]).wait()
    assert done.status == 1 and "no brigd is running; start one" in done.stderr and len(done.stderr.splitlines()) == 1, done
