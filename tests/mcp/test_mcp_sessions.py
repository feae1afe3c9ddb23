"""Sessions of execute_code over real jails: what stays, what is lost and what a model is told, files in and out, whose they are."""
import base64
import json
import re
import subprocess
import time

import jailed
import pytest

from brokered import own_server
from support import host, warm
from support import mcp as mcp_client
from support.mcp import Refused

KEPT, NEW = "Session 'a': variables and files are kept for 10 min.", "Session 'a' is new: variables and files are kept for 10 min."
STUBBORN = "import time\nprint('begun', flush=True)\nwhile True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: pass"
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.fixture(scope="module")
def shared(built_mcp, needs_rootfs):
    with mcp_client.McpStdio() as mcp:
        yield mcp


@pytest.fixture
def session(shared):
    """A name that no other test has; the session ends with the test."""
    name = f"s{time.monotonic_ns()}"
    yield name
    shared.call("end_session", {"session": name})


def run(mcp, code, session="a", **arguments):
    return mcp.data("execute_code", {"code": code, "session": session, **arguments})


def text(mcp, tool, **arguments):
    return mcp_client.text_of(mcp.call(tool, arguments))


def refused(mcp, tool, **arguments):
    """The words of a tool's error."""
    result = mcp.call(tool, arguments)
    assert result["isError"] is True, result
    return mcp_client.text_of(result)


# --- what stays ------------------------------------------------------------------------------------------------

def test_variables_imports_and_files_stay_and_the_reply_says_so(start_mcp):
    mcp = start_mcp()
    first = run(mcp, "import math\nx = 41\nopen('f.txt', 'w').write('kept')\nprint('hi')")
    assert (first["stdout"], first["session"]) == ("hi\n", {"name": "a", "state": "new", "note": NEW}), first
    second = run(mcp, "math.floor(x + 1.5), open('f.txt').read()")
    assert (second["result"] in ([42, "kept"], "(42, 'kept')"), second["session"]) == (True, {"name": "a", "state": "kept", "note": KEPT}), second
    assert "session" not in mcp.data("execute_code", {"code": "1"})


def test_a_text_reply_says_it_in_its_second_line(start_mcp):
    mcp = start_mcp("--reply", "text")
    assert text(mcp, "execute_code", code="x = 1", session="a").split("\n")[1] == NEW
    assert text(mcp, "execute_code", code="x", session="a").split("\n")[1:] == [KEPT, "--- result ---", "1", ""]


def test_two_names_are_two_sessions_and_a_call_without_one_starts_fresh(shared, session):
    run(shared, "x = 1", session)
    assert run(shared, "x", session + "b")["error_type"] == "NameError"
    assert shared.execute("x")["error_type"] == "NameError"
    assert run(shared, "x", session)["result"] == 1
    shared.call("end_session", {"session": session + "b"})


def test_an_exception_and_sys_exit_end_the_call_and_not_the_session(shared, session):
    assert run(shared, "x = 5\n1/0", session)["error"] == "ZeroDivisionError: division by zero"
    assert run(shared, "import sys; sys.exit(3)", session)["exit_code"] == 3
    said = run(shared, "x", session)
    assert (said["result"], said["session"]["state"]) == (5, "kept")


def test_a_call_has_the_limits_and_the_variables_of_the_environment_of_its_session(shared, session):
    assert run(shared, "import os; os.environ['A']", session, env={"A": "1"})["result"] == "1"
    said = run(shared, "os.environ['A']", session, env={"A": "2"}, memory_limit="64m")
    assert said["result"] == "1" and [line.split(" ")[0] for line in said["warnings"]] == ["memory_limit", "env"], said
    assert "warnings" not in run(shared, "1", session, env={"A": "1"})


def test_a_session_is_of_one_profile(shared, session):
    run(shared, "1", session)
    assert "warnings" not in run(shared, "1", session, profile="basic")
    said = run(shared, "1", session, profile="strict")
    assert said["error"] == f'profile: session "{session}" has basic; use another session, or end it first with end_session' and said["exit_reason"] == "denied"


def test_a_module_that_another_profile_has_is_for_another_session(shared, session):
    missing = host.lacks("rootfs:data-science")
    if missing:
        pytest.skip(missing)
    assert run(shared, "import numpy", session)["hint"] == 'numpy is in profile data-science: use another session, with profile="data-science".'
    said = run(shared, "import numpy; int(numpy.arange(3).sum())", session + "n", profile="data-science")
    assert said["result"] == 3 and run(shared, "int(numpy.arange(4).sum())", session + "n")["result"] == 6
    shared.call("end_session", {"session": session + "n"})


@pytest.mark.parametrize("arguments, words", [
    ({"stdin": "x"}, "stdin: a call in a session has none"), ({"args": ["x"]}, "args: a call in a session has none"),
    ({"allowed_imports": ["math"]}, "allowed_imports: cannot be enforced in a session"), ({"session": "a b"}, 'session: "a b" is no name'),
    ({"session": "x" * 65}, "session: expected text of at most 64 bytes"), ({"session": "../a"}, 'session: "../a" is no name'), ({"session": 5}, "session: expected text, not 5"),
    ({"session": "6f0c0d5e-0000-4000-8000-000000000001"}, "is no name"),
    ({"env": {"LD_PRELOAD": "x"}}, "env: LD_PRELOAD: refused"), ({"profile": "nope"}, 'profile "nope"'),
])
def test_what_a_call_in_a_session_cannot_have_is_told_and_leaves_nothing(shared, arguments, words):
    result = shared.call("execute_code", {"code": "1", "session": "wrong", **arguments})
    assert result["isError"] is True and words in mcp_client.data_of(result)["error"], result
    assert 'there is no "wrong"' in refused(shared, "end_session", session="wrong")


def test_validate_and_null_and_empty_arguments_go_along_with_a_session(shared, session):
    assert run(shared, "import math\nx = 3", session, validate=True, stdin="", args=[], allowed_imports=[], profile="", files=[])["success"] is True
    assert run(shared, "def f(:", session, validate=True)["error"] == "Code validation failed"
    assert run(shared, "x", session, stdin=None, args=None, files=None)["result"] == 3
    assert "session" not in shared.data("execute_code", {"code": "1", "session": ""})


# --- what is lost, and why -------------------------------------------------------------------------------------

LOST = [
    ("an-exit", "import os; os._exit(3)", {}, "exit code 3"), ("a-crash", "import ctypes; ctypes.string_at(0)", {}, "killed by SIGSEGV"),
    ("no-memory", "b = []\nwhile True: b.append(bytearray(2**24))", {}, "out of memory"), ("no-time", STUBBORN, {"timeout": 0.5}, "out of time"),
]


@pytest.mark.sample(0, "an-exit", "no-memory")
@pytest.mark.parametrize("code, arguments, why", [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_an_interpreter_that_is_lost_is_told_with_its_reason_and_files_stay(shared, session, code, arguments, why):
    if why == "out of memory" and host.lacks("cgroup:memory"):
        pytest.skip(host.lacks("cgroup:memory"))
    run(shared, "x = 1\nopen('f.txt', 'w').write('kept')", session)
    said = run(shared, code, session, **arguments)
    assert said["session"] == {"name": session, "state": "lost", "note": f"Session '{session}': lost: the interpreter ended ({why}); variables are gone; files are still there."}, said
    said = run(shared, "'x' in globals(), open('f.txt').read()", session)
    assert said["session"]["state"] == "reset" and said["session"]["note"].startswith(f"Session '{session}': reset: this call had a new interpreter"), said
    assert said["result"] in ([False, "kept"], "(False, 'kept')")
    assert run(shared, "1", session)["session"]["state"] == "kept"


def test_a_session_that_a_program_ends_is_made_anew_by_the_next_call(shared, session):
    run(shared, "x = 1", session)
    said = run(shared, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)\nimport time; time.sleep(600)", session)
    assert (said["session"]["state"], said["exit_reason"]) == ("lost", "cancelled") and "the whole session has ended" in said["session"]["note"], said
    said = run(shared, "'x' in globals()", session)
    assert said["result"] is False and said["session"]["state"] == "new"
    assert said["session"]["note"] == (f"Session '{session}': the earlier one is lost, with its variables and files: it was ended by something in it. "
                                       "This one is new, and is kept for 10 min."), said


@pytest.fixture
def idle_profiles():
    scratch, profiles = warm.scratch_profiles("none", warm="never")
    for path in profiles.glob("*.json"):
        profile = json.loads(path.read_text())
        path.write_text(json.dumps({**profile, "limits": {**profile.get("limits", {}), "idle_ms": 100}}))
    yield {"BRIG_PROFILES": str(profiles), "BRIG_PRESETS": str(profiles)}
    scratch.cleanup()


def test_an_idle_session_ends_and_the_next_call_is_told_why(start_mcp, idle_profiles):
    mcp, mark = start_mcp(env=idle_profiles), jailed.marker()
    said = run(mcp, f"import subprocess, sys\nx = 1\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])", env={"A": "1"})
    assert "kept for 1 s" in said["session"]["note"], said
    jailed.wait_gone(mark)
    assert host.poll(lambda: "is lost, with its variables and files: it was idle for 0.1 s" in mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "f"})))
    said = run(mcp, "import os; 'x' in globals(), os.environ['A']")
    assert said["result"] in ([False, "1"], "(False, '1')"), "what the call does not say is as it was"
    assert "the earlier one is lost, with its variables and files: it was idle for 0.1 s" in said["session"]["note"] and said["session"]["state"] == "new"


def test_a_brigd_that_is_gone_takes_the_session_along_and_the_next_call_says_so(start_mcp):
    mcp = start_mcp("--server", "private")
    run(mcp, "x = 1")
    jailed.kill(jailed.brigd_of(mcp))
    said = run(mcp, "'x' in globals()")
    assert said["result"] is False and "the earlier one is lost, with its variables and files: brigd was restarted" in said["session"]["note"], said


# --- time ------------------------------------------------------------------------------------------------------

def test_a_call_that_is_out_of_time_is_interrupted_and_keeps_the_interpreter(shared, session):
    run(shared, "x = 1", session)
    said = run(shared, "x = 2\nwhile True: pass", session, timeout=0.5)
    assert (said["exit_reason"], said["session"]["state"]) == ("timeout_wall", "kept") and said["error"] == "Execution timeout: timed out after 0.5 seconds", said
    assert run(shared, "x", session)["result"] == 2
    words = text(shared, "execute_code", code="while True: pass", session=session, timeout=0.5, format="text")
    assert words.startswith("interrupted (timeout_wall)"), words


def test_calls_of_one_session_wait_for_each_other_and_those_of_others_do_not(shared, session):
    mark = jailed.marker()
    code = f"import subprocess, sys\nx = 1\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])\nx = 2"
    slow = shared.begin_call("execute_code", {"code": code, "session": session})
    jailed.wait_for(mark)
    after = shared.begin_call("execute_code", {"code": "x", "session": session})
    assert run(shared, "'x' in globals()", session + "b")["result"] is False
    assert after.reply is None
    for pid in jailed.processes(mark):
        jailed.kill(pid)
    slow.result()
    assert mcp_client.data_of(after.result())["result"] == 2
    shared.call("end_session", {"session": session + "b"})


def test_a_call_whose_turn_does_not_come_says_that_the_session_is_busy(shared, session):
    mark = jailed.marker()
    slow = shared.begin_call("execute_code", {"code": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])", "session": session})
    jailed.wait_for(mark)
    said = run(shared, "1", session, timeout=0.3)
    busy = re.match(rf'session: "{session}" is busy with execution ([0-9a-f-]{{36}}), which has run for \d+ s\. Wait for it with wait_execution', said["error"])
    assert said["exit_reason"] == "busy" and busy, said
    assert shared.data("wait_execution", {"execution_id": busy[1], "timeout": 0.1})["exit_reason"] == "running", "the id that is named is one that can be waited for"
    slow.cancel()
    assert run(shared, "1", session)["result"] == 1


def test_a_call_in_a_busy_session_says_behind_which_execution_it_waits_and_not_that_it_runs(start_mcp):
    mcp, mark = start_mcp("--yield-after", "0.3", "--reply", "text"), jailed.marker()
    slow = text(mcp, "execute_code", code=f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])", session="a")
    jailed.wait_for(mark)
    ahead = re.search('execution_id "([0-9a-f-]+)"', slow)[1]
    said = text(mcp, "execute_code", code="1", session="a")
    assert said.startswith("waiting · ") and f"It has not begun: it waits behind execution {ahead}, which has run for " in said, said
    assert "wait for it or cancel it" in said and "still runs" not in said, said
    text(mcp, "cancel_execution", execution_id=ahead)
    mine = re.search('execution_id "([0-9a-f-]+)"', said)[1]
    assert "--- result ---\n1\n" in text(mcp, "wait_execution", execution_id=mine, timeout=60)


def test_a_cancelled_call_is_interrupted_and_its_variables_stay(shared, session):
    mark = jailed.marker()
    code = f"import subprocess, sys\nx = 7\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])"
    slow = shared.begin_call("execute_code", {"code": code, "session": session})
    jailed.wait_for(mark)
    waiting = shared.begin_call("execute_code", {"code": "x", "session": session})
    slow.cancel()
    said = mcp_client.data_of(waiting.result())
    assert (said["result"], said["session"]["state"]) == (7, "kept"), said


def test_a_call_that_catches_the_interrupt_is_killed(start_mcp):
    mcp = start_mcp("--progress", "0.25")
    slow = mcp.begin_call("execute_code", {"code": f"x = 7\n{STUBBORN}", "session": "a"}, token="t")
    assert host.poll(lambda: any("begun" in (one.get("message") or "") for one in slow.progress()))
    slow.cancel()
    said = run(mcp, "'x' in globals()")
    assert (said["result"], said["session"]["state"]) == (False, "reset"), said


def test_a_call_that_waits_for_its_turn_can_be_cancelled(shared, session):
    slow = shared.begin_call("execute_code", {"code": jailed.FOREVER, "session": session})
    waiting = shared.begin_call("execute_code", {"code": "y = 1", "session": session})
    waiting.cancel()
    slow.cancel()
    assert run(shared, "'y' in globals()", session)["result"] is False


def test_a_call_that_takes_long_goes_on_with_a_handle_and_is_cancelled_by_it(start_mcp):
    mcp = start_mcp("--yield-after", "0.2", "--progress", "0.25")
    said = run(mcp, f"x = 7\n{jailed.FOREVER}")
    while said["exit_reason"] == "running" and said["stdout"] != "begun\n":
        said = mcp.data("wait_execution", {"execution_id": said["execution_id"], "timeout": 0.1})
    ended = mcp.data("cancel_execution", {"execution_id": said["execution_id"]})
    assert (ended["exit_reason"], ended["error"], ended["session"]["state"]) == ("cancelled", "Cancelled", "new"), ended
    assert run(mcp, "x")["result"] == 7
    said = run(mcp, f"import time\nx = 8\ntime.sleep(1)\n'done'")
    while said["exit_reason"] == "running":
        said = mcp.data("wait_execution", {"execution_id": said["execution_id"]})
    assert (said["result"], said["session"]["state"]) == ("done", "kept")


def test_too_much_output_ends_the_call_and_not_the_interpreter(shared, session):
    said = run(shared, "x = 3\nimport sys\nwhile True: sys.stdout.write('x' * 65536)", session)
    assert (said["exit_reason"], said["session"]["state"]) == ("output_limit", "new") and said["error"].startswith("Output limit"), said
    assert run(shared, "x", session)["result"] == 3


def test_progress_is_told_while_a_call_waits_for_its_turn(start_mcp):
    mcp = start_mcp("--progress", "0.25")
    slow = mcp.begin_call("execute_code", {"code": jailed.FOREVER, "session": "a"})
    waiting = mcp.begin_call("execute_code", {"code": "1", "session": "a"}, token="t")
    waiting.wait_progress()
    assert "waiting for its turn in the session" in waiting.progress()[0]["message"], waiting.progress()
    slow.cancel()
    assert mcp_client.data_of(waiting.result())["result"] == 1


# --- files -----------------------------------------------------------------------------------------------------

def test_a_reply_names_the_files_that_the_call_wrote_and_says_which_are_gone(start_mcp):
    mcp, write = start_mcp("--reply", "text"), "import os\nos.makedirs('out', exist_ok=True)\nopen('out/a.csv', 'w').write('1,2')\nopen('.hidden', 'w').write('x')"
    assert text(mcp, "execute_code", code=write).split("\n")[1] == "Wrote out/a.csv (3 bytes). Gone now; name a session to keep them."
    assert text(mcp, "execute_code", code=write, session="a", files=[{"path": "in.txt", "content": "x"}]).split("\n")[1] == "Wrote out/a.csv (3 bytes)."
    assert "Wrote" not in text(mcp, "execute_code", code="open('out/a.csv').read()", session="a"), "it was only read"
    assert text(mcp, "execute_code", code="open('in.txt', 'a').write('yz')", session="a").split("\n")[1] == "Wrote in.txt (3 bytes)."
    many = text(mcp, "execute_code", code="for i in range(9): open(f'{i}\\n.txt', 'w').close()", session="a").split("\n")[1]
    assert many.startswith("Wrote 0?.txt (0 bytes), 1?.txt") and many.endswith("5?.txt (0 bytes) and 3 more."), many


def test_an_image_that_a_program_saved_is_shown_once(shared):
    save = f"import base64\nopen('p.png', 'wb').write(base64.b64decode('{base64.b64encode(PNG).decode()}'))\n"
    result = shared.call("execute_code", {"code": save + "None"})
    said = mcp_client.data_of(result)
    assert [block["type"] for block in result["content"]] == ["text", "image"] and said["written"].startswith(f"Wrote p.png ({len(PNG)} bytes, shown). Gone now"), result
    result = shared.call("execute_code", {"code": save + "display({'image/png': open('p.png', 'rb').read()}, raw=True)"})
    assert [block["type"] for block in result["content"]] == ["text", "image"], "what is shown anyway is not shown again"
    result = shared.call("execute_code", {"code": "open('p.png', 'w').write('no image')"})
    assert [block["type"] for block in result["content"]] == ["text"]



FILES = [{"path": "a.txt", "content": "häl\nlo"}, {"path": "d/e/b.bin", "base64": "AAEC/w=="}, {"path": "/workspace/c.txt", "content": ""}]
READ = "open('a.txt').read(), list(open('d/e/b.bin', 'rb').read()), open('c.txt').read()"
HAVE = (["häl\nlo", [0, 1, 2, 255], ""], "('häl\\nlo', [0, 1, 2, 255], '')")


@pytest.mark.parametrize("named", [False, True], ids=["of its own", "in a session"])
def test_files_of_a_call_are_there_before_it_runs(shared, session, named):
    where = {"session": session} if named else {}
    assert shared.data("execute_code", {"code": READ, "files": FILES, **where})["result"] in HAVE
    large = "x" * 2_000_000
    assert shared.data("execute_code", {"code": "len(open('l').read())", "files": [{"path": "l", "content": large}], **where})["result"] == len(large)


def test_files_replace_those_of_a_session(shared, session):
    run(shared, "1", session, files=[{"path": "a", "content": "one"}])
    assert run(shared, "open('a').read()", session, files=[{"path": "a", "content": "two"}])["result"] == "two"


@pytest.mark.parametrize("named", [False, True], ids=["of its own", "in a session"])
@pytest.mark.parametrize("files, words", [
    ([{"path": "../a", "content": "x"}], "files[0]: path: \"../a\" has . or .. in it"), ([{"path": "a"}], "files[0]: a: expected content, a text, or base64, bytes"),
    ([{"path": "a", "base64": "?"}], "files[0]: base64: damaged"), ("no", "files: expected a list of at most 64 objects"), ([7], "files[0]: expected an object, not 7"),
    ([{"path": "a", "content": "x"}] * 65, "files: expected a list of at most 64 objects, not 65"),
])
def test_a_mistake_in_files_is_told(shared, session, named, files, words):
    result = shared.call("execute_code", {"code": "print('ran')", "files": files, **({"session": session} if named else {})})
    said = mcp_client.data_of(result)
    assert result["isError"] is True and said["error"].startswith(words) and said["stdout"] == "", said


def test_a_file_that_cannot_be_put_is_told_and_nothing_runs(shared, session):
    run(shared, "import os\nos.mkdir('d')\nos.symlink('/etc', 'link')", session)
    for path, words in (("d", "d cannot be written"), ("link/x", "link/x cannot be written")):
        result = shared.call("execute_code", {"code": "ran = 1", "files": [{"path": path, "content": "x"}], "session": session})
        said = mcp_client.data_of(result)
        assert result["isError"] is True and said["error"] == f"files: {words}" and said["exit_reason"] == "setup_failed", said
    assert run(shared, "'ran' in globals()", session)["result"] is False
    said = shared.data("execute_code", {"code": "1", "files": [{"path": "a", "content": "x"}, {"path": "a", "content": "y"}]})
    assert "a comes twice" in said["error"]


def test_a_file_is_written_listed_and_read(shared, session):
    assert text(shared, "write_file", session=session, path="d/a.txt", content="häl\nlo") == f"Written: d/a.txt, in session '{session}'."
    assert run(shared, "open('d/a.txt').read()", session)["result"] == "häl\nlo", "it has made the session"
    run(shared, "open('b', 'wb').write(bytes(range(256)))\nopen('empty', 'w')", session)
    said = shared.data("list_files", {"session": session})
    assert said == {"files": [{"path": "b", "bytes": 256}, {"path": "d/a.txt", "bytes": 7}, {"path": "empty", "bytes": 0}], "left_out": 0}
    assert shared.data("list_files", {"session": session, "glob": "d/*.txt"})["files"] == [{"path": "d/a.txt", "bytes": 7}]
    assert text(shared, "read_file", session=session, path="./d/a.txt") == "häl\nlo" and text(shared, "read_file", session=session, path="/workspace/empty") == ""
    assert text(shared, "read_file", session=session, path="b") == "[binary, 256 bytes, not shown: read it with execute_code]"


def test_a_list_for_a_model_has_a_line_for_each_file_and_an_end(start_mcp):
    mcp = start_mcp("--reply", "text")
    run_text = lambda code: text(mcp, "execute_code", code=code, session="a") # pylint: disable=unnecessary-lambda-assignment
    run_text("open('a.txt', 'w').write('x' * 1234)")
    assert text(mcp, "list_files", session="a") == "      1234  a.txt\n"
    assert text(mcp, "list_files", session="a", glob="*.png") == "There are no such files in /workspace.\n"
    run_text("for n in range(1500): open(f'{n:04}.txt', 'w')")
    said = text(mcp, "list_files", session="a")
    assert said.endswith("\n... and 801 or more; a glob names fewer\n") and said.count("\n") == 201 and len(said) < 10_000, said[-300:]


def test_an_image_is_shown_as_one_and_a_large_one_is_told(shared, session):
    shared.call("write_file", {"session": session, "path": "a.png", "base64": base64.b64encode(PNG).decode()})
    result = shared.call("read_file", {"session": session, "path": "a.png"})
    assert [block["type"] for block in result["content"]] == ["text", "image"] and result["content"][0]["text"] == f"[image/png, {len(PNG)} bytes, shown below]"
    assert base64.b64decode(result["content"][1]["data"]) == PNG and result["content"][1]["mimeType"] == "image/png"
    run(shared, "open('l.png', 'wb').write(open('a.png', 'rb').read() + bytes(2_000_000))", session)
    assert text(shared, "read_file", session=session, path="l.png") == f"[image/png, {len(PNG) + 2_000_000} bytes, too large to be shown: 720 KiB is the most; save it smaller with execute_code]"


def test_of_a_long_text_the_beginning_and_the_end_are_shown(shared, session):
    run(shared, "open('l.txt', 'w').write(''.join(f'{n}\\n' for n in range(1_000_000)))", session)
    said = text(shared, "read_file", session=session, path="l.txt")
    assert said.startswith("0\n1\n2\n") and said.endswith("\n999999\n") and "6888890 bytes in all" in said and len(said) <= 8192, said[-200:]


def test_of_a_long_text_the_lines_that_are_asked_for_are_shown(shared, session):
    run(shared, "open('l.txt', 'w').write(''.join(f'{n}\\n' for n in range(1_000_000)))\nopen('s.txt', 'w').write('a\\nb\\nc')\nopen('w.txt', 'w').write('x' * 20000 + '\\nend')", session)
    assert text(shared, "read_file", session=session, path="l.txt", offset=500_001, limit=2) == "500000\n500001\n[lines 500001 to 500002 of 1000000; offset=500003 goes on]"
    assert text(shared, "read_file", session=session, path="s.txt", offset=2) == "b\nc"
    assert text(shared, "read_file", session=session, path="s.txt", limit=1) == "a\n[lines 1 to 1 of 3; offset=2 goes on]"
    long = text(shared, "read_file", session=session, path="l.txt", offset=1)
    assert long.startswith("0\n1\n") and re.search(r"\n(\d+)\n\[lines 1 to (\d+) of 1000000; offset=(\d+) goes on\]$", long).groups()[1:] == ("1860", "1861"), long[-100:]
    assert text(shared, "read_file", session=session, path="w.txt", offset=1).endswith("x\n[lines 1 to 1 of 2; offset=2 goes on]")
    assert refused(shared, "read_file", session=session, path="s.txt", offset=4) == "offset: the file has 3 lines"


def test_a_long_output_is_in_a_file_that_the_cut_names(shared, session):
    said = run(shared, "for n in range(5000): print('line', n)\nimport sys\nsys.stderr.write('short')", session)
    file = re.search(r"characters are shown; read_file has the rest in (\S+) \.\.\.\]", said["stdout"])[1]
    assert text(shared, "read_file", session=session, path=file, offset=2500, limit=2).startswith("line 2499\nline 2500\n[lines 2500 to 2501 of 5000")
    assert run(shared, f"open({file!r}).read() == ''.join(f'line {{n}}\\n' for n in range(5000))", session)["result"] is True
    assert run(shared, "print('a' * 20000)\n1/0", session)["stdout"].count("read_file has the rest in") == 1
    assert "read_file" not in shared.execute("print('a' * 20000)")["stdout"], "without a session there is no file"


def test_what_cannot_be_read_says_why(shared, session):
    run(shared, "import os\nos.mkdir('d'); open('d/x', 'w'); os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe')\n"
                "open('a*b', 'w').write('star'); open('axb', 'w').write('x'); open('[x]', 'w').write('set'); open('back\\\\slash', 'w').write('slash')", session)
    for path, words in (("nope", '"nope" is not there; list_files shows what is'), ("d", '"d" is a directory; list_files shows what is in it'), ("link", '"link" is a link'),
                        ("pipe", '"pipe" is no regular file'), ("/etc/passwd", '"/etc/passwd" is not there'), ("../x", '"../x" has . or .. in it'), ("a*", '"a*" is not there')):
        assert words in refused(shared, "read_file", session=session, path=path), path
    for path, words in (("a*b", "star"), ("[x]", "set"), ("back\\slash", "slash")):
        assert text(shared, "read_file", session=session, path=path) == words


def test_a_name_that_is_no_text_is_shown_as_one(shared, session):
    run(shared, "import os\nopen(b'\\xff\\x1b[2J\\n', 'w')", session)
    (row,) = shared.data("list_files", {"session": session})["files"]
    assert row["path"].isprintable() or "\n" in row["path"] and "\x1b" not in row["path"], row


def test_files_are_moved_while_a_call_runs(shared, session):
    run(shared, "1", session)
    slow = shared.begin_call("execute_code", {"code": jailed.FOREVER, "session": session})
    shared.call("write_file", {"session": session, "path": "a", "content": "x"})
    assert text(shared, "read_file", session=session, path="a") == "x"
    slow.cancel()


def test_large_files_go_into_the_directory_for_artifacts(start_mcp, tmp_path):
    mcp = start_mcp("--artifacts", tmp_path / "out")
    run(mcp, "open('l.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(2_000_000)); open('b', 'wb').write(bytes(10))")
    said = text(mcp, "read_file", session="a", path="l.png")
    assert said == f"[image/png, 2000008 bytes, saved as {tmp_path}/out/l.png]" and (tmp_path / "out/l.png").stat().st_size == 2000008
    assert text(mcp, "read_file", session="a", path="b") == f"[binary, 10 bytes, saved as {tmp_path}/out/b]"
    assert text(mcp, "read_file", session="a", path="b") == f"[binary, 10 bytes, saved as {tmp_path}/out/b-2]"
    assert oct((tmp_path / "out/b").stat().st_mode & 0o777) == "0o600"


# --- the end ---------------------------------------------------------------------------------------------------

def test_a_session_is_ended_and_its_name_is_free_at_once(shared, session):
    run(shared, "x = 1\nopen('f', 'w')", session)
    assert text(shared, "end_session", session=session) == f"Session '{session}' is ended; its variables and files are gone."
    assert f'session: there is no "{session}"; execute_code makes one' in refused(shared, "end_session", session=session)
    said = run(shared, "import os; 'x' in globals() or os.path.exists('f')", session)
    assert (said["result"], said["session"]["state"]) == (False, "new") and "lost" not in said["session"]["note"]


def test_the_end_of_a_session_ends_its_call_and_refuses_those_that_wait(start_mcp):
    mcp = start_mcp("--progress", "0.25")
    slow = mcp.begin_call("execute_code", {"code": jailed.FOREVER, "session": "a"}, token="t")
    assert host.poll(lambda: any("begun" in (one.get("message") or "") for one in slow.progress()))
    waiting = mcp.begin_call("execute_code", {"code": "1", "session": "a"})
    mcp.call("end_session", {"session": "a"})
    assert "it was ended while this call waited for its turn" in mcp_client.data_of(waiting.result())["error"]
    said = mcp_client.data_of(slow.result())
    assert (said["exit_reason"], said["session"]["state"]) == ("cancelled", "lost"), said


def test_so_many_sessions_may_be_open(start_mcp):
    mcp = start_mcp("--sessions", "2")
    run(mcp, "1", "a"), run(mcp, "1", "b")
    said = run(mcp, "1", "c")
    assert said["error"] == "session: 2 are open, which is the most here; end one with end_session: a, b" and said["exit_reason"] == "denied"
    assert "2 are open" in refused(mcp, "write_file", session="c", path="x", content="")
    mcp.call("end_session", {"session": "a"})
    assert host.poll(lambda: run(mcp, "1", "c")["success"]) and run(mcp, "1", "b")["session"]["state"] == "kept"


def test_nothing_of_a_session_is_left_when_its_client_is_gone(start_mcp, nothing_left):
    mcp = start_mcp()
    run(mcp, "import subprocess; subprocess.Popen(['sleep', '600'])")
    mcp.close()


@pytest.mark.parametrize("options", [("--sessions", "0"), ("--imports", "enforce"), ("--allowed-imports", "math")])
def test_where_there_are_no_sessions_their_tools_are_not_there(start_mcp, options):
    mcp = start_mcp(*options)
    assert not {"read_file", "write_file", "list_files", "end_session"} & set(mcp.list_tools())
    with pytest.raises(Refused):
        mcp.call("read_file", {"session": "a", "path": "x"})


# --- over HTTP -------------------------------------------------------------------------------------------------

def header(name):
    return {"Mcp-Param-Session": name}


NAME = "a-0a1b2c" # as clients choose it that cannot be told apart


def test_over_http_a_header_repeats_the_name(start_http):
    server = start_http()
    with server.client() as client:
        tools = client.list_tools()
        assert {name for name, tool in tools.items() if tool["inputSchema"].get("properties", {}).get("session", {}).get("x-mcp-header") == "Session"} \
            == {"execute_code", "read_file", "write_file", "list_files", "end_session"}
        for headers, words in (({}, "is missing"), (header("b"), "does not match the body"), (header("=?base64?YQ=?="), "is not valid base64")):
            with server.client(headers=headers) as other, pytest.raises(Refused, match=words):
                other.call("execute_code", {"code": "1", "session": NAME})
        with server.client(headers=header(NAME)) as other:
            with pytest.raises(Refused, match="is not in the body"):
                other.call("execute_code", {"code": "1"})
            assert run(other, "x = 1", NAME)["session"]["state"] == "new" and run(other, "x", NAME)["result"] == 1
        with server.client(headers=header(f"=?base64?{base64.b64encode(NAME.encode()).decode()}?=")) as other:
            assert run(other, "x", NAME)["result"] == 1
        assert {name for name, tool in tools.items() if tool["inputSchema"].get("properties", {}).get("execution_id", {}).get("x-mcp-header") == "Execution"} == {"wait_execution", "cancel_execution"}
        with server.client(headers={"Mcp-Param-Execution": "b"}) as other, pytest.raises(Refused, match="does not match the body"):
            other.call("wait_execution", {"execution_id": "a"})
    with server.client(revision="2025-11-25") as client:
        assert "x-mcp-header" not in json.dumps(client.list_tools())


def test_on_stdio_no_header_is_spoken_of(shared):
    assert "x-mcp-header" not in json.dumps(shared.list_tools(revision=mcp_client.MODERN))


def test_a_session_belongs_to_the_mcp_session_that_made_it(start_http):
    server = start_http()
    with server.client(revision="2025-11-25") as first, server.client(revision="2025-06-18") as second, server.client(headers=header(NAME)) as modern:
        run(first, "x = 'first'", NAME), run(second, "x = 'second'", NAME), run(modern, "x = 'modern'", NAME)
        assert [run(one, "x", NAME)["result"] for one in (first, second, modern)] == ["first", "second", "modern"]
        second.call("end_session", {"session": NAME})
        assert [run(one, "x", NAME)["result"] for one in (first, modern)] == ["first", "modern"]
        assert f'there is no "{NAME}"' in refused(second, "read_file", session=NAME, path="x")
        second.session = "0" * 31 + "g" # none of ours keeps nothing apart from those of the token
        assert run(second, "x", NAME)["result"] == "modern"


def test_a_client_that_ends_its_mcp_session_ends_its_sessions_and_no_others(start_http):
    server = start_http()
    with server.client(revision="2025-11-25") as first, server.client(revision="2025-11-25") as second:
        run(first, "x = 'first'"), run(second, "x = 'second'")
        ended = {"Mcp-Session-Id": first.session}
        assert first.raw(method="DELETE", headers=ended, own=True)[0] == 204
        status, _, body = first.raw({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={**first.own_headers({"method": "ping"}, "2025-11-25")})
        assert status == 404 and "send initialize" in body.decode(), body
        assert run(second, "x")["result"] == "second"


def test_two_agents_with_one_token_share_no_session_by_accident(start_http):
    server = start_http()
    with server.client(headers=header("main")) as one:
        said = one.data("execute_code", {"code": "x = 1", "session": "main"})
        other = re.search('could choose "main", too; use "(main-[0-9a-f]{6})"', said["error"])[1]
        assert said["exit_reason"] == "denied", said
    with server.client(headers=header(other)) as one:
        assert run(one, "x = 1", other)["session"]["state"] == "new" and run(one, "x", other)["result"] == 1


def test_each_client_may_have_a_token_with_a_name(start_http, tmp_path):
    tokens = {name: name * 20 for name in ("ann", "bob")}
    (tmp_path / "tokens").write_text("".join(f"{name} {token}\n" for name, token in tokens.items()))
    (tmp_path / "tokens").chmod(0o600)
    server = start_http("--token-file", tmp_path / "tokens", token=None)
    ann, bob, nobody = (server.client(headers={**header("main"), "Authorization": f"Bearer {token}"}) for token in (*tokens.values(), "x" * 40))
    with ann, bob, nobody:
        run(ann, "x = 'ann'", "main"), run(bob, "x = 'bob'", "main")
        assert [run(one, "x", "main")["result"] for one in (ann, bob)] == ["ann", "bob"], "a name is enough where each client has a token"
        assert nobody.raw(b"{}", headers={"Content-Type": "application/json"}, own=True)[0] == 401


def test_sessions_are_counted_for_prometheus(start_http):
    server = start_http()
    with server.client(revision="2025-11-25") as client:
        run(client, "1"), run(client, "1", "b")
        client.call("end_session", {"session": "b"})
        figures = lambda: client.raw(method="GET", path="/metrics", own=True)[2].decode() # pylint: disable=unnecessary-lambda-assignment
        assert host.poll(lambda: "\nbrig_mcp_sessions 1\n" in figures()), figures()
        assert "\nbrig_mcp_sessions_total 2\n" in figures() and 'brig_mcp_runs_total{exit_reason="exited",profile="basic"} 2' in figures()


def test_artifacts_are_for_a_client_on_this_host(built_mcp, tmp_path):
    done = subprocess.run([mcp_client.binary(), "--http", "--insecure-loopback", "--artifacts", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and "--artifacts: is for a server on stdio" in done.stderr


# --- with tools of other servers -------------------------------------------------------------------------------

@pytest.mark.parametrize("revision", ["2025-11-25", mcp_client.MODERN])
def test_a_call_in_a_session_calls_tools_and_a_person_is_asked(start_mcp, tmp_path, revision):
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"t": own_server()}}))
    servers.chmod(0o600)
    mcp, can = start_mcp("--servers", servers, revision=revision), {"elicitation": {}}
    if revision != mcp_client.MODERN:
        mcp.initialize(revision, can)
    run(mcp, "x = 'kept'", "a")
    assert run(mcp, "tools.t.echo(text=x)", "a")["result"] == "kept"
    asks = {"name": "execute_code", "arguments": {"code": "tools.t.wipe(what=x)\n'wiped ' + x", "session": "a"}}
    if revision == mcp_client.MODERN:
        asked = mcp.request("tools/call", asks, capabilities=can)
        assert asked["resultType"] == "input_required"
        said = mcp.request("tools/call", {**asks, "requestState": asked["requestState"],
                                          "inputResponses": {key: {"action": "accept", "content": {"answer": "once"}} for key in asked["inputRequests"]}}, capabilities=can)
    else:
        call = mcp.begin("tools/call", asks)
        mcp.answer(call.wait_question(), {"action": "accept", "content": {"answer": "once"}})
        said = call.result()
    said = mcp_client.data_of(said)
    assert (said["result"], said["session"]["state"], said["tool_calls"]["n"]) == ("wiped kept", "kept", 1), said
    assert run(mcp, "x", "a")["result"] == "kept"
