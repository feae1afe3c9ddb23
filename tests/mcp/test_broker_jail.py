"""Programs in real jails, with brig-mcp, brigd and a server of tools: what the tests with a server of their own leave out."""
import json
import subprocess

import pytest

from brokered import FORM, own_server, wait_until
from support import brig, host
from support.mcp import data_of, text_of


@pytest.fixture
def start_tools(start_mcp, needs_rootfs, tmp_path):
    """start_tools("--allow-tools", ...) -> a client of brig-mcp whose programs have the tools of tool_server.py as t."""
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"t": own_server("--note", tmp_path / "note", env={"TOKEN": "s3cr3t-of-env"})}}))
    return lambda *args, **kw: start_mcp("--servers", str(file), *args, **kw)


def test_a_program_calls_tools_by_name_finds_them_and_catches_their_errors(start_tools):
    said = start_tools().execute("""
print(tools.t.echo(text="x"), tools.t.add(a=2)["sum"], tools.call("t.get-env", {})["PATH"] != "")
print([found["name"] for found in tools.search("adds numbers")], "t.add" in tools.list("t"))
for call in (lambda: tools.t.fail(), lambda: tools.t.wipe(what="x"), lambda: tools.t.add(a="x"), lambda: tools.t.nothing()):
    try:
        call()
    except (ToolError, AttributeError) as error:
        print(type(error).__name__, getattr(error, "kind", ""))
tools.t.image()[1]["image/png"][:5]
""")
    assert said["success"], said
    assert said["stdout"].splitlines() == ["x 3 True", "['t.add'] True", "ToolError tool", "ToolDenied denied", "ToolError bad_arguments", "AttributeError "]
    assert said["result"] == "iVBOR" and said["tool_calls"]["names"]["t.echo"] == 1 and said["tool_calls"]["denied"] == 1


def test_an_image_of_a_tool_is_shown_as_one(start_tools):
    mcp = start_tools()
    for code in "print(tools.t.image())\ntools.t.image()", "display(tools.t.image()[1])":
        result = mcp.call("execute_code", {"code": code})
        assert [block["type"] for block in result["content"]] == ["text", "image"] and "iVBOR" not in result["content"][0]["text"], result


def test_a_jail_with_tools_is_as_closed_as_one_without(start_tools):
    """No network, no file, nothing of the server's environment, no process of it."""
    said = start_tools().execute("""
import os, socket
def refused(ask):
    try:
        return ask()
    except OSError as error:
        return type(error).__name__
print(refused(lambda: socket.create_connection(("127.0.0.1", 9))), refused(lambda: open("/etc/shadow").read()))
print("s3cr3t" in str(dict(os.environ)), [name for name in os.listdir("/proc") if name.isdigit()] == ["1", str(os.getpid())] or len([n for n in os.listdir("/proc") if n.isdigit()]) <= 2)
print("s3cr3t" in tools.t.get_env()["TOKEN"])
""")
    first, second, third = said["stdout"].splitlines()
    assert "s3cr3t" not in first and "root:" not in first and second == "False True" and third == "True", "the control: the tool has it, and tells it to who calls it"


def test_a_person_is_asked_while_the_clock_of_the_program_stands_still(start_tools):
    mcp = start_tools()
    mcp.initialize("2025-11-25", FORM)
    asked = mcp.begin_call("execute_code", {"code": "import time; b = time.monotonic(); r = tools.t.wipe(what='x'); (r, time.monotonic() - b)", "timeout": 2, "detail": True}, revision="2025-11-25")
    question = asked.wait_question()
    assert host.poll(lambda: asked.reply is not None, 3) is False, "it waits longer than it may run"
    mcp.answer(question, {"action": "accept", "content": {"answer": "once"}})
    said = data_of(asked.result())
    assert said["result"][0] == "x is gone" and said["result"][1] >= 2.5 and said["exit_reason"] == "exited"


def test_a_modern_client_answers_a_program_that_is_alive(start_tools):
    mcp = start_tools("--reply", "text")
    code = "import os; seen = os.getpid(), id(os); print(tools.t.wipe(what='x'), (os.getpid(), id(os)) == seen)"
    result = mcp.call("execute_code", {"code": code}, capabilities=FORM)
    assert result["resultType"] == "input_required"
    answers = {key: {"action": "accept", "content": {"answer": "once"}} for key in result["inputRequests"]}
    said = mcp.request("tools/call", {"name": "execute_code", "arguments": {"code": code}, "requestState": result["requestState"], "inputResponses": answers}, capabilities=FORM)
    assert "x is gone True" in text_of(said) and "tools: 1 calls (t.wipe ×1)" in text_of(said)


def test_a_call_under_way_ends_with_its_program(start_tools, tmp_path, nothing_left):
    mcp = start_tools()
    said = mcp.execute("""
import threading
threading.Thread(target=lambda: tools.t.never(), daemon=True).start()
for _ in range(50):
    tools.t.echo(text="it is under way")
""")
    assert said["exit_reason"] == "exited", said
    wait_until(lambda: "notifications/cancelled" in (tmp_path / "note").read_text(), "the cancel at the server")


def test_many_threads_and_forked_children_call_at_once(start_tools):
    said = start_tools().execute("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(30) as pool:
    print(sum(found["sum"] for found in pool.map(lambda n: tools.t.add(a=n, b=0), range(300))))
""")
    assert said["stdout"] == f"{sum(range(300))}\n" and said["tool_calls"]["n"] == 300 and said["tool_calls"]["failed"] == 0, said


def test_a_check_before_the_run_has_no_tools(start_tools):
    said = start_tools().execute("tools.t.echo(text='x')", validate=True)
    assert said["result"] == "x"


@pytest.mark.parametrize("servers, status, words", [({"t": own_server()}, 0, "for programs tools.t.add(a: int, b: int = 1) -> dict"),
                                                    ({"t": {"command": "/nowhere/at/all"}}, 1, "--servers: t: cannot start /nowhere/at/all")])
def test_a_check_starts_the_servers_as_well(servers, status, words, needs_rootfs, tmp_path):
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    done = subprocess.run([host.build_dir() / "bin/brig-mcp", "--check", "--servers", file], env=brig.environment({"HOME": str(tmp_path)}), cwd=tmp_path, capture_output=True,
                          text=True, timeout=host.HANG)
    assert done.returncode == status and words in done.stdout + done.stderr, done.stdout + done.stderr
