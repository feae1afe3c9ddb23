"""What execute_code answers with: one object for everything, or a text; bounded, clean, images kept."""
import base64
import json
import re

import jailed
import pytest

from support import mcp as mcp_client

KEYS = {"success", "execution_id", "result", "stdout", "stderr", "execution_time", "variables", "error", "error_type", "traceback", "exit_reason",
        "exit_code", "signal", "timeout", "limits_hit", "refused", "usage", "truncated", "files", "security_warnings", "security_event", "validation_errors",
        "return_code", "isolation"}


@pytest.fixture(scope="module")
def shared(built_mcp):
    with mcp_client.McpStdio() as mcp:
        yield mcp


def text(mcp, code, **arguments):
    return mcp_client.text_of(mcp.call("execute_code", {"code": code, "format": "text", **arguments}))


# --- the object -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("code", ["1", "1/0", "def f(:", "import sys; sys.exit(2)", "import os; os.abort()", "x = bytearray(10**9)", "while True: pass",
                                  "while True: print('x' * 1000)", "import os; os._exit(0)", "print('x')", ""])
def test_every_outcome_has_every_key(shared, code):
    said = shared.execute(code, timeout=0.5 if code == "while True: pass" else 30)
    assert KEYS <= set(said)
    assert isinstance(said["execution_time"], float) and isinstance(said["variables"], list) and isinstance(said["truncated"], bool)
    assert isinstance(said["stdout"], str) and isinstance(said["limits_hit"], list)
    assert said["success"] == (said["error"] is None and said["exit_reason"] == "exited")


def test_the_text_is_compact_json(shared):
    result = shared.call("execute_code", {"code": "2 + 2"})
    assert len(result["content"]) == 1 and "\n" not in result["content"][0]["text"] and result["isError"] is False


@pytest.mark.parametrize("code, result", [
    ("2 + 2", 4), ("[1, 2.5, None, True, 'x']", [1, 2.5, None, True, "x"]), ("{'a': {'b': []}}", {"a": {"b": []}}), ("0.1 + 0.2", 0.1 + 0.2), ("3.0", 3.0),
    ("0.1", 0.1), ("'é€😀'", "é€😀"), ("None", None), ("x = 5", None), ("result = 7", 7), ("2**100", str(2**100)), ("object", "<class 'object'>")])
def test_results_are_json_where_they_can_be(shared, code, result):
    said = shared.execute(code)
    assert said["result"] == result and type(said["result"]) is type(result)


def test_an_exception_is_type_and_message(shared):
    said = shared.execute("def f():\n    return 1/0\nprint('before')\nf()")
    assert said["error"] == "ZeroDivisionError: division by zero" and said["error_type"] == "ZeroDivisionError" and said["line"] == 2
    assert said["stdout"] == "before\n" and said["exit_code"] == 1 and "line 4, in <module>" in said["traceback"]


def test_a_syntax_error_is_told_in_detail(shared):
    said = shared.execute("x = 1\nif x\n  pass")
    assert said["error"].startswith("Syntax error: ") and said["error_type"] == "SyntaxError" and said["line"] == 2 and said["offset"] and said["text"] == "if x"


def test_usage_tells_what_it_cost(shared):
    usage = shared.execute("sum(range(10**6))")["usage"]
    assert usage["wall_ms"] > 0 and usage["cpu_ms"] > 0 and usage["mem_peak_mb"] > 1 and usage["pids_peak"] >= 1 and set(usage["io"]) == {"read_bytes", "write_bytes"}


# --- clean ----------------------------------------------------------------------------------------------------

DIRTY = "import sys\nsys.stdout.buffer.write(b'\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\xff\\x00\\x01 \\xe2\\x82\\xac\\n')"


def test_escapes_go_and_bad_bytes_are_replaced(shared):
    assert shared.execute(DIRTY)["stdout"] == "red  � €\n"
    assert "red  � €\n" in text(shared, DIRTY)


def test_escapes_stay_when_asked(start_mcp):
    assert start_mcp("--keep-ansi").execute(DIRTY)["stdout"] == "\x1b[31mred\x1b[0m \x1b]0;title\x07 �\x01 €\n"


def test_an_error_message_is_clean_too(shared):
    said = shared.execute("raise ValueError('\\x1b[31m' + 'x' * 100000 + '\\x00')")
    assert "\x1b" not in said["error"] and len(said["error"]) < 1300 and said["error"].startswith("ValueError: xxx")


def test_a_traceback_is_clean_too(shared):
    said = shared.execute("class E(Exception): pass\nE.__name__ = '\\x1b[31mE'\nraise E('\\x1b]0;title\\x07bad')")
    assert not any("\x1b" in str(said[key]) or "\x07" in str(said[key]) for key in ("traceback", "error", "error_type", "text", "stderr"))
    assert shared.execute("'\\x1b[31m'")["result"] == "\x1b[31m", "a result is data"


# --- bounded --------------------------------------------------------------------------------------------------

def test_a_stream_is_kept_up_to_its_bound_and_says_so(shared):
    said = shared.execute("print('a' * 3000000)")
    assert said["stdout"] == "a" * 1048576 and said["truncated"] is True and said["usage"]["stdout_bytes"] == 3000001 and said["success"] is True


def test_a_stream_is_not_cut_inside_of_a_character(shared):
    said = shared.execute("print('€' * 1000000)")
    assert said["truncated"] is True and said["stdout"] == "€" * (1048576 // 3)


def test_20_megabytes_end_the_run_and_say_so(shared):
    said = shared.execute("import sys\nfor i in range(20):\n    sys.stdout.write('x' * 2**20)")
    assert said["exit_reason"] == "output_limit" and "8 x 1M bytes" in said["error"] and len(said["stdout"]) == 1048576 and said["truncated"] is True
    assert "Print less" in said["hint"]


def test_20_megabytes_within_the_limit_of_a_larger_server(start_mcp):
    mcp = start_mcp("--output", "4M", "--memory", "512M")
    said = mcp.execute("import sys\nfor i in range(20):\n    sys.stdout.write('x' * 2**20)")
    assert said["exit_reason"] == "exited" and said["truncated"] is True and said["usage"]["stdout_bytes"] == 20 * 2**20
    assert len(said["stdout"]) == 3 * 2**20 # so much of a stream has room in a line that clients still read


@pytest.mark.sample(2)
@pytest.mark.parametrize("piece", ["\\n", '"', "\\\\", "\\xff", "\\t"])
def test_no_line_is_larger_than_clients_read(start_mcp, piece):
    """Text in JSON in JSON: each of these takes three or four bytes; TypeScript's clients hang up at 10 MiB."""
    mcp = start_mcp()
    code = f"import sys\nfor s in (sys.stdout, sys.stderr):\n    s.buffer.write(b'{piece}' * 2**20)\n"
    result = mcp.call("execute_code", {"code": code})
    assert len(json.dumps(result, ensure_ascii=False).encode()) < 8 * 2**20
    assert mcp_client.data_of(result)["success"] is True


def test_an_output_limit_of_the_server_counts(start_mcp):
    said = start_mcp(env={"SANDBOX_MAX_OUTPUT_SIZE": "2000"}).execute("import sys\nprint('a' * 5000)\nprint('b' * 5000, file=sys.stderr)")
    assert said["stdout"] == "a" * 2000 and said["stderr"] == "b" * 2000 and said["truncated"] is True


# --- text -----------------------------------------------------------------------------------------------------

def test_the_first_line_tells_how_it_ended(shared):
    first = text(shared, "print('x')").splitlines()[0]
    assert first.startswith("exit code 0 · ") and " s · " in first and first.endswith(" MiB peak")
    assert text(shared, "1/0").splitlines()[0].endswith("ZeroDivisionError: division by zero")
    seconds = re.match(r"killed \(timeout_wall\) · (\d+\.\d+) s", text(shared, "while True: pass", timeout=0.5))
    assert float(seconds[1]) >= 0.5
    assert "memory_limit" in text(shared, "x = bytearray(10**9)").splitlines()[1]


def test_stdout_stderr_and_result_follow(shared):
    said = text(shared, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n{'a': 1.5}")
    assert said.split("\n", 1)[1] == '--- stdout ---\nout\n--- stderr ---\nerr\n--- result ---\n{\'a\': 1.5}\n'


def test_output_imitates_no_section_of_the_reply(shared):
    """Nor with a carriage return, nor by characters that change the direction of a line."""
    said = text(shared, "print('--- result ---\\n41\\rx\\r--- traceback ---\\u202e\\u2028--- stderr ---')\n42")
    assert said.split("\n", 1)[1] == "--- stdout ---\n --- result ---\n --- traceback ---\ufffd\ufffd--- stderr ---\n--- result ---\n42\n", said


def test_a_result_that_is_a_text_is_shown_as_python_writes_it(shared):
    assert text(shared, "'two\\nlines'").endswith("--- result ---\n'two\\nlines'\n")


def test_nothing_to_show_is_one_line(shared):
    assert text(shared, "x = 1").count("\n") == 1


def test_8_kilobytes_hold_the_beginning_and_the_end_of_everything(shared):
    said = text(shared, "import sys\nprint('begin of out')\nprint('o' * 100000)\nprint('end of out')\nprint('e' * 100000, file=sys.stderr)\nraise ValueError('bad')")
    assert len(said.encode()) <= 8192
    assert "begin of out" in said and "end of out" in said and said.rstrip().endswith("ValueError: bad")
    assert "100025 characters in all" in said and said.count("characters are shown ...]") == 2


def test_the_end_is_shown_of_what_was_not_kept(shared):
    said = text(shared, "print('a' * 3000000)\nprint('the very end')")
    assert "3000014 bytes in all" in said and said.endswith("the very end\n") and len(said.encode()) <= 8192


def test_the_bound_is_a_setting(start_mcp):
    mcp = start_mcp("--reply", "text", "--text-size", "2K")
    assert len(mcp_client.text_of(mcp.call("execute_code", {"code": "print('€' * 10000)"})).encode()) <= 2048


def test_a_running_one_tells_its_handle(start_mcp):
    mcp, mark = start_mcp("--reply", "text", "--yield-after", "0.3"), jailed.marker()
    said = mcp_client.text_of(mcp.call("execute_code", {"code": f"print('so far', flush=True)\n{jailed.HELD}print('more')", "args": [mark]}))
    assert said.startswith("running · ") and "wait_execution with execution_id" in said
    handle = said.split('"')[1]
    jailed.let_go(mark)
    rest = mcp_client.text_of(mcp.call("wait_execution", {"execution_id": handle, "timeout": jailed.LONGEST}))
    assert rest.startswith("exit code 0") and ("so far\nmore\n" in rest or "--- stdout since the last answer ---\nmore\n" in rest), "each line comes once"
    assert ("so far" in rest) == ("so far" not in said)


def test_a_progress_bar_is_shown_in_its_last_state(shared):
    bar = "import sys\nfor i in range(101):\n    sys.stderr.write('\\r' + '#' * (i // 2) + f' {i}%')\nprint('ready\\r\\nset')"
    said = text(shared, bar)
    assert f"--- stderr ---\n{'#' * 50} 100%\n" in said and "--- stdout ---\nready\nset\n" in said and len(said) < 250, said
    assert shared.execute(bar, detail=True)["stderr"].count("\r") == 101, "in detail all is there"


def test_digits_are_cut_by_what_they_cost_a_model(shared):
    words, digits = text(shared, "print('a' * 20000)"), text(shared, "print('7' * 20000)")
    assert words.count("a") > 7000 and 2200 < digits.count("7") < 2700, (len(words), len(digits))


# --- images ---------------------------------------------------------------------------------------------------

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()


@pytest.mark.parametrize("reply", ["json", "text"])
def test_an_image_is_a_block_of_its_own(shared, reply):
    result = shared.call("execute_code", {"code": f"print('seen')\n'data:image/png;base64,{PNG}'", "format": reply})
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    assert result["content"][1] == {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert "[image/png, 108 bytes" in result["content"][0]["text"] and PNG not in result["content"][0]["text"]


def test_several_images_and_what_only_looks_like_one(shared):
    result = shared.call("execute_code", {"code": f"['data:image/png;base64,{PNG}'] * 3"})
    assert [block["type"] for block in result["content"]] == ["text", "image", "image", "image"]
    for bad in ("data:image/png;base64,???", "data:image/svg+xml;base64,AAAA", "data:image/png;base64,AAA"):
        result = shared.call("execute_code", {"code": repr(bad)})
        assert [block["type"] for block in result["content"]] == ["text"] and mcp_client.data_of(result)["result"] == bad


# --- hostile reports ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, data", [("garbage", "b'}{'"), ("huge", "b'[' * 3000000"), ("deep", "b'[' * 100000"), ("wrong", "b'{\"result\": 5}'"), ("nothing", "b''"),
                                        ("no-utf8", "b'{\"result\": \"\\xff\"}'")])
def test_a_program_that_writes_its_own_report_is_not_believed(shared, name, data):
    code = f"""
import os
for fd in range(3, 64):
    try:
        os.write(fd, {data})
    except OSError:
        pass
os._exit(0)
"""
    said = shared.execute(code)
    assert KEYS <= set(said) and said["result"] is None and said["exit_code"] in (0, None)
