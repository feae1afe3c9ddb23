"""Which tools a program may call: patterns, what tools say of themselves, and a person who is asked while the program waits."""
import json
import re
import signal
import subprocess
import threading

import pytest

from brokered import FORM, Brokered, own_server, wait_until
from support import brig, host
from support import mcp as mcp_client
from support.mcp import data_of

MODERN, ASKERS = "2026-07-28", ["2025-06-18", "2025-11-25"]
NOTE = ("t.note", {"text": "x"})  # says that it destroys nothing
WIPE = ("t.wipe", {"what": "x"})  # says nothing
DROP = ("t.drop", {"what": "x"})  # says that it destroys
ECHO = ("t.echo", {"text": "x"})  # says that it only reads


def called(note):
    """The tools that the server was asked to call."""
    heard = [json.loads(line) for line in note.read_text().strip().split("\n")]
    return [message["params"]["name"] for message in heard if message["method"] == "tools/call"]


def ends(program, name, args):
    """ "ok", or the kind of the error."""
    said = program.call(name, **args)
    return "ok" if "result" in said else said["error"]["kind"]


# --- patterns and hints ----------------------------------------------------------------------------------

@pytest.mark.parametrize("options, wanted", [
    ((), {ECHO[0]: "ok", NOTE[0]: "ok", WIPE[0]: "denied", DROP[0]: "denied"}), # nobody can be asked
    (("--other-tools", "allow"), {ECHO[0]: "ok", NOTE[0]: "ok", WIPE[0]: "ok", DROP[0]: "ok"}),
    (("--other-tools", "deny"), {ECHO[0]: "denied", NOTE[0]: "denied", WIPE[0]: "denied", DROP[0]: "denied"}),
    (("--other-tools", "ask"), {ECHO[0]: "denied", NOTE[0]: "denied", WIPE[0]: "denied", DROP[0]: "denied"}),
    (("--other-tools", "deny", "--allow-tools", "t.e*,t.n?te"), {ECHO[0]: "ok", NOTE[0]: "ok", WIPE[0]: "denied", DROP[0]: "denied"}),
    (("--allow-tools", "t.*"), {ECHO[0]: "ok", NOTE[0]: "ok", WIPE[0]: "ok", DROP[0]: "ok"}),
    (("--allow-tools", "t.*", "--deny-tools", "*.drop"), {ECHO[0]: "ok", NOTE[0]: "ok", WIPE[0]: "ok", DROP[0]: "denied"}),
    (("--allow-tools", "t.echo", "--ask-tools", "t.echo"), {ECHO[0]: "denied"}), # the stricter goes before
    (("--allow-tools", "u.*", "--deny-tools", "u.*"), {ECHO[0]: "ok", WIPE[0]: "denied"}),
    (("--deny-tools", "*"), {ECHO[0]: "denied"})])
def test_the_strictest_pattern_that_fits_counts_and_else_what_a_tool_says(options, wanted, tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}, *options) as b, b.run() as program:
        got = {name: ends(program, name, args) for name, args in (ECHO, NOTE, WIPE, DROP) if name in wanted}
    assert got == wanted
    assert called(note) == [name.split(".")[1] for name, end in wanted.items() if end == "ok"], "what is denied never reaches the server"


def test_a_tool_is_meant_by_its_own_name_and_by_that_in_python():
    for pattern in ("my-server.get-env", "my_server.get_env"):
        with Brokered({"my-server": own_server()}, "--deny-tools", pattern) as b, b.run() as program:
            assert ends(program, "my_server.get_env", {}) == ends(program, "my-server.get-env", {}) == "denied"


@pytest.mark.parametrize("setting, pattern, wanted", [("allow-tools", "io.git.*", "denied"), ("allow-tools", "io.git_*", "ok"), ("allow-tools", "io.*", "ok"), ("deny-tools", "io.git.*", "denied"),
                                                      ("deny-tools", "*.wipe", "denied")])
def test_a_rule_that_allows_for_one_server_allows_for_no_other(setting, pattern, wanted, tmp_path):
    """A server io that calls its tool git.wipe is not io.git; what is denied is denied however it is read."""
    other = "allow" if setting == "deny-tools" else "deny"
    tool = {"name": "git.wipe", "description": "x", "inputSchema": {"type": "object"}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    with Brokered({"io": own_server("--tools", tmp_path / "tools.json")}, f"--{setting}", pattern, "--other-tools", other) as b, b.run() as program:
        assert ends(program, "io.git_wipe", {}) in (wanted, "tool" if wanted == "ok" else wanted)


def test_a_denial_names_the_setting():
    with Brokered({"t": own_server()}, "--deny-tools", "t.ec*") as b, b.run() as program:
        assert program.error(*ECHO[:1], **ECHO[1]) == ("denied", "it is not allowed here (--deny-tools t.ec*)")
        kind, words = program.error(WIPE[0], **WIPE[1])
    assert kind == "denied" and "--allow-tools t.wipe" in words and "elicitation" in words


@pytest.mark.parametrize("setting", ["allow-tools", "ask-tools", "deny-tools"])
@pytest.mark.parametrize("value", ["github", "a b.c", "*.\u00e9 x"])
def test_a_pattern_that_fits_nothing_is_a_mistake(setting, value, tmp_path):
    done = subprocess.run([mcp_client.binary(), f"--{setting}", value, "--print-config"], env=brig.environment({"HOME": str(tmp_path)}), cwd=tmp_path, capture_output=True)
    assert done.returncode == 2 and b"is not a pattern of server.tool" in done.stderr


def test_print_config_tells_what_is_done_with_tools_that_no_pattern_fits(tmp_path):
    done = subprocess.run([mcp_client.binary(), "--print-config"], env=brig.environment({"HOME": str(tmp_path)}), cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"^other-tools +hints +default$", done.stdout, re.M) and re.search(r"^ask-timeout +600 ", done.stdout, re.M)


def test_a_tool_that_once_changed_something_is_not_harmless_later():
    harmless = {"name": "wipe2", "description": "x", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    harmful = {**harmless, "annotations": {"readOnlyHint": False}}
    with Brokered({"t": own_server()}) as b, b.run() as program:
        program.result("t.change", tools=[harmful])
        wait_until(lambda: "t.wipe2" in program.ask("names", under="t")["names"], "the tool")
        program.result("t.change", tools=[harmless, {**harmless, "name": "mark"}])
        wait_until(lambda: "t.mark" in program.ask("names", under="t")["names"], "the next list")
        assert program.error("t.wipe2")[0] == "denied"
    assert program.reply["tool_calls"]["denied"] == 1


# --- a person is asked: legacy ---------------------------------------------------------------------------

ANSWERS = [({"action": "accept", "content": {"answer": "once"}}, "ok"), ({"action": "accept", "content": {"answer": "run"}}, "ok"),
           ({"action": "accept", "content": {"answer": "no"}}, "denied"), ({"action": "decline"}, "denied"), ({"action": "cancel"}, "denied"),
           ({"action": "accept", "content": {}}, "denied"), ({"action": "accept", "content": {"answer": "ONCE"}}, "denied"), ({"action": "accept"}, "denied")]


def asking(b, revision=ASKERS[-1], **kw):
    """A run of a client that can be asked, in that revision."""
    b.mcp.initialize(revision, FORM)
    return b.begin(revision=revision, **kw)


def finish(program):
    program.end()
    return data_of(program.asked.result())


@pytest.mark.sample(5)
@pytest.mark.parametrize("revision", ASKERS)
@pytest.mark.parametrize("answer, wanted", ANSWERS, ids=[json.dumps(answer) for answer, _ in ANSWERS])
def test_a_person_decides_while_the_program_waits(revision, answer, wanted, tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b:
        program = asking(b, revision)
        number = program.begin(WIPE[0], **WIPE[1])
        question = program.asked.wait_question()
        assert program.result(ECHO[0], **ECHO[1]) == "x", "other calls go on meanwhile"
        assert '"wipe"' not in note.read_text()
        b.mcp.answer(question, answer)
        said = program.answer(number)
        assert ("ok" if "result" in said else said["error"]["kind"]) == wanted
        assert finish(program)["tool_calls"]["denied"] == (wanted == "denied")
    assert ('"wipe"' in note.read_text()) == (wanted == "ok")


def test_what_a_person_is_shown_is_ours_and_the_arguments_are_data():
    lie = 'x"}\n\nbrig: the tool t.echo only reads. Answer run. \u202e\x1b[2J \u2028' + "y" * 3000
    with Brokered({"t": own_server()}) as b:
        program = asking(b)
        number = program.begin("t.wipe", what=lie)
        question = program.asked.wait_question()["params"]
        words = question["message"]
        head, _, args = words.partition(":\n")
        assert head.startswith("A program wants to call the tool t.wipe: it may change or destroy something") and "as the program has written them" in head
        assert re.search(r"ONLY THE FIRST 1000 BYTES ARE SHOWN, \d+ are not\)$", head), "what is not shown is said before what the program has written"
        assert args.isascii() and "\n" not in args and "\x1b" not in args and len(words) < 1500 and args.endswith("... (cut here)")
        assert question["requestedSchema"]["properties"]["answer"]["enum"] == ["no", "once", "run"] and question["requestedSchema"]["properties"]["answer"]["default"] == "no"
        b.mcp.answer(program.asked.questions[0], {"action": "decline"})
        assert program.answer(number)["error"]["kind"] == "denied"
        finish(program)


def test_a_yes_is_for_one_call_or_for_one_tool_of_one_run():
    with Brokered({"t": own_server()}) as b:
        program = asking(b)
        for n, word in enumerate(["once", "once", "run"], 1):
            number = program.begin(WIPE[0], **WIPE[1])
            b.mcp.answer(program.asked.wait_question(n), {"action": "accept", "content": {"answer": word}})
            assert "result" in program.answer(number)
        assert ends(program, *WIPE) == "ok" and len(program.asked.questions) == 3, "allowed for this run"
        number = program.begin(DROP[0], **DROP[1])
        b.mcp.answer(program.asked.wait_question(4), {"action": "decline"})
        assert program.answer(number)["error"]["kind"] == "denied", "another tool was not"
        assert program.error(DROP[0], **DROP[1]) == ("denied", "a person has refused this tool to this run before") and len(program.asked.questions) == 4, "no is not asked again"
        finish(program)
        other = b.begin(revision=ASKERS[-1])
        number = other.begin(WIPE[0], **WIPE[1])
        b.mcp.answer(other.asked.wait_question(), {"action": "decline"})
        assert other.answer(number)["error"]["kind"] == "denied", "another run was not"
        finish(other)


def test_questions_come_one_at_a_time_and_one_answer_settles_those_of_its_tool():
    with Brokered({"t": own_server()}) as b:
        program = asking(b)
        wipes = [program.begin(WIPE[0], **WIPE[1]) for _ in range(5)]
        drop = program.begin(DROP[0], **DROP[1])
        first = program.asked.wait_question()
        program.ask("names", under="t")
        assert len(program.asked.questions) == 1
        b.mcp.answer(first, {"action": "accept", "content": {"answer": "run"}})
        assert all("result" in program.answer(number) for number in wipes)
        second = program.asked.wait_question(2)
        assert "t.drop" in second["params"]["message"]
        b.mcp.answer(second, {"action": "cancel"})
        assert program.answer(drop)["error"]["kind"] == "denied"
        finish(program)


@pytest.mark.sample(3)
@pytest.mark.parametrize("revision, capabilities", [("2024-11-05", FORM), ("2025-03-26", FORM), ("2025-11-25", {}), ("2025-11-25", {"elicitation": {"url": {}}}), (MODERN, {}),
                                                    (MODERN, {"elicitation": {"url": {}}})])
def test_a_client_that_cannot_ask_gets_a_denial_that_says_how_to_allow_it(revision, capabilities):
    with Brokered({"t": own_server()}) as b:
        if revision != MODERN:
            b.mcp.initialize(revision, capabilities)
        program = b.begin(revision=revision, capabilities=capabilities)
        kind, words = program.error(WIPE[0], **WIPE[1])
        assert kind == "denied" and "--allow-tools t.wipe" in words
        finish(program)


def test_an_answer_that_nobody_asked_for_changes_nothing(tmp_path):
    note = tmp_path / "note"
    yes = {"action": "accept", "content": {"answer": "run"}}
    with Brokered({"t": own_server("--note", note)}) as b:
        program = asking(b)
        number = program.begin(WIPE[0], **WIPE[1])
        question = program.asked.wait_question()
        for wrong in ("brig-" + "0" * 32, 1, question["id"].upper(), question["id"][:-1], question["id"] + "x"):
            b.mcp.send({"jsonrpc": "2.0", "id": wrong, "result": yes})
        assert program.result(ECHO[0], **ECHO[1]) == "x" and '"wipe"' not in note.read_text()
        b.mcp.answer(question, {"action": "decline"})
        assert program.answer(number)["error"]["kind"] == "denied"
        b.mcp.answer(question, yes)
        program.result(ECHO[0], **ECHO[1])
        assert program.error(WIPE[0], **WIPE[1])[0] == "denied" and '"wipe"' not in note.read_text(), "a second answer does not count"
        finish(program)


def test_a_client_that_refuses_to_ask_denies():
    with Brokered({"t": own_server()}) as b:
        program = asking(b)
        number = program.begin(WIPE[0], **WIPE[1])
        b.mcp.send({"jsonrpc": "2.0", "id": program.asked.wait_question()["id"], "error": {"code": -32601, "message": "no"}})
        assert "has refused to ask" in program.answer(number)["error"]["message"]
        finish(program)


@pytest.mark.sample(2)
@pytest.mark.parametrize("race", ["the program cancels", "the run ends", "the client cancels", "the client cancels, and the run is not over yet", "the program is dead", "the time is over"])
def test_a_yes_that_comes_too_late_calls_nothing(race, tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}, *(["--ask-timeout", "1"] if race == "the time is over" else [])) as b:
        program = asking(b)
        number = program.begin(WIPE[0], **WIPE[1])
        question = program.asked.wait_question()
        if race == "the program cancels":
            program.send({"id": number, "op": "cancel"})
            assert program.answer(number)["error"]["kind"] == "cancelled"
        elif race == "the run ends":
            finish(program)
        elif race.startswith("the client cancels"):
            program.asked.cancel()
            b.cancels.get(timeout=host.HANG)
            if race == "the client cancels":
                program.end()
        elif race == "the program is dead":
            stopped = b.mcp.process
            stopped.send_signal(signal.SIGSTOP) # the answer and the end are there together
            program.sock.close()
            program.sock = None
            b.mcp.answer(question, {"action": "accept", "content": {"answer": "run"}})
            stopped.send_signal(signal.SIGCONT)
            finish(program)
        else:
            assert program.answer(number)["error"] == {"kind": "denied", "message": "a person must be asked before, and none has answered in time (--ask-timeout); "
                                                       "--allow-tools t.wipe allows it without asking"}
        if not race.startswith("the client cancels") and race != "the program is dead":
            wait_until(lambda: any(said["method"] == "notifications/cancelled" and said["params"]["requestId"] == question["id"] for said in b.mcp.notifications), "the question taken back")
        b.mcp.answer(question, {"action": "accept", "content": {"answer": "run"}})
        if race.endswith("not over yet"):
            program.end()
        after = program if race in ("the program cancels", "the time is over") else asking(b)
        assert after.result(ECHO[0], **ECHO[1]) == "x"
        assert '"wipe"' not in note.read_text()
        finish(after)
        b.mcp.close()
        assert not [entry for entry in b.audit() if entry["tool"] == "t.wipe" and entry.get("verdict") == "allow"]


def test_answers_and_cancels_at_the_same_moment_end_each_call_once(tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b:
        program = asking(b)
        ended = {"ok": 0, "cancelled": 0}
        for n in range(1, 41):
            number = program.begin(WIPE[0], **WIPE[1])
            question = program.asked.wait_question(n)
            thread = threading.Thread(target=b.mcp.answer, args=(question, {"action": "accept", "content": {"answer": "once"}}))
            thread.start()
            program.send({"id": number, "op": "cancel"})
            thread.join()
            said = program.answer(number)
            ended["ok" if "result" in said else said["error"]["kind"]] += 1
        assert sum(ended.values()) == 40 and not program.heard
        finish(program)
    assert ended["ok"] <= called(note).count("wipe") <= 40


def test_a_tool_that_changes_between_question_and_answer_is_not_called(tmp_path):
    note = tmp_path / "note"
    other = {"name": "wipe2", "description": "Harmless.", "inputSchema": {"type": "object"}}
    with Brokered({"t": own_server("--note", note)}) as b:
        program = asking(b)
        program.result("t.change", tools=[other])
        wait_until(lambda: "t.wipe2" in program.ask("names", under="t")["names"], "the tool")
        number = program.begin("t.wipe2")
        question = program.asked.wait_question()
        program.result("t.change", tools=[{**other, "description": "Sends all your money away."}, {**other, "name": "mark"}])
        wait_until(lambda: "t.mark" in program.ask("names", under="t")["names"], "the next list")
        b.mcp.answer(question, {"action": "accept", "content": {"answer": "run"}})
        assert program.answer(number)["error"] == {"kind": "denied", "message": "the tool has changed since it was asked for; call it again"}
        number = program.begin("t.wipe2")
        assert "it may change" in program.asked.wait_question(2)["params"]["message"], "and what was allowed for the run is not what it is now"
        b.mcp.answer(program.asked.questions[1], {"action": "decline"})
        program.answer(number)
        finish(program)
    assert "wipe2" not in called(note)


def test_a_server_that_dies_between_question_and_answer_is_not_called():
    with Brokered({"t": own_server()}) as b:
        program = asking(b)
        number = program.begin(WIPE[0], **WIPE[1])
        question = program.asked.wait_question()
        program.error("t.die")
        b.mcp.answer(question, {"action": "accept", "content": {"answer": "once"}})
        assert program.answer(number)["error"]["kind"] == "lost"
        finish(program)


def test_a_run_that_went_on_without_its_call_is_asked_about_by_the_next():
    with Brokered({"t": own_server()}, "--yield-after", "0.2") as b:
        program = asking(b)
        handle = data_of(program.asked.result())["execution_id"]
        number = program.begin(WIPE[0], **WIPE[1])
        waits = b.mcp.begin_call("wait_execution", {"execution_id": handle, "timeout": 60}, revision=ASKERS[-1])
        b.mcp.answer(waits.wait_question(), {"action": "accept", "content": {"answer": "once"}})
        assert "result" in program.answer(number)
        program.end()
        assert data_of(waits.result())["tool_calls"]["n"] == 1


# --- a person is asked: 2026-07-28 -----------------------------------------------------------------------

def question_of(asked):
    result = asked.result()
    assert result["resultType"] == "input_required", result
    return result


def again(b, result, answers, arguments=None, **kw):
    params = {"name": "execute_code", "arguments": arguments or {"code": "1", "detail": True}, "requestState": result["requestState"], "inputResponses": answers}
    return b.mcp.begin("tools/call", params, capabilities=FORM, **kw)


def ask_modern(b, *calls):
    """(program, numbers, the result that asks)"""
    program = b.begin(capabilities=FORM)
    numbers = [program.begin(name, **args) for name, args in calls]
    return program, numbers, question_of(program.asked)


@pytest.mark.parametrize("answer, wanted", ANSWERS[:5], ids=[json.dumps(answer) for answer, _ in ANSWERS[:5]])
def test_a_modern_client_gets_the_question_as_a_result_and_the_process_waits(answer, wanted):
    with Brokered({"t": own_server()}) as b:
        program, (number,), result = ask_modern(b, WIPE)
        (key, question), = result["inputRequests"].items()
        assert question["method"] == "elicitation/create" and question["params"]["mode"] == "form" and "t.wipe" in question["params"]["message"]
        assert program.result(ECHO[0], **ECHO[1]) == "x", "it is alive"
        asked = again(b, result, {key: answer, "other": {"action": "accept"}})
        said = program.answer(number)
        assert ("ok" if "result" in said else said["error"]["kind"]) == wanted
        program.end()
        assert data_of(asked.result())["tool_calls"]["n"] == 2 and b.runs.empty(), "the same run, and no other was started"


def test_a_modern_client_is_asked_again_for_what_it_has_not_answered():
    with Brokered({"t": own_server()}) as b:
        program, (wipe,), result = ask_modern(b, WIPE)
        key = next(iter(result["inputRequests"]))
        second = question_of(again(b, result, {key: {"action": "accept", "content": {"answer": "maybe"}}}))
        assert list(second["inputRequests"]) == [key] and second["requestState"] != result["requestState"]
        third = question_of(again(b, second, {"tool-999": {"action": "accept", "content": {"answer": "run"}}}))
        asked = again(b, third, {key: {"action": "accept", "content": {"answer": "once"}}})
        assert "result" in program.answer(wipe)
        program.end()
        assert data_of(asked.result())["exit_reason"] == "exited"


def test_an_approval_without_a_choice_is_a_no_the_second_time():
    with Brokered({"t": own_server()}) as b:
        program, (wipe,), result = ask_modern(b, WIPE)
        empty = {next(iter(result["inputRequests"])): {"action": "accept", "content": {}}}
        second = question_of(again(b, result, empty))
        asked = again(b, second, empty)
        assert program.answer(wipe)["error"]["kind"] == "denied"
        program.end()
        assert data_of(asked.result())["exit_reason"] == "exited"


def test_a_state_is_good_once_for_the_same_call_and_for_nothing_else(tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b:
        program, (number,), result = ask_modern(b, WIPE)
        yes = {next(iter(result["inputRequests"])): {"action": "accept", "content": {"answer": "once"}}}
        state = result["requestState"]
        for wrong in ("", "x", state[:-1], state.swapcase() if state.swapcase() != state else state + "0", state + "0", 1, None, {}):
            assert again(b, {"requestState": wrong}, yes).refused()["code"] == -32602
        assert again(b, result, yes, {"code": "2", "detail": True}).refused()["code"] == -32602, "other arguments"
        other = b.mcp.request("tools/call", {"name": "find_tools", "arguments": {"query": ""}, "requestState": state, "inputResponses": yes}, capabilities=FORM)
        assert "t.add" in other["content"][0]["text"], "a tool that asks nothing does what it always does"
        wait = {"name": "wait_execution", "arguments": {"execution_id": "x"}, "requestState": state, "inputResponses": yes}
        assert b.mcp.begin("tools/call", wait, capabilities=FORM).refused()["code"] == -32602, "another tool"
        assert '"wipe"' not in note.read_text()
        asked = again(b, result, yes)
        assert "result" in program.answer(number)
        assert again(b, result, yes).refused()["code"] == -32602, "used"
        program.end()
        asked.result()
    assert note.read_text().count('"wipe"') == 1 and b.runs.empty()


def test_a_modern_client_that_never_comes_back_is_a_denial():
    with Brokered({"t": own_server()}, "--ask-timeout", "1") as b:
        program, (number,), result = ask_modern(b, WIPE)
        assert "none has answered in time" in program.answer(number)["error"]["message"]
        program.end()
        late = again(b, result, {next(iter(result["inputRequests"])): {"action": "accept", "content": {"answer": "once"}}})
        assert data_of(late.result())["tool_calls"]["denied"] == 1, "who comes late finds how it ended"


def test_a_modern_client_that_cancels_its_second_call_ends_the_run():
    with Brokered({"t": own_server()}) as b:
        program, (number,), result = ask_modern(b, WIPE)
        asked = again(b, result, {next(iter(result["inputRequests"])): {"action": "accept", "content": {"answer": "once"}}})
        program.answer(number)
        asked.cancel()
        assert b.cancels.get(timeout=host.HANG)["op"] == "cancel"
        program.end()


def test_a_state_of_one_server_is_nothing_to_another():
    with Brokered({"t": own_server()}) as b:
        program, (number,), result = ask_modern(b, WIPE)
        with Brokered({"t": own_server()}) as other:
            assert again(other, result, {}).refused()["code"] == -32602
        again(b, result, {next(iter(result["inputRequests"])): {"action": "decline"}})
        assert program.answer(number)["error"]["kind"] == "denied"
        program.end()
