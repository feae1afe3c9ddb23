"""The tools over real stdio and real jails: what they take, what they refuse, what they say."""
import json
import re
import uuid

import pytest

from support import mcp as mcp_client

KEYS = {"success", "execution_id", "result", "stdout", "stderr", "execution_time", "variables", "error", "traceback", "exit_reason", "timeout",
        "security_warnings", "security_event", "validation_errors", "return_code"}


@pytest.fixture(scope="module")
def shared(built_mcp):
    """One server for all that does not harm it."""
    with mcp_client.McpStdio() as mcp:
        yield mcp


# --- argument mistakes: results, not errors of the protocol ---------------------------------------------------

MISTAKES = {
    "no-code": ({}, r"code: missing"),
    "empty-code": ({"code": ""}, r"^Empty code provided$"),
    "blank-code": ({"code": " \n\t\n"}, r"^Empty code provided$"),
    "code-too-large": ({"code": "x" * 100001}, r"^Code too large \(max 100KB\)$"),
    "code-too-large-in-characters": ({"code": "é" * 100001}, r"^Code too large"),
    "code-is-no-text": ({"code": 5}, r"^code: expected text, not 5"),
    "code-is-a-list": ({"code": ["1"]}, r"^code: expected text"),
    "NUL-in-code": ({"code": "a = 1\0"}, r"^code: has a NUL byte"),
    "timeout-zero": ({"code": "1", "timeout": 0}, r"^timeout: 0 is outside 0.01"),
    "timeout-negative": ({"code": "1", "timeout": -3}, r"^timeout: expected a number .* from 0.01 to 86400, not -3"),
    "timeout-is-a-word": ({"code": "1", "timeout": "soon"}, r'^timeout: expected a number .* from 0.01 to 86400, not "soon"'),
    "unknown-profile": ({"code": "1", "profile": "nope"}, r'(profile "nope" does not exist; there are: .*basic.*strict|you may not use a profile "nope"$)'),
    "profile-is-a-path": ({"code": "1", "profile": "../../etc/passwd"}, r"profile: .*is no name"),
    "memory-is-a-word": ({"code": "1", "memory_limit": "much"}, r'^memory_limit: expected a size \("64M"\) from 8M to 1T, not "much"'),
    "memory-too-small": ({"code": "1", "memory_limit": "1k"}, r"^memory_limit: 1K is"),
    "env-LD": ({"code": "1", "env": {"LD_PRELOAD": "x"}}, r"^env: LD_PRELOAD: refused"),
    "env-PYTHON": ({"code": "1", "env": {"PYTHONPATH": "x"}}, r"^env: PYTHONPATH: refused"),
    "env-PATH": ({"code": "1", "env": {"PATH": "x"}}, r"^env: PATH: refused"),
    "env-no-name": ({"code": "1", "env": {"1A": "x"}}, r"^env: 1A: a name begins with"),
    "env-control": ({"code": "1", "env": {"A": "x\n"}}, r"^env: A: the value has a control character"),
    "env-is-a-list": ({"code": "1", "env": ["A=1"]}, r"^env: expected an object of at most 64 texts, as"),
    "args-is-a-text": ({"code": "1", "args": "a b"}, r"^args: expected a list of at most 1024 texts, as"),
    "args-has-a-number": ({"code": "1", "args": [1]}, r"^args"),
    "stdin-is-a-number": ({"code": "1", "stdin": 5}, r"^stdin: expected text, not 5"),
    "format-xml": ({"code": "1", "format": "xml"}, r'^format: "xml" is none of json, text'),
    "imports-is-no-module": ({"code": "1", "allowed_imports": ["a b"]}, r"^allowed_imports: .*is no name of a module"),
    "validate-is-a-word": ({"code": "1", "validate": "maybe"}, r"^validate: expected true or false"),
    "too-many-arguments": ({"code": "1", "args": ["a" * 100] * 1000}, r"fewer or shorter arguments"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_arguments_is_told(shared, name):
    arguments, words = MISTAKES[name]
    result = shared.call("execute_code", arguments)
    said = mcp_client.data_of(result)
    assert result["isError"] is True
    assert re.search(words, said["error"]), said["error"]
    assert said["exit_reason"] == "denied" and said["success"] is False and said["execution_id"] is None
    assert KEYS <= set(said)
    assert "/" not in said["error"] or name == "profile-is-a-path", "where the host keeps its files is nobody's affair"


def test_a_mistake_is_told_as_text_where_text_was_asked_for(shared):
    result = shared.call("execute_code", {"code": "", "format": "text"})
    assert mcp_client.text_of(result) == "Error (denied) · Empty code provided\n" and result["isError"] is True


def test_an_argument_that_nobody_knows_is_a_warning(shared):
    said = shared.execute("1", nonsense=3)
    assert said["success"] is True and "'nonsense' is unknown" in said["warnings"][0]


def test_null_is_an_argument_that_was_not_said(shared):
    assert shared.execute("2", timeout=None, memory_limit=None, env=None, args=None, stdin=None, profile=None, format=None)["result"] == 2


def test_a_limit_of_the_server_is_the_maximum(start_mcp):
    mcp = start_mcp("--max-timeout", "5", "--max-code", "10")
    said = mcp.execute("1", timeout=6, memory_limit="64g")
    assert (said["result"], said["timeout"]) == (1, 5), said
    assert said["warnings"] == ["timeout: 6 is too long; the call has the maximum, 5 seconds", "memory_limit: 64G is too much; it has the maximum, 1G"], said
    assert mcp.execute("1 + 1 + 1 + 1")["error"] == "Code too large (max 10 characters)"


# --- what a program gets --------------------------------------------------------------------------------------

def test_arguments_environment_and_stdin(shared):
    code = "import os, sys\nprint(sys.argv, os.environ['A'], sys.stdin.read())"
    said = shared.execute(code, args=["x", "y z"], env={"A": "1=2", "B": "é"}, stdin="line\nü")
    assert said["stdout"] == "['main.py', 'x', 'y z'] 1=2 line\nü\n"


def test_stdin_is_empty_when_nothing_was_said(shared):
    assert shared.execute("input()")["error_type"] == "EOFError"
    assert shared.execute("input()", stdin="")["error_type"] == "EOFError"


def test_a_program_that_does_not_read_its_stdin(shared):
    assert shared.execute("1", stdin="x" * 1000000)["result"] == 1


def test_a_large_stdin_arrives_whole(shared):
    assert shared.execute("import sys; len(sys.stdin.read())", stdin="x" * 1000000)["result"] == 1000000


@pytest.mark.sample(2)
@pytest.mark.parametrize("asked, mib", [("64m", 64), ("128MiB", 128), (96, 96), ("96", 96), ("0.5g", None)])
def test_memory_limit_is_in_force(shared, asked, mib):
    said = shared.execute("x = bytearray(200 * 2**20)", memory_limit=asked)
    if mib is None:
        assert said["exit_reason"] == "denied"
    else:
        assert said["exit_reason"] == "oom" and f"more than {mib} MiB" in said["error"] and f'"{2 * mib}m"' in said["hint"]
        assert said["success"] is False


def test_timeout_is_in_force_and_told(shared):
    said = shared.execute("print('before', flush=True)\nwhile True: pass", timeout=2)
    assert said["exit_reason"] == "timeout_wall" and said["error"] == "Execution timeout: timed out after 2 seconds" # the published words
    assert said["stdout"] == "before\n" and said["timeout"] == 2 and "timeout" in said["hint"] and said["exit_code"] is None
    assert shared.execute("while True: pass", timeout=1)["error"] == "Execution timeout: timed out after 1 second"
    assert shared.execute("while True: pass", timeout=0.5)["error"] == "Execution timeout: timed out after 0.5 seconds"


def test_more_wall_time_is_more_cpu_time(start_mcp):
    """The profile gives 30 s of each: who asks for 40 may compute for 40."""
    mcp = start_mcp()
    asked = mcp.begin_call("execute_code", {"code": "1", "timeout": 40})
    assert mcp_client.data_of(asked.result())["timeout"] == 40


def test_a_signal_is_named(shared):
    said = shared.execute("import ctypes; ctypes.string_at(0)")
    assert said["exit_reason"] == "signaled" and said["signal"] == "SIGSEGV" and said["exit_code"] == said["return_code"] == 139
    assert said["error"] == "Killed by signal SIGSEGV" and "compiled code" in said["hint"]


def test_a_keyboard_interrupt_keeps_its_name(shared):
    """Python ends by SIGINT then; "killed" would make a client look for another cause."""
    said = shared.execute("def f():\n    raise KeyboardInterrupt('enough')\nf()")
    assert (said["error"], said["error_type"], said["line"], said["exit_code"]) == ("KeyboardInterrupt: enough", "KeyboardInterrupt", 2, 130), said
    assert not said.get("hint")
    said = shared.execute("import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGINT)")
    assert said["error"] == "Killed by signal SIGINT" and "to itself" in said["hint"]


def test_an_exit_code_is_told(shared):
    said = shared.execute("import sys\nprint('x')\nsys.exit(3)")
    assert said["success"] is False and said["exit_code"] == 3 and said["error"] == "The program exited with code 3" and said["stdout"] == "x\n"
    assert shared.execute("import sys; sys.exit(0)")["success"] is True


def test_a_limit_that_only_refused_is_in_limits_hit(shared):
    said = shared.execute("import subprocess\nfor i in range(100):\n    subprocess.Popen(['sleep', '600'])")
    assert said["error_type"] in ("BlockingIOError", "OSError") and [hit["name"] for hit in said["limits_hit"]] == ["pids"]


def test_a_failing_program_is_no_error_of_the_tool(shared):
    for code in ("1/0", "import sys; sys.exit(1)", "def f(:", "import os; os.abort()"):
        result = shared.call("execute_code", {"code": code})
        assert result["isError"] is False and mcp_client.data_of(result)["success"] is False


def test_capture_output_false_leaves_output_out(shared):
    said = shared.execute("print('a'); 5", capture_output=False)
    assert said["stdout"] == said["stderr"] == "" and said["result"] == 5 and said["usage"]["stdout_bytes"] == 2


def test_echo_result_appends_it(shared):
    assert shared.execute("print('a'); 2 + 2", echo_result=True)["stdout"] == "a\n4\n"
    assert shared.execute("2 + 2")["stdout"] == ""


def test_use_container_changes_nothing(shared):
    assert shared.execute("1", use_container=True)["isolation"] == shared.execute("1", use_container=False)["isolation"] != []


def test_each_run_has_an_id_of_its_own(shared):
    ids = [uuid.UUID(shared.execute("1")["execution_id"]) for _ in range(3)]
    assert len(set(ids)) == 3 and all(one.version == 4 for one in ids)


def test_nothing_is_kept_between_calls(shared):
    shared.execute("x = 1; open('/tmp/f', 'w').write('x')")
    assert shared.execute("import os; ('x' in globals(), os.path.exists('/tmp/f'))")["result"] in ([False, False], "(False, False)")


# --- imports --------------------------------------------------------------------------------------------------

def test_allowed_imports_narrow(shared):
    said = shared.execute("import math\nimport os", allowed_imports=["math"])
    assert said["error"] == "Import of 'os' is not allowed in sandbox" and said["security_event"] == "blocked_import"
    assert said["error_type"] == "ImportError" and said["success"] is False
    assert shared.execute("import math\nmath.floor(3.5)", allowed_imports=["math"])["result"] == 3


def test_an_empty_list_of_imports_was_not_said(shared):
    assert shared.execute("import os\n1", allowed_imports=[])["result"] == 1


def test_imports_enforce_the_profile(start_mcp):
    mcp = start_mcp("--imports", "enforce")
    assert mcp.execute("import os")["security_event"] == "blocked_import"
    assert mcp.execute("import math, json\n1")["result"] == 1
    assert mcp.execute("import json", allowed_imports=["math", "os"])["security_event"] == "blocked_import"
    assert mcp.execute("import os", allowed_imports=["math", "os"])["security_event"] == "blocked_import" # cannot widen


def test_the_servers_own_list_counts(start_mcp):
    mcp = start_mcp(env={"SANDBOX_ALLOWED_IMPORTS": " math, os "})
    assert mcp.execute("import os\n1")["result"] == 1
    assert mcp.execute("import json")["security_event"] == "blocked_import"
    assert mcp.data("validate_code", {"code": "import os"})["valid"] is True
    assert mcp.data("validate_code", {"code": "import json"})["valid"] is False


# --- validate -------------------------------------------------------------------------------------------------

def test_validate_true_refuses_what_validate_code_finds(start_mcp):
    shared = start_mcp("--imports", "enforce")
    code = "print('ran')\nimport os\nos.system('ls')"
    said = shared.execute(code, validate=True)
    found = shared.data("validate_code", {"code": code})
    assert said["error"] == "Code validation failed" and said["success"] is False and said["stdout"] == "" and said["execution_id"] is None
    assert said["validation_errors"] == said["details"]["errors"] == found["errors"] == ["Line 2: Import 'os' is not allowed"]
    assert said["details"] == {"valid": False, "errors": found["errors"], "message": found["message"]}
    assert "Line 2: Import 'os' is not allowed" in mcp_client.text_of(shared.call("execute_code", {"code": code, "validate": True, "format": "text"}))


def test_validate_true_runs_what_passes(shared):
    assert shared.execute("import math\nmath.floor(2.5)", validate=True)["result"] == 2


def test_what_a_run_may_do_validate_code_does_not_forbid(shared):
    code = "import os\nos.getcwd()"
    said = shared.data("validate_code", {"code": code})
    assert said["valid"] is True and said["errors"] == [] and said["warnings"] == ["Line 1: Import 'os' is not in the profile's list of modules; a run does not refuse it"]
    assert shared.execute(code, validate=True)["result"] == "/workspace"


def test_validate_code_has_the_flat_and_the_wrapped_form(start_mcp):
    shared = start_mcp("--imports", "enforce")
    said = shared.data("validate_code", {"code": "import os\nos.system('ls')"})
    assert said["valid"] is False and said["errors"] == ["Line 1: Import 'os' is not allowed"] and said["message"]
    assert said["validation"]["valid"] is False and said["validation"]["errors"] == said["errors"]
    assert said["analysis"] == {"line_count": 2, "character_count": 25, "estimated_complexity": "low"}
    assert said["recommendations"] and any("os.system" in one for one in said["warnings"]) and said["imports"] == ["os"]
    said = shared.data("validate_code", {"code": "x = 1"})
    assert said["valid"] is True and said["errors"] == [] and said["warnings"] is None and said["error"] is None and said["validation"]["valid"] is True


def test_validate_code_tells_where_the_syntax_is_wrong(shared):
    said = shared.data("validate_code", {"code": "x = 1\ny = (\n"})
    assert said["valid"] is False and said["error"].startswith("Syntax error: ") and said["line"] == 2 and said["offset"] and said["text"].strip() == "y = ("
    assert said["validation"]["compiled"] is False


def test_validate_code_executes_nothing(shared):
    assert shared.data("validate_code", {"code": "while True: pass"})["valid"] is True
    assert shared.data("validate_code", {"code": "1 / 0"})["valid"] is True


@pytest.mark.sample(2)
@pytest.mark.parametrize("name, code", [("deep-nesting", "(" * 50000 + ")" * 50000), ("long-sum", "+".join(["1"] * 45000)), ("deep-unary", "-" * 90000 + "1"),
                                        ("big-power", "x = 9**9**9**9"), ("lone-surrogate-escape", "'\\ud800'")])
def test_what_brings_a_parser_down_is_told_honestly(shared, name, code):
    said = shared.data("validate_code", {"code": code})
    assert said["valid"] is True or said["error"]
    assert shared.execute("1")["result"] == 1


@pytest.mark.parametrize("arguments, words", [({"code": ""}, "Empty code provided"), ({}, "code: missing"), ({"code": "x" * 100001}, "Code too large (max 100KB)"),
                                              ({"code": "1", "profile": "nope"}, 'profile "nope"')])
def test_validate_code_tells_mistakes(shared, arguments, words):
    result = shared.call("validate_code", arguments)
    assert result["isError"] is True and words in mcp_client.text_of(result)


# --- get_sandbox_info, list_capabilities ----------------------------------------------------------------------

def test_sandbox_info_has_the_keys_of_all_generations(shared):
    said = shared.data("get_sandbox_info")
    assert said["success"] is True and said["restricted_python"] is False and said["timeout_seconds"] == 30 and said["max_output_size"] == 1048576
    assert said["security_capabilities"] == {"network_enabled": False, "filesystem_enabled": False, "data_science_enabled": False}
    assert len(said["allowed_imports"]["safe_stdlib"]) >= 40 and {"math", "json", "re"} <= set(said["allowed_imports"]["safe_stdlib"])
    assert said["total_allowed_modules"] == sum(map(len, said["allowed_imports"].values())) and "print" in said["safe_builtins"]
    assert set(said["security_profiles"]) == {"basic", "data_science", "network", "filesystem"}
    assert all(isinstance(one["enabled"], bool) and isinstance(one["modules"], list) for one in said["security_profiles"].values())
    assert said["security_profiles"]["basic"]["enabled"] is True
    assert said["resource_limits"] == {"timeout": 30, "max_output_size": 1048576, "memory_limit": "256m"}
    assert said["container_mode"] == {"available": True, "enabled": True}
    assert said["limits"]["default_timeout"] == 30 and said["limits"]["max_timeout"] == 300 and said["limits"]["default_memory_limit"] == "256m"
    assert {"sandbox_type", "safe_modules", "security_features"} <= set(said)


def test_sandbox_info_in_words_says_each_thing_once(start_mcp):
    """For a model, with --reply text: the same facts without the published keys, which say most of it three times."""
    words, data = start_mcp("--reply", "text"), start_mcp().call("get_sandbox_info")
    said = words.call("get_sandbox_info")
    text = mcp_client.text_of(said)
    assert "structuredContent" not in said and "outputSchema" not in words.list_tools()["get_sandbox_info"]
    assert re.search(r"^basic \(the default\): Python 3\.\d+\.\d+; 30 s of time, at most 300; 256 MiB of memory, at most 1024$", text, re.M), text
    assert text.count("numpy") <= 1 and text.count("seccomp") == 1 and len(text) * 3 < len(mcp_client.text_of(data)), text
    assert "There is no network" in text and "/" not in text, text


def test_sandbox_info_names_packages_with_versions(shared):
    said = shared.data("get_sandbox_info")
    version = shared.execute("import platform; platform.python_version()")["result"]
    assert said["packages"][0] == {"name": "python", "version": version}


def test_sandbox_info_tells_the_isolation_that_is_in_force(start_mcp):
    first = start_mcp().data("get_sandbox_info")["isolation"] # found out by a run of its own
    mcp = start_mcp()
    ran = mcp.execute("1")["isolation"]
    assert {"user-ns", "seccomp", "mount-ns"} <= set(first) and ran == first == mcp.data("get_sandbox_info")["isolation"]


def test_sandbox_info_follows_the_settings(start_mcp):
    mcp = start_mcp("--timeout", "7", "--max-timeout", "9", "--memory", "64M", "--output", "2048", "--profile", "strict")
    said = mcp.data("get_sandbox_info")
    assert said["default_profile"] == "strict" and said["timeout_seconds"] == 7 and said["limits"]["max_timeout"] == 9
    assert said["resource_limits"] == {"timeout": 7, "max_output_size": 2048, "memory_limit": "64m"}


def test_list_capabilities_is_callable_and_listed_by_a_flag(start_mcp):
    mcp = start_mcp()
    assert "list_capabilities" not in mcp.list_tools()
    said = mcp.data("list_capabilities")
    assert said["sandbox_type"] and said["limits"]["max_timeout"] == 300 and said["safe_modules"] and said["security_features"]
    assert "list_capabilities" in start_mcp("--list-all-tools").list_tools()


# --- as clients see them --------------------------------------------------------------------------------------

def test_the_list_is_short_portable_and_complete(shared):
    tools = shared.list_tools()
    assert list(tools) == ["execute_code", "validate_code", "get_sandbox_info", "wait_execution", "cancel_execution", "read_file", "write_file", "list_files", "end_session"]
    for tool in tools.values():
        assert len(tool["description"]) <= 1024
        assert set(tool["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool["inputSchema"]["type"] == "object" and not {"anyOf", "oneOf", "$ref"} & set(json.dumps(tool["inputSchema"]).split('"'))
    assert "outputSchema" not in tools["execute_code"] and "outputSchema" in tools["get_sandbox_info"] and "outputSchema" in tools["validate_code"]
    published, old = {"code", "timeout", "allowed_imports", "memory_limit"}, {"capture_output", "use_container", "echo_result"}
    assert not old & set(tools["execute_code"]["inputSchema"]["properties"]), "a model need not read what only older programs send"
    assert "warnings" not in shared.data("execute_code", {"code": "1", **{name: True for name in old}}), "which is accepted"
    assert published | {"profile", "stdin", "args", "env", "format"} <= set(tools["execute_code"]["inputSchema"]["properties"])
    assert tools["execute_code"]["inputSchema"]["required"] == ["code"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("revision", mcp_client.REVISIONS)
def test_every_tool_answers_in_every_revision(start_mcp, revision):
    mcp = start_mcp(revision=revision)
    mcp.list_tools()
    assert mcp.execute("2 + 2")["result"] == 4
    assert mcp.data("validate_code", {"code": "1"})["valid"] is True
    assert mcp.data("get_sandbox_info")["success"] is True


# --- many at once ---------------------------------------------------------------------------------------------

@pytest.mark.nightly
def test_100_calls_side_by_side(start_mcp, nothing_left):
    mcp = start_mcp()
    asked = [mcp.begin_call("execute_code", {"code": f"print({i}); {i} * 2"}) for i in range(100)]
    assert set(mcp.list_tools()) # answers meanwhile
    for i, one in enumerate(asked):
        said = mcp_client.data_of(one.result())
        assert (said["result"], said["stdout"], said["success"]) == (2 * i, f"{i}\n", True), said


def test_100_calls_wait_for_places_of_a_service(start_mcp, built_mcp):
    """The service gives one user four places: the others wait for theirs, none is told to come again."""
    import os

    from support import daemon as daemons
    with daemons.Daemon({"runs": 8, "access": [{"uid": os.geteuid(), "profiles": ["basic"], "runs": 4}]}) as daemon:
        mcp = start_mcp(env={"BRIG_SOCKET": str(daemon.path)})
        asked = [mcp.begin_call("execute_code", {"code": f"{i}"}) for i in range(100)]
        assert [mcp_client.data_of(one.result())["result"] for one in asked] == list(range(100))
        mcp.close()
