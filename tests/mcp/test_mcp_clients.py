"""The official clients, both lines of them, over stdio and HTTP, in both eras: list, call, image, error, cancel, progress, parallel."""
import base64
import json
import threading

import jailed
import pytest

from support import host, node
from support import mcp as mcp_client

pytestmark = pytest.mark.nightly

MODERN = {"pin": mcp_client.MODERN}
KINDS = { # client: sdk, mode, the revision that it comes to
    "v1": ("v1", None, "2025-11-25"), "v2 legacy": ("v2", "legacy", "2025-11-25"),
    "v2 auto": ("v2", "auto", mcp_client.MODERN), "v2 modern": ("v2", MODERN, mcp_client.MODERN),
}
WAYS = ("stdio", "HTTP")
NAMES = ["execute_code", "validate_code", "get_sandbox_info"]
SLOW = "import time\nfor n in range({}):\n    print('step', n, flush=True)\n    time.sleep(0.1)\n"


@pytest.fixture(scope="session")
def has_node():
    lack = node.lacks()
    if lack:
        pytest.skip(lack)


def pairs():
    """What differs from another pair in how it connects alone is for the long tier."""
    alike = [("v2 legacy", "HTTP"), ("v2 auto", "HTTP"), ("v2 legacy", "stdio")]
    return [pytest.param((kind, way), id=f"{kind}, {way}", marks=[pytest.mark.long] * ((kind, way) in alike)) for way in WAYS for kind in KINDS]


# What a client says of progress that it reads together with the answer: by then it has forgotten the token.
LATE = "Received a progress notification for an unknown token"


@pytest.fixture(params=pairs())
def client(request, has_node, built_mcp):
    """client(steps, *options) -> what came of them; over HTTP the server is gone with the test."""
    kind, way = request.param
    sdk, mode, revision = KINDS[kind]

    def go(*steps, options=(), env=None, program=None):
        if way == "stdio":
            said = node.drive(list(steps), sdk=sdk, mode=mode, command=[program or mcp_client.binary(), *options], env=env)
        else:
            server = request.getfixturevalue("start_http")(*options, env=env, program=program)
            said = node.drive(list(steps), sdk=sdk, mode=mode, url=server.url, headers=server.headers())
        assert said["connect"] is None, f"{said['connect']} {said['noise']}"
        noise = [line for line in said["noise"] if LATE not in line or not any(step.get("progress") for step in steps)]
        assert not noise, noise
        return said
    go.revision, go.way, go.sdk, go.kind = revision, way, sdk, kind
    return go


def call(name, **step):
    return {"do": "call", "name": name, **step}


def run(code, **arguments):
    own = {key: arguments.pop(key) for key in ("progress", "cancel_after", "timeout", "reset") if key in arguments}
    return call("execute_code", arguments={"code": code, **arguments}, **own)


def result_of(step):
    assert "error" not in step, step["error"]
    return step["result"]


def reply_of(step):
    result = result_of(step)
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])


@pytest.mark.requirement("A15", "A17", "A39")
def test_it_connects_lists_and_calls(client):
    said = client({"do": "list"}, run("print('hello')\n6 * 7"), call("validate_code", arguments={"code": "x = 1"}), call("get_sandbox_info"))
    assert said["server"]["name"] and said["capabilities"]["tools"] is not None and said["instructions"], said
    if said["version"] is not None:
        assert said["version"] == client.revision, said["version"]
    listed, ran, checked, info = said["steps"]
    assert [tool["name"] for tool in result_of(listed)["tools"]][:3] == NAMES
    assert (reply_of(ran)["stdout"], reply_of(ran)["result"], reply_of(ran)["success"]) == ("hello\n", 42, True), ran
    for step in (ran, checked, info):
        assert result_of(step)["structuredContent"] == json.loads(step["result"]["content"][0]["text"])
    assert reply_of(checked)["valid"] is True


def test_a_program_that_fails_is_no_error_and_a_wrong_argument_is_one_of_the_tool(client):
    said = client(run("1 / 0"), call("execute_code", arguments={"code": ""}), call("no_such_tool"),
                  call("execute_code", arguments={"code": 7}))
    failed, empty, unknown, wrong = said["steps"]
    assert reply_of(failed)["error"] == "ZeroDivisionError: division by zero" and reply_of(failed)["success"] is False
    assert empty["result"]["isError"] is True and "Empty code" in empty["result"]["content"][0]["text"]
    assert wrong["result"]["isError"] is True and "code" in wrong["result"]["content"][0]["text"]
    assert unknown.get("error", {}).get("code") == -32602 and "no_such_tool" in unknown["error"]["message"], unknown


def test_an_image_arrives_as_it_was_sent(client):
    said = client(call("test_image_content"), call("test_multiple_content_types"), call("test_error_handling"), program=mcp_client.conformance())
    image, mixed, failed = said["steps"]
    block = result_of(image)["content"][0]
    assert block["type"] == "image" and block["mimeType"] == "image/png" and base64.b64decode(block["data"])[:8] == b"\x89PNG\r\n\x1a\n", block
    assert {block["type"] for block in result_of(mixed)["content"]} >= {"text", "image", "resource"}
    assert failed["result"]["isError"] is True


DRAW = """
import base64, struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")
"data:image/png;base64," + base64.b64encode(png).decode()
"""


def test_an_image_that_a_program_made_arrives_beside_the_reply(client):
    said = client(run(DRAW), run(DRAW, format="text"), run("'data:image/png;base64,AAAA'"))
    for step in said["steps"][:2]:
        text, image = result_of(step)["content"]
        assert text["type"] == "text" and "image/png" in text["text"]
        assert image["mimeType"] == "image/png" and base64.b64decode(image["data"])[-8:-4] == b"IEND"
    assert [block["type"] for block in result_of(said["steps"][2])["content"]] == ["text"] # models refuse what is no image


SHOW = """
import base64, struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Picture:
    def _repr_png_(self):
        return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")
"""


def test_a_session_keeps_its_variables_and_shows_pictures(client):
    """Over HTTP, those of 2026-07-28 repeat its name in a header, as the schema tells them; also when they have not asked for the list before."""
    own = {"session": "work-0a1b2c"}
    said = client(run(SHOW + "x = 41", **own), {"do": "list"}, run("x + 1", **own), run("display(Picture())\nPicture()", **own), call("write_file", arguments={**own, "path": "a.txt", "content": "hi"}),
                  call("list_files", arguments=own), call("read_file", arguments={**own, "path": "a.txt"}), call("end_session", arguments=own), run("'x' in globals()", **own))
    first, _, second, shown, _, listed, read, ended, after = said["steps"]
    assert (reply_of(first)["session"]["state"], reply_of(second)["result"], reply_of(second)["session"]["state"]) == ("new", 42, "kept"), said
    assert [block["type"] for block in result_of(shown)["content"]] == ["text", "image", "image"]
    assert all(base64.b64decode(block["data"])[-8:-4] == b"IEND" and block["mimeType"] == "image/png" for block in shown["result"]["content"][1:])
    assert json.loads(result_of(listed)["content"][0]["text"])["files"] == [{"path": "a.txt", "bytes": 2}] and result_of(read)["content"][0]["text"] == "hi"
    assert "is ended" in result_of(ended)["content"][0]["text"] and reply_of(after)["result"] is False


def test_progress_arrives_and_grows(client):
    """A client loses what it reads together with the answer: on a busy machine not every call has all of it."""
    said = client(*[call("test_tool_with_progress", progress=True)] * 5, program=mcp_client.conformance())
    told = [[one["progress"] for one in step["progress"]] for step in said["steps"]]
    assert max(map(len, told)) >= 3 and all(one == sorted(set(one)) for one in told), said


def test_a_run_tells_its_progress_and_outlives_the_clients_time_limit_by_it(client):
    """The limit is two seconds; what is told in between starts it anew."""
    said = client(run(SLOW.format(35), progress=True, timeout=2000, reset=True), options=["--progress", "0.25"])
    step = said["steps"][0]
    assert reply_of(step)["success"] is True and len(step["progress"]) >= 3, step
    assert any("step" in (one.get("message") or "") for one in step["progress"]), step["progress"]


def test_a_cancelled_call_frees_its_jail_and_the_next_one_runs(client, tmp_path):
    """The program is seen to run, and to be gone, from outside."""
    mark = jailed.marker()
    forever = call("execute_code", arguments={"code": jailed.FOREVER, "args": [mark], "timeout": jailed.LONGEST}, progress=True, cancel_after="progress")
    said = client(forever, run("print('next')"), options=["--progress", "0.25"])
    cancelled, after = said["steps"]
    assert "error" in cancelled, cancelled
    assert reply_of(after)["stdout"] == "next\n"
    jailed.wait_gone(mark)


def test_calls_run_side_by_side_and_the_quick_ones_come_first(client, tmp_path):
    """The first one ends when the others have been answered."""
    mark, answered = jailed.marker(), tmp_path / "answered"
    others_are_answered = threading.Thread(target=lambda: host.poll(answered.exists) and jailed.let_go(mark))
    others_are_answered.start()
    said = client({"do": "parallel", "calls": [run(jailed.HELD + "print('slow')", args=[mark]), *(run(f"print({n})") for n in range(8))], "others": str(answered)})
    others_are_answered.join()
    slow, *others = said["steps"][0]
    assert [reply_of(step)["stdout"] for step in others] == [f"{n}\n" for n in range(8)]
    assert reply_of(slow)["stdout"] == "slow\n", said


def test_resources_and_prompts_of_the_conformance_suite_can_be_read(client):
    said = client({"do": "resources"}, {"do": "read", "uri": "test://static-binary"}, {"do": "prompts"},
                  {"do": "prompt", "name": "test_simple_prompt"}, program=mcp_client.conformance())
    listed, binary, prompts, prompt = map(result_of, said["steps"])
    assert any(one["uri"] == "test://static-text" for one in listed["resources"]) and binary["contents"][0]["blob"]
    assert any(one["name"] == "test_simple_prompt" for one in prompts["prompts"]) and prompt["messages"]


@pytest.mark.requirement("A38")
def test_a_wrong_token_is_told_at_once(has_node, start_http):
    server = start_http()
    for sdk, mode in (("v1", None), ("v2", "auto")):
        said = node.drive([{"do": "list"}], sdk=sdk, mode=mode, url=server.url, headers={"Authorization": "Bearer wrong"})
        assert said["connect"] and "401" in json.dumps(said["connect"]) + json.dumps(said["noise"]) or "nauthorized" in json.dumps(said["connect"]), said


# --- the Inspector --------------------------------------------------------------------------------------------------

@pytest.fixture(params=["legacy", "auto", "modern"])
def era(request):
    return request.param


@pytest.fixture(params=WAYS)
def target(request, has_node, built_mcp):
    """What the Inspector is pointed at."""
    if request.param == "stdio":
        return lambda *options, program=None: {"command": [program or mcp_client.binary(), *options]}

    def serve(*options, program=None):
        server = request.getfixturevalue("start_http")(*options, program=program)
        return {"url": server.url, "headers": server.headers()}
    return serve


def inspected(done):
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return json.loads(done.stdout)["result"]


def test_the_inspector_finds_every_schema_portable(target, era):
    for options in ((), ("--list-all-tools",)):
        listed = inspected(node.inspect("--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json", "-q", **target(*options)))
        names = [tool["name"] for tool in listed["tools"]]
        assert names[:3] == NAMES and ("list_capabilities" in names) == bool(options), names


def test_the_inspector_calls_and_gets_images(target, era, tmp_path):
    aim = target(program=mcp_client.conformance())
    ran = inspected(node.inspect("--protocol-era", era, "--method", "tools/call", "--tool-name", "execute_code",
                                 "--tool-args-json", json.dumps({"code": "print(1)"}), "--format", "json", "-q", **aim))
    assert json.loads(ran["content"][0]["text"])["stdout"] == "1\n"
    file = tmp_path / "image"
    done = node.inspect("--protocol-era", era, "--method", "tools/call", "--tool-name", "test_image_content", "--output", file, "--output-format", "raw",
                        "-q", **aim)
    assert done.returncode == 0 and file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", done.stderr[-1000:]


def test_the_inspector_loads_it_without_an_error(target):
    done = node.inspect("--protocol-era", "modern", "--method", "tools/call", "--tool-name", "get_sandbox_info", "--load", "--load-requests", "200",
                        "--load-concurrency", "8", "--format", "json", "-q", **target())
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    said = json.dumps(json.loads(done.stdout))
    assert '"errors": 0' in said or '"errorCount": 0' in said or '"failed": 0' in said, said
