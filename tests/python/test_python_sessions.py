"""brig.Session and brig.AsyncSession against a brigd of their own and a service: interpreters, commands and files that stay, threads and tasks at once."""
import asyncio
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import threading

import pytest

from support import daemon as daemons
from support import fake_server as fake
from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import brig  # noqa: E402

pytestmark = pytest.mark.usefixtures("jail")
END, FILE, EXECUTABLE, GET, LEFT, LIST = range(6)


@pytest.fixture
def at(service):
    """Of the service alone."""
    return {"server": "service", "path": str(service.path)}


@pytest.fixture
def session(where):
    with brig.Session(**where) as opened:
        yield opened


def sessions_of(at):
    with brig.Connection(**at) as asked:
        return asked.ask("list")["sessions"]


class Gate:
    """on_stdout: opens when the program has written something."""

    def __init__(self):
        self.is_open = threading.Event()

    def __call__(self, _):
        self.is_open.set()

    def wait(self):
        assert self.is_open.wait(host.HANG)


def in_thread(work):
    """What it returns or raises is what the returned function does."""
    done = []

    def run():
        try:
            done.append((work(), None))
        except BaseException as error: # noqa: B902 pylint: disable=broad-except
            done.append((None, error))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def outcome():
        thread.join(host.HANG)
        assert done, "it hangs"
        if done[0][1]:
            raise done[0][1]
        return done[0][0]
    return outcome


# --- interpreters ---

@pytest.mark.parametrize("where", ["private", "service"], indirect=True)
def test_a_context_keeps_its_variables_and_says_so(session):
    first = session.run("x = 6; print('out')")
    assert (first.ok, first.stdout, first.session.state, first.session.context) == (True, "out\n", "new", "main")
    second = session.run("x * 7")
    assert (second.value, second.session.state, second.session.id) == (42, "kept", session.id)
    assert 0 < second.session.idle_left <= session.idle == 600 and session.lifetime == 3600 and second.session.age < host.HANG
    other = session.run("'x' in globals()", "other")
    assert (other.value, other.session.state, other.session.context) == (False, "new", "other")


def test_a_run_of_its_own_is_in_no_session(where):
    assert brig.run("1", **where).session is None


def test_what_code_does_is_a_result_and_the_context_goes_on(session):
    session.run("x = 1")
    assert str(session.run("1 / 0").error) == "ZeroDivisionError: division by zero"
    assert (session.run("import sys; sys.exit(7)").status, session.run("def").error.type) == (7, "SyntaxError")
    late = session.run("while True: pass", timeout=0.3)
    assert (late.verdict, late.status, late.ok, late.session.state) == ("timeout_wall", 124, False, "kept")
    assert session.run("x").value == 1


def test_an_interpreter_that_ends_is_lost_then_new_and_files_stay(session):
    session.run("x = 1; open('f', 'w').write('stays')")
    lost = session.run("import os; os._exit(3)")
    assert (lost.session.state, lost.status) == ("lost", 3)
    after = session.run("'x' in globals(), open('f').read()")
    assert (after.value, after.session.state) == ([False, "stays"], "reset")
    assert session.run("1").session.state == "kept"


def test_one_that_ends_between_two_calls_costs_no_more_than_itself(session):
    """At any moment of the next call."""
    states = set()
    for n in range(40):
        session.run(f"import os, threading; threading.Timer({n} / 10000, os._exit, [0]).start()")
        states |= {session.run("1").session.state for _ in range(3)}
        assert host.poll(lambda: session.run("threading.active_count()").error, every=0) # NameError: a new one
    assert states <= {"kept", "lost", "reset"}


def test_a_context_that_is_restarted_is_reset(session):
    session.run("x = 1")
    session.restart()
    after = session.run("'x' in globals()")
    assert (after.value, after.session.state) == (False, "reset")
    with pytest.raises(brig.Refused, match="no context \"none\""):
        session.restart("none")


def test_the_forms_of_a_value_and_what_was_displayed_are_there(session):
    result = session.run("class Table:\n    def _repr_html_(self): return '<table>'\n    def __repr__(self): return 'a table'\ndisplay(Table())\nTable()")
    assert result.report_error is None
    assert result.displays == [{"text/plain": "a table", "text/html": "<table>"}] and result.bundle == result.displays[0] and result.shortened == []


def test_tools_work_in_contexts_each_call_with_its_own(session):
    assert session.run("tools.add(a=1, b=2)", tools={"add": lambda a, b: a + b}).value == 3
    denied = session.run("tools.add(a=1, b=2)", tools={"add": lambda a, b: a + b}, deny="add")
    assert (denied.error.type, denied.record["tool_calls"]["denied"]) == ("ToolDenied", 1)

    async def later(word):
        await asyncio.sleep(0)
        return word + "!"
    assert session.run("tools.later('x')", tools={"later": later}).value == "x!"


def test_a_tool_can_use_the_session_that_calls_it(session):
    def store(name, text):
        session.put({name: text})
        return session.run(f"len(open({name!r}).read())", "other").value
    assert session.run("tools.store('f', 'text'), open('f').read()", tools={"store": store}).value == [4, "text"]


def test_tools_are_those_of_one_call_and_of_its_context_alone(session):
    """Whatever the program keeps of them, and whoever else has some at that time."""
    who = {"who": lambda: "first"}
    assert session.run("kept = tools; kept.who()", tools=who).value == "first"
    over = session.run("kept.who()")
    assert over.error.type == "ToolError" and "the call is over" in str(over.error)
    assert session.run("kept.who()", tools={"who": lambda: "second"}).value == "second"
    forked = session.run("import os\nif not os.fork():\n    try: kept.who()\n    except BaseException as error: os._exit(3)\n    os._exit(4)\nos.waitstatus_to_exitcode(os.wait()[1])",
                         tools=who)
    assert (forked.value, forked.record["tool_calls"]["n"]) == (3, 0)

    def meanwhile():
        return session.run("tools.who()", "other").error.type, session.run("tools.who()", "third", tools={"who": lambda: "of the third"}).value
    assert session.run("tools.meanwhile()", tools={"meanwhile": meanwhile, **who}).value == ["NameError", "of the third"]


def test_output_is_handed_over_as_it_is_written(session):
    seen, up = [], Gate()
    ended = in_thread(lambda: session.run("print(1, flush=True); print(tools.wait())", tools={"wait": lambda: up.wait() or 2},
                                          on_stdout=lambda chunk: (seen.append(chunk), up(chunk))))
    assert ended().stdout_raw == b"1\n2\n" == b"".join(seen)


def test_a_flood_is_ended_and_the_session_goes_on(session):
    flood = session.run("while True: print('x' * 1000)", output="10K")
    assert (flood.verdict, flood.status, flood.truncated, len(flood.stdout_raw)) == ("output_limit", 153, True, 10240)
    assert session.run("1").ok


# --- commands ---

def test_what_is_in_the_workspace_is_described_made_renamed_and_removed(session):
    session.mkdir("a/b")
    session.put({"a/f": "text"})
    session.run("import os; os.symlink('f', 'a/l'); os.chmod('a/f', 0o640); os.utime('a/f', (5, 7.5))")
    found = session.stat("/workspace/a/f")
    assert (found.name, found.type, found.mode, found.size, found.modified, found.target) == ("a/f", "file", 0o640, 4, 7.5, None)
    assert [(each.name, each.type, each.target) for each in session.entries("a")] == [("a/b", "directory", None), ("a/f", "file", None), ("a/l", "link", "f")]
    session.rename("a", "c")
    assert [each.name for each in session.entries()] == ["c"] and session.stat(".").type == "directory"
    assert [each.name for each in session.entries(depth=2)] == ["c", "c/b", "c/f", "c/l"]
    for wrong, why in (lambda: session.remove("c"), "'c' was not removed: it is a directory that is not empty"), (lambda: session.stat("a"), "'a' was not found: there is no such file"), \
            (lambda: session.rename("c", "c/b/d"), "'c' was not renamed: it cannot be written"):
        with pytest.raises(brig.FilesFailed, match=why):
            wrong()
    for wrong in "..", "/etc", "", "c/../c":
        with pytest.raises(ValueError, match="^the path"):
            session.remove(wrong, tree=True)
    with pytest.raises(ValueError, match="is /workspace itself"):
        session.remove("/workspace", tree=True)
    session.remove("c", tree=True)
    assert session.entries() == []


def test_the_end_of_a_session_is_moved(session, where):
    session.renew(7200)
    assert 7200 <= session.lifetime < 7200 + host.HANG
    with pytest.raises(brig.Refused, match="lifetime_ms: .*above the ceiling"):
        session.renew("2d")

    async def renewed():
        async with brig.AsyncSession(**where) as other:
            await other.renew("90m")
            return other.lifetime
    assert 5400 <= asyncio.run(renewed()) < 5400 + host.HANG


def test_a_call_has_an_environment_and_a_directory_of_its_own(session):
    look = "import os; [os.getcwd(), os.environ.get('K')]"
    assert session.run(look, cwd="/tmp", env={"K": "v=w"}).value == ["/tmp", "v=w"] and session.run(look).value == ["/workspace", None]
    with pytest.raises(brig.SetupFailed, match="the directory in which the call starts: No such file or directory"):
        session.run(look, cwd="none")


def test_a_command_has_arguments_input_environment_and_a_directory(session):
    session.put({"sub/f": "x"})
    done = session.exec(["sh", "-c", "echo $K; pwd; cat; ls"], cwd="/workspace/sub", env={"K": "v=w"}, stdin="in\n")
    assert (done.stdout, done.status, done.session.context) == ("v=w\n/workspace/sub\nin\nf\n", 0, None), done
    assert session.exec(["sh", "-c", "exit 3"]).status == 3
    missing = session.exec(["no-such-command"])
    assert (missing.exec_error, missing.status, missing.ok) == ("ENOENT", 127, False)
    with pytest.raises(TypeError, match="list of words"):
        session.exec("ls")


def test_what_a_command_started_ends_with_it_unless_it_is_detached(session):
    def sleeps():
        return session.exec(["sh", "-c", "cat /proc/[0-9]*/comm | grep -c sleep; true"]).stdout == "1\n"
    assert session.exec(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo up"]).stdout == "up\n"
    assert not sleeps()
    assert session.exec(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo up"], detach=True).stdout == "up\n"
    assert host.poll(sleeps), "a shell that is about to become sleep has another name yet"


# --- at once ---

LATE = """import os, time
while not os.path.exists('go'): time.sleep(0.01)
print('late', 'x' * 200_000, 'end', flush=True)
open('written', 'w').close()
time.sleep(1000)
"""


@pytest.mark.parametrize("start", [
    lambda session: session.run("import subprocess, sys\nprint(subprocess.Popen([sys.executable, 'late.py']).pid)"),
    lambda session: session.exec(["sh", "-c", "python3 late.py & echo $!"], detach=True)], ids=["call", "detached"])
def test_what_a_call_leaves_running_lives_and_its_output_goes_to_the_next_call(session, start):
    session.put({"late.py": LATE})
    pid = int(start(session).stdout)
    session.put({"go": ""})
    while not session.files("written"):
        pass
    said = session.run(f"import os\nos.kill({pid}, 0)\nprint('next')").stdout
    assert re.match(r"\[134\d\d\d bytes that were written between calls are cut here]\n", said) and said.endswith("x end\nnext\n") and len(said) < 66_000
    assert session.run("1").stdout == ""


def test_what_was_written_before_a_call_ended_is_its_own_although_processes_are_left(session):
    done = session.run("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('x' * 60_000)")
    assert len(done.stdout) == 60_001 and session.run("print('next')").stdout == "next\n"


def test_threads_use_contexts_and_commands_at_once(session):
    """No call ends before all of them have begun."""
    meeting = threading.Barrier(5)
    calls = [in_thread(lambda n=n: session.run(f"{n}, tools.meet()", f"c{n}", tools={"meet": lambda: meeting.wait(host.HANG) >= 0})) for n in range(4)]
    up = Gate()
    command = in_thread(lambda: session.exec(["sh", "-c", "echo up; exec sleep 600"], on_stdout=up))
    up.wait()
    meeting.wait(host.HANG)
    assert [call().value for call in calls] == [[n, True] for n in range(4)]
    session.interrupt()
    assert command().verdict == "signaled"


def test_many_threads_make_many_short_calls(session):
    def work(n):
        return [session.run(f"{i} + {n}", f"c{n}").value for i in range(30)]
    calls = [in_thread(lambda n=n: work(n)) for n in range(6)]
    assert [call() for call in calls] == [[i + n for i in range(30)] for n in range(6)]


def test_a_context_that_is_in_use_is_busy(session):
    up, go = Gate(), threading.Event()
    first = in_thread(lambda: session.run("print('up', flush=True); tools.wait()", tools={"wait": lambda: go.wait(host.HANG)}, on_stdout=up))
    up.wait()
    with pytest.raises(brig.Busy, match="context: main is busy.*another context"):
        session.run("1")
    assert session.run("1", "other").value == 1
    go.set()
    assert first().ok and session.run("1").value == 1


def test_a_call_is_interrupted_from_another_thread_and_its_context_stays(session):
    session.run("x = 5")
    for name in "main", None:
        up = Gate()
        call = in_thread(lambda up=up: session.run("print('up', flush=True)\nwhile True: pass", on_stdout=up))
        up.wait()
        session.interrupt(name)
        result = call()
        assert (result.error.type, result.status, result.session.state) == ("KeyboardInterrupt", 130, "kept")
    assert session.run("x").value == 5


CTRL_C = """
import os, signal, sys, threading
import brig
up = threading.Event()
threading.Thread(target=lambda: (up.wait(60), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
with brig.Session(server="private") as session:
    session.run("x = 5")
    try:
        session.run("print('up', flush=True)\\nwhile True: pass", on_stdout=lambda _: up.set())
    except KeyboardInterrupt:
        print("interrupted", session.run("x").value)
"""


def test_ctrl_c_interrupts_the_call_and_leaves_the_context():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "BRIG_SOCKET": ""}
    done = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=host.HANG, env=env, check=False)
    assert (done.stdout, done.returncode) == ("interrupted 5\n", 0), done.stderr


def test_an_error_in_a_function_that_gets_output_is_raised_and_the_session_goes_on(session):
    def broken(_):
        raise KeyError("ours")
    session.run("x = 5")
    with pytest.raises(KeyError, match="ours"):
        session.run("print('up', flush=True)\nwhile True: pass", on_stdout=broken)
    with pytest.raises(RuntimeError, match="cannot use the session that calls them"):
        session.run("print('up', flush=True)\nwhile True: pass", on_stdout=lambda _: session.run("1"))
    assert session.run("x").value == 5


# --- files ---

def test_files_and_trees_are_put_listed_and_got(session, tmp_path):
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep/two").write_bytes(b"2")
    (tree / "tool").write_text("#!/bin/sh\necho ran\n")
    (tree / "tool").chmod(0o755)
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "empty").mkdir()
    session.put({"text": "t", "bytes": b"\0b", "in/file": tree / "deep/two", "in/tree": tree, "big": bytes(3 << 20)})
    assert session.files() == {"text": 1, "bytes": 2, "in/file": 1, "in/tree/deep/two": 1, "in/tree/tool": 19, "big": 3 << 20}
    assert session.exec(["in/tree/tool"]).stdout == "ran\n"
    session.run("import os; open('text', 'a').write('!'); os.mkfifo('in/pipe'); os.symlink('/etc/passwd', 'in/link')")
    got = session.get("text", "in")
    assert got == {"text": b"t!", "in/file": b"2", "in/tree/deep/two": b"2", "in/tree/tool": b"#!/bin/sh\necho ran\n"}
    assert got.left_out == {"in/pipe": "special", "in/link": "link"} and got.folders == ["in/tree/empty"]
    assert session.files("*e*") == {"text": 2, "bytes": 2} and session.get("none") == {} and session.get("big")["big"] == bytes(3 << 20)


def test_what_cannot_be_put_is_an_error_that_names_it(session):
    session.put({"d/f": "1"})
    with pytest.raises(brig.FilesFailed, match="'d/f/g' was not put: it cannot be written there") as caught:
        session.put({"d/f/g": "1", "fits": "1"})
    assert caught.value.left_out == {"d/f/g": "unwritable"} and session.get("fits") == {"fits": b"1"}
    for name in "../up", "a//b", "/abs", "", "a/./b", "x" * 300, "a\0b":
        with pytest.raises(ValueError, match="name files as they lie below /workspace"):
            session.put({name: "1"})
    with pytest.raises(brig.FilesFailed, match="too large for what may come in one call"):
        session.put({"six": "123456"})
        session.get("six", most=5)
    with pytest.raises(FileNotFoundError):
        session.put({"a": pathlib.Path("/no/such/file")})
    assert session.run("1").ok


def test_what_does_not_fit_into_the_workspace_is_told_and_the_session_goes_on(where):
    with brig.Session(workspace="1M", **where) as session:
        with pytest.raises(brig.FilesFailed, match="'big' was not put: there is no room for it in /workspace; .* workspace=") as caught:
            session.put({"a": "1", "big": bytes(2 << 20), "z": "1"})
        assert caught.value.left_out == {"big": "room"} and session.files() == {"a": 1, "z": 1}


def test_more_files_are_refused_than_a_socket_holds_and_nothing_hangs(session):
    session.put({"f": "1"})
    with pytest.raises(brig.FilesFailed, match="and 1999 more"):
        session.put({f"f/{'n' * 200}{n}": b"x" for n in range(2000)})


def test_saving_goes_through_no_link_and_over_no_file(session, tmp_path):
    session.put({"a/b": "new", "c": "new"})
    files = session.get("a", "c")
    assert sorted(files.save(tmp_path / "out")) == [str(tmp_path / "out/a/b"), str(tmp_path / "out/c")]
    assert (tmp_path / "out/a/b").read_text() == "new"
    with pytest.raises(FileExistsError):
        files.save(tmp_path / "out")
    (tmp_path / "out/c").write_text("longer than new")
    files.save(tmp_path / "out", replace=True)
    assert (tmp_path / "out/c").read_text() == "new"
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/a").symlink_to(tmp_path)
    with pytest.raises(OSError):
        files.save(tmp_path / "trap")
    (tmp_path / "trap/a").unlink()
    (tmp_path / "victim").write_text("old")
    (tmp_path / "trap/c").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        files.save(tmp_path / "trap", replace=True)
    assert not (tmp_path / "b").exists() and (tmp_path / "victim").read_text() == "old"
    climbing = brig.Files()
    climbing["../up"] = b"x"
    with pytest.raises(ValueError, match="has . or .. in it"):
        climbing.save(tmp_path / "out")


def entry(kind, name=b"", size=0, data=b""):
    return struct.pack("=IIQ", kind, len(name), size) + name + data


@pytest.mark.parametrize("said, words", [
    (entry(FILE, b"../up", 1, b"x"), "has . or .. in it"), (entry(FILE, b"/abs", 1, b"x"), "empty component"), (entry(LEFT, b"a\0b"), "NUL"),
    (entry(9, b"x"), "malformed header"), (entry(FILE, b"n" * 2000), "malformed header"), (entry(GET, b"x"), "malformed header"),
    (entry(FILE, b"x", 1 << 62, b"1"), "too large"), (entry(FILE, b"x", 100, b"1"), "stopped in the middle"), (b"half", "stopped in the middle"), (b"", "stopped"),
    pytest.param(b"".join(entry(LIST, b"%d" % n) for n in range(100_001)), "more than 100000 files", marks=pytest.mark.nightly),
], ids=["climbs", "absolute", "NUL", "kind", "long", "wrong way", "huge", "short", "half a header", "nothing", "endless"])
def test_a_session_that_lies_about_files_is_told_and_the_client_goes_on(said, words):
    def script(server):
        ours, theirs = socket.socketpair()
        asked = server.receive()
        server.send({"event": "opened", "run": "u", "session": "u", "name": None, "idle_ms": 1, "lifetime_ms": 1, "tag": asked["tag"]})
        asked = server.receive()
        with theirs:
            server.send({"reply": "files", "session": "u", "tag": asked["tag"]}, [theirs.fileno()])
        with ours:
            try:
                ours.sendall(said)
                ours.shutdown(socket.SHUT_WR)
                while ours.recv(1 << 16):
                    pass
            except OSError: # the client has had enough
                pass
        asked = server.receive()
        server.send({"reply": "list", "runs": [], "left_out": 0, "sessions": [], "tag": asked["tag"]})
    with fake.server(script) as env:
        session = brig.Session(server="service", path=env["BRIG_SOCKET"])
        with pytest.raises(brig.FilesFailed, match=words):
            session.get("x")
        session.interrupt() # asks for the list
        session.leave()


NAMES = b"a", b"b.csv", b"d/b.csv", b"d/e/c", b"[x]", b"x", b".a", b"back\\slash", b"\xff.csv"


@pytest.mark.parametrize("pattern, fits", [
    ("a", "a"), ("d", "d/b.csv d/e/c"), ("*", " ".join(map(os.fsdecode, NAMES))), ("*.csv", "b.csv \udcff.csv"), ("?", "a x d/b.csv d/e/c"), ("d/*", "d/b.csv d/e/c"), ("d/*.csv", "d/b.csv"), ("*/e", "d/e/c"),
    ("[]ax[]", "a x"), ("[!a]", "x d/b.csv d/e/c"), ("[^b-z]", "a"), ("[[]x]", "[x]"), ("[[:alpha:]]", "a x d/b.csv d/e/c"), ("back\\slash", "back\\slash"), ("d/e/c/f", ""), ("**.csv", "b.csv \udcff.csv"), ("b*c*v", "b.csv"),
])
def test_a_session_that_sends_more_than_was_asked_for_sends_it_in_vain(pattern, fits):
    def script(server):
        tag = server.receive()["tag"]
        server.send({"event": "opened", "run": "u", "session": "u", "name": None, "idle_ms": 1, "lifetime_ms": 1, "tag": tag})
        for kind in FILE, LIST:
            ours, theirs = socket.socketpair()
            asked = server.receive()
            with theirs:
                server.send({"reply": "files", "session": "u", "tag": asked["tag"]}, [theirs.fileno()])
            with ours:
                ours.sendall(b"".join(entry(each, name, 1, b"1" if each == FILE else b"") for each in (kind, FILE + LIST - kind) for name in NAMES) + entry(END))
                while ours.recv(1 << 16):
                    pass
    with fake.server(script) as env:
        session = brig.Session(server="service", path=env["BRIG_SOCKET"])
        got, listed = session.get(pattern), session.files(pattern)
        session.leave()
    assert got == dict.fromkeys(fits.split(), b"1") and listed == dict.fromkeys(fits.split(), 1)


def test_a_session_that_sends_nothing_is_left_after_the_time_that_was_said():
    def script(server):
        ours, theirs = socket.socketpair()
        asked = server.receive()
        server.send({"event": "opened", "run": "u", "session": "u", "name": None, "idle_ms": 1, "lifetime_ms": 1, "tag": asked["tag"]})
        asked = server.receive()
        with theirs:
            server.send({"reply": "files", "session": "u", "tag": asked["tag"]}, [theirs.fileno()])
        assert server.receive() is None
        ours.close()
    with fake.server(script) as env:
        session = brig.Session(server="service", path=env["BRIG_SOCKET"])
        with pytest.raises(brig.FilesFailed, match="not moved within 0.2 s"):
            session.get("x", timeout=0.2)
        session.leave()


# --- its life ---

@pytest.mark.parametrize("where", ["private", "service"], indirect=True)
def test_a_session_that_was_closed_is_lost_and_has_a_record(where):
    session = brig.Session(name="work", **where)
    assert session.name == "work" and session.run("1").ok and session.record is None
    session.close()
    session.close()
    assert (session.record["exit_reason"], session.record["run_id"]) == ("exited", session.id)
    with pytest.raises(brig.SessionLost, match="the session was closed; open a new session"):
        session.run("1")


def test_without_stays_it_ends_with_its_connection(at):
    session = brig.Session(**at)
    assert [row["session"] for row in sessions_of(at)] == [session.id]
    session.leave()
    assert host.poll(lambda: sessions_of(at) == [])


def test_one_that_stays_is_found_again_by_name_and_by_id(at):
    with brig.Session(name="work", stays=True, **at) as session:
        session.run("x = 5")
    again = brig.Session.attach("work", path=at["path"])
    assert (again.id, again.name, again.run("x").value) == (session.id, "work", 5)
    with brig.Session.attach(session.id, path=at["path"]) as third:
        assert third.run("x").value == 5 and third.name == "work" and third.record is None
    assert again.run("x").session.state == "kept"
    with pytest.raises(brig.Refused, match="work"):
        brig.Session(name="work", **at)
    again.close()

    def why():
        with pytest.raises(brig.SessionLost) as caught:
            brig.Session.attach("work", path=at["path"])
        return str(caught.value)
    assert host.poll(lambda: why() == "session work has ended: its client closed it; open a new session"), why()
    with pytest.raises(brig.SessionLost, match="you have no session \"none\""):
        brig.Session.attach("none", path=at["path"])


def test_a_connection_that_was_closed_is_made_anew_where_the_session_stays(at):
    with brig.Session(stays=True, **at) as session, brig.Session(**at) as other:
        session.run("x = 5")
        session._line.connection.end() # as the service closes one that was silent for five minutes
        other._line.connection.end()
        calls = [in_thread(lambda n=n: session.run(f"{n}", f"c{n}").value) for n in range(4)]
        assert [call() for call in calls] == [0, 1, 2, 3]
        assert session.run("x").value == 5
        session.close()
        with pytest.raises(brig.SessionLost, match="has ended with its connection"):
            other.run("1")
    assert host.poll(lambda: sessions_of(at) == [])


def test_one_that_was_idle_for_too_long_says_so(where):
    with brig.Session(idle=0.1, **where) as session:
        assert host.poll(lambda: not session._line.connection.is_quiet()) # its end is told
        with pytest.raises(brig.SessionLost, match="it was idle for 0.1 s; open a new session"):
            session.run("1")
        assert session.record["exit_reason"] == "exited"


def test_a_service_that_ends_takes_its_sessions_with_it():
    with daemons.Daemon() as mortal:
        at = {"server": "service", "path": str(mortal.path)}
        session, stays = brig.Session(**at), brig.Session(stays=True, name="work", **at)
        up = Gate()
        call = in_thread(lambda: session.run("print('up', flush=True)\nwhile True: pass", on_stdout=up))
        up.wait()
        mortal.stop()
        assert call().session.state == "lost"
        with pytest.raises(brig.SessionLost, match="has ended"):
            session.run("1")
        with pytest.raises(brig.ServiceUnavailable):
            stays.run("1")
        mortal.start()
        with pytest.raises(brig.SessionLost, match="no session"):
            stays.run("1")
        session.close()
        stays.close()


@pytest.mark.parametrize("options, error, words", [
    ({"name": "no name"}, brig.Refused, "name: .*letters, digits"), ({"profile": "none"}, brig.Refused, "none"), ({"idle": 1e6}, brig.Refused, "idle.*ceiling"),
    ({"memory": "1T"}, brig.Refused, "memory"), ({"ro": ["/no/such/place"]}, FileNotFoundError, "no/such"),
], ids=lambda value: str(value)[:30])
def test_what_cannot_be_opened_is_an_exception_that_says_what(where, options, error, words):
    with pytest.raises(error, match=words):
        brig.Session(**options, **where)


def test_a_private_session_cannot_stay():
    with pytest.raises(ValueError, match="stays: a private brigd ends with its connection"):
        brig.Session(stays=True, server="private")


def test_the_settings_of_a_session_reach_it(where, tmp_path):
    host.open_way(tmp_path)
    (tmp_path / "data").write_text("file")
    with brig.Session(env={"K": "v=w"}, ro={"named": tmp_path / "data"}, timeout=0.3, workspace="32M", **where) as session:
        assert session.run("import os; os.environ['K'], open('named').read()").value == ["v=w", "file"]
        assert session.exec(["sh", "-c", "echo $K; cat named"]).stdout == "v=w\nfile"
        assert session.run("while True: pass").verdict == "timeout_wall"
        session.put({"big": bytes(20 << 20)})
        with pytest.raises(brig.Refused, match="limits"):
            session.run("1", timeout=1e6)


def test_a_fork_leaves_the_session_alone(session):
    session.run("x = 5")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.close() # does nothing
            session.run("1")
        except brig.BrigError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert b"a fork cannot use the session" in os.read(reading, 1000)
    os.waitpid(pid, 0)
    os.close(reading)
    assert session.run("x").value == 5


# In a process of its own: what other tests have left in this one may be closed meanwhile, or opened.
OPEN_BEFORE_AND_AFTER = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT / "python")!r})
import brig
where = json.loads(sys.argv[1])
def refuses(error, work):
    try: work()
    except error: return
    sys.exit(f"no {{error.__name__}}")
def once():
    with brig.Session(**where) as session:
        session.run("tools.f()", tools={{"f": lambda: 1}})
        session.run("import os; os._exit(1)")
        session.put({{"a": "1"}})
        session.get("a")
        refuses(brig.FilesFailed, lambda: session.put({{"a/b": "1"}}))
        refuses(brig.Refused, lambda: session.run("1", timeout=1e6))
    refuses(brig.Refused, lambda: brig.Session(name="no name", **where))
once()
before = len(os.listdir("/proc/self/fd"))
once()
print(before, len(os.listdir("/proc/self/fd")))
"""


def test_nothing_stays_open_after_a_session(where):
    done = subprocess.run([sys.executable, "-c", OPEN_BEFORE_AND_AFTER, json.dumps(where)], capture_output=True, text=True, timeout=host.HANG)
    before, after = map(int, done.stdout.split() or (0, 1))
    assert before == after and done.returncode == 0, done


@pytest.mark.parametrize("answer", [b"no json", b"[]", b'{"event":"opened","run":"x","tag":1}', b'{"event":"ended","run":"x","tag":1}'],
                         ids=["no JSON", "a list", "no id", "an end without a record"])
def test_a_service_that_talks_nonsense_is_one_that_is_broken(answer):
    def script(server):
        server.receive()
        server.sock.send(answer)
    with fake.server(script) as env, pytest.raises((brig.ProtocolError, brig.ServiceLost)):
        brig.Session(server="service", path=env["BRIG_SOCKET"])


def test_a_brigd_without_sessions_says_so():
    def script(server):
        asked = server.receive()
        server.send({**fake.refusal("bad_field", "unknown request \"open\"", "op"), "tag": asked["tag"]})
    with fake.server(script) as env, pytest.raises(brig.Refused, match="unknown request"):
        brig.Session(server="service", path=env["BRIG_SOCKET"])


# --- asyncio ---

def test_tasks_use_contexts_at_once(where):
    async def main():
        meeting = []

        async def meet():
            meeting.append(asyncio.get_running_loop())
            while len(meeting) < 3:
                await asyncio.sleep(0.001)
            return True
        async with brig.AsyncSession(**where) as session:
            results = await asyncio.gather(*(session.run(f"{n}, tools.meet()", f"c{n}", tools={"meet": meet}) for n in range(3)),
                                           session.exec(["echo", "x"]))
            assert set(meeting) == {asyncio.get_running_loop()}
            return [result.value for result in results[:3]], results[3].stdout
    assert asyncio.run(main()) == ([[n, True] for n in range(3)], "x\n")


def test_a_task_that_is_cancelled_interrupts_its_call(where):
    async def main():
        async with brig.AsyncSession(**where) as session:
            await session.run("x = 5")
            up = asyncio.Event()
            task = asyncio.ensure_future(session.run("print('up', flush=True)\nwhile True: pass", on_stdout=lambda _: up.set()))
            await up.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.run("while True: pass"), 0.2)
            up.clear()
            task = asyncio.ensure_future(session.run("print('up', flush=True)\nwhile True: pass", on_stdout=lambda _: up.set()))
            await up.wait()
            await session.interrupt()
            assert (await task).status == 130
            return (await session.run("x")).value
    assert asyncio.run(main()) == 5


def test_one_that_ignores_interrupts_is_ended_when_its_task_is_cancelled(where):
    async def main():
        async with brig.AsyncSession(**where) as session:
            up = asyncio.Event()
            code = "while True:\n    try:\n        print('up', flush=True)\n        while True: pass\n    except KeyboardInterrupt: pass"
            task = asyncio.ensure_future(session.run(code, on_stdout=lambda _: up.set()))
            await up.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await session.run("1")).session.state
    assert asyncio.run(main()) == "reset"


def test_an_async_session_moves_files_stays_and_is_lost(at):
    async def main():
        async with brig.AsyncSession(name="work", stays=True, **at) as session:
            await session.put({"a/b": "1"})
            await session.run("x = 5")
        async with brig.AsyncSession.attach("work", path=at["path"]) as again:
            assert (await again.files(), await again.get("a")) == ({"a/b": 1}, {"a/b": b"1"})
            assert (await again.run("x")).value == 5
            again._line.connection.end()
            assert (await again.run("x")).value == 5
            await again.restart()
            assert (await again.run("'x' in globals()")).session.state == "reset"
            await again.close()
        with pytest.raises(brig.SessionLost, match="its client closed it|is being closed"):
            await brig.AsyncSession.attach("work", path=at["path"]).open()
        closed = await brig.AsyncSession(**at).open()
        await closed.close()
        assert closed.record["exit_reason"] == "exited"
        with pytest.raises(brig.SessionLost, match="was closed"):
            await closed.run("1")
    asyncio.run(main())


# --- map() with reuse: programs in turns in sessions that they share ---

ENDS = {
    "a value": "print('out')\n6 * 7", "the variable result": "result = {'a': [1]}", "an exception": "print('before')\nraise KeyError('k')", "sys.exit(3)": "import sys; sys.exit(3)",
    "a text for sys.exit": "import sys; sys.exit('words')", "no Python": "def", "os._exit": "import os; os._exit(4)", "a signal": "import os; os.kill(os.getpid(), 9)",
    "too much memory": "kept = []\nwhile True: kept.append(bytearray(1 << 20))", "too much output": "while True: print('x' * 9999)", "the last": "'last'",
}
TOO_LONG = {"too long": "while True: pass", "too long, and deaf": "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(9)", "the one after": "while True: pass"}
INTERRUPTED = "too much output", *TOO_LONG # a program in a session can report its KeyboardInterrupt; in a run it is killed


def result_of(done):
    return done.verdict, done.status, done.value, done.truncated, *(done.record[key] for key in ("exit_code", "signal", "profile", "isolation"))


def told_by(done):
    return done.stdout, done.error and (done.error.type, done.error.message, done.error.line)


@pytest.mark.parametrize("programs, limits", [(ENDS, {"memory": "64M", "output": 65536}), (TOO_LONG, {"timeout": 0.3})], ids=["ends", "late"])
def test_programs_that_share_sessions_have_the_results_of_runs_of_their_own(where, programs, limits):
    alone, together = (list(brig.map(programs.values(), reuse=reuse, workers=2, **limits, **where)) for reuse in (False, True))
    assert len(alone) == len(together) == len(programs)
    for name, one, other in zip(programs, alone, together):
        assert result_of(one) == result_of(other), name
        assert name in INTERRUPTED or told_by(one) == told_by(other), name


def shared(programs, where, **options):
    return list(brig.map(programs, reuse=True, workers=1, **{**where, **options}))


def test_they_share_variables_and_files_and_with_fresh_files_no_files(where):
    look = "import os; ['x' in globals(), os.listdir('/workspace'), os.listdir('/tmp')]"
    leaves = "import os; x = 1; os.makedirs('a/b'); os.mkfifo('a/b/c'); os.symlink('/', 'a/l'); os.chmod('a', 0); open('/tmp/.f', 'w').write('f')"
    assert [done.value for done in shared([leaves, look], where)][1] == [True, ["a"], [".f"]]
    done = shared([leaves, look, look], where, fresh_files=True, ro={"data": ROOT / "README.md"})
    assert [one.value for one in done[1:]] == [[True, ["data"], []]] * 2 and len({one.session.id for one in done}) == 1


@pytest.mark.parametrize("leaves", ["import os; os.mkdir('/tmp/in'); os.chdir('/tmp/in')", "import subprocess; subprocess.Popen(['sleep', '600'])",
                                    "import os\nfor _ in range(99): os.mkdir('d' * 99); os.chdir('d' * 99)\nos.chdir('/workspace')"])
@pytest.mark.gate
def test_what_fresh_files_cannot_clear_costs_a_new_session(where, leaves):
    left, after = shared([leaves, "import os; [os.getcwd(), os.listdir(), os.listdir('/tmp')]"], where, fresh_files=True)
    assert left.ok and after.value == ["/workspace", [], []] and left.session.id != after.session.id


def test_only_the_program_that_loses_the_interpreter_reports_it(where):
    ends = "x = 1", "import os; os._exit(3)", ENDS["too much memory"], ENDS["too much output"], "import os; os.kill(os.getpid(), 11)"
    done = shared([each for end in ends for each in (end, "'x' in globals()")], where, memory="64M", output=65536)
    assert [(one.verdict, one.status) for one in done[::2]] == [("exited", 0), ("exited", 3), ("oom", 137), ("output_limit", 153), ("signaled", 139)]
    assert [(one.ok, one.value) for one in done[1::2]] == [(True, True)] + [(True, False)] * 4


def test_what_a_program_leaves_behind_does_not_take_the_next_one_s_result(where):
    """It may change it: they share an interpreter. But it begins, ends, and has a record, an output and a report."""
    leaves = ("import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()", "import atexit, os; atexit.register(os._exit, 9)", "import os; os.close(1); os.close(2)",
              "import sys; sys.stdout.close(); sys.stdout = None", "import sys; sys.settrace(lambda *_: 1 / 0); sys.setprofile(lambda *_: 1 / 0); sys.excepthook = None",
              "import builtins; builtins.compile = builtins.len = builtins.open = None", "import os; os.closerange(3, 99)")
    done = shared([each for leave in leaves for each in (leave, "print('out')\n6 * 7")], where)
    for leave, one in zip(leaves, done[1::2]):
        assert (one.ok, one.stdout, one.value, one.report_error) == (True, "out\n", 42, None), leave


def test_results_of_shared_sessions_are_in_order_and_the_sessions_end_with_the_map(at):
    programs = (f"import time; time.sleep({0.1 if n % 3 == 0 else 0})\n{n}" for n in range(12))
    done = list(brig.map(programs, reuse=True, workers=3, **at))
    assert [one.value for one in done] == list(range(12)) and 1 < len({one.session.id for one in done}) <= 3
    assert sessions_of(at) == []
    begun = brig.map(iter(lambda: "1", None), reuse=True, workers=2, **at)
    assert next(begun).value == 1
    begun.close()
    assert host.poll(lambda: sessions_of(at) == [])


def test_a_program_whose_session_was_closed_runs_in_another(at):
    first, *rest = brig.map(closes_each(at), reuse=True, workers=1, **at)
    assert first.value == 0 and [one.value for one in rest] == [1, 2] and rest[0].session.id != first.session.id


def closes_each(at):
    for n in range(3):
        for row in sessions_of(at):
            with brig.Connection(**at) as asked:
                asked.ask("close", session=row["session"])
        yield f"{n}"


def test_a_session_is_replaced_before_it_is_too_old(where, monkeypatch):
    monkeypatch.setattr("brig.many.PROGRAMS_MAX", 3)
    done = shared(["1"] * 7, where)
    assert all(one.ok for one in done) and [one.session.state for one in done] == ["new", "kept", "kept", "new", "kept", "kept", "new"]


@pytest.mark.parametrize("options, error, words", [
    ({"stdin": "x", "args": ["a"]}, ValueError, "^args, stdin: not with reuse=True"), ({"files": {}, "get": ["*"]}, ValueError, "^files, get: not with reuse=True"),
    ({"colour": 1}, TypeError, "'colour'"), ({"reuse": False, "fresh_files": True}, ValueError, "^fresh_files: without reuse=True"),
])
def test_what_a_shared_session_does_not_have_is_refused_before_anything_runs(options, error, words):
    with pytest.raises(error, match=words):
        brig.map(["1"], **{"reuse": True, **options})


def test_limits_tools_and_the_directory_are_those_of_each_program(where):
    assert [one.value for one in shared(["import os; os.getcwd()"] * 2, where, cwd="/tmp")] == ["/tmp"] * 2
    done = shared(["tools.add(1, 2)", "import time; time.sleep(600)", "tools.add(3, 4)"], where, tools={"add": lambda a, b: a + b}, timeout=2)
    assert [(one.value, one.verdict, one.record["tool_calls"]["n"]) for one in done] == [(3, "exited", 1), (None, "timeout_wall", 0), (7, "exited", 1)]
    with pytest.raises(brig.Refused, match="wall_ms"):
        shared(["1"], where, timeout="10d")


@pytest.mark.nightly
def test_a_used_up_quota_is_waited_for_as_long_as_the_caller_wants():
    with daemons.Daemon({"access": [{"uid": 0, "runs_per_minute": 60}]}) as running:
        where = {"server": "service", "path": str(running.path)}
        assert [one.value for one in shared((f"{n}" for n in range(63)), where)] == list(range(63))
        with pytest.raises(brig.Busy):
            shared((f"{n}" for n in range(63)), where, wait=0)


@pytest.mark.nightly
def test_fresh_files_need_a_second_context_and_a_quota_of_one_is_named():
    with daemons.Daemon({"access": [{"uid": 0, "contexts": 1}]}) as running:
        done = brig.map(["1", "2"], reuse=True, fresh_files=True, workers=1, server="service", path=str(running.path))
        assert next(done).value == 1
        with pytest.raises(brig.Refused, match="^context: a session of yours has at most 1 contexts"):
            next(done)
