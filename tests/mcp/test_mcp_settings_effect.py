"""What settings say is what programs get: each published variable, tried in a jail."""
import errno
import json

import pytest

from support import host
from support.mcp import McpStdio

pytestmark = pytest.mark.usefixtures("needs_rootfs")


@pytest.fixture
def server(tmp_path):
    """server(*options, VARIABLE="value"): a brig-mcp that was told so."""
    started = []

    def start(*options, **env):
        started.append(McpStdio(*options, env={"HOME": str(tmp_path), **env}, cwd=tmp_path))
        return started[-1]
    yield start
    for one in started:
        assert one.close() == 0


@pytest.mark.sample(1)
@pytest.mark.requirement("A28")
@pytest.mark.parametrize("variable", ["SANDBOX_TIMEOUT", "SANDBOX_DEFAULT_TIMEOUT", "BRIG_MCP_TIMEOUT"])
def test_the_time_of_a_program_ends_when_the_variable_says(server, variable):
    reply = server(**{variable: "0.5"}).execute("while True: pass")
    assert reply["exit_reason"] == "timeout_wall" and reply["error"] == "Execution timeout: timed out after 0.5 seconds"
    assert reply["success"] is False and reply["timeout"] == 0.5 and reply["execution_time"] >= 0.5


@pytest.mark.requirement("A37")
def test_nobody_may_ask_for_more_time_than_the_variable_says(server):
    mcp = server(SANDBOX_MAX_TIMEOUT="5")
    reply = mcp.execute("1", timeout_s=6)
    assert reply["success"] is True and reply["timeout"] == 5 and "the maximum, 5 seconds" in str(reply["warnings"]), reply
    assert mcp.execute("1", timeout_s=5)["success"] is True


@pytest.mark.requirement("A29")
def test_of_each_stream_as_many_bytes_are_kept_as_the_variable_says(server):
    mcp = server(SANDBOX_MAX_OUTPUT_SIZE="2048")
    reply = mcp.execute("import sys\nprint('o' * 5000)\nprint('e' * 5000, file=sys.stderr)")
    assert (len(reply["stdout"]), len(reply["stderr"]), reply["truncated"]) == (2048, 2048, True), reply
    reply = mcp.execute("print('\\u00e4' * 5000)") # two bytes each: the limit is of bytes
    assert len(reply["stdout"].encode()) <= 2048 and set(reply["stdout"]) == {"\u00e4"}
    assert mcp.execute("print('o' * 2000)")["truncated"] is False


@pytest.mark.requirement("A36")
def test_a_program_has_as_much_memory_as_the_variable_says(server, jail):
    mcp = server(SANDBOX_DEFAULT_MEMORY_LIMIT="48m")
    big = "x = bytearray(96 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nlen(x)"
    reply = mcp.execute(big)
    assert reply["success"] is False and reply["exit_reason"] == "oom", reply
    assert mcp.execute(big, memory_limit="192m")["result"] == 96 << 20


@pytest.mark.requirement("A33")
def test_only_modules_of_the_variable_may_be_imported(server):
    mcp = server(SANDBOX_ALLOWED_IMPORTS=" math , json ")
    assert mcp.execute("import math, json\njson.dumps(math.floor(2.5))")["result"] == "2"
    reply = mcp.execute("import os")
    assert reply["success"] is False and reply["security_event"] == "blocked_import", reply
    assert "Import of 'os' is not allowed in sandbox" in reply["error"]


@pytest.mark.requirement("A33")
def test_a_call_can_only_narrow_what_the_variable_allows(server):
    mcp = server(SANDBOX_ALLOWED_IMPORTS="math,json")
    assert mcp.execute("import json", allowed_imports=["math"])["security_event"] == "blocked_import"
    reply = mcp.execute("import os", allowed_imports=["os", "math"])
    assert reply["success"] is False, reply


@pytest.mark.parametrize("said, event", [("advise", None), ("enforce", "blocked_import")])
def test_imports_outside_of_the_profiles_list_are_advised_about_or_refused(server, said, event):
    reply = server("--imports", said).execute("import ctypes")
    assert (reply["success"], reply["security_event"]) == (event is None, event), reply


@pytest.mark.requirement("A30", "A31", "A32")
@pytest.mark.parametrize("variable, value, profile", [
    ("SANDBOX_ENABLE_NETWORK", "true", "network"), ("SANDBOX_ENABLE_FILESYSTEM", "true", "filesystem"),
    ("SANDBOX_ENABLE_DATA_SCIENCE", "true", "data-science"), ("SANDBOX_ENABLE_NETWORK", "false", "basic"), ("BRIG_MCP_PROFILE", "filesystem", "filesystem"),
])
def test_a_published_switch_chooses_the_profile(server, variable, value, profile):
    rootfs = profile if profile in ("network", "data-science") else "basic"
    if host.lacks(f"rootfs:{rootfs}"):
        pytest.skip(host.lacks(f"rootfs:{rootfs}"))
    reply = server(**{variable: value}).execute("1")
    assert reply["success"] is True and reply["profile"] == profile and reply["rootfs"].startswith(f"{rootfs}@"), reply


@pytest.mark.private("a profile of one's own")
@pytest.mark.parametrize("session", [None, "s"])
@pytest.mark.parametrize("network, refused", [({"allow": ["a.example"]}, True), ({"ceiling": ["a.example"]}, False)])
def test_a_file_env_chooses_no_profile_with_hosts_of_its_own(server, tmp_path, network, refused, session):
    """Its hosts and its secrets are for those whom a person gives the profile, and not for who wrote a folder."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/network.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": network}))
    (tmp_path / ".env").write_text("SANDBOX_ENABLE_NETWORK=true\n")
    arguments = {"session": session} if session else {}
    mcp = server(BRIG_PROFILES=str(tmp_path / "profiles"))
    reply = mcp.execute("1", **arguments)
    assert reply["success"] is not refused and (not refused or ".env, line 1: SANDBOX_ENABLE_NETWORK: the profile network has hosts" in reply["error"]), reply
    assert server("--profile", "network", BRIG_PROFILES=str(tmp_path / "profiles")).execute("1")["success"] is True


@pytest.mark.requirement("A30")
def test_without_the_network_there_is_the_loopback_and_nothing_else(server):
    reply = server(SANDBOX_ENABLE_NETWORK="false").execute("import socket\n[socket.socket().connect_ex((to, 80)) for to in ('192.0.2.1', '127.0.0.1')]")
    assert reply["result"] == [errno.ENETUNREACH, errno.ECONNREFUSED], reply


@pytest.mark.requirement("A30")
@pytest.mark.private("a service's profile says which hosts a run may name")
def test_a_host_that_is_not_named_is_refused_and_the_model_is_told_which_and_how_a_person_allows_it(server):
    reply = server("--net", "a.example,*.c.example").execute("import urllib.request\nurllib.request.urlopen('https://b.example/')")
    assert reply["success"] is False and "b.example:443 (not_allowed)" in reply["hint"] and "--net of brig-mcp" in reply["hint"], reply


@pytest.mark.requirement("A31")
def test_without_the_file_system_what_is_written_is_gone_with_the_call(server):
    mcp = server(SANDBOX_ENABLE_FILESYSTEM="false")
    assert mcp.execute("open('/tmp/x', 'w').write('1')")["result"] == 1
    assert mcp.execute("import os\nos.path.exists('/tmp/x')")["result"] is False


@pytest.mark.requirement("A34", "A35")
def test_container_settings_change_nothing(server):
    reply = server(SANDBOX_ENABLE_CONTAINER_MODE="false", SANDBOX_CONTAINER_IMAGE="python:3.12-slim").execute("1")
    assert reply["success"] is True and "seccomp" in reply["isolation"]


def test_the_most_characters_of_a_program_are_a_setting(server):
    mcp = server("--max-code", "20")
    assert mcp.execute("len('\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4')")["success"] is True
    assert "too large" in mcp.execute("#" * 21)["error"].lower()


def test_echo_result_and_ansi_are_settings(server):
    plain, other = server(), server("--echo-result", "--keep-ansi")
    red = "print('\\x1b[31mred\\x1b[0m')\n2 + 2"
    assert plain.execute(red)["stdout"] == "red\n"
    assert other.execute(red)["stdout"] == "\x1b[31mred\x1b[0m\n4\n"


def test_the_reply_is_a_text_where_that_is_the_setting(server):
    mcp = server("--reply", "text", "--text-size", "1K")
    (block,) = mcp.call("execute_code", {"code": "print('x' * 5000)"})["content"]
    assert block["type"] == "text" and not block["text"].startswith("{") and 500 < len(block["text"]) < 2000


def test_list_capabilities_is_listed_when_that_is_the_setting(server):
    assert "list_capabilities" not in server().list_tools()
    assert "list_capabilities" in server("--list-all-tools").list_tools()


def test_a_client_gets_as_many_calls_a_minute_as_the_setting_says(server):
    mcp = server("--calls-per-minute", "2")
    assert [mcp.execute("1")["success"] for _ in range(3)] == [True, True, False]
