"""Servers and clients that nobody here wrote: npm's servers of MCP, called by programs, and SDK clients that ask a person."""
import http.server
import json
import pathlib
import re
import socket
import subprocess
import threading

import pytest

from brokered import Brokered, Program, own_server, wait_until
from support import fake_server, host, node
from support import mcp as mcp_client
from test_mcp_tools_brigd import EXPLAINED

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module", autouse=True)
def has_node():
    lack = node.lacks()
    if lack:
        pytest.skip(lack)


def npm(name, *args, **entry):
    script = node.FOLDER / "node_modules/@modelcontextprotocol" / f"server-{name}" / "dist/index.js"
    return {"command": str(node.PROGRAM), "args": [str(script), *map(str, args)], **entry}


def test_everything_over_stdio():
    with Brokered({"everything": npm("everything")}) as b, b.run() as program:
        assert program.result("everything.echo", message="hello") == "Echo: hello"
        assert "7" in program.result("everything.get_sum", a=3, b=4)
        kinds = [block if isinstance(block, str) else next(iter(block)) for block in program.result("everything.get_tiny_image")]
        assert "image/png" in kinds
        assert program.result("everything.get_structured_content", location="New York").keys() >= {"temperature"}
        number = program.begin("everything.trigger_long_running_operation", duration=1, steps=4)
        assert "completed" in program.answer(number)["result"] and [said["progress"]["progress"] for said in program.heard if "progress" in said][:1] == [1]
        assert program.error("everything.get_sum", a="x", b=1)[0] == "bad_arguments"
        signature = program.ask("find", words="sum", max=1)["tools"][0]["signature"]
        assert signature.startswith("everything.get_sum(a: float, b: float)"), signature


def test_a_tool_that_tells_its_environment_tells_what_the_file_gave_it():
    """Not a leak of ours: brig-security(7) says so. It can be denied."""
    entry = npm("everything", env={"API_KEY": "for-this-server"})
    with Brokered({"everything": entry}, env={"OTHER": "not for it"}) as b, b.run() as program:
        told = program.result("everything.get_env")
        assert "for-this-server" in json.dumps(told) and "not for it" not in json.dumps(told)
    with Brokered({"everything": entry}, "--deny-tools", "everything.get-env") as b, b.run() as program:
        assert program.error("everything.get_env")[0] == "denied"


@pytest.mark.parametrize("mode, path, kind", [("streamableHttp", "mcp", None), ("sse", "sse", None), ("sse", "sse", "sse")])
def test_everything_over_http(mode, path, kind):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    entry = npm("everything", mode)
    server = subprocess.Popen([entry["command"], *entry["args"]], env={**node.environment(), "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def is_up():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        wait_until(is_up, "the server")
        with Brokered({"far": {"url": f"http://127.0.0.1:{port}/{path}", **({"type": kind} if kind else {})}}) as b, b.run() as program:
            assert program.result("far.echo", message="hello") == "Echo: hello"
            assert "7" in program.result("far.get_sum", a=3, b=4)
            numbers = [program.begin("far.echo", message=str(n)) for n in range(50)]
            assert [program.answer(number)["result"] for number in numbers] == [f"Echo: {n}" for n in range(50)]
    finally:
        server.kill()
        server.wait()


def test_files_are_read_at_once_and_written_when_a_person_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("contents")
    folder = tmp_path.resolve()
    with Brokered({"fs": npm("filesystem", folder)}) as b:
        b.mcp.initialize("2025-11-25", {"elicitation": {}})
        program = b.begin(revision="2025-11-25")
        assert program.result("fs.read_text_file", path=str(folder / "a.txt")) == {"content": "contents"}
        assert program.error("fs.read_text_file", path="/etc/passwd")[0] == "tool", "the server keeps to its folder"
        number = program.begin("fs.write_file", path=str(folder / "b.txt"), content="new")
        question = program.asked.wait_question()
        assert "fs.write_file" in question["params"]["message"] and not (folder / "b.txt").exists()
        b.mcp.answer(question, {"action": "accept", "content": {"answer": "once"}})
        assert "result" in program.answer(number) and (folder / "b.txt").read_text() == "new"
        program.end()
        program.asked.result()


def test_a_memory_grows_and_a_thought_follows_another(tmp_path):
    with Brokered({"memory": npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}), "thinking": npm("sequential-thinking")}) as b, b.run() as program:
        program.result("memory.create_entities", entities=[{"name": "brig", "entityType": "tool", "observations": ["jails"]}])
        assert program.result("memory.read_graph")["entities"][0]["name"] == "brig"
        assert program.error("memory.create_entities", entities=[{"name": "x"}]) == ("bad_arguments", "entities[0]: the argument entityType is missing")
        assert program.error("memory.delete_entities", entityNames=["brig"])[0] == "denied"
        said = program.result("thinking.sequentialthinking", thought="first", nextThoughtNeeded=False, thoughtNumber=1, totalThoughts=1)
        assert said["thoughtNumber"] == 1
        assert {name.split(".")[0] for name in program.ask("names", under="")["names"]} == {"memory", "thinking"}


class GitHub(http.server.BaseHTTPRequestHandler):
    """As much of it as a search needs."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.heard.append((self.path, self.headers.get("Authorization")))
        data = json.dumps({"total_count": 1, "incomplete_results": False, "items": [{"number": 7, "title": "it crashes"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def test_github_has_its_token_and_the_program_has_not():
    """Against a GitHub of the test."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), GitHub) as github:
        github.heard = []
        threading.Thread(target=github.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        here = {"NODE_OPTIONS": f"--import={host.REPO / 'tests/mcp/node/github_here.mjs'}", "GITHUB_HERE": f"http://127.0.0.1:{github.server_port}"}
        entry = npm("github", env={**here, "GITHUB_PERSONAL_ACCESS_TOKEN": "${TOKEN}"})
        with Brokered({"github": entry}, "--allow-tools", "github.search_*", env={"TOKEN": "ghp_of-the-test"}) as b, b.run() as program:
            found = json.loads(program.result("github.search_issues", q="repo:me/it is:open"))
            assert found["items"][0]["title"] == "it crashes"
            assert program.error("github.create_issue", owner="me", repo="it", title="x")[0] == "denied", "it says nothing of itself"
            seen = json.dumps([found, program.ask("names", under=""), program.ask("describe", name="github.search_issues")])
        github.shutdown()
    ((path, authorization),) = github.heard
    assert path.startswith("/search/issues?q=repo") and authorization == "Bearer ghp_of-the-test"
    assert "ghp_" not in seen + b.log + json.dumps(program.reply)


def several(tmp_path):
    """A file of three servers, and a program that uses them all: 13 calls."""
    (tmp_path / "data").mkdir()
    for n in range(5):
        (tmp_path / "data" / f"{n}.txt").write_text(f"{n * n}\n")
    folder = str((tmp_path / "data").resolve())
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"fs": npm("filesystem", folder), "everything": npm("everything"),
                                               "memory": npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})}}))
    return file, f"""
names = [line.split()[-1] for line in tools.fs.list_directory(path={folder!r})["content"].splitlines()]
total = 0
for name in names:
    total = int(tools.everything.get_sum(a=total, b=int(tools.fs.read_text_file(path={folder!r} + "/" + name)["content"])).split()[-1].rstrip("."))
tools.memory.create_entities(entities=[{{"name": "total", "entityType": "number", "observations": [str(total)]}}])
(total, tools.memory.read_graph()["entities"][0]["observations"])
"""


def test_a_program_in_a_jail_uses_several_of_them_at_once(start_mcp, needs_rootfs, tmp_path):
    file, program = several(tmp_path)
    said = start_mcp("--servers", str(file)).execute(program, timeout_s=60)
    assert said["result"] == [30, ["30"]], said
    assert said["tool_calls"]["n"] == 13 and said["tool_calls"]["failed"] == 0


SDKS = pytest.mark.parametrize("sdk, mode", [("v1", None), ("v2", "legacy"), ("v2", {"pin": mcp_client.MODERN})], ids=["v1", "v2 legacy", "v2 modern"])


@SDKS
def test_clients_of_the_sdks_get_what_it_found_and_see_none_of_their_tools(sdk, mode, built_mcp, needs_rootfs, tmp_path):
    """Whole: a client of the project's, brig-mcp, three servers of others, and a program in a jail."""
    file, program = several(tmp_path)
    steps = [{"do": "list"}, {"do": "call", "name": "find_tools", "arguments": {"query": "sum of two numbers"}},
             {"do": "call", "name": "execute_code", "arguments": {"code": program, "timeout_s": 60}}]
    said = node.drive(steps, sdk=sdk, mode=mode, command=[mcp_client.binary(), "--servers", file])
    listed, found, ran = (step.get("result") for step in said["steps"])
    assert said["connect"] is None and not said["noise"], said
    assert not [tool["name"] for tool in listed["tools"] if "." in tool["name"] or "sum" in tool["name"]] and "tools.everything.get_sum(a: float, b: float)" in found["content"][0]["text"], said
    reply = json.loads(ran["content"][0]["text"])
    assert reply["result"] == [30, ["30"]] and reply["tool_calls"]["n"] == 13, reply


@pytest.mark.parametrize("answer, ends", [({"action": "accept", "content": {"answer": "once"}}, "result"), ({"action": "decline"}, "error")])
@SDKS
def test_clients_of_the_sdks_ask_a_person(sdk, mode, answer, ends, tmp_path):
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"t": own_server()}}))
    seen = []

    def serve(connection):
        while (request := connection.receive()) is not None:
            if request["op"] == "explain":
                connection.send({**EXPLAINED, "tag": request["tag"]})
            if request["op"] != "run":
                continue
            program = Program(connection, request)
            seen.append(program.call("t.wipe", what="x"))
            program.end()
    steps = [{"do": "call", "name": "execute_code", "arguments": {"code": "1"}}]
    with fake_server.server(serve) as env:
        said = node.drive(steps, sdk=sdk, mode=mode, command=[mcp_client.binary(), "--servers", file], env=env, elicit=answer)
    assert said["connect"] is None and ends in seen[0], (said, seen)
    (question,) = said["asked"]
    assert "t.wipe" in question["message"] and json.loads(said["steps"][0]["result"]["content"][0]["text"])["tool_calls"]["n"] == 1


def test_what_a_person_reads_of_the_manual_is_what_the_servers_are_called():
    """The names in the guide are those of packages that are pinned."""
    guide = (host.REPO / "docs/guide/mcp.md").read_text()
    pinned = json.loads((host.REPO / "tests/mcp/node/package.json").read_text())["dependencies"]
    assert set(re.findall(r"@modelcontextprotocol/server-[\w-]+", guide)) <= set(pinned)
    assert pathlib.Path(node.FOLDER).exists()
