"""What hostile programs report, and what hostile clients send, beyond what is merely wrong: it costs little, stays plain and is refused in words."""
import base64
import json
import pathlib
import re
import resource
import signal
import socket

import jailed
import pytest

from support import bytewise
from support import daemon as daemons
from support import host
from support import mcp as mcp_client

REPORT = {"result": 1, "result_repr": None, "error": None, "variables": [], "exit_code": 0, "security_event": None, "security_warnings": []}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


@pytest.fixture(scope="module")
def shared(built_mcp):
    with mcp_client.McpStdio() as mcp:
        yield mcp


def reporting(expression):
    """A program that writes its own report: a Python expression of bytes."""
    return f"import os\ndata = {expression}\nwhile data:\n    data = data[os.write(5, data):]\nos._exit(0)"


def with_result(expression):
    before, after = json.dumps({**REPORT, "result": "@"}).split('"@"')
    return reporting(f"{before.encode()!r} + {expression} + {after.encode()!r}")


def report_of(**changes):
    return reporting(repr(json.dumps({**REPORT, **changes}).encode()))


def resident_mib(pid, key="VmHWM"):
    return int(re.search(rf"{key}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) // 1024


# --- reports --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["\x1b[2Jgone", "\x1b]0;title\x07", "\x9b31mred", "a\x7fb\x08", "nul\0"])
def test_warnings_of_a_report_have_no_escapes_in_a_text(shared, text):
    said = mcp_client.text_of(shared.call("execute_code", {"code": report_of(security_warnings=[text]), "format": "text"}))
    assert "warning: " in said and not CONTROL.search(said), said


@pytest.mark.parametrize("key, value", [("result_repr", "\x1b[2J"), ("error", {"type": "\x1b[1mE", "message": "\x1b[2Jm", "traceback": "\x1b[2Jt", "line": 1, "offset": 1,
                                                                              "text": "\x1b[2J"})])
def test_no_text_of_a_report_has_escapes_in_a_text(shared, key, value):
    said = mcp_client.text_of(shared.call("execute_code", {"code": report_of(**{"result": None, key: value}), "format": "text"}))
    assert not CONTROL.search(said), said


def test_an_echoed_result_has_no_escapes_either(shared):
    said = shared.execute(report_of(result=None, result_repr="\x1b[2Jred\x9b31m"), echo_result=True)
    assert said["stdout"] == "red\n"


@pytest.mark.parametrize("name, value", [("objects", "b'[' + b'{},' * 340000 + b'1]'"), ("lists", "b'[' + b'[],' * 340000 + b'1]'")])
def test_a_report_of_many_small_things_costs_no_more_memory_than_output_does(start_mcp, name, value):
    mcp = start_mcp()
    said = mcp.execute(with_result(value))
    assert said["exit_reason"] == "exited" and said["result"] is None and "cannot be used" in said["security_warnings"][0]
    assert resident_mib(mcp.pid) < 40, name


@pytest.mark.parametrize("value, result", [("b'[' + b'0,' * 260000 + b'1]'", [0] * 260000 + [1]), ("b'[' + b'{\"a\":1},' * 50000 + b'1]'", [{"a": 1}] * 50000 + [1])])
def test_a_large_result_is_a_result_all_the_same(shared, value, result):
    assert shared.execute(with_result(value))["result"] == result


def test_a_flood_of_the_report_is_not_called_output(shared):
    said = shared.execute("import os\nwhile True: os.write(5, bytes(65536))")
    assert said["exit_reason"] == "output_limit" and "stdout" not in said["error"] and "report" in said["error"]


def test_output_byte_by_byte_does_not_wake_the_server_for_each_byte(start_mcp):
    mcp = start_mcp()
    mcp.execute("1")
    before = bytewise.wakes(mcp.pid)
    said = mcp.execute(bytewise.PROGRAM)
    dots, took_ms = said["stdout"].split()
    assert len(dots) == bytewise.BYTES and bytewise.wakes(mcp.pid) - before < bytewise.bound(int(took_ms)), took_ms


@pytest.mark.parametrize("kind, data", [("png", b"\0\0\0"), ("png", b"GIF89a" + bytes(10)), ("jpeg", PNG), ("gif", b"GIF"), ("webp", b"RIFF\0\0\0\0WAVE"),
                                        ("png", b"<svg xmlns='http://www.w3.org/2000/svg'/>")])
def test_what_is_no_image_is_not_sent_as_one(shared, kind, data):
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    result = shared.call("execute_code", {"code": repr(url)})
    assert [block["type"] for block in result["content"]] == ["text"] and mcp_client.data_of(result)["result"] == url


@pytest.mark.parametrize("kind, data", [("png", PNG), ("jpeg", b"\xff\xd8\xff\xe0" + bytes(20)), ("gif", b"GIF87a" + bytes(20)), ("gif", b"GIF89a" + bytes(20)),
                                        ("webp", b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20))])
def test_what_begins_as_an_image_is_sent_as_one(shared, kind, data):
    result = shared.call("execute_code", {"code": repr(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")})
    assert [block["type"] for block in result["content"]] == ["text", "image"]


@pytest.mark.nightly
def test_a_small_soft_limit_of_descriptors_is_no_limit_of_calls(start_mcp):
    mcp, mark = start_mcp(popen={"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))}), jailed.marker()
    asked = [mcp.begin_call("execute_code", {"code": jailed.HELD, "args": [mark], "timeout": jailed.LONGEST}) for _ in range(30)]

    def are_answered(): # a private brigd has places for sixteen
        for pid in jailed.held(mark):
            daemons.kill(pid, signal.SIGUSR1) # it may have ended just now
        return all(one.reply for one in asked)
    jailed.wait_held(mark, 16)
    assert host.poll(are_answered)
    said = [mcp_client.data_of(one.result()) for one in asked]
    assert {one["exit_reason"] for one in said} == {"exited"}, {one["error"] for one in said}


# --- clients --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("item", ["{}", "[]", '""', "0"])
def test_a_message_of_many_small_things_is_refused_before_it_costs_memory(start_mcp, item):
    mcp = start_mcp()
    junk = ",".join([item] * ((4 << 20) // (len(item) + 1) - 200))
    mcp.send(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"junk": [' + junk.encode() + b"]}}\n")
    said = mcp.stray()
    assert said["error"]["code"] == -32700 and "too many" in said["error"]["message"]
    assert resident_mib(mcp.pid) < 30


@pytest.mark.parametrize("name", ["A=B", "=", "A\n", "A\x1b[2J", ""])
def test_a_variable_has_the_name_that_was_said_or_none(shared, name):
    said = shared.execute("1", env={name: "x"})
    assert said["exit_reason"] == "denied" and said["error"].startswith("env: ") and not CONTROL.search(said["error"]) and "\n" not in said["error"]


def test_too_little_memory_names_the_least(shared):
    said = shared.execute("1", memory_limit="7m")
    assert said["exit_reason"] == "denied" and said["error"] == "memory_limit: 7M is outside 8M..1T"


def spoken_to(server, lines, target="/mcp", method="POST"):
    """The status of a request with these header lines."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    port = int(re.search(r":(\d+)/", server.url)[1])
    head = [f"{method} {target} HTTP/1.1", f"Authorization: Bearer {server.token}", "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close", *lines]
    with socket.create_connection(("127.0.0.1", port), timeout=host.HANG) as connection:
        connection.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(answer.split()[1])


@pytest.mark.parametrize("lines", [["Host: 127.0.0.1", "Transfer-Encoding : chunked"], ["Host: 127.0.0.1", "X Y: a"], ["Host: 127.0.0.1", "X: a\x01b"], ["Host: 127.0.0.1", "X: a\rTransfer-Encoding: chunked"], ["Host: 127.0.0.1", "X\0Y: a"]])
def test_headers_that_two_readers_could_read_differently_are_refused(start_http, lines):
    server = start_http()
    assert spoken_to(server, ["Host: 127.0.0.1", "X-A: \tb"]) == 200
    assert spoken_to(server, lines) == 400


@pytest.mark.parametrize("target", ["/%6dcp", "/mcp%00.html", "/mcp%2f", "/%6Detrics"])
def test_a_path_has_one_spelling(start_http, target):
    assert spoken_to(start_http(), ["Host: 127.0.0.1"], target) == 404


@pytest.mark.nightly
def test_results_that_are_kept_count_as_what_they_cost(start_mcp):
    """Half a MiB of a report is 45 MiB once it was read: of ten that nobody fetches most are forgotten at once."""
    mcp, mark = start_mcp("--yield-after", "0.05"), jailed.marker()
    code = jailed.HELD + with_result("b'[' + b'{},' * 175000 + b'1]'")
    ids = [one["execution_id"] for one in [mcp.execute(code, args=[mark], timeout=jailed.LONGEST) for _ in range(10)]]
    jailed.let_go(mark, 10)
    ended = [mcp.data("wait_execution", {"execution_id": id_, "timeout": jailed.LONGEST})["exit_reason"] for id_ in ids]
    assert set(ended) <= {"exited", "denied"}
    known = [id_ for id_ in ids if mcp.data("wait_execution", {"execution_id": id_})["exit_reason"] != "denied"]
    assert len(known) <= 2
    assert resident_mib(mcp.pid, "VmRSS") < 200


def test_a_check_that_is_refused_names_the_argument(shared):
    said = shared.execute("1", validate=True, allowed_imports=["os,sys"])
    assert said["exit_reason"] == "denied" and said["error"].startswith("allowed_imports: ")
