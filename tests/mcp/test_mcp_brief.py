"""What a model reads: short replies, a word about what to do next, and all of it when it is asked for."""
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from support import brig, host
from support import mcp as mcp_client

PUBLISHED = {"success", "execution_id", "result", "stdout", "stderr", "execution_time", "variables", "error", "traceback", "return_code", "timeout",
             "security_warnings", "security_event", "validation_errors"}
ALL = PUBLISHED | {"exit_reason", "exit_code", "signal", "limits_hit", "refused", "usage", "truncated", "tool_calls", "files", "session", "displays", "written", "details", "warnings", "hint", "error_type", "line", "offset",
                   "text", "profile", "rootfs", "isolation"}
FIGURE = "import base64\n'data:image/png;base64,' + base64.b64encode(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(100)).decode()"


@pytest.fixture(scope="module")
def shared(built_mcp, needs_rootfs):
    with mcp_client.McpStdio() as mcp:
        yield mcp


def brief(mcp, code, **arguments):
    return mcp.data("execute_code", {"code": code, **arguments})


def text(mcp, code, **arguments):
    return mcp_client.text_of(mcp.call("execute_code", {"code": code, "format": "text", **arguments}))


# --- the object ------------------------------------------------------------------------------------------------

def test_hello_is_a_reply_of_a_hundred_and_fifty_tokens(shared):
    """Three bytes are a token, about, of JSON like this."""
    said = mcp_client.text_of(shared.call("execute_code", {"code": "print('hello')"}))
    assert len(said) <= 450 and PUBLISHED < set(json.loads(said)), said
    assert not {"rootfs", "isolation", "signal", "files", "limits_hit", "refused", "truncated", "hint"} & set(json.loads(said)), said


@pytest.mark.parametrize("code", ["1", "1/0", "def f(:", "import os; os.abort()", ""])
def test_the_keys_of_the_published_servers_are_always_there(shared, code):
    assert PUBLISHED <= set(brief(shared, code))


def test_in_detail_there_is_every_key(shared):
    assert set(brief(shared, "1", detail=True)) == set(brief(shared, "1/0", detail=True)) == ALL


def test_a_server_can_answer_in_detail_always(start_mcp):
    mcp = start_mcp("--detail")
    assert set(brief(mcp, "1")) == set(brief(mcp, "")) == ALL and set(brief(mcp, "1", detail=False)) < ALL


def test_how_it_ended_stands_before_what_it_printed(shared):
    said = list(brief(shared, "print('x' * 10**6); raise SystemExit(3)"))
    assert said.index("success") < said.index("error") < said.index("exit_reason") < said.index("exit_code") < said.index("stdout") < said.index("stderr")


def test_of_long_output_the_beginning_and_the_end_are_shown(shared):
    said = brief(shared, "import sys\nfor i in range(200000): print(i)\nprint('e' * 50000, file=sys.stderr)")
    assert len(said["stdout"]) <= 10240 and len(said["stderr"]) <= 10240 and said["truncated"] is True
    assert said["stdout"].startswith("0\n1\n2\n") and said["stdout"].endswith("\n199999\n") and "1288890 bytes in all" in said["stdout"], said["stdout"][-200:]
    assert said["stderr"].startswith("eee") and "50001 characters in all" in said["stderr"]


def test_in_detail_all_output_that_was_kept_is_shown(shared):
    code = "for i in range(20000): print(i)"
    said = brief(shared, code, detail=True)
    assert said["stdout"] == "".join(f"{i}\n" for i in range(20000)) and said["truncated"] is False
    assert brief(shared, code)["stdout"] != said["stdout"]


def test_a_traceback_is_told_once(shared):
    code = "import sys\nprint('mine', file=sys.stderr)\n1/0"
    said, whole = brief(shared, code), brief(shared, code, detail=True)
    assert said["stderr"] == "mine\n" and said["traceback"].endswith("ZeroDivisionError: division by zero\n")
    assert whole["stderr"] == "mine\n" + whole["traceback"]


def test_of_many_frames_of_a_library_the_last_one_is_shown(shared):
    code = "import re\ndef f():\n    re.compile('(?P<a')\nf()"
    said, whole = brief(shared, code)["traceback"], brief(shared, code, detail=True)["traceback"]
    frames = whole.count('  File "/usr/')
    assert frames >= 3, whole
    assert f"  [... {frames - 1} frames of libraries ...]\n" in said and said.count('  File "/usr/') == 1 and said.count("main.py") == 2, said
    assert said.splitlines()[-1] == whole.splitlines()[-1]
    assert "frames of libraries" in text(shared, code)


@pytest.mark.parametrize("made_up", ["  File \"/usr/x\", line 1, in f\n" * 5, "  File \"<frozen x>\", line 1\n    x\n" * 3, "    \n" * 10])
def test_frames_that_a_program_makes_up_do_no_harm(shared, made_up):
    said = brief(shared, f"raise ValueError({made_up!r})")
    assert said["error"].startswith("ValueError: ") and said["traceback"].startswith("Traceback"), said


def test_an_object_is_structured_content_as_well(shared):
    result = shared.call("execute_code", {"code": "6 * 7"})
    assert result["structuredContent"] == json.loads(mcp_client.text_of(result)) and result["structuredContent"]["result"] == 42


@pytest.mark.parametrize("arguments", [{"code": "1", "detail": True}, {"code": "1", "format": "text"}, {"code": FIGURE}], ids=["in detail", "as text", "with an image"])
def test_what_clients_would_lose_by_it_is_not_structured(shared, arguments):
    assert "structuredContent" not in shared.call("execute_code", arguments)


@pytest.mark.parametrize("code, result", [
    ("import datetime; datetime.date(2026, 1, 31)", "2026-01-31"), ("import datetime; datetime.timedelta(hours=1)", "1:00:00"),
    ("import decimal; decimal.Decimal('0.10')", "0.10"), ("import fractions; [fractions.Fraction(1, 3)]", ["1/3"]),
    ("import datetime\nclass D(datetime.date):\n    pass\nD(2026, 1, 31)", "D(2026, 1, 31)"),
    ("import uuid\nuuid.UUID.__str__ = lambda _: 1 / 0\nuuid.UUID(int=1)", None),
])
def test_dates_and_their_like_are_written_as_print_writes_them(shared, code, result):
    said = brief(shared, code)
    assert said["success"] is True and (said["result"] == result or result is None), said


@pytest.mark.parametrize("code, shown", [("'a\\nb'", "'a\\nb'"), ("'it\\'s'", '"it\'s"'), ("42", "42"), ("'42'", "'42'"), ("['a']", "['a']"), ("(True, {1: None})", "(True, {1: None})"), ("'x' * 5000", "x" * 5000)])
def test_a_text_is_written_with_quotes_where_it_is_read(shared, code, shown):
    assert text(shared, code).split("--- result ---\n")[1] == shown + "\n"


# --- what to do ------------------------------------------------------------------------------------------------

def test_a_module_that_another_profile_has_is_told_with_its_profile(shared):
    missing = host.lacks("rootfs:data-science")
    said = brief(shared, "import numpy.linalg")
    assert said["error"] == "ModuleNotFoundError: No module named 'numpy'"
    if missing:
        pytest.skip(missing)
    assert said["hint"] == 'numpy is in profile data-science: call again with profile="data-science".', said
    assert said["hint"] in text(shared, "import numpy")
    assert brief(shared, "import numpy; int(numpy.arange(3).sum())", profile="data-science")["result"] == 3


def test_a_module_that_nobody_has_is_told_with_what_there_is(shared):
    said = brief(shared, "import polars")
    assert said["hint"].startswith("polars is not installed here, and nothing can be installed from inside."), said
    if not host.lacks("rootfs:data-science"):
        assert "Profile data-science has numpy, pandas, scipy" in said["hint"]


@pytest.mark.parametrize("name", ["", "a b", "\x1b[2J", "x" * 1000, "é", "a'; DROP"])
def test_a_module_that_is_no_name_gets_no_advice(shared, name):
    said = brief(shared, f"raise ModuleNotFoundError({f'No module named {chr(39)}{name}{chr(39)}'!r})")
    assert "hint" not in said and said["error_type"] == "ModuleNotFoundError", said


@pytest.mark.parametrize("code", ["import urllib.request\nurllib.request.urlopen('http://example.org')", "import socket\nsocket.create_connection(('192.0.2.1', 80))",
                                  "import socket\nsocket.gethostbyname('example.org')"])
def test_who_wants_a_network_is_told_that_there_is_none(shared, code):
    assert brief(shared, code)["hint"] == "There is no network in here; trying again does not help. A person can allow hosts, with --net of brig-mcp."


@pytest.mark.parametrize("code, words", [
    ("raise ImportError(\"Missing optional dependency 'tabulate'. Use pip or conda to install tabulate.\")", "tabulate is in profile data-science: call again"),
    ("raise ImportError('lxml not found, please install it')", "lxml is in profile data-science: call again"),
    ("raise AttributeError(\"The '.style' accessor requires jinja2\")", "jinja2 is in profile data-science: call again"),
    ("raise ValueError('Image export using the \"kaleido\" engine requires the kaleido\\npackage, which can be installed using pip:')", "kaleido is not installed here"),
    ("from IPython.display import display", "display() and figures need no import here"),
    ("import subprocess; subprocess.run(['pip', 'install', 'x'])", "Nothing can be installed from inside"),
    ("raise ImportError(\"Cannot load backend 'TkAgg' which requires the 'tk' interactive framework, as 'headless' is currently running\")", "There is no screen in here"),
    ("import tkinter", "There is no screen in here"),
    ("import socket; socket.create_connection(('localhost', 5432))", "localhost is the sandbox itself"),
    ("raise MemoryError", "Work on less data at a time"), ("df.head()", "calls without a session start fresh"),
])
def test_an_error_that_misleads_here_has_a_hint_what_to_do(shared, code, words):
    said = brief(shared, code)
    assert said["success"] is False and words in said["hint"], said


@pytest.mark.parametrize("path", ["/home/ann/data.csv", "/mnt/data/data.csv", "C:\\\\data.csv", "~/data.csv"])
def test_who_opens_a_file_of_the_host_is_told_what_is_there(shared, path):
    said = brief(shared, f"open('{path}')", files=[{"path": "data.csv", "content": "1"}, {"path": "d/e", "content": "2"}])
    assert said["hint"].startswith("Files of the host are not in here. /workspace has d/, data.csv. The argument files puts more there"), said
    assert "Files of the host" not in brief(shared, "open('nothing')").get("hint", "")


def test_files_of_the_host_that_a_person_shows_can_be_read(built_mcp, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("1,2")
    (tmp_path / "data").chmod(0o755)
    tmp_path.chmod(0o755)
    read = "import os\ntry:\n    open('mine/a.csv', 'w')\nexcept OSError as e:\n    print(type(e).__name__)\nopen('/workspace/mine/a.csv').read()"
    with mcp_client.McpStdio("--ro", f"{tmp_path}/data:mine") as client:
        assert "Files of the host are in /workspace/mine, read-only." in client.list_tools()["execute_code"]["description"]
        for more in {}, {"session": "a"}, {"files": [{"path": "b", "content": "x"}]}:
            said = client.data("execute_code", {"code": read, **more})
            assert (said["result"], said["stdout"]) == ("1,2", "OSError\n") and "written" not in said, said
        assert client.data("validate_code", {"code": "1"})["valid"] is True
    done = subprocess.run([mcp_client.binary(), "--ro", f"{tmp_path}/nothing"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode and f"--ro {tmp_path}/nothing: No such file" in done.stderr, done
    (tmp_path / ".env").write_text(f"BRIG_MCP_RO={tmp_path}\n")
    done = subprocess.run([mcp_client.binary(), "--print-config"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not re.search(rf"^ro.*{tmp_path}", done.stdout, re.M), "a file of a cloned folder shows nothing of the host"


def test_names_that_no_folder_can_have_in_a_jail_are_refused_before_a_server_starts(built_mcp, tmp_path):
    for rows, why in ([":a/b"], '"a/b" is no plain name'), ([":.."], '".." is no plain name'), ([":main.py"], "the program itself is /workspace/main.py"), \
            ([":a\tb"], '"a?b" has a control character'), ([":x", "/.:x"], "two of them would both be /workspace/x"):
        ro = ",".join(f"{tmp_path}{row}" for row in rows)
        done = subprocess.run([mcp_client.binary(), "--ro", ro], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode and done.stderr == f"brig-mcp: --ro {tmp_path}{rows[-1].replace(chr(9), '?')}: {why}\n", done


LIST = "import os\nsorted(name for name in os.listdir('/workspace') if os.path.isdir(f'/workspace/{name}'))"
ROOTS = {"roots": {"listChanged": True}}


def roots_of(*paths):
    return {"roots": [{"uri": f"file://{path}"} for path in paths]}


@pytest.fixture
def projects(tmp_path):
    for name in "one", "two", "a home/.ssh":
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "one/a.csv").write_text("1,2")
    host.open_way(tmp_path)
    return tmp_path


@pytest.mark.parametrize("answer, shown", [(None, ["one", "two"]), ("yes", ["one", "two"]), ("no", []), ("cancel", [])])
def test_folders_of_the_client_are_shown_if_a_person_agrees_and_those_with_keys_never(built_mcp, projects, answer, shown):
    with mcp_client.McpStdio("--roots", "--ro", f"{projects}/one:own", revision="2025-11-25") as client:
        client.initialize("2025-11-25", {**ROOTS, **({"elicitation": {}} if answer else {})})
        call = client.begin_call("execute_code", {"code": LIST, "session": "a"})
        asked = call.wait_question()
        assert asked["method"] == "roots/list"
        client.answer(asked, roots_of(projects / "one", f"{projects}/tw%6f", projects / "a%20home", "/", "/home", "/root", "/proc/self", projects / "none", f"{projects}/two/../one", "nonsense%2"))
        if answer:
            consent = call.wait_question(2)
            assert consent["method"] == "elicitation/create" and consent["params"]["message"].endswith(f"\n{projects}/one\n{projects}/two"), consent
            client.answer(consent, {"action": "cancel"} if answer == "cancel" else {"action": "accept", "content": {"answer": answer}})
        assert mcp_client.data_of(call.result())["result"] == sorted(["own", *shown])
        assert client.data("execute_code", {"code": LIST})["result"] == sorted(["own", *shown]), "it is asked once"
        said = client.words()
        assert all(f"root {uri}: " in said for uri in (f"file://{projects}/a%20home", "file:///", "file:///root", "file:///proc/self", "file://nonsense%2")), said
        if not shown:
            return
        reads = "try:\n    open('one/new', 'w')\nexcept OSError as e:\n    print(type(e).__name__)\nopen('one/a.csv').read()"
        said = client.data("execute_code", {"code": reads})
        assert (said["result"], said["stdout"]) == ("1,2", "OSError\n")


def test_folders_of_the_client_are_asked_again_when_its_list_has_changed_and_not_without_the_option(built_mcp, projects):
    with mcp_client.McpStdio("--roots", revision="2025-11-25") as client:
        client.initialize("2025-11-25", ROOTS)
        for name, shown in ("one", ["one"]), ("two", ["two"]):
            call = client.begin_call("execute_code", {"code": LIST})
            client.answer(call.wait_question(), roots_of(projects / name))
            assert mcp_client.data_of(call.result())["result"] == shown
            client.notify("notifications/roots/list_changed")
        call = client.begin_call("execute_code", {"code": LIST})
        client.send({"jsonrpc": "2.0", "id": call.wait_question()["id"], "error": {"code": -32603, "message": "no"}})
        assert mcp_client.data_of(call.result())["result"] == []
        assert client.execute(LIST, revision=mcp_client.MODERN)["result"] == [], "a client of 2026-07-28, where roots are deprecated, is not asked"
    with mcp_client.McpStdio(revision="2025-11-25") as client:
        client.initialize("2025-11-25", ROOTS)
        assert client.data("execute_code", {"code": LIST})["result"] == []
    done = subprocess.run([mcp_client.binary(), "--http", "--insecure-loopback", "--roots"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--roots: is for a server on stdio" in done.stderr and len(done.stderr.splitlines()) == 1, done


def test_a_name_that_a_session_does_not_have_is_no_matter_of_sessions(shared):
    assert "hint" not in brief(shared, "df.head()", session="hints")
    shared.call("end_session", {"session": "hints"})


@pytest.mark.parametrize("tool", ["execute_code", "validate_code"])
@pytest.mark.parametrize("code, words", [("!ls", "a line that begins with ! is IPython's"), ("%pip install x", "nothing can be installed from inside"),
                                         ("x = []\nx?", "a line with ? is IPython's"), ("```python\n1\n```", "a fence of Markdown")])
def test_a_line_that_only_a_notebook_knows_has_one_hint_when_it_runs_and_when_it_is_checked(shared, tool, code, words):
    said = shared.data(tool, {"code": code})
    assert said["error"].startswith("Syntax error: ") and words in said["error"] and "hint" not in said, said


def test_a_line_that_changes_nothing_here_is_passed_over(shared):
    assert brief(shared, "%matplotlib inline\nimport math\nmath.floor(1.5)")["result"] == 1
    assert shared.data("validate_code", {"code": "%matplotlib inline\n1"})["valid"] is True
    assert any("need no import here" in one for one in shared.data("validate_code", {"code": "from IPython.display import display"})["recommendations"])


def test_who_reads_input_and_was_given_none_is_told_how(shared):
    assert brief(shared, "input()")["hint"] == "The program reads input and was given none: pass it in the argument stdin."
    assert "hint" not in brief(shared, "input(); input()", stdin="x\n")
    assert brief(shared, "input()", stdin="x\n")["result"] == "x"


@pytest.mark.parametrize("name, advice", [
    ("timeuot", "did you mean timeout?"), ("memory_limt", "did you mean memory_limit?"), ("timeout_ms", "did you mean timeout, in seconds?"),
    ("session_id", "did you mean session?"), ("upload", "did you mean files?"),
    ("requirements", "nothing can be installed by a call: get_sandbox_info lists what there is"), ("language", "programs are Python 3"),
    ("wholly_different", "there are: code, session, files, timeout"),
])
def test_an_argument_that_is_none_is_told_with_the_one_that_was_meant(shared, name, advice):
    (warning,) = brief(shared, "1", **{name: "x"})["warnings"]
    assert warning.startswith(f"The argument '{name}' is unknown and was ignored; {advice}"), warning


def test_a_server_without_sessions_says_so(start_mcp):
    mcp = start_mcp("--sessions", "0")
    assert not {"read_file", "write_file", "list_files", "end_session"} & set(mcp.list_tools()) and "session" not in mcp.list_tools()["execute_code"]["inputSchema"]["properties"]
    assert "session" not in mcp.list_tools()["execute_code"]["description"]
    said = mcp.execute("1", session="work")
    assert said["result"] == 1 and said["warnings"] == ["The argument 'session' was ignored: there are no sessions here, and nothing is kept; send the whole program"]
    with pytest.raises(mcp_client.Refused):
        mcp.call("end_session", {"session": "work"})


# --- what was printed ------------------------------------------------------------------------------------------

def test_what_was_printed_is_not_lost_however_a_program_ends(built_mcp, needs_rootfs):
    with mcp_client.McpStdio() as mcp:
        assert mcp.execute("print('one')\nwhile True: pass", timeout=1)["stdout"] == "one\n"
        assert mcp.execute("print('one')\nimport os; os._exit(3)")["stdout"] == "one\n"


def test_a_call_that_goes_on_shows_what_was_printed(built_mcp, needs_rootfs):
    with mcp_client.McpStdio("--yield-after", "0.01") as mcp:
        said = mcp.execute("import time\nprint('one')\ntime.sleep(600)")
        while said["stdout"] == "" and said["exit_reason"] == "running":
            said = mcp.data("wait_execution", {"execution_id": said["execution_id"], "timeout": 0.1})
        assert (said["stdout"], said["exit_reason"]) == ("one\n", "running")


# --- how clients call it ---------------------------------------------------------------------------------------

REFUSED = "import ctypes, socket\nfor _ in range(2): ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n"


@pytest.mark.requirement("A11", "A92")
def test_a_refused_call_is_named_and_so_is_that_it_stays_refused(shared):
    code = REFUSED + "socket.socket(socket.AF_NETLINK)"
    said = brief(shared, code)
    assert said["refused"] == ["ptrace", "socket(AF_NETLINK)"], said
    assert said["hint"] == "The jail refused ptrace (2 times) and socket(AF_NETLINK); trying again does not help.", said
    assert [row["count"] for row in brief(shared, code, detail=True)["refused"]] == [2, 1]
    assert " · refused: ptrace (2 times) and socket(AF_NETLINK) · OSError" in text(shared, code)


def test_what_was_refused_is_no_reason_for_another_exception(shared):
    said = brief(shared, REFUSED + "1/0")
    assert said["refused"] == ["ptrace"] and "hint" not in said, said


def test_of_many_refused_calls_five_are_named(shared):
    calls = "import ctypes\nlibc = ctypes.CDLL(None)\nfor n in range(40): libc.ioctl(0, 0xf000 + n, 0)\nfor n in range(3): libc.prctl(0x7000 + n, 0)"
    assert len(brief(shared, calls)["refused"]) == 5


@pytest.mark.parametrize("words, hint", [((), True), (("--read-only-hint=false",), False)], ids=["as it is", "turned off"])
def test_clients_may_call_it_side_by_side(start_mcp, words, hint):
    assert start_mcp(*words).list_tools()["execute_code"]["annotations"]["readOnlyHint"] is hint


def test_in_a_terminal_it_says_what_it_waits_for(built_mcp):
    ours, theirs = pty.openpty()
    server = subprocess.Popen([mcp_client.binary()], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=brig.environment())
    os.close(theirs)
    try:
        line = server.stderr.readline().decode()
        assert line.startswith("brig-mcp: waits for the messages of an MCP client on stdin") and "brig-mcp --check" in line, line
    finally:
        server.terminate()
        server.wait(host.HANG)
        server.stderr.close()
        os.close(ours)


# --- the end of a server over HTTP -----------------------------------------------------------------------------

SLOW = "import sys, time\nprint('begun', flush=True)\nopen('/workspace/x', 'w')\ntime.sleep({})\nprint('done')"


def begin(client, seconds):
    """A call whose program runs: its server has said so."""
    call = client.begin_call("execute_code", {"code": SLOW.format(seconds)}, token="t")
    call.wait_progress()
    return call


def drains(client):
    """What /healthz says when the signal has come."""
    while True:
        status, _, body = client.raw(method="GET", path="/healthz")
        if status != 200:
            return status, json.loads(body)


def test_a_server_that_is_told_to_end_finishes_its_calls_and_takes_no_more(built_mcp, needs_rootfs):
    with mcp_client.HttpServer("--drain", "60", "--progress", "0.25") as server, server.client() as client:
        call = begin(client, 2)
        server.process.send_signal(signal.SIGTERM)
        assert drains(client) == (503, {"status": "stopping"})
        status, _, body = client.raw(b"{}", headers={"Content-Type": "application/json"}, own=True)
        assert status == 503 and b"stopping" in body
        assert mcp_client.data_of(call.result())["stdout"] == "begun\ndone\n"
        assert server.process.wait(host.HANG) == 0


def test_a_call_that_takes_longer_is_told_that_the_server_ends(built_mcp, needs_rootfs):
    with mcp_client.HttpServer("--drain", "0.2", "--progress", "0.25") as server, server.client() as client:
        call = begin(client, 600)
        server.process.send_signal(signal.SIGTERM)
        assert "The server is stopping, and has ended the program" in str(call.refused())
        assert server.process.wait(host.HANG) == 0


def test_a_second_signal_ends_it_at_once(built_mcp, needs_rootfs):
    with mcp_client.HttpServer("--drain", "3600", "--progress", "0.25") as server, server.client() as client:
        begin(client, 600)
        server.process.send_signal(signal.SIGTERM)
        drains(client)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(host.HANG) == 0


def test_who_sends_no_token_is_told_how_to(built_mcp):
    with mcp_client.HttpServer() as server, server.client() as client:
        status, _, body = client.raw(b"{}", headers={"Content-Type": "application/json"})
        assert status == 401 and json.loads(body) == {"error": "Unauthorized", "hint": "send the header Authorization: Bearer TOKEN"}


# --- the list of tools -----------------------------------------------------------------------------------------

def test_what_a_model_reads_is_made_from_the_settings(built_mcp, tmp_path):
    with mcp_client.McpStdio() as client:
        tool, said = client.list_tools()["execute_code"], client.request("server/discover")["instructions"]
        assert "sandbox with no network" in tool["description"] and "jail with no network" in said and tool["annotations"]["openWorldHint"] is False, tool
    with mcp_client.McpStdio("--net", "pypi.org,*.example.org", "--timeout", "7", "--max-timeout", "9.5") as client:
        tool, said = client.list_tools()["execute_code"], client.request("server/discover")["instructions"]
        assert "whose network reaches only pypi.org, *.example.org" in tool["description"] and "reaches only pypi.org" in said and "no network" not in said, said
        assert (tool["annotations"]["openWorldHint"], tool["annotations"]["readOnlyHint"]) == (True, False), tool
        assert tool["inputSchema"]["properties"]["timeout"]["description"] == "Seconds; default 7, at most 9.5" and "{" not in tool["description"] + said
    mine = {"description": "numpy and my own things; more", "rootfs": "basic", "policy": "python", "limits": {"wall_ms": 60000}, "network": {"allow": ["a.example"]}}
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    with mcp_client.McpStdio("--profile", "mine", env={"BRIG_PROFILES": str(tmp_path), "BRIG_PRESETS": str(tmp_path)}) as client:
        tool = client.list_tools()["execute_code"]
        assert "reaches only a.example. It has numpy and my own things." in tool["description"], tool
        assert tool["inputSchema"]["properties"]["timeout"]["description"] == "Seconds; default 60, at most 300", "a profile's own limit is the real one"


TOKENS = 1300
BYTES_OF_A_TOKEN = 4.35 # of these lists, as gpt-tokenizer 4.0.0 counts those of o200k_base


@pytest.mark.parametrize("way, options", [("stdio", ()), ("stdio", ("--reply", "text")), ("stdio", ("--servers",)), ("HTTP", ())])
def test_all_that_a_model_reads_of_the_tools_is_short(built_mcp, tmp_path, way, options):
    servers = tmp_path / "servers.json"
    servers.write_text('{"mcpServers":{"fs":{"command":"true"},"github":{"command":"true"}}}')
    servers.chmod(0o600)
    options = [word for option in options for word in ([option, servers] if option == "--servers" else [option])]
    for revision in mcp_client.REVISIONS:
        with mcp_client.McpStdio(*options) if way == "stdio" else mcp_client.HttpServer(*options) as server:
            with server if way == "stdio" else server.client() as client:
                listed = json.dumps(list(client.list_tools(revision=revision).values()), separators=(",", ":"), ensure_ascii=False).encode()
                assert len(listed) <= TOKENS * BYTES_OF_A_TOKEN, f"{revision}: {len(listed)} bytes"
