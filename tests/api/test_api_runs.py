"""A run in four spellings: the same program by each interface, and what each calls its end."""
import json
import threading

import pytest

from support import host
from support.api import DESCRIPTION, b64

FOREVER = "while True: pass"
BOMB = "x = b'x' * (1 << 40)"
GREEDY = "x = bytearray(2 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1"
FLOOD = "import os\nwhile True: os.write(1, b'x' * 65536)"

# program, limits in seconds; run_result.status and return_code; process_status; Piston's status, code, signal; Judge0's status id; brig.exit_reason
ENDS = {
    "finished": ("print('hi')", {}, ("Finished", 0), "completed", (None, 0, None), 3, "exited"),
    "raised": ("raise ValueError('x')", {}, ("Error", 1), "error", ("RE", 1, None), 11, "exited"),
    "exited": ("raise SystemExit(7)", {}, ("Error", 7), "error", ("RE", 7, None), 11, "exited"),
    "signal": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", {}, ("Error", 139), "error", ("SG", None, "SIGSEGV"), 7, "signaled"),
    "abort": ("import os; os.abort()", {}, ("Error", 134), "error", ("SG", None, "SIGABRT"), 10, "signaled"),
    "time": (FOREVER, {"s": 0.5}, ("TimeLimitExceeded", 124), "timeout", ("TO", None, "SIGKILL"), 5, "timeout_wall"),
    "memory": (GREEDY, {}, ("Error", 137), "error", ("SG", None, "SIGKILL"), 12, "oom"),
    "flood": (FLOOD, {}, ("Error", 153), "error", ("OL", None, "SIGKILL"), 8, "output_limit"),
}


@pytest.mark.sample(3, "time", "signal")
@pytest.mark.parametrize("row", ENDS.values(), ids=list(ENDS))
def test_each_interface_calls_the_end_of_a_program_by_its_own_word(api, row):
    code, limits, fusion, nemo, piston, judge0, reason = row
    seconds = limits.get("s", 20)
    said = api.run_code(code, run_timeout=seconds)
    assert (said["run_result"]["status"], said["run_result"]["return_code"]) == fusion
    assert said["status"] == ("Success" if fusion[1] == 0 else "Failed") and said["compile_result"] is None
    assert said["brig"]["exit_reason"] == reason
    assert api.execute(code, language="python", timeout=seconds)["process_status"] == nemo
    said = api.piston(code, run_timeout=seconds * 1000)["run"]
    assert (said["status"], said["code"], said["signal"]) == piston
    said = api.judge(code, wall_time_limit=seconds)
    assert said["status"]["id"] == judge0 and said["status"]["brig"]["exit_reason"] == reason


def test_a_limit_is_told_at_the_end_of_stderr_in_a_sentence_of_brigs_own(api):
    said = api.run_code("import sys; print('mine', file=sys.stderr, end='', flush=True)\nwhile True: pass", run_timeout=1)
    assert said["run_result"]["stderr"] == "mine\nbrig: the time limit was reached\n"


def test_what_a_program_prints_comes_back_as_it_was(api):
    code = "import sys\nsys.stdout.buffer.write('ä€😀\\n'.encode() + b'\\xff\\x00')\nprint('e', file=sys.stderr)"
    said = api.run_code(code)["run_result"]
    assert (said["stdout"], said["stderr"]) == ("ä€😀\n\ufffd\0", "e\n")
    said = api.ask("POST", "/submissions?wait=true&base64_encoded=true", {"source_code": b64(code), "language_id": 71}, 201)
    assert said["stdout"] == b64("ä€😀\n".encode() + b"\xff\0")


def test_files_go_in_and_come_out_by_their_paths(api):
    said = api.run_code("open('d/out.bin', 'wb').write(open('d/in.bin', 'rb').read()[::-1])", files={"d/in.bin": b64(b"\0\1\2")}, fetch_files=["d/out.bin", "not/there"])
    assert said["status"] == "Success" and said["files"] == {"d/out.bin": b64(b"\2\1\0")}
    said = api.piston("import other; print(other.x)", files=[{"content": "import other; print(other.x)"}, {"name": "other.py", "content": b64("x = 41"), "encoding": "base64"}])
    assert said["run"]["stdout"] == "41\n"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a/../../b", "main.py", "", "x" * 2000])
def test_a_path_that_climbs_is_refused_and_nothing_runs(api, path):
    said = api.run_code("print(1)", files={path: b64("x")}, status=400)
    assert "files" in said["error"] and said["brig"]["exit_reason"] == "bad_field"


def test_input_and_arguments_reach_the_program(api):
    assert api.run_code("print(input()[::-1])", stdin="abc\n")["run_result"]["stdout"] == "cba\n"
    assert api.execute("print(input()[::-1])", language="python", std_input="abc\n")["stdout"] == "cba\n"
    assert api.piston("import sys; print(sys.argv[1:], input())", stdin="x", args=["a b", "c"])["run"]["stdout"] == "['a b', 'c'] x\n"
    assert api.judge("import sys; print(sys.argv[1:], input())", stdin="x", command_line_arguments="a  b")["stdout"] == "['a', 'b'] x\n"


def test_bash_is_a_language_of_each_interface(api):
    code = "echo $1-$(cat)"
    assert api.run_code(code, language="bash", stdin="in")["run_result"]["stdout"] == "-in\n"
    assert api.execute(code, language="shell", std_input="in")["stdout"] == "-in\n"
    assert api.piston(code, language="bash", version="5", stdin="in", args=["a"])["run"]["stdout"] == "a-in\n"
    assert api.judge(code, language_id=46, stdin="in", command_line_arguments="a")["stdout"] == "a-in\n"


@pytest.mark.parametrize("ask", [
    lambda api: api.run_code("x", language="cobol", status=400),
    lambda api: api.execute("x", language="lean4", status=400),
    lambda api: api.piston("x", language="cobol", status=400),
    lambda api: api.piston("x", version="2.7", status=400),
    lambda api: api.judge("x", language_id=1, status=422),
    lambda api: api.ask("POST", "/run_code", {"code": 1}, 400),
    lambda api: api.ask("POST", "/run_code", {}, 400),
    lambda api: api.run_code("print(1)", run_timeout="soon", status=400),
    lambda api: api.run_code("print('\0')", status=400),
    lambda api: api.judge("", status=422),
    lambda api: api.judge("print(1)", status=422, enable_network=True),
    lambda api: api.judge("print(1)", status=422, callback_url="http://127.0.0.1:1/"),
    lambda api: api.ask("POST", "/submissions?base64_encoded=true", {"source_code": "%", "language_id": 71}, 422),
    lambda api: api.execute("1", status=400),
    lambda api: api.jupyter(status=400),
], ids=range(15))
def test_a_wrong_request_gets_one_sentence_and_no_run(api, ask):
    said = ask(api)
    assert said["error"] == said["message"] and len(said["error"]) > 10


def test_a_limit_above_the_ceiling_is_lowered_and_the_answer_says_so(api):
    said = api.run_code("print(1)", run_timeout=1e9)
    assert said["status"] == "Success" and "wall_ms" in said["brig"]["notes"][0]
    assert "notes" not in api.run_code("print(1)", run_timeout=5)["brig"]


# --- cells ---------------------------------------------------------------------------------------------

def test_cells_share_one_interpreter_and_stop_at_the_first_error(api):
    said = api.jupyter("x = 20", "print(x)\nx * 2 + 2", "raise KeyError('k')", "print('not reached')", files={"a.txt": b64("in")}, fetch_files=["a.txt"])
    assert said["status"] == "Failed" and said["driver"]["status"] == "Error" and len(said["cells"]) == 3
    assert said["cells"][1]["stdout"] == "20\n" and said["cells"][1]["display"] == [{"text/plain": "42"}]
    error, = said["cells"][2]["error"]
    assert (error["ename"], error["evalue"]) == ("KeyError", "'k'") and error["traceback"][0].startswith("Traceback")
    assert said["files"] == {"a.txt": b64("in")}
    assert api.jupyter("1 + 1")["status"] == "Success"


def test_a_cell_that_takes_too_long_ends_the_request_in_time(api):
    said = api.jupyter("print(1)", "while True: pass", "print(2)", total_timeout=2)
    assert said["status"] == "Failed" and said["driver"]["status"] == "TimeLimitExceeded" and len(said["cells"]) == 2


def test_cells_of_two_requests_do_not_see_each_other(api):
    api.jupyter("open('left', 'w').write('x'); y = 1")
    said = api.jupyter("import os\nprint(os.path.exists('left'), 'y' in globals())")
    assert said["cells"][0]["stdout"] == "False False\n"


# --- sessions of NeMo ----------------------------------------------------------------------------------

def test_a_session_keeps_its_variables_until_it_is_deleted(api):
    assert api.execute("x = 41", "s1")["new_session_created"]
    said = api.execute("x + 1", "s1")
    assert said["stdout"] == "42\n" and not said["new_session_created"]
    assert api.execute("print('x' in globals())", "s2")["stdout"] == "False\n"
    assert set(api.ask("GET", "/sessions")["sessions"]) >= {"s1", "s2"}
    api.ask("DELETE", "/sessions/s1")
    api.ask("DELETE", "/sessions/s1", status=404)
    assert api.execute("print('x' in globals())", "s1")["new_session_created"]
    api.ask("DELETE", "/sessions/s1"), api.ask("DELETE", "/sessions/s2")


def test_output_is_cut_where_the_client_wants(api):
    said = api.execute("print('ä' * 5000)", language="python", max_output_characters=10)
    assert said["stdout"] == "ä" * 10 + "<output cut>"
    assert api.execute("print('ä' * 9, end='')", language="python", max_output_characters=9)["stdout"] == "ä" * 9


# --- submissions ---------------------------------------------------------------------------------------

def finished(api, token, query="fields=*"):
    def done():
        said = api.ask("GET", f"/submissions/{token}?{query}")
        return said if said["status"]["id"] > 2 else None
    return host.poll(done)


def test_a_submission_is_judged_by_what_it_should_print(api):
    assert api.judge("print(1)", expected_output="1")["status"]["description"] == "Accepted"
    assert api.judge("print(1)", expected_output="2")["status"]["description"] == "Wrong Answer"
    assert api.judge("print(1); raise SystemExit(1)", expected_output="1")["status"]["id"] == 11


def test_a_batch_is_asked_for_later_by_its_tokens(api):
    rows = [{"source_code": f"print({n})", "language_id": 71, "expected_output": "1"} for n in range(3)] + [{"source_code": "x", "language_id": 0}]
    *tokens, wrong = api.ask("POST", "/submissions/batch", {"submissions": rows}, 201)
    assert "language_id" in wrong["error"]
    tokens = [row["token"] for row in tokens]
    assert [finished(api, token)["status"]["id"] for token in tokens] == [4, 3, 4]
    said = api.ask("GET", f"/submissions/batch?tokens={'%2C'.join(tokens)},{'0' * 36}&fields=stdout,status")["submissions"]
    assert [row and row["stdout"] for row in said] == ["0\n", "1\n", "2\n", None]
    api.ask("POST", "/submissions/batch", {"submissions": rows * 6}, 422)


def test_a_result_has_the_fields_that_were_asked_for(api):
    token = api.judge("print(1)", query="")["token"]
    whole = finished(api, token)
    assert whole["source_code"] == "print(1)" and whole["language_id"] == 71 and whole["finished_at"].endswith("Z")
    assert set(api.ask("GET", f"/submissions/{token}?fields=stdout,nonesuch")) == {"stdout"}
    api.ask("DELETE", f"/submissions/{token}")
    api.ask("GET", f"/submissions/{token}", status=404)


def test_what_judge0s_clients_ask_first_is_there(api):
    assert {71, 92, 100, 46} <= {row["id"] for row in api.ask("GET", "/languages")}
    assert api.ask("GET", "/languages/71")["source_file"] == "main.py" and api.ask("GET", "/languages/9", status=404)
    assert len(api.ask("GET", "/statuses")) == 14 and api.ask("GET", "/about")["version"]
    assert api.ask("GET", "/config_info")["enable_wait_result"]


# --- many at once --------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [32, pytest.param(256, marks=pytest.mark.nightly), pytest.param(2048, marks=pytest.mark.nightly(seconds=1800))])
def test_many_requests_at_once_wait_and_none_is_false(start_api, service, n):
    api, wrong = start_api("--wait", "600", env=service().env), []

    def one(i):
        try:
            said = api.run_code(f"print({i})")
            if said["run_result"]["stdout"] != f"{i}\n":
                wrong.append(said)
        except Exception as e: # noqa: BLE001  reported below, whatever it was
            wrong.append(repr(e))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


# --- the description -----------------------------------------------------------------------------------

def test_the_description_that_is_served_is_that_of_the_repository(api, start_api):
    served = api.ask("GET", "/openapi.json")
    assert served["openapi"] == "3.1.0" and served["paths"] == DESCRIPTION["paths"] and served["components"] == DESCRIPTION["components"]
    one = start_api("--apis", "piston").ask("GET", "/openapi.json")
    assert {path for path in one["paths"] if path.startswith(("/api", "/run", "/sub", "/exec"))} == {"/api/v2/runtimes", "/api/v2/execute"}
    text = json.dumps(DESCRIPTION)
    assert all(f'"#/components/schemas/{name}"' in text for name in DESCRIPTION["components"]["schemas"])
