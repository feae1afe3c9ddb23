"""brig session against a brigd that says what a test wants: words in and requests out, values, pictures, files with hostile names. tests/service/test_sessions_cli.py asks a real one."""
import base64
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import termios

import pytest

from support import brig as tool
from support import fake_server as fake
from support import host, terminal

ID = "0d5e6f0c-0000-4000-8000-00000000000a"
RUN = fake.STARTED["run"]
END, FILE, EXECUTABLE, GET, LEFT, LIST = range(6)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
REPORT = {"result": None, "result_repr": None, "error": None, "variables": [], "exit_code": None, "security_event": None, "security_warnings": []}
ROW = {"session": ID, "name": "work", "profile": "basic", "uid": 1000, "age_ms": 61500, "idle_ms": 1500, "idle_left_ms": 598500, "lifetime_left_ms": 3538500, "stays": True,
       "calls": 7, "running": [], "contexts": ["main", "second"], "mine": True}
LISTED = {"reply": "list", "runs": [], "left_out": 0, "sessions": [ROW]}
NO_SERVICE = {"BRIG_SOCKET": "/nonexistent/brig.sock"}


def plain(*words, env=None, **more):
    return subprocess.run([tool.binary(), "session", *map(str, words)], capture_output=True, text=True, timeout=host.HANG, check=False, env=tool.environment(env),
                          **{"stdin": subprocess.DEVNULL, **more})


def ask(script, *words, **more):
    """What brig did, and the requests that it sent."""
    asked = []

    def listen(server):
        receive = server.receive

        def remember():
            asked.append(receive())
            return asked[-1]
        server.receive = remember
        script(server)
    with fake.server(listen) as env:
        done = plain(*words, env=env, **more)
    return done, asked


def answer(*answers):
    def script(server):
        with contextlib.suppress(BrokenPipeError):
            for one in answers:
                server.receive()
                server.send(one)
    return script


def state(of="kept", context="main"):
    return {"id": ID, "context": context, "state": of, "age_ms": 10, "idle_left_ms": 600000}


def call(stdout=b"", report=None, raw=None, **record):
    """A call in a context from start to end."""
    def script(server):
        server.receive()
        server.code = os.pread(server.fds[0], 1 << 20, 0).decode() if server.fds else None
        server.start("result")
        os.write(server.pipes["stdout"], stdout)
        with os.fdopen(server.pipes.pop("result"), "wb") as pipe:
            pipe.write(raw if raw is not None else json.dumps({**REPORT, **(report or {})}).encode())
        server.send(fake.ended(**{"session": state(), **record}))
    return script


# --- words ---

COMMANDS = "open run exec put get files stat mkdir mv rm interrupt renew close list".split()


def test_help_lists_the_commands_and_each_has_its_own():
    told = plain("--help")
    assert told.returncode == 0 and [line.split()[0] for line in told.stdout.splitlines() if line.startswith("  ")] == COMMANDS
    for command in COMMANDS:
        assert plain(command, "--help").stdout.startswith(f"usage: brig session {command}")


@pytest.mark.parametrize("words, says", [
    (("fly",), "brig session: fly: no such command; see brig session --help"),
    (("run",), "brig session run: name a session, and what to run in it"), (("run", "work"), "brig session run: name a session, and what to run in it"),
    (("run", "work", "a.py", "b"), "brig session run: a call has no arguments"), (("run", "work", "-c", "1", "2"), "brig session run: a call has no arguments"),
    (("run", "work", "--memory", "1G", "-c", "1"), "--memory: no such option"), (("run", "work", "--idle", "1", "-c", "1"), "--idle: no such option"),
    (("exec", "work"), "brig session exec: name a session, and what to run in it"), (("exec", "work", "--pids", "1", "true"), "--pids: no such option"),
    (("open", "a", "b"), "brig session open: a session has one name"), (("open", "--detach"), "--detach: no such option"),
    (("put", "work"), "brig session put: name a file"), (("get", "work"), "brig session get: name a file"), (("files",), "brig session files: name a session"),
    (("files", "work", "a", "b"), "one pattern at most"), (("files", "work", "../a"), "../a: the pattern has . or .. in it"),
    (("close",), "brig session close: write: brig session close [--json] SESSION"), (("list", "x"), "brig session list: write"),
], ids=lambda value: "-".join(value) if isinstance(value, tuple) else "")
def test_a_command_line_that_makes_no_sense_says_what_to_write(words, says):
    done = plain(*words, env=NO_SERVICE)
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr and len(done.stderr.splitlines()) == 1, done


@pytest.mark.parametrize("words", [("open",), ("run", "work", "-c", "1"), ("exec", "work", "true"), ("put", "work", __file__), ("get", "work", "a"), ("files", "work"), ("interrupt", "work"),
                                   ("close", "work"), ("list",)], ids=lambda words: words[0])
def test_without_a_service_one_error_with_one_status_says_how_to_have_one(words):
    done = plain(*words, env={"BRIG_SOCKET": None})
    assert (done.returncode, done.stdout) == (125, "") and len(done.stderr.splitlines()) == 1, done
    assert "no brigd is running, and a session needs one: brig session open --start starts one of your own, systemctl " in done.stderr, done


def test_open_starts_a_service_of_ones_own_where_there_is_none_and_says_so(tmp_path):
    env = {"BRIG_SOCKET": str(tmp_path / "own.sock")}
    done = plain("open", "work", "--start", env=env)
    pid = int(re.search(r"^brig: no service was running: started one of your own, which stays until you type:  kill ([0-9]+)$", done.stderr, re.M)[1])
    try:
        assert (done.returncode, done.stdout) == (0, "work\n"), done
        assert plain("run", "work", "-c", "6 * 7", env=env).stdout == "42\n"
        again = plain("open", "more", "--start", env=env)
        assert (again.returncode, again.stdout, again.stderr) == (0, "more\n", ""), "the one that runs is used"
    finally:
        os.kill(pid, signal.SIGTERM)
        assert host.poll(lambda: plain("list", env=env).returncode == 125), "it ends"


@pytest.mark.parametrize("words", [("no name",), ("-p", "no-such-profile")], ids=["a name", "a profile"])
def test_a_service_that_was_started_for_a_session_which_is_refused_ends(words, tmp_path):
    env = {"BRIG_SOCKET": str(tmp_path / "own.sock")}
    done = plain("open", "--start", *words, env=env)
    assert done.returncode == 125 and done.stdout == "" and "kill" not in done.stderr, done
    assert host.poll(lambda: plain("list", env=env).returncode == 125), "a bad name or profile leaves no service behind"


# --- open ---

OPENED = {"event": "opened", "run": ID, "session": ID, "name": None, "idle_ms": 600000, "lifetime_ms": 3600000}


def test_open_asks_for_a_session_that_stays_and_prints_its_name():
    done, asked = ask(answer({**OPENED, "name": "work"}), "open", "work", "-p", "strict", "--memory", "64M", "--idle", "5", "--lifetime", "2m", "-e", "A=b", "--cold")
    assert (done.returncode, done.stdout, done.stderr) == (0, "work\n", "")
    assert asked[0] == {"op": "open", "stays": True, "name": "work", "profile": "strict", "limits": {"memory_bytes": 64 << 20, "idle_ms": 5000, "lifetime_ms": 120000}, "env": ["A=b"],
                        "ro": [], "cold": True, "wait_ms": 60000}


def test_a_session_without_a_name_is_called_by_its_id():
    assert ask(answer(OPENED), "open")[0].stdout == f"{ID}\n"


def test_open_with_json_prints_the_answer():
    done, _ = ask(answer(OPENED), "open", "--json")
    assert json.loads(done.stdout) == {"session": ID, "name": None, "idle_ms": 600000, "lifetime_ms": 3600000}


@pytest.mark.parametrize("told, status, says", [
    (fake.refusal("denied", "another session of yours has this name", "name"), 125, "brig: work: another session of yours has this name\n"),
    (fake.refusal("above_ceiling", "2 days is above the ceiling 86400 s of profile basic", "limits.idle_ms"), 125, "brig: --idle 2 days is above the ceiling"),
    (fake.refusal("busy", "4 sessions at once: your quota", None, retry_after_ms=100), 75, "4 sessions at once: your quota; try again in 100 ms"),
    (fake.refusal("unknown_request", '"open" is no request'), 125, '"open" is no request'),
    (fake.ended(exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "mount: no"}), 125, "mount: no"),
], ids=["name", "limit", "busy", "old service", "setup"])
def test_a_session_that_is_not_opened_says_why(told, status, says):
    done, _ = ask(answer(told), "open", "work")
    assert (done.returncode, done.stdout) == (status, "") and says in done.stderr, done


def test_open_that_is_given_up_leaves_no_session():
    """Nobody would know of it."""
    asked = []

    def script(server):
        server.receive()
        server.child.signal(signal.SIGINT)
        assert host.poll(lambda: "SigQ" in host.read(f"/proc/{server.child.pid}/status") and not pending(server.child.pid))
        server.send(OPENED)
        asked.append(server.receive())
        server.send(fake.ended(exit_reason="cancelled", exit_code=None))
    done = with_child(script, "open")
    assert asked == [{"op": "cancel", "run": ID}] and (done.status, done.stdout) == (130, ""), done


def pending(pid):
    """A signal that has come and was not taken."""
    status = host.read(f"/proc/{pid}/status")
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def unread(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def with_child(script, *words):
    """brig beside the script, which has it as server.child."""
    children = []

    def with_its_child(server):
        host.poll(lambda: children)
        server.child = children[0]
        script(server)
    with fake.server(with_its_child) as env:
        children.append(tool.Child([str(tool.binary()), "session", *words], env=env))
        return children[0].wait()


# --- run ---

def test_run_sends_the_code_and_nothing_that_belongs_to_the_session():
    codes = []

    def script(server):
        call()(server)
        codes.append(server.code)
    done, asked = ask(script, "run", "--context", "b", "work", "--timeout", "2", "-c", "6 * 7")
    assert asked == [{"op": "run", "session": "work", "context": "b", "limits": {"wall_ms": 2000}}] and codes == ["6 * 7"] and done.returncode == 0, (done, asked)


def test_run_takes_a_file_or_standard_input(tmp_path):
    (tmp_path / "p.py").write_text("one")
    codes = []

    def script(server):
        call()(server)
        codes.append(server.code)
    ask(script, "run", "work", tmp_path / "p.py")
    with open(tmp_path / "p.py") as program:
        ask(script, "run", "work", "-", stdin=program)
    assert codes == ["one", "one"]
    done = plain("run", "work", tmp_path, env=NO_SERVICE)
    assert done.returncode == 125 and "is a directory; name a Python file" in done.stderr


def test_the_value_comes_behind_the_output_as_a_notebook_prints_it():
    done, _ = ask(call(b"out\n", {"result": [1], "result_repr": "[1]", "bundle": {"text/plain": "a frame\nof lines", "text/html": "<table>"}}), "run", "work", "-c", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\na frame\nof lines\n", "")


def test_what_was_displayed_comes_in_its_order_before_the_value():
    report = {"displays": [{"text/plain": "one"}, {"text/html": "<b>"}, {"text/plain": "two"}], "bundle": {"text/plain": "three"}}
    assert ask(call(b"", report), "run", "work", "-c", "x")[0].stdout == "one\ntwo\nthree\n"


def test_a_value_without_a_bundle_is_printed_as_python_does():
    assert ask(call(report={"result_repr": "<object>"}), "run", "work", "-c", "x")[0].stdout == "<object>\n"


def test_no_value_is_no_line():
    assert ask(call(b"out"), "run", "work", "-c", "x")[0].stdout == "out"


def test_a_call_that_raised_has_its_status():
    assert ask(call(exit_code=1), "run", "work", "-c", "x")[0].returncode == 1


def test_json_is_the_record_with_value_and_bundles_in_it():
    bundle = {"text/plain": "7", "application/json": 7}
    done, _ = ask(call(b"out\n", {"result": 7, "result_repr": "7", "bundle": bundle, "displays": [bundle], "left_out": ["A figure."]}), "run", "work", "--json", "-c", "x")
    record = json.loads(done.stdout)
    assert (record["result"], record["bundle"], record["displays"], record["left_out"], record["stdout"]) == (7, bundle, [bundle], ["A figure."], "out\n")
    assert record["session"] == state() and done.stderr == "brig: left out: A figure.\n"


def test_record_is_written_beside_the_value(tmp_path):
    done, _ = ask(call(report={"bundle": {"text/plain": "7"}}), "run", "work", "--record", tmp_path / "r", "-c", "x")
    assert done.stdout == "7\n" and json.loads((tmp_path / "r").read_text())["session"]["state"] == "kept"


@pytest.mark.parametrize("of, says", [("new", ""), ("kept", ""), ("reset", "brig: context main has a new interpreter: the variables of earlier calls are lost\n"),
                                      ("lost", "brig: the interpreter of context main has ended, and its variables are lost\n")])
def test_a_caller_hears_that_variables_are_lost(of, says):
    assert ask(call(session=state(of)), "run", "work", "-c", "x")[0].stderr == says
    assert ask(call(session=state(of)), "run", "work", "-q", "-c", "x")[0].stderr == ""


@pytest.mark.parametrize("raw, says", [(b"nonsense", "line 1, column"), (json.dumps({**REPORT, "bundle": {"text/x-sh": ""}}).encode(), "bundle: text/x-sh: no such key"),
                                       (b"[" * 100, "nested deeper")])
def test_a_report_that_cannot_be_used_is_told_and_the_call_is_what_it_was(raw, says):
    done, _ = ask(call(b"out\n", raw=raw), "run", "work", "-c", "x")
    assert (done.returncode, done.stdout) == (0, "out\n") and done.stderr.startswith("brig: what the call reported cannot be used: ") and says in done.stderr, done


@pytest.mark.parametrize("told, status, says", [
    (fake.refusal("not_found", 'session work ended: it was idle for 10 min', "session"), 125, "brig: session work ended: it was idle for 10 min\n"),
    (fake.refusal("busy", "a call is under way", "context", retry_after_ms=50), 75, "brig: --context: a call is under way; try again in 50 ms\n"),
    (fake.refusal("bad_field", '"a b" is no name', "context"), 125, 'brig: --context: "a b" is no name\n')])
def test_a_call_that_is_refused_says_why(told, status, says):
    done, _ = ask(answer(told), "run", "work", "-c", "x")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", says)


def test_ctrl_c_interrupts_a_call_and_other_signals_end_it():
    for number, op in (signal.SIGINT, "interrupt"), (signal.SIGTERM, "cancel"), (signal.SIGHUP, "cancel"):
        asked = []

        def script(server):
            server.receive()
            server.start("result")
            os.write(server.pipes["stdout"], b"begun\n")
            assert host.poll(lambda: not unread(server.pipes["stdout"]))
            server.child.signal(number)
            asked.append(server.receive())
            server.send(fake.ended(exit_code=130, session=state()))
        done = with_child(script, "run", "work", "-c", "x")
        assert asked == [{"op": op, "run": RUN}] and done.status == 130, (number, asked, done)


# --- pictures ---

def picture(*forms):
    data = {"image/png": base64.b64encode(PNG).decode(), "image/svg+xml": "<svg/>", "application/pdf": base64.b64encode(b"%PDF").decode(), "text/plain": "<Figure>"}
    return {form: data[form] for form in forms}


def test_a_picture_is_told_in_one_line_with_how_to_get_it():
    done, _ = ask(call(report={"displays": [picture("image/png", "text/plain")]}), "run", "work", "-c", "x")
    assert (done.returncode, done.stdout) == (0, "") and done.stderr == "brig: the call shows 1 picture; with --artifacts DIR it becomes a file\n"


def test_artifacts_are_written_under_numbers_of_calls_and_pictures(tmp_path):
    folder = tmp_path / "shown"
    report = {"displays": [picture("image/png", "text/plain"), {"text/plain": "words"}, picture("image/svg+xml", "application/pdf")], "bundle": picture("image/png", "text/plain")}
    done, _ = ask(call(report=report), "run", "work", "--artifacts", folder, "-c", "x")
    names = ["call-1-1.png", "call-1-2.svg", "call-1-2.pdf", "call-1-3.png"]
    assert (done.returncode, done.stdout) == (0, "words\n<Figure>\n") and done.stderr == "".join(f"brig: picture: {folder}/{name}\n" for name in names)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == dict(zip(names, (PNG, b"<svg/>", b"%PDF", PNG)))
    ask(call(report={"displays": [picture("image/png")]}), "run", "work", "--artifacts", folder, "--json", "-c", "x")
    assert (folder / "call-2-1.png").read_bytes() == PNG and len(list(folder.iterdir())) == 5


def test_artifacts_go_over_no_file_and_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "call-1-1.png").symlink_to(outside)
    (folder / "call-9.png").write_text("mine")
    done, _ = ask(call(report={"displays": [picture("image/png")]}), "run", "work", "--artifacts", folder, "-c", "x")
    assert done.returncode == 0 and not outside.exists() and (folder / "call-2-1.png").read_bytes() == PNG and (folder / "call-9.png").read_text() == "mine"


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    done, _ = ask(call(report={"displays": [picture("image/png")]}), "run", "work", "--artifacts", tmp_path / "file", "-c", "x")
    assert done.returncode == 74 and done.stderr == f"brig: --artifacts {tmp_path}/file: Not a directory\n"
    done, _ = ask(call(report={"displays": [{"image/png": "AB=="}]}), "run", "work", "--artifacts", tmp_path, "-c", "x")
    assert done.returncode == 74 and done.stderr == "brig: a picture of the type image/png is damaged\n"


def test_a_full_disk_is_told(tmp_path):
    limit = ["prlimit", "--fsize=10", "--", tool.binary(), "session", "run", "work", "--artifacts", tmp_path, "-c", "x"]
    with fake.server(call(report={"displays": [picture("image/png")]})) as env:
        done = subprocess.run(limit, capture_output=True, text=True, env=tool.environment(env), check=False)
    assert done.returncode == 74 and done.stderr == f"brig: {tmp_path}/call-1-1.png: File too large\n"


# --- exec ---

def test_exec_sends_the_command_and_what_belongs_to_it():
    def script(server):
        server.receive()
        server.start()
        os.write(server.pipes["stdout"], b"told\n")
        server.send(fake.ended(exit_code=3, session=state("kept", None)))
    done, asked = ask(script, "exec", "work", "-w", "sub", "-e", "A=b", "--detach", "--timeout", "1", "--", "ls", "-l")
    assert (done.returncode, done.stdout, done.stderr) == (3, "told\n", "")
    assert asked == [{"op": "exec", "session": "work", "argv": ["ls", "-l"], "cwd": "sub", "env": ["A=b"], "detach": True, "limits": {"wall_ms": 1000}}]


def test_a_call_sends_its_variables_and_its_directory_only_if_they_were_given():
    for words, keys in ((), {}), (("-w", "sub", "-e", "A=b"), {"env": ["A=b"], "cwd": "sub"}):
        _, asked = ask(call(), "run", "work", *words, "-c", "x")
        assert {key: value for key, value in asked[0].items() if key in ("env", "cwd")} == keys, asked


# --- files ---

def entry(kind, name=b"", length=0, data=b""):
    return struct.pack("=IIQ", kind, len(name), length or len(data)) + name + data


def read_list(sock):
    """What brig sends, up to the end of a list."""
    rows = []
    with sock.makefile("rb") as stream:
        for _ in range(2):
            while True:
                kind, name_len, length = struct.unpack("=IIQ", stream.read(16))
                name = stream.read(name_len)
                if kind == END:
                    break
                rows.append((kind, name, stream.read(length) if kind in (FILE, EXECUTABLE) else b""))
    return rows


def serve(*entries, rows=None, end=True):
    def script(server):
        server.receive()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server.send({"reply": "files", "session": ID}, [theirs.fileno()])
            theirs.close()
            ours.settimeout(host.HANG)
            took = read_list(ours)
            if rows is not None:
                rows.extend(took)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for one in entries:
                    ours.sendall(one)
                if end:
                    ours.sendall(entry(END))
    return script


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def test_put_sends_files_and_trees_under_their_names(here):
    (here / "a.csv").write_text("1")
    (here / "src/deep").mkdir(parents=True)
    (here / "src/deep/b").write_text("2")
    (here / "tool").write_text("#!")
    (here / "tool").chmod(0o755)
    rows = []
    done, asked = ask(serve(rows=rows), "put", "work", "a.csv", "src:in", "tool")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and asked == [{"op": "files", "session": "work"}]
    assert rows == [(FILE, b"a.csv", b"1"), (FILE, b"in/deep/b", b"2"), (EXECUTABLE, b"tool", b"#!")]


def test_put_tells_what_found_no_place(here):
    (here / "a").write_text("1")
    done, _ = ask(serve(entry(LEFT, b"a", 5), entry(LEFT, b"b\x1b[2J", 6)), "put", "work", "a")
    assert (done.returncode, done.stderr) == (74, "brig: not put: a: there is no room for it in /workspace\nbrig: not put: b?[2J: it cannot be written\n")


def test_put_of_what_is_not_there_asks_nobody(here):
    done = plain("put", "work", "missing", env=NO_SERVICE)
    assert (done.returncode, done.stderr) == (1, "brig session put: missing: No such file or directory\n")


def test_many_that_found_no_place_do_not_stop_what_is_still_sent(here):
    """Each side would wait for the other if brig sent all before it read."""
    (here / "big").write_bytes(bytes(4 << 20))
    refusals = b"".join(entry(LEFT, b"%0200d" % n, 5) for n in range(4000))

    def script(server):
        server.receive()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server.send({"reply": "files", "session": ID}, [theirs.fileno()])
            theirs.close()
            ours.settimeout(host.HANG)
            ours.sendall(refusals)
            read_list(ours)
            ours.sendall(entry(END))
    done, _ = ask(script, "put", "work", "big")
    assert done.returncode == 74 and len(done.stderr.splitlines()) == 4000


def test_get_writes_below_the_directory_or_as_the_file_that_was_named(here):
    rows = []
    done, _ = ask(serve(entry(FILE, b"out/a.csv", data=b"1"), entry(EXECUTABLE, b"out/d/b", data=b"2"), entry(FILE, b"r", data=b"3"), rows=rows), "get", "work", "out:here", "r:renamed")
    assert (done.returncode, done.stderr) == (0, "") and files_in(here) == {"here/a.csv": b"1", "here/d/b": b"2", "renamed": b"3"}
    assert rows == [(GET, b"out", b""), (GET, b"r", b"")] and not os.access(here / "here/d/b", os.X_OK)


def test_get_goes_over_no_file_that_was_not_named(here):
    (here / "a").write_text("mine")
    (here / "b").write_text("mine")
    done, _ = ask(serve(entry(FILE, b"a", data=b"1"), entry(FILE, b"b", data=b"2")), "get", "work", "a", "*")
    assert (done.returncode, done.stderr) == (74, "brig: not saved: b: there is a file of this name already\n") and files_in(here) == {"a": b"1", "b": b"mine"}


@pytest.mark.parametrize("name", [b"../out", b"/etc/x", b"a/../../x", b"a//b", b".", b"", b"a\0b", b"d/" * 40 + b"x", b"x" * 300, b"n" * 1025], ids=ascii)
def test_names_that_climb_end_the_transfer(here, name):
    below = here / "in"
    below.mkdir()
    done, _ = ask(serve(entry(FILE, name, data=b"evil")), "get", "work", "*", "a", cwd=below)
    assert done.returncode == 74 and "brig: not saved: files: it did not come as a whole" in done.stderr and files_in(here) == {}, done


def test_nothing_is_written_through_links_that_are_here(here):
    (here / "outside").mkdir()
    (here / "in").mkdir()
    (here / "in/d").symlink_to(here / "outside")
    (here / "in/l").symlink_to(here / "outside/new")
    done, _ = ask(serve(entry(FILE, b"d/x", data=b"1"), entry(FILE, b"l", data=b"2")), "get", "work", "d", "l", cwd=here / "in")
    assert done.returncode == 74 and files_in(here) == {}, done


def test_files_that_nobody_asked_for_are_not_written(here):
    done, _ = ask(serve(entry(FILE, b"other", data=b"1"), entry(FILE, b"a", data=b"2")), "get", "work", "a")
    assert (done.returncode, files_in(here)) == (0, {"a": b"2"}), done


def test_what_is_too_much_is_not_taken_and_overwrites_nothing(here):
    (here / "a").write_text("mine")
    done, _ = ask(serve(entry(FILE, b"a", 1 << 62), end=False), "get", "work", "a")
    assert (done.returncode, done.stderr) == (74, "brig: not saved: a: it would be more than --max\n") and (here / "a").read_text() == "mine"
    done, _ = ask(serve(entry(FILE, b"b", data=b"12345"), entry(FILE, b"c", data=b"12345")), "get", "work", "--max", "9", "?")
    assert done.returncode == 74 and files_in(here) == {"a": b"mine", "b": b"12345"}


def test_get_tells_what_was_left_out_changed_and_missing(here):
    done, _ = ask(serve(entry(LEFT, b"l", 0), entry(FILE, b"r", data=b"12\0\0"), entry(LEFT, b"r", 7), entry(LEFT, b"s", 99)), "get", "work", "--json", "?", "none")
    rows = {row["name"]: (row["saved"], row["left_out"]) for row in json.loads(done.stdout)}
    assert done.returncode == 74 and rows == {"l": (None, "link"), "r": ("r", "changed"), "s": (None, "unknown"), "none": (None, "none")}, done
    assert "brig: not saved: r: it changed while it was read" in done.stderr and "brig: not saved: none: there is no such file in /workspace" in done.stderr


def test_a_list_that_is_cut_off_is_told(here):
    done, _ = ask(serve(entry(FILE, b"a", data=b"1"), end=False), "get", "work", "a")
    assert done.returncode == 74 and "it did not come as a whole" in done.stderr
    done, _ = ask(serve(entry(LIST, b"a", 1), end=False), "files", "work")
    assert done.returncode == 1 and done.stderr == "brig: the list did not come as a whole\n"


@pytest.mark.parametrize("said", [entry(GET, b"a"), entry(FILE, b"other", 100) + b"1"], ids=["an entry of the wrong way", "half a file of nobody's"])
@pytest.mark.parametrize("words, status", [(("get", "work", "a"), 74), (("files", "work"), 1)], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_stream_of_files_that_breaks_off_is_no_success(here, said, words, status):
    done, _ = ask(serve(said, end=False), *words)
    assert done.returncode == status and "did not come as a whole" in done.stderr and files_in(here) == {}, done


def test_files_lists_sizes_and_names_and_a_terminal_obeys_none():
    rows = []
    entries = entry(LIST, b"out/b.csv", 1234), entry(LIST, b"a\x1b[2J\n", 5), entry(LIST, b"\xff", 1), entry(LEFT, b"link", 0), entry(LIST, "\u202e".encode(), 1 << 63)
    done, _ = ask(serve(*entries, rows=rows), "files", "work")
    assert (done.returncode, done.stderr) == (0, "") and rows == [(LIST, b"*", b"")]
    assert [line.split(None, 1) for line in done.stdout.splitlines()] == [
        ["BYTES", "NAME"], ["5", '"a\\u001B[2J\\n"'], ["link", "link"], ["1234", "out/b.csv"], ["9223372036854775807", '"\\u202E"'], ["1", "\ufffd"]]


@pytest.mark.parametrize("words, kind", [(("files", "work", "--json"), LIST), (("get", "work", "--json", "*"), FILE)], ids=["files", "get"])
def test_json_of_files_has_their_names_and_a_terminal_obeys_none(here, words, kind):
    names = list(terminal.NAMES.values())
    done, _ = ask(serve(*(entry(kind, name.encode(), 1, b"1" if kind == FILE else b"") for name in names)), *words)
    assert done.returncode == 0 and not terminal.obeyed(done.stdout), done
    assert sorted(row["name"] for row in json.loads(done.stdout)) == sorted(names)


def test_files_asks_for_a_pattern_and_takes_no_other_name():
    rows = []
    done, _ = ask(serve(entry(LIST, b"out/b.csv", 1), entry(LIST, b"other", 1), rows=rows), "files", "work", "--json", "out/*.csv")
    assert rows == [(LIST, b"out/*.csv", b"")] and json.loads(done.stdout) == [{"name": "out/b.csv", "bytes": 1, "saved": None, "left_out": None}]


@pytest.mark.parametrize("words", [("put", "work", __file__), ("get", "work", "a"), ("files", "work")], ids=lambda words: words[0])
def test_a_session_that_is_gone_is_told_by_commands_of_files(words):
    done, _ = ask(answer(fake.refusal("not_found", "session work ended: it was closed", "session")), *words)
    assert (done.returncode, done.stderr) == (1, f"brig session {words[0]}: session work ended: it was closed\n")


# --- interrupt, close, list ---

def test_interrupt_reaches_each_call_of_a_session():
    running = ["0d5e6f0c-0000-4000-8000-00000000000b", "0d5e6f0c-0000-4000-8000-00000000000c"]
    listed = {**LISTED, "sessions": [{**ROW, "mine": False, "session": RUN, "running": ["x"]}, {**ROW, "running": running}]}
    done, asked = ask(answer(listed, *({"reply": "interrupt", "run": run} for run in running)), "interrupt", "work")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and asked == [{"op": "list"}, *({"op": "interrupt", "run": run} for run in running)]


def test_interrupt_of_what_is_no_session_is_that_of_a_call():
    done, asked = ask(answer(LISTED, {"reply": "interrupt", "run": RUN}), "interrupt", RUN)
    assert done.returncode == 0 and asked[1] == {"op": "interrupt", "run": RUN}
    done, _ = ask(answer(LISTED, fake.refusal("not_found", "no run of yours", "run")), "interrupt", "nothing")
    assert (done.returncode, done.stderr) == (1, "brig session interrupt: no run of yours\n")


def test_interrupt_of_a_session_without_a_call_is_an_error():
    done, asked = ask(answer(LISTED), "interrupt", "work")
    assert (done.returncode, done.stderr) == (1, "brig session interrupt: work: no call is under way\n") and len(asked) == 1


def test_close_names_the_session():
    done, asked = ask(answer({"reply": "close", "session": ID}), "close", "work")
    assert (done.returncode, done.stdout) == (0, "") and asked == [{"op": "close", "session": "work"}]


def test_list_is_a_table_or_json():
    foreign = {**ROW, "name": None, "running": ["x"], "contexts": ["a\x1bb"], "profile": "data-science"}
    done, asked = ask(answer({**LISTED, "sessions": [ROW, foreign]}), "list")
    assert asked == [{"op": "list"}] and [line.split() for line in done.stdout.splitlines()] == [
        "SESSION NAME PROFILE SECONDS IDLE LEFT UID CALLS RUNNING CONTEXTS".split(), [ID, "work", "basic", "61.5", "1.5", "598.5", "1000", "7", "0", "main,second"],
        [ID, "-", "data-science", "61.5", "1.5", "598.5", "1000", "7", "1", "a?b"]]
    assert json.loads(ask(answer(LISTED), "list", "--json")[0].stdout) == {"sessions": [ROW]}
    old = {key: value for key, value in LISTED.items() if key != "sessions"}
    assert json.loads(ask(answer(old), "list", "--json")[0].stdout) == {"sessions": []}


def test_ps_and_top_are_what_they_were():
    with fake.server(answer(LISTED)) as env:
        done = subprocess.run([tool.binary(), "ps"], capture_output=True, text=True, env=tool.environment(env), check=False)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")
