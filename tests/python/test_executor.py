"""SandboxExecutor: what a published executor for code that calls tools took and gave, with a jail around the code. Rows C of the requirements."""
import pytest

from support.tool_bridge import brig

pytestmark = pytest.mark.usefixtures("jail")


class ToolsApi:
    """An object with methods, as the published one was handed."""

    def search(self, query: str, limit: int = 3) -> list:
        """Finds things."""
        return [f"{query} {i}" for i in range(limit)]

    def fail(self):
        raise ValueError("no such thing")


@pytest.fixture(autouse=True)
def private(monkeypatch):
    monkeypatch.delenv("BRIG_SOCKET", raising=False)


def executor(*args, **options):
    return brig.SandboxExecutor(*args, **{"server": "private", **options})


@pytest.mark.requirement("C1")
def test_it_is_made_as_the_published_one_was():
    made = executor(ToolsApi(), 12.5, 5000, True)
    assert (made.timeout, made.max_output_size, made.verbose, type(made.tools_api)) == (12.5, 5000, True, ToolsApi)
    plain = executor(ToolsApi())
    assert (plain.timeout, plain.max_output_size, plain.verbose) == (30.0, 1_000_000, False)
    assert executor(tools_api=ToolsApi(), timeout=10, max_output_size=100, verbose=False).execute("tools.search('x')").return_value == ["x 0", "x 1", "x 2"]


@pytest.mark.requirement("C10")
def test_a_result_has_the_five_attributes():
    done = executor(ToolsApi()).execute("print('hello'); {'a': [1, 2.5, None]}")
    assert (done.success, done.output, done.error, done.return_value) == (True, "hello", None, {"a": [1, 2.5, None]}) and 0 < done.execution_time < 30
    assert done.to_dict() == {"success": True, "output": "hello", "error": None, "execution_time": done.execution_time, "return_value": {"a": [1, 2.5, None]}}
    assert brig.ExecutionResult(success=False, output="").error is None


@pytest.mark.requirement("C2")
@pytest.mark.requirement("C3")
def test_tools_run_outside_and_each_call_is_judged():
    code = "found = [tools.search('x', limit=1), tools.list(), tools.call('search', {'query': 'y', 'limit': 1})]\ntry:\n    tools.fail()\nexcept ToolDenied as error:\n    found.append(str(error))\nfound"
    done = executor({"search": ToolsApi().search, "fail": ToolsApi().fail}, deny="fail").execute(code)
    assert done.return_value == [["x 0"], ["fail", "search"], ["y 0"], "fail: denied by this run's rules"]


@pytest.mark.requirement("C9")
def test_the_published_name_of_the_result_is_known():
    assert executor(None).execute("__return_value__ = {'total': 3}\nx = 5").return_value == {"total": 3}


@pytest.mark.requirement("C8")
def test_json_needs_no_import():
    assert executor(ToolsApi()).execute("json.dumps(tools.search('x', limit=1))").return_value == '["x 0"]'


@pytest.mark.requirement("C4")
@pytest.mark.requirement("C5")
def test_no_word_is_forbidden_and_every_module_is_there():
    """The published one refused texts with these words; the jail makes what they do harmless."""
    done = executor(ToolsApi()).execute("import os, subprocess, re\nopen('f', 'w').write('x')\nassert eval('1 + 1') == 2 and re.compile('a')\n"
                                        "os.system('true'); subprocess.run(['true'], check=True); exec('y = 1'); open('f').read()")
    assert (done.success, done.return_value) == (True, "x"), done.error


@pytest.mark.requirement("C11")
@pytest.mark.requirement("C18")
def test_the_time_is_over_and_the_text_says_so():
    done = executor(ToolsApi(), timeout=0.5).execute("print('before', flush=True)\nwhile True: pass")
    assert (done.success, done.error, done.output) == (False, "Code execution exceeded timeout of 0.5 seconds", "before")
    assert done.result.verdict == "timeout_wall" and done.execution_time >= 0.5


@pytest.mark.requirement("C12")
@pytest.mark.parametrize("code, line", [("def", 1), ("x = 1\ny = (", 2), ("if True:\nx = 1", 2)])
def test_a_syntax_error_says_so(code, line):
    done = executor(None).execute(code)
    assert not done.success and done.error.startswith("Syntax error: ") and f"line {line}" in done.error


@pytest.mark.requirement("C13")
@pytest.mark.parametrize("code, error", [("1 / 0", "ZeroDivisionError: division by zero"), ("raise KeyError('k')", "KeyError: 'k'"),
                                         ("raise TimeoutError('own')", "TimeoutError: own"), ("class Own(Exception): pass\nraise Own", "Own")])
def test_an_exception_is_told_as_type_and_message(code, error):
    done = executor(None).execute(f"print('kept')\n{code}")
    assert (done.success, done.error, done.output.splitlines()[0]) == (False, error, "kept")


def test_what_else_ends_a_program_is_told():
    assert executor(None, memory="32M").execute("x = bytearray(1 << 28)\nx[::4096] = b'1' * len(x[::4096])").success is False
    assert executor(None).execute("raise SystemExit(3)").error == "exited: status 3"
    assert executor(None).execute("import os; os.kill(os.getpid(), 9)").error == "ended by signal SIGKILL"
    assert executor(None).execute("raise SystemExit").success is True


@pytest.mark.requirement("C14")
def test_output_is_one_text_of_both_streams():
    done = executor(None).execute("import sys; print('  out  '); print('err', file=sys.stderr); print('more')")
    assert done.output == "out  \nmore\nSTDERR: err" and done.result.stdout == "  out  \nmore\n"
    assert executor(None).execute("pass").output == ""


@pytest.mark.requirement("C15")
def test_cut_output_says_that_it_was_cut():
    short = executor(None, max_output_size=2000)
    assert short.execute("print('x' * 2000)").output == "x" * 2000
    assert short.execute("print('x' * 2001)").output == "x" * 2000 + "\n... (output truncated)"
    assert short.execute("print('x' * 20000)").output == "x" * 2000 + "\n... (output truncated)"


@pytest.mark.requirement("C16")
def test_verbose_speaks_on_standard_error_alone(capfd):
    executor(None, verbose=True).execute("1")
    out, err = capfd.readouterr()
    assert out == "" and "executing 1 characters" in err and "done after" in err
    executor(None).execute("1")
    assert capfd.readouterr() == ("", "")


@pytest.mark.requirement("C17")
def test_the_check_is_a_pair_of_verdict_and_text():
    made = executor(None)
    assert made.validate_code("import os; os.system('rm -rf /')") == (True, None)
    assert made.validate_code("x = (") == (False, "Syntax error: '(' was never closed (line 1)")
    ran = made.validate_code("open('/workspace/trace', 'w'); 1 / 0")
    assert ran == (True, None) # nothing of it was executed


@pytest.mark.requirement("C19")
def test_an_error_of_a_tool_is_raised_inside_with_its_name():
    done = executor(ToolsApi()).execute("try:\n    tools.fail()\nexcept ToolError as error:\n    found = [error.name, error.message]\nfound")
    assert done.return_value == ["fail", "ValueError: no such thing"]
    assert executor(ToolsApi()).execute("tools.fail()").error == "ToolError: fail: ValueError: no such thing"


@pytest.mark.requirement("C20")
def test_calls_are_counted():
    done = executor(ToolsApi()).execute("tools.search('a')\ntry:\n    tools.fail()\nexcept ToolError:\n    pass")
    assert [(call["name"], call["ok"], call["error"]) for call in done.tool_calls] == [("search", True, None), ("fail", False, "failed")]
    assert all(call["ms"] >= 0 for call in done.tool_calls) and done.result.record["tool_calls"]["n"] == 2


def test_a_toolbox_has_the_rules_of_its_own():
    box = brig.Toolbox(ToolsApi(), deny="fail")
    assert executor(box).execute("tools.search('x', limit=1)").return_value == ["x 0"]
    with pytest.raises(TypeError, match="set them in the Toolbox"):
        executor(box, deny="search")
