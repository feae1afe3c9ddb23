"""Tools of other servers for programs: found, called, counted. The program is played by the test, the server is tool_server.py."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from brokered import Brokered, own_server, wait_until
from support import brig, host
from support.mcp import Refused, text_of

TOOLS = {"execute_code", "validate_code", "get_sandbox_info", "wait_execution", "cancel_execution", "read_file", "write_file", "list_files", "end_session"}
ERAS = ["modern", "legacy", "old", "exits"]


def test_without_servers_nothing_of_them_is_there(mcp):
    tools = mcp.list_tools()
    assert set(tools) == TOOLS and "tools." not in tools["execute_code"]["description"]
    assert tools["execute_code"]["annotations"]["readOnlyHint"] is True
    with pytest.raises(Refused, match="Unknown tool"):
        mcp.call("find_tools", {"query": "x"})
    assert "find_tools" not in mcp.request("server/discover")["instructions"]


def test_a_client_sees_one_tool_and_a_paragraph_and_no_list_of_theirs():
    with Brokered({"first": own_server(), "second": own_server()}) as b:
        tools = b.mcp.list_tools()
        said = tools["execute_code"]["description"]
        assert set(tools) == TOOLS | {"find_tools"}
        assert "first, second" in said and "get-env" not in json.dumps(tools) and len(said) < 1400
        assert "find_tools" in b.mcp.request("server/discover")["instructions"]
        hints = tools["execute_code"]["annotations"]
        assert (hints["readOnlyHint"], hints["destructiveHint"], hints["openWorldHint"]) == (False, True, True), "its programs can do what the tools can"


def test_who_says_that_it_only_reads_is_believed():
    with Brokered({"t": own_server()}, "--read-only-hint") as b:
        assert b.mcp.list_tools()["execute_code"]["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize("era", ERAS)
def test_servers_of_every_era_are_spoken_to(era, tmp_path):
    with Brokered({"t": own_server("--era", era, "--note", tmp_path / "note")}) as b, b.run() as program:
        assert program.result("t.echo", text="hällo \u2028") == "hällo \u2028"
        assert program.result("t.add", a=2) == {"sum": 3}
    heard = [json.loads(line)["method"] for line in (tmp_path / "note").read_text().strip().split("\n")]
    greeting = ["server/discover"] if era == "modern" else ["server/discover", "initialize", "notifications/initialized"]
    assert heard == [*greeting, "tools/list", "tools/call", "tools/call"]
    said = program.reply["tool_calls"]
    assert {key: said[key] for key in ("n", "failed", "denied", "names")} == {"n": 2, "failed": 0, "denied": 0, "names": {"t.echo": 1, "t.add": 1}}
    assert [(call["name"], call["verdict"]) for call in said["calls"]] == [("t.echo", "ok"), ("t.add", "ok")] and said["wait_ms"] >= sum(call["ms"] for call in said["calls"]) - 1


@pytest.mark.sample(0, "babbles")
@pytest.mark.parametrize("era", ["silent", "babbles"])
def test_a_server_that_does_not_answer_well_when_asked_for_its_era_is_an_old_one(era):
    with Brokered({"t": own_server("--era", era)}) as b, b.run() as program:
        assert program.result("t.echo", text="x") == "x"


def test_a_server_whose_list_is_none_of_json_rpc_is_lost_at_once():
    with Brokered({"t": own_server("--era", "lists-nothing")}) as b, b.run() as program:
        kind, words = program.error("t.echo", text="x")
    assert kind == "lost" and "tools/list: its answer is not valid JSON-RPC" in words


def test_a_server_of_an_unknown_revision_is_not_spoken_to():
    with Brokered({"t": own_server("--era", "odd")}) as b, b.run() as program:
        kind, words = program.error("t.echo", text="x")
    assert kind == "lost" and "1999-01-01" in words


def test_nothing_is_started_before_a_tool_is_wanted(tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note), "other": own_server("--note", tmp_path / "other")}) as b:
        b.mcp.list_tools()
        with b.run() as program:
            assert not note.exists()
            program.result("t.echo", text="x")
        assert note.exists() and not (tmp_path / "other").exists(), "of one server a tool was wanted"


def test_programs_look_up_what_there_is():
    with Brokered({"my-server": own_server("--pages", 4)}) as b, b.run() as program:
        names = program.ask("names", under="")["names"]
        assert names == sorted(names) and "my_server.get_env" in names and len(names) == 26
        assert program.ask("names", under="my_server.add")["names"] == ["my_server.add"]
        assert program.ask("names", under="nothing")["names"] == []
        found = program.ask("find", words="adds numbers", max=1)["tools"]
        assert found == [{"name": "my_server.add", "summary": "Adds two numbers.", "signature": "my_server.add(a: int, b: int = 1) -> dict"}]
        assert program.ask("find", words="xyzzy")["tools"] == []
        told = program.ask("describe", name="my_server.add")["tool"]
        assert told["name"] == "my_server.add" and told["inputSchema"]["required"] == ["a"] and told["outputSchema"]["type"] == "object"
        assert program.ask("describe", name="my_server.no")["error"]["kind"] == "not_found"
        assert program.result("my-server.get-env")["PATH"], "the names of the file and of the server will do as well"


def test_a_model_finds_tools_by_words():
    with Brokered({"t": own_server(), "gone": {"command": "/nowhere/at/all"}}) as b:
        said = text_of(b.mcp.call("find_tools", {"query": "destroys", "limit": 1}))
        assert said.startswith("tools.t.drop(what: str) -> Any\n    Destroys something else, and says so.\n") and "not there: gone: cannot start /nowhere/at/all" in said
        assert "No tool has these words" in text_of(b.mcp.call("find_tools", {"query": "xyzzy"}))
        assert text_of(b.mcp.call("find_tools", {"query": "", "limit": 50})).count("\n    ") == 26
        assert b.mcp.call("find_tools", {"query": 1})["isError"] is True


@pytest.mark.sample(4)
@pytest.mark.parametrize("name, args, kind, words", [
    ("t.fail", {}, "tool", "no luck today"), ("t.error", {}, "tool", "this server is closed (error -32050 of the server)"),
    ("t.nothing", {}, "not_found", "no such tool"), ("x.echo", {"text": "x"}, "not_found", "no server"), ("", {}, "not_found", "no server"),
    ("t", {}, "not_found", "no such tool"), ("t.echo", {}, "bad_arguments", "the argument text is missing"), ("t.echo", {"text": 1}, "bad_arguments", "text: expected string"),
    ("t.needs_input", {}, "tool", "cannot give"), ("x" * 600, {}, "not_found", "no server")])
def test_a_call_that_fails_says_how(name, args, kind, words):
    with Brokered({"t": own_server()}) as b, b.run() as program:
        said = program.call(name, **args)
    assert said["error"]["kind"] == kind and words in said["error"]["message"], said
    assert program.reply["tool_calls"]["failed"] == 1 and set(program.reply["tool_calls"]["names"]) <= {name}, "what a program invents is not named"


def test_what_is_no_text_comes_as_a_bundle_of_types():
    with Brokered({"t": own_server()}) as b, b.run() as program:
        words, image, file, link = program.result("t.image")
    assert words == "one dot" and list(image) == ["image/png"] and file == {"text/csv": "a,b", "uri": "x://y"} and link == {"uri": "x://z", "name": "z"}


def test_many_calls_are_under_way_at_once_and_the_rest_waits(tmp_path):
    gate, note = tmp_path / "gate", tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b, b.run() as program:
        numbers = [program.begin("t.wait", file=str(gate)) for _ in range(80)]
        late = program.begin("t.echo", text="behind them all")
        program.ask("names", under="t.echo") # lines before it were read
        wait_until(lambda: note.read_text().count('"tools/call"') == 64, "64 calls at the server")
        program.send({"id": numbers[79], "op": "cancel"}) # of one that waits for its turn
        assert program.answer(numbers[79])["error"]["kind"] == "cancelled"
        gate.touch()
        assert [program.answer(n)["result"] for n in numbers[:79]] == ["it is there"] * 79
        assert program.answer(late)["result"] == "behind them all"
    assert program.reply["tool_calls"]["n"] == 81 and note.read_text().count('"tools/call"') == 80


def test_a_call_can_be_cancelled_and_its_server_hears_of_it(tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b, b.run() as program:
        number = program.begin("t.never")
        wait_until(lambda: note.exists() and '"never"' in note.read_text(), "the call at the server")
        program.send({"id": number, "op": "cancel"}, {"id": number, "op": "cancel"}, {"id": 999, "op": "cancel"})
        assert program.answer(number)["error"]["kind"] == "cancelled"
        wait_until(lambda: "notifications/cancelled" in note.read_text(), "the cancel at the server")
        assert program.result("t.echo", text="on we go") == "on we go"


@pytest.mark.parametrize("how", ["the run ends", "the client cancels", "the program closes its end"])
def test_calls_end_with_their_run(how, tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}) as b:
        program = b.begin()
        program.begin("t.never")
        wait_until(lambda: note.exists() and '"never"' in note.read_text(), "the call at the server")
        if how == "the client cancels":
            program.asked.cancel()
            assert b.cancels.get(timeout=host.HANG)["run"]
        if how == "the program closes its end":
            program.sock.close()
            program.sock = None
        else:
            program.end()
        wait_until(lambda: "notifications/cancelled" in note.read_text(), "the cancel at the server")


def test_progress_of_a_server_reaches_the_program(tmp_path):
    (tmp_path / "gate").touch()
    with Brokered({"t": own_server()}) as b, b.run() as program:
        assert program.result("t.wait", file=str(tmp_path / "gate"), progress=1000) == "it is there"
        told = [said["progress"] for said in program.heard if "progress" in said]
    assert told and told[0] == {"progress": 0, "message": "\x1b[2J"} and len(told) < 100, "a flood of it is thinned out"


def test_a_call_that_takes_too_long_is_told_so(tmp_path):
    note = tmp_path / "note"
    with Brokered({"t": own_server("--note", note)}, "--tool-timeout", "0.2") as b, b.run() as program:
        assert program.error("t.never") == ("timeout", "no answer in 200 ms (--tool-timeout)")
        wait_until(lambda: "notifications/cancelled" in note.read_text(), "the cancel at the server")


def test_a_list_that_changes_is_followed():
    more = {"name": "brand-new", "description": "Fresh.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for era in ("legacy", "modern-listens"):
        with Brokered({"t": own_server("--era", era)}) as b, b.run() as program:
            assert program.error("t.brand_new")[0] == "not_found"
            program.result("t.change", tools=[more])
            wait_until(lambda: "t.brand_new" in program.ask("names", under="t")["names"], "the new tool")


def test_a_server_that_died_is_started_again_after_a_while():
    with Brokered({"t": own_server()}) as b, b.run() as program:
        first = program.result("t.where")["pid"]
        assert program.error("t.die") == ("lost", "the server has ended (SIGKILL); whether it was done is not known")
        kind, words = program.error("t.echo", text="x")
        assert kind == "lost" and "SIGKILL" in words and "it is started again in" in words
        wait_until(lambda: "result" in program.call("t.echo", text="x"), "the server")
        assert program.result("t.where")["pid"] != first


def test_what_a_server_answers_before_its_end_counts():
    with Brokered({"t": own_server()}) as b, b.run() as program:
        assert program.result("t.last_words") == "farewell"


def test_servers_have_our_rights_and_nothing_else_of_ours(tmp_path):
    entry = own_server(env={"OWN": "${OUTSIDE}-${UNSET:-preset}", "LC_ALL": "C.UTF-8"}, cwd=str(tmp_path))
    with Brokered({"t": entry}, env={"OUTSIDE": "from outside", "UNRELATED": "secret"}) as b, b.run() as program:
        said, env = program.result("t.where"), program.result("t.get_env")
    assert (said["uid"], said["cwd"], said["fds"], said["user"]) == (os.getuid(), str(tmp_path), [0, 1, 2], os.readlink("/proc/self/ns/user"))
    assert said["session"] == said["pid"], "keys of a terminal do not reach it"
    assert env["OWN"] == "from outside-preset" and env["LC_ALL"] == "C.UTF-8" and env["PATH"] and not {"UNRELATED", "OUTSIDE", "BRIG_SOCKET"} & set(env)


@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_servers_end_with_us(number):
    with Brokered({"t": own_server()}) as b:
        with b.run() as program:
            pid = program.result("t.where")["pid"]
        b.mcp.kill(number) if number else b.mcp.close()
        assert not pathlib.Path(f"/proc/{pid}").exists()


def test_a_server_that_does_not_want_to_end_is_killed():
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); import os; print(os.getpid(), file=open(os.environ['PIDS'], 'w')); time.sleep(1000)"
    with tempfile.NamedTemporaryFile() as pids:
        with Brokered({"t": {"command": "python3", "args": ["-c", script], "env": {"PIDS": pids.name}}}) as b, b.run() as program:
            program.begin("t.echo")
            wait_until(lambda: pathlib.Path(pids.name).read_text().strip(), "the server")
        assert not pathlib.Path(f"/proc/{pathlib.Path(pids.name).read_text().strip()}").exists()


def test_every_call_is_in_the_audit(tmp_path):
    audit = tmp_path / "audit"
    with Brokered({"t": own_server()}, "--tool-audit", audit, "--deny-tools", "t.fail") as b, b.run() as program:
        program.result("t.add", a=1, b=2)
        program.error("t.fail")
        program.error("t.no")
    first, end, denied, none = [json.loads(line) for line in audit.read_text().splitlines()]
    digest = hashlib.sha256(b'{"a":1,"b":2}').hexdigest()
    assert (first["event"], first["tool"], first["verdict"], first["args_sha256"], first["run"]) == ("call", "t.add", "allow", digest, program.reply["execution_id"])
    assert "args" not in first and (end["event"], end["call"], end["outcome"], end["bytes"]) == ("end", first["call"], "ok", len('{"sum":3}'))
    assert (denied["verdict"], denied["why"]) == ("deny", "it is not allowed here (--deny-tools t.fail)") and none["verdict"] == "none"
    assert audit.stat().st_mode & 0o777 == 0o600 and "t.add" not in b.log


def test_the_audit_has_arguments_if_asked_for_and_else_goes_to_stderr():
    with Brokered({"t": own_server()}, "--audit-arguments") as b:
        with b.run() as program:
            program.result("t.echo", text="\u202e\n")
            program.result("t.echo", text="y" * 100000)
        b.mcp.close()
        calls = [entry for entry in b.audit() if entry["event"] == "call"]
    assert calls[0]["args"] == {"text": "\u202e\n"} and "args" not in calls[1] and "\u202e" not in b.log, "what stderr would not take in one piece is left out there"


def test_a_text_reply_tells_the_tools_in_its_first_line():
    with Brokered({"t": own_server()}, "--reply", "text") as b:
        asked = b.mcp.begin_call("execute_code", {"code": "1"})
        program = b.runs.get(timeout=host.HANG)
        program.result("t.echo", text="x")
        program.result("t.echo", text="x")
        program.error("t.wipe", what="x")
        program.end()
        first = text_of(asked.result()).splitlines()[0]
    assert first.endswith("tools: 3 calls (t.echo ×2, t.wipe ×1), 1 denied")


def test_brigd_is_told_when_a_call_takes_long_and_how_calls_have_ended(tmp_path):
    """Its clock stands still meanwhile, and its audit has a line for each."""
    gate = tmp_path / "gate"
    with Brokered({"t": own_server()}) as b:
        program = b.begin()
        program.result("t.echo", text="x")
        number = program.begin("t.wait", file=str(gate))
        wait_until(lambda: any(said["waiting"] for said in b.told), "brigd told that it waits")
        gate.touch()
        program.answer(number)
        wait_until(lambda: b.told[-1]["waiting"] is False, "brigd told that it waits no more")
        program.error("t.wipe", what="x")
        program.begin("t.never")
        program.ask("names", under="t")
        program.end()
        program.asked.result()
        wait_until(lambda: sum(len(said.get("calls", [])) for said in b.told) == 4, "four calls")
        calls = [call for said in b.told for call in said.get("calls", [])]
    assert [(call["name"], call["verdict"]) for call in calls] == [("t.echo", "ok"), ("t.wait", "ok"), ("t.wipe", "denied"), ("t.never", "cancelled")]
    assert calls[0]["args_sha256"] == hashlib.sha256(b'{"text":"x"}').hexdigest() and {said["op"] for said in b.told} == {"tools"}


@pytest.mark.parametrize("name", ["x" + "\x01" * 500, "x" + "é" * 300], ids=["names that are long once they are escaped", "a character at the end of a name that is cut"])
def test_no_call_is_missing_in_what_brigd_is_told_whatever_others_are_called(name):
    with Brokered({"t": own_server()}) as b:
        program = b.begin()
        numbers = [program.begin(f"{name}{n}") for n in range(40)] + [program.begin("t.echo", text="x")]
        for number in numbers:
            program.answer(number)
        program.end()
        program.asked.result()
        wait_until(lambda: sum(len(said.get("calls", [])) for said in b.told) == len(numbers), "a call of each")
        calls = [call for said in b.told for call in said.get("calls", [])]
    assert [call["name"] for call in calls if call["verdict"] == "ok"] == ["t.echo"]
    assert max(len(json.dumps(said).encode()) for said in b.told) < 64 << 10


# --- the file of servers ---------------------------------------------------------------------------------

def start(tmp_path, content, *args, env=None):
    """(status, stderr) of a server that is given this file and hears nothing."""
    file = tmp_path / "servers.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    done = subprocess.run([host.build_dir() / "bin/brig-mcp", "--servers", file, *args], env=brig.environment({"HOME": str(tmp_path), **(env or {})}), cwd=tmp_path,
                          input=b"", capture_output=True, timeout=host.HANG)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("content, words", [
    ("{", "line 1, column 1"), ("[]", "object"), ({}, "there is no object mcpServers"), ({"servers": {}}, 'rename "servers" to it'), ({"mcpServers": []}, "expected an object of at most 64"),
    ({"mcpServers": {"a": 1}}, "mcpServers.a: expected an object"), ({"mcpServers": {"a": {}}}, "mcpServers.a.type: expected stdio, with a command, or http or sse, with a url"),
    ({"mcpServers": {"a": {"command": 1}}}, "mcpServers.a.command: expected a text"), ({"mcpServers": {"a": {"command": ""}}}, "mcpServers.a.command: expected a text that is not empty"),
    ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "mcpServers.a.args: expected a list of texts"),
    ({"mcpServers": {"a": {"command": "x", "env": {"A=B": "y"}}}}, "mcpServers.a.env: expected names without"),
    ({"mcpServers": {"a": {"url": "ftp://x"}}}, "mcpServers.a.url: expected an address that begins with https:// or http://"),
    ({"mcpServers": {"a": {"url": "http://x", "headers": {"A": "b\r\nC: d"}}}}, "mcpServers.a.A: expected a header without control characters"),
    ({"mcpServers": {"a": {"type": "websocket", "url": "ws://x"}}}, "mcpServers.a.type: expected stdio"), ({"mcpServers": {"a": {"type": "sse", "url": "ftp://x"}}}, "mcpServers.a.url: expected an address"),
    ({"mcpServers": {"a-b": {"command": "x"}, "a_b": {"command": "y"}}}, '"a-b" and "a_b" are both a_b in Python'),
    ({"mcpServers": {"x" * 49: {"command": "x"}}}, "a name has 1 to 48 bytes"), ({"mcpServers": {"a\u202e": {"command": "x"}}}, "a name has 1 to 48 bytes of plain text")])
def test_a_file_that_makes_no_sense_is_one_clear_error(content, words, tmp_path):
    status, said = start(tmp_path, content)
    assert status == 1 and words in said and len(said.splitlines()) == 1 and said.startswith("brig-mcp: --servers"), said


def test_what_a_file_has_beside_is_told_and_not_in_the_way(tmp_path):
    status, said = start(tmp_path, {"inputs": [], "mcpServers": {
        "a": {"command": "x", "alwaysAllow": [], "timeout": 5}, "b": {"command": "y", "disabled": True}, "me": {"command": "/usr/bin/brig-mcp", "args": []},
        "c": {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}}})
    assert status == 0
    assert said.splitlines() == ['brig-mcp: servers: the key "inputs" is not known here, and not used', 'brig-mcp: servers: a: the key "alwaysAllow" is not known here, and not used',
                                 'brig-mcp: servers: a: the key "timeout" is not known here, and not used', "brig-mcp: servers: b: it is switched off",
                                 "brig-mcp: servers: me: it is brig-mcp itself, and left out", "brig-mcp: servers: c: TOKEN: the variable NOT_SET_ANYWHERE is not set"]


def test_a_file_that_others_may_write_starts_nothing(tmp_path):
    (tmp_path / "servers.json").touch()
    (tmp_path / "servers.json").chmod(0o666)
    status, said = start(tmp_path, {"mcpServers": {}})
    assert status == 1 and "--servers" in said and "writ" in said
    status, said = start(tmp_path, {"mcpServers": {}}, "--servers", "/nowhere/x.json")
    assert status == 1 and "/nowhere/x.json" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of somebody else")
def test_a_file_of_another_user_starts_nothing(tmp_path):
    (tmp_path / "servers.json").touch()
    os.chown(tmp_path / "servers.json", host.own_id(0), 0)
    status, said = start(tmp_path, {"mcpServers": {"x": {"command": "/usr/bin/touch", "args": [str(tmp_path / "started")]}}})
    assert status == 1 and f"servers.json: belongs to uid {host.own_id(0)}; it must be root's" in said and not (tmp_path / "started").exists(), said


def test_a_variable_that_is_not_set_leaves_the_other_servers_alone(tmp_path):
    with Brokered({"t": own_server(), "c": {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}}) as b, b.run() as program:
        assert program.result("t.echo", text="x") == "x"
        assert program.error("c.x") == ("lost", "TOKEN: the variable NOT_SET_ANYWHERE is not set")


@pytest.mark.parametrize("setting", ["servers", "allow-tools", "ask-tools", "deny-tools", "other-tools", "tool-audit"])
def test_a_file_env_that_came_with_a_folder_decides_nothing_of_it(setting, tmp_path):
    (tmp_path / ".env").write_text(f"BRIG_MCP_{setting.upper().replace('-', '_')}=x\n")
    (tmp_path / ".env").chmod(0o600)
    status, said = start(tmp_path, {"mcpServers": {}}, *(["--servers", ""] if setting == "servers" else []))
    assert status == 2 and "not allowed in this file" in said
