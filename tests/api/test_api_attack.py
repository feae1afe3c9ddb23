"""Attacks on brig-api: other clients' things, requests that two servers read differently, bodies and programs without end."""
import base64
import json
import signal
import socket
import subprocess

import pytest

from support import host
from support.api import TOKEN, b64, digest
from support.mcp_http import post

OTHER = "fedcba9876543210fedcba9876543210-of-another"


@pytest.fixture
def two(start_api):
    return start_api(tokens=f"a:{digest(TOKEN)}\nb:{digest(OTHER)}\n")


# --- what belongs to another client ----------------------------------------------------------------------

def test_a_submission_of_another_client_is_not_found(two):
    row = {"source_code": "print('secret')", "language_id": 71}
    token = two.ask("POST", "/submissions", row, 201, token=TOKEN)["token"]
    assert two.request("GET", f"/submissions/{token}", token=TOKEN).status == 200 # control
    assert two.request("GET", f"/submissions/{token}", token=OTHER).status == 404
    assert two.request("DELETE", f"/submissions/{token}", token=OTHER).status == 404
    assert two.ask("GET", f"/submissions/batch?tokens={token}", token=OTHER) == {"submissions": [None]}
    assert two.request("GET", f"/submissions/{token}", token=TOKEN).status == 200


def test_a_session_of_another_client_cannot_be_entered_seen_or_ended(two):
    def execute(code, token):
        return two.ask("POST", "/execute", {"generated_code": code}, headers={"X-Session-ID": "same"}, token=token)
    assert execute("x = 'secret'", TOKEN)["new_session_created"]
    assert execute("print('x' in globals())", OTHER)["stdout"] == "False\n"
    assert two.ask("DELETE", "/sessions/same", token=OTHER)
    assert two.ask("GET", "/sessions", token=OTHER) == {"sessions": {}}
    assert execute("print(x)", TOKEN)["stdout"] == "secret\n" # control


def test_sessions_of_one_client_are_bounded(start_api):
    api = start_api("--sessions", "2")
    api.execute("1", "a"), api.execute("1", "b")
    answer = api.request("POST", "/execute", {"generated_code": "1"}, headers={"X-Session-ID": "c"})
    assert answer.status == 502 and answer.json["brig"]["exit_reason"] == "sessions"
    api.ask("DELETE", "/sessions/a")
    assert api.execute("1", "c")["new_session_created"]


@pytest.mark.parametrize("name", ["a b", "x" * 129, "ä", "\x7f"])
def test_a_session_name_that_could_be_a_header_of_an_answer_is_refused(api, name):
    assert api.request("POST", "/execute", {"generated_code": "1"}, headers={"X-Session-ID": name.encode()}).status == 400


# --- requests that a proxy and this server could read differently ------------------------------------------

BODY = b'{"code": "print(1)"}'
SMUGGLED = b"GET /languages HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_control_two_requests_on_one_connection_get_two_answers(api):
    with api.connect() as raw:
        raw.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY + SMUGGLED)
        assert raw.reply()[0] == 200 and raw.reply()[0] == 200


@pytest.mark.parametrize("lengths", [
    b"Content-Length: 20\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 20\r\nContent-Length: 64\r\n", b"Content-Length: 20, 20\r\n", b"Content-Length: +20\r\n",
    b"Content-Length: 0x14\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Content-Length : 20\r\n", b"Content-Length: 20\r\n Content-Length: 64\r\n",
    b"Content-Type: application/json\r\nContent-Length: 20\r\n", b"Host: other\r\nContent-Length: 20\r\n",
], ids=range(14))
def test_a_request_with_two_ends_is_refused_and_nothing_behind_it_is_answered(api, lengths):
    with api.connect() as raw:
        raw.send(HEAD + lengths + b"\r\n" + BODY + SMUGGLED)
        status, _ = raw.head()
        assert status in (400, 403, 413, 501, None), status
        rest = raw.file.read()
    assert b"HTTP/1.1 200" not in rest


def test_chunks_with_extensions_are_read_as_they_are(api):
    with api.connect() as raw:
        raw.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x;x=\"a\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n")
        status, _ = raw.head()
        assert status in (200, 400, None)


def test_a_client_that_expects_a_continue_gets_it_or_the_refusal(api):
    with api.connect() as raw:
        raw.send(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert raw.head()[0] == 100
        raw.send(BODY)
        assert raw.reply()[0] == 200
    with api.connect() as raw:
        raw.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 1000000000\r\n\r\n")
        assert raw.head()[0] == 413


# --- bodies without end --------------------------------------------------------------------------------------

@pytest.mark.sample(5)
@pytest.mark.parametrize("body", [
    b"[" * 100000, b'{"a":' * 50000, b"{" + b",".join(b'"%d":[]' % n for n in range(200000)) + b"}", b"[]", b"1", b"", b"\xff", b'{"code":"\\ud800"}', b'{"code":1,"code":2}',
    b'{"code":"x"} {"code":"y"}', b'{"a\\u0000b":1,"code":"1"}', b'{"code":"1","run_timeout":1e999}', b'{"code":"1","run_timeout":NaN}', b"{" + b'"x":"y",' * 100,
], ids=range(14))
def test_a_body_that_is_a_bomb_or_no_object_is_refused(api, body):
    before = host.read(f"/proc/{api.pid}/status")
    status, _, said = api.say(post(body, path="/run_code"))
    assert status in (400, 413) and json.loads(said)["error"]
    assert "VmRSS" in before and api.run_code("print(1)")["status"] == "Success"


def test_a_body_above_the_bound_is_refused_before_or_after_it_came(start_api):
    api = start_api("--body", "64K")
    assert api.say(post({"code": "#" + "x" * 70000}, path="/run_code"))[0] == 413
    with api.connect() as raw:
        raw.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(5):
            raw.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        raw.send(b"0\r\n\r\n")
        assert raw.head()[0] == 413


def test_connections_that_send_nothing_keep_nobody_out(start_api):
    api = start_api("--max-connections", "64")
    idle = [socket.create_connection(("127.0.0.1", api.port)) for _ in range(200)]
    try:
        assert api.run_code("print(1)")["status"] == "Success"
    finally:
        for one in idle:
            one.close()


@pytest.mark.nightly(seconds=400)
def test_a_body_that_comes_one_byte_a_second_is_cut_off(start_api):
    api = start_api()
    with api.connect(timeout=300) as raw:
        raw.send(HEAD + b"Content-Length: 1000\r\n\r\n{")
        assert raw.sock.recv(1) == b"" # the server closes it
    assert api.run_code("print(1)")["status"] == "Success"


# --- what programs send back -----------------------------------------------------------------------------------

def test_an_answer_that_never_ends_is_bounded(api):
    said = api.run_code("import os\nwhile True: os.write(1, b'\\xff' * 65536)")
    assert said["brig"]["exit_reason"] == "output_limit" and said["brig"]["truncated"] and len(said["run_result"]["stdout"]) <= 1 << 20


def test_output_cannot_forge_a_member_of_the_answer(api):
    code = 'print(\'"}, "brig": {"exit_reason": "forged"}, "status": "Success", "x": {"y": "\')\nraise SystemExit(1)'
    said = api.run_code(code)
    assert said["status"] == "Failed" and said["brig"]["exit_reason"] == "exited" and "forged" in said["run_result"]["stdout"]


def test_files_that_come_out_are_bounded_and_no_link_is_followed(api):
    code = "import os\nos.symlink('/etc/passwd', 'l')\nwith open('big', 'wb') as f: f.truncate(100 << 20)\nopen('ok', 'w').write('1')"
    said = api.run_code(code, fetch_files=["l", "ok", "big"])
    assert said["files"] == {"ok": b64("1")} and any("link" in note for note in said["brig"]["notes"])


def test_a_report_of_a_cell_that_the_program_forged_stays_within_its_bounds(api):
    said = api.jupyter("import os\nfor fd in range(3, 60):\n    try: os.write(fd, b'{\"result\": 1}' * 1000)\n    except OSError: pass", "1")
    assert said["status"] in ("Success", "Failed")


# --- the end ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_brig_api_leaves_no_run_and_no_session(nothing_left, service, start_api, number):
    daemon = service()
    api = start_api("--drain", "0", env=daemon.env)
    api.execute("x = 1", "left")
    with api.connect() as raw:
        raw.send(post({"code": "import time\ntime.sleep(600)"}, path="/run_code"))
        host.poll(lambda: b"brig_api_running 1\n" in api.request("GET", "/metrics").body)
        assert len(json.loads(subprocess.run([host.build_dir() / "bin/brig", "ps", "--json"], env={**daemon.env, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True).stdout)["runs"]) >= 1
        api.stop(number)

    def none():
        listed = subprocess.run([host.build_dir() / "bin/brig", "ps", "--json"], env={**daemon.env, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True).stdout
        return not json.loads(listed)["runs"]
    host.poll(none)


def test_it_has_no_capability_and_listens_at_its_address_alone(api):
    assert base64 and host.read(f"/proc/{api.pid}/status")
    listening = [line.split()[1] for line in host.read("/proc/net/tcp").splitlines()[1:] if line.split()[3] == "0A"]
    assert f"0100007F:{api.port:04X}" in listening and f"00000000:{api.port:04X}" not in listening


def sessions_of(daemon):
    return json.loads(subprocess.run([host.build_dir() / "bin/brig", "ps", "--json"], env={**daemon.env, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True).stdout)["runs"]


def test_a_client_that_goes_while_its_session_opens_leaves_none(start_api, service):
    daemon = service()
    api = start_api(env=daemon.env)
    for _ in range(4):
        with api.connect() as raw:
            raw.send(post({"cells": ["import time\ntime.sleep(600)"]}, path="/run_jupyter"))
            host.poll(lambda: b"brig_api_sessions 1\n" in api.request("GET", "/metrics").body)
        host.poll(lambda: b"brig_api_sessions 0\n" in api.request("GET", "/metrics").body)
    assert api.jupyter("print(1)")["cells"][0]["stdout"] == "1\n" # the connection to brigd has had all of the others
    host.poll(lambda: not sessions_of(daemon))
