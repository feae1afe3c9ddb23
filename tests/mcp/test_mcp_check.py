"""brig-mcp --check: whoever types it learns whether clients would be served, and if not, what to type."""
import json
import os
import subprocess

import pytest

from support import brig, host, users

BRIG_MCP = host.build_dir() / "bin" / "brig-mcp"
HELLO = "hello from a jail\n"


def check(*args, env=None, cwd="/", **popen):
    return subprocess.run([BRIG_MCP, "--check", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG,
                          env=brig.environment(env), cwd=cwd, **popen)


def shown(text):
    """{what: text} of the lines before the empty one, and what stands behind it."""
    lines, _, end = text.partition("\n\n")
    return dict(line.split(None, 1) for line in lines.splitlines()), end


def all_in_order(done):
    """What it has shown, when all is as it should be."""
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    found, end = shown(done.stdout)
    assert list(found)[:6] == ["server", "tools", "brigd", "program", "reply", "in"] and list(found)[-1] == "took", done.stdout
    reply = json.loads(found["reply"])
    assert reply["success"] is True and reply["stdout"] == HELLO and reply["result"] == 42 and reply["exit_reason"] == "exited"
    lacks = "It runs, without the layers that are missing above; brig doctor says how to have them."
    assert end.startswith(f"{lacks if 'missing' in found else 'All in order.'} For a client's file:  ")
    command = json.loads(end.split("file:")[1])["mcpServers"]["python"]["command"]
    assert command.endswith("/brig-mcp")
    return found, reply


@pytest.fixture(scope="session")
def ready(needs_rootfs):
    """Root's own jails want control groups; a plain user's do not."""


@pytest.mark.private("it tells which brigd there is")
def test_mcp_check_shows_what_a_client_would_see(ready):
    found, reply = all_in_order(check())
    assert found["server"].startswith("brig ") and "MCP 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05" in found["server"]
    assert "execute_code, validate_code" in found["tools"]
    assert found["brigd"].startswith("a private one, /") and found["brigd"].endswith("/brigd")
    assert found["took"].endswith("ms the second")
    in_force = found["in"].removeprefix("force").split(", ")
    assert [layer.strip() for layer in in_force] == [layer for layer in reply["isolation"] if not layer.startswith("missing:")]
    assert "seccomp" in reply["isolation"] and "net-ns" in reply["isolation"]


def test_mcp_check_names_each_layer_that_is_missing(ready):
    found, reply = all_in_order(check())
    missing = [layer.removeprefix("missing:") for layer in reply["isolation"] if layer.startswith("missing:")]
    assert found.get("missing", "").split(", ") == (missing or [""])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_mcp_check_is_not_all_in_order_where_a_plain_user_lacks_layers(ready):
    found, reply = all_in_order(check(env={"HOME": "/nonexistent", "XDG_RUNTIME_DIR": None}, user=54321, group=54321, extra_groups=[]))
    assert "missing" in found and "missing:own-ids" in reply["isolation"], reply["isolation"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("args", [("--reply", "text"), ("--imports", "enforce"), ("--http", "--insecure-loopback"), ("--allowed-imports", "math"),
                                  ("--transport", "stdio"), ("--yield-after", "0.001")], ids=" ".join)
def test_mcp_check_works_whatever_the_settings_say(ready, args):
    all_in_order(check(*args))


def test_mcp_check_leaves_nothing_behind(ready):
    all_in_order(check()) # the first one makes what stays there
    before = host.files_below(host.runtime_dir())
    all_in_order(check())
    assert host.files_below(host.runtime_dir()) == before


@pytest.mark.private("it tells which brigd there is")
@pytest.mark.parametrize("args, env, wanted, doctor", [
    ((), {"BRIG_STORE": "/absent"}, "build it: brig rootfs build basic", True),
    (("--server", "service"), {}, "no brigd is running; start one (systemctl start brigd, or brigd --foreground)", True),
    ((), {"BRIG_SOCKET": "/absent"}, "/absent: there is no such socket; start brigd, or say --private (brig-mcp: --server private)", True),
    (("--profile", "absent"), {}, 'profile "absent" does not exist', False),
], ids=["rootfs", "service", "socket", "profile"])
def test_mcp_check_says_what_is_missing_and_what_to_type(args, env, wanted, doctor):
    if "service" in args and os.path.exists("/run/brig/brig.sock"):
        pytest.skip("a brigd runs here")
    done = check(*args, env=env)
    assert done.returncode == 1 and wanted in done.stderr, done.stdout + done.stderr
    assert done.stderr.startswith("brig-mcp: execute_code: ") and done.stderr.count("\n") == 1
    assert done.stderr.endswith("; type: brig doctor\n") == doctor
    assert "All in order" not in done.stdout


@pytest.mark.private("a warm run is over before the least time limit")
def test_mcp_check_of_a_program_that_is_cut_off_is_none_that_went_well(ready):
    for _ in range(50): # the least that can be said is time enough for a quick machine, now and then
        done = check("--timeout", "0.01")
        if done.returncode:
            break
    assert done.returncode == 1 and "Execution timeout: timed out after 0.01 seconds" in done.stderr, done.stderr


def test_mcp_check_finds_mistakes_of_settings_first():
    done = check("--http")
    assert (done.returncode, done.stdout) == (1, "") and "HTTP needs a token" in done.stderr
    done = check("--timeout", "x")
    assert (done.returncode, done.stdout) == (2, "")


def test_mcp_check_with_a_full_disk_is_no_success(ready):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BRIG_MCP, "--check"], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=host.HANG,
                              env=brig.environment(), cwd="/")
    assert done.returncode == 1 and b"write to standard output" in done.stderr


@pytest.mark.parametrize("mode", users.MODES)
def test_mcp_check_works_for_a_plain_user(world, mode):
    user = users.MODES[mode]
    done = subprocess.run(world.as_user(user, world.root / "build/bin/brig-mcp", "--check"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=host.HANG, cwd="/")
    found, reply = all_in_order(done)
    assert "seccomp" in reply["isolation"] and ("own-ids" in reply["isolation"]) == (mode == "range")
    assert found["brigd"].startswith("a private one, ")
