"""brig-mcp where brigd is a service: for its members on stdio, and over HTTP as a service without any privilege."""
import http.client
import json
import os
import pathlib
import subprocess

import pytest

from support import host, service

BRIG_MCP, UNIT = "/usr/local/bin/brig-mcp", "brig-mcp.service"
TOKEN_FILE = pathlib.Path("/etc/brig/mcp-token")
TOKEN = "0123456789abcdef" * 4
PORT = 9015


def check(user, *args):
    return subprocess.run([BRIG_MCP, "--check", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * host.SLOWER,
                          **service.as_user(user))


def test_mcp_check_of_a_member_is_served_by_the_service(running):
    done = check(service.MEMBER, "--server", "service")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    lines = dict(line.split(None, 1) for line in done.stdout.partition("\n\n")[0].splitlines())
    assert lines["brigd"] == "a service, /run/brig/brig.sock"
    assert "missing" not in lines, lines["missing"]
    reply = json.loads(lines["reply"])
    assert reply["result"] == 42 and "memory-limit" in reply["isolation"]


def test_mcp_check_of_a_stranger_says_what_to_do(running):
    done = check(service.STRANGER)
    assert done.returncode == 1 and "join the group brig" in done.stderr and "--server private" in done.stderr, done.stdout + done.stderr


# --- over HTTP ---

def post(method, params=None, token=TOKEN):
    """(status, the message)"""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60 * host.SLOWER)
    body = {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    connection.request("POST", "/mcp", json.dumps(body), {**headers, **({"Authorization": f"Bearer {token}"} if token else {})})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if text.startswith(("data:", "event:", ":")):
        text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    return answer.status, json.loads(text) if text.strip() else None


def is_healthy():
    try:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False


@pytest.fixture
def served(running):
    TOKEN_FILE.parent.mkdir(exist_ok=True)
    TOKEN_FILE.touch(0o600)
    TOKEN_FILE.write_text(TOKEN + "\n")
    service.systemctl("reset-failed", UNIT)
    started = service.systemctl("start", UNIT)
    said = service.journal("-u", UNIT, lines=30)
    decided = host.poll(lambda: is_healthy() or service.show("ActiveState", UNIT) == "failed", 20)
    assert started.returncode == 0 and decided and is_healthy(), said + service.journal("-u", UNIT, lines=30)
    yield int(service.show("MainPID", UNIT))
    service.systemctl("stop", UNIT)
    TOKEN_FILE.unlink()


def test_whoever_knows_the_token_runs_python_through_the_service(served):
    status, answer = post("tools/call", {"name": "execute_code", "arguments": {"code": "import os\nprint(sorted(os.environ))\n6 * 7", "detail": True}})
    assert status == 200, answer
    reply = json.loads(answer["result"]["content"][0]["text"])
    assert reply["success"] is True and reply["result"] == 42, reply
    assert [layer for layer in reply["isolation"] if layer.startswith("missing:")] == []
    assert TOKEN not in json.dumps(reply)


@pytest.mark.parametrize("token", [None, "x" * 64])
def test_whoever_does_not_is_told_401(served, token):
    assert post("tools/list", token=token)[0] == 401


def test_it_has_a_dynamic_user_and_no_capability(served):
    service.check_unprivileged(served)
    assert TOKEN not in host.read(f"/proc/{served}/environ") and TOKEN not in host.read(f"/proc/{served}/cmdline")


def test_without_a_token_it_does_not_start(running):
    assert not TOKEN_FILE.exists()
    service.systemctl("reset-failed", UNIT)
    service.systemctl("start", UNIT)
    assert host.poll(lambda: service.show("ActiveState", UNIT) in ("failed", "inactive"), 20)
    assert not is_healthy() and not os.path.exists(f"/run/credentials/{UNIT}/token")
    service.systemctl("reset-failed", UNIT)
