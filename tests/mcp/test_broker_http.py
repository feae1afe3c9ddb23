"""Servers at an address: Streamable HTTP of all revisions, and what hostile ones send."""
import json
import socket

import pytest

from brokered import FORM, Brokered, own_server, wait_until
from http_servers import Server
from support import host
from support.mcp import data_of


@pytest.mark.parametrize("how", ["json", "events"])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_at_an_address_is_called_in_its_era(era, how):
    with Server(era, how) as server, Brokered({"h": server.entry(headers={"Authorization": "Bearer ${KEY}", "X-Empty": ""})}, env={"KEY": "k-secret-k"}) as b:
        with b.run() as program:
            assert program.result("h.echo", text="hällo\n") == "hällo\n"
            assert program.result("h.echo", text="y" * 300000) == "y" * 300000
        b.mcp.close()
        wait_until(lambda: era == "modern" or "DELETE" in server.methods(), "the session given back")
    assert all(headers["authorization"] == "Bearer k-secret-k" for headers, _ in server.heard) and "k-secret-k" not in b.log
    call = server.headers_of("tools/call")
    assert call["accept"] == "application/json, text/event-stream" and call["content-type"] == "application/json" and call["x-empty"] == ""
    if era == "modern":
        assert (call["mcp-protocol-version"], call["mcp-method"], call["mcp-name"]) == ("2026-07-28", "tools/call", "echo") and "mcp-session-id" not in call
        assert server.methods()[:2] == ["server/discover", "tools/list"]
    else:
        assert (call["mcp-protocol-version"], call["mcp-session-id"]) == ("2025-11-25", "s-123") and "mcp-method" not in call
        assert "mcp-session-id" not in server.headers_of("initialize") and server.headers_of("DELETE")["mcp-session-id"] == "s-123"
    if how == "events":
        assert any("progress" in said for said in program.heard)


def test_arguments_are_mirrored_in_headers_where_a_modern_server_wants_it():
    with Server("modern") as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        program.result("h.mirror", region="eu-west", n=3)
        program.result("h.mirror", region=" \u00e9\r\nX-Evil: 1")
        program.result("h.mirror")
        program.result("h.mirror", region="")
    first, second, third, empty = [headers for headers, message in server.heard if message["method"] == "tools/call"]
    assert (first["mcp-param-region"], first["mcp-param-n"]) == ("eu-west", "3")
    assert second["mcp-param-region"] == "=?base64?IMOpDQpYLUV2aWw6IDE=?=" and "x-evil" not in second and not [name for name in third if name.startswith("mcp-param")]
    assert empty["mcp-param-region"] == ""


def test_a_legacy_server_says_on_its_stream_that_its_list_has_changed():
    with Server("legacy", "events") as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        assert program.error("h.fresh")[0] == "not_found"
        wait_until(lambda: server.streams, "the stream")
        server.more.append({"name": "fresh", "description": "x", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}})
        server.say({"method": "notifications/tools/list_changed"})
        wait_until(lambda: "h.fresh" in program.ask("names", under="h")["names"], "the new tool")
        server.say({"id": "q", "method": "ping"})
        wait_until(lambda: "response" in server.methods(), "an answer to ping")
        assert program.result("h.fresh") == ""


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_cancelled_call_ends_its_request(era):
    with Server(era) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        number = program.begin("h.hang")
        wait_until(lambda: "tools/call" in server.methods(), "the call")
        program.send({"id": number, "op": "cancel"})
        assert program.answer(number)["error"]["kind"] == "cancelled"
        if era == "modern":
            assert server.gone.wait(host.HANG), "the connection is the call"
        else:
            wait_until(lambda: "notifications/cancelled" in server.methods(), "the cancel")
        assert program.result("h.echo", text="x") == "x"


def test_many_calls_are_under_way_at_once():
    with Server("modern") as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        hanging = [program.begin("h.hang") for _ in range(30)]
        numbers = [program.begin("h.echo", text=str(n)) for n in range(30)]
        assert [program.answer(number)["result"] for number in numbers] == [str(n) for n in range(30)]
        program.send(*[{"id": number, "op": "cancel"} for number in hanging])


def odd(method, do):
    return {"odd": {method: do}}


HOSTILE = [
    ("401", odd("tools/call", lambda h, m: h.body(b"no", 401, "text/plain")), "lost", "HTTP status 401 without an answer"),
    ("500", odd("tools/call", lambda h, m: h.body(b"<html>", 500, "text/html")), "lost", "HTTP status 500"),
    ("an error of JSON-RPC with status 400", odd("tools/call", lambda h, m: h.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "bad"}}, 400)), "tool", "bad (error -32602"),
    ("an answer to another", odd("tools/call", lambda h, m: h.json({"jsonrpc": "2.0", "id": 999, "result": {"content": []}})), "lost", "without an answer"),
    ("no JSON", odd("tools/call", lambda h, m: h.body(b"{]")), "lost", "no JSON"),
    ("nothing", odd("tools/call", lambda h, m: h.body(b"")), "lost", "without an answer"),
    ("202", odd("tools/call", lambda h, m: h.body(b"", 202)), "lost", "HTTP status 202"),
    ("6 MiB of JSON", odd("tools/call", lambda h, m: h.body(b'{"x":"' + b"x" * (6 << 20) + b'"}')), "limit", "more than 4 MiB"),
    ("6 MiB in one event", odd("tools/call", lambda h, m: h.events(b"data: " + b"x" * (6 << 20) + b"\n\n")), "limit", "more than 4 MiB"),
    ("6 MiB of a line without an end", odd("tools/call", lambda h, m: h.events(b"x" * (6 << 20))), "limit", "more than 4 MiB"),
    ("a stream that ends before its answer", odd("tools/call", lambda h, m: h.events(b"data: {}\n\n")), "lost", "without an answer"),
    ("an event that is none", odd("tools/call", lambda h, m: h.events(b"data: \x1b[2J\n\nretry: x\n\n:::\n\n")), "lost", "without an answer"),
    ("a redirect", odd("tools/call", lambda h, m: h.body(b"", 302, Location="http://127.0.0.1:1/steal")), "lost", "HTTP status 302"),
    ("gzip that nobody asked for", odd("tools/call", lambda h, m: h.body(b"\x1f\x8b\x08", 200, Content_Encoding="gzip")), "lost", "no JSON"),
]


@pytest.mark.sample(6, "a redirect-modern", "a redirect-legacy")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("name, how, kind, words", HOSTILE, ids=[row[0] for row in HOSTILE])
def test_an_answer_of_any_kind_ends_its_call(era, name, how, kind, words):
    with Server(era, **how) as server, Brokered({"h": server.entry(headers={"Authorization": "Bearer t0p-s3cr3t"})}) as b, b.run() as program:
        said = program.error("h.echo", text="x")
        assert said[0] == kind and words in said[1], said
        server.odd.clear()
        assert program.result("h.echo", text="honest") == "honest", "the control"
    assert "t0p-s3cr3t" not in b.log + json.dumps(program.reply)


def test_an_answer_twice_counts_once():
    def twice(handler, message):
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "first"}]}}
        handler.events(reply, {**reply, "result": {"content": [{"type": "text", "text": "second"}]}})
    with Server("legacy", odd={"tools/call": twice}) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        assert program.result("h.echo", text="x") == "first"
        server.odd.clear()
        assert program.result("h.echo", text="honest") == "honest" and not program.heard


def test_a_session_that_the_server_has_ended_is_begun_anew():
    with Server("legacy") as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        program.result("h.echo", text="x")
        server.odd["tools/call"] = lambda handler, message: handler.body(b"", 404)
        assert program.error("h.echo", text="x")[0] in ("tool", "lost")
        server.odd.clear()
        server.session = "s-456"
        wait_until(lambda: program.call("h.echo", text="x").get("result") == "x", "the server again")
    assert [headers.get("mcp-session-id") for headers, message in server.heard if isinstance(message, dict) and message["method"] == "tools/call"][-1] == "s-456"


@pytest.mark.parametrize("session", ["a b", "x\x7f", "\u00e9"])
def test_a_session_that_could_not_be_sent_back_is_none(session):
    with Server("legacy", session=session.encode().decode("latin-1")) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        assert program.result("h.echo", text="x") == "x"
    assert "mcp-session-id" not in server.headers_of("tools/call")


def test_a_long_session_id_is_sent_back_whole():
    with Server("legacy", session="s" * 3000) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        assert program.result("h.echo", text="x") == "x"
    assert server.headers_of("tools/call")["mcp-session-id"] == "s" * 3000


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_that_ends_no_stream_goes_on_being_called(era):
    """There may be 128 connections to it."""
    def leaves_open(handler, message):
        handler.events({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", "content": [{"type": "text", "text": "x"}]}}, end=False)
        handler.server.gone.wait(host.HANG)
        handler.close_connection = True
    with Server(era, odd={"tools/call": leaves_open}) as server, Brokered({"h": server.entry()}, "--tool-rate", "1000", "--tool-timeout", "10") as b, b.run() as program:
        for _ in range(140):
            assert program.result("h.echo", text="x") == "x"


def test_nobody_at_the_address_is_a_server_that_is_lost():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        with Brokered({"h": {"url": f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", "headers": {"Authorization": "Bearer t0p-s3cr3t"}}}) as b, b.run() as program:
            kind, words = program.error("h.echo", text="x")
    assert kind == "lost" and "onnect" in words and "t0p" not in b.log


def test_neither_address_nor_headers_are_in_arguments_or_environment():
    with Server("modern") as server, Brokered({"h": server.entry(headers={"Authorization": "Bearer t0p-s3cr3t"})}) as b, b.run() as program:
        program.result("h.echo", text="x")
        (pid,) = [pid for pid in host.children(b.mcp.pid) if "remote" in host.read(f"/proc/{pid}/cmdline")]
        assert "127.0.0.1" not in host.read(f"/proc/{pid}/cmdline") and "t0p" not in open(f"/proc/{pid}/environ", "rb").read().decode()
        assert "NoNewPrivs:\t1" in host.read(f"/proc/{pid}/status")


def test_brig_mcp_itself_can_be_the_server_at_the_address(start_http):
    """A server of all eras that others test; its tools are allowed by name."""
    http = start_http()
    entry = {"type": "http", "url": http.url, "headers": http.headers()}
    with Brokered({"far": entry}, "--allow-tools", "far.*") as b, b.run() as program:
        assert "far.execute_code" in program.ask("names", under="far")["names"]
        said = program.result("far.execute_code", code="6*7")
        assert said["result"] == 42
        assert program.call("far.execute_code", code="")["error"]["kind"] == "tool"


# --- a person is asked over HTTP -------------------------------------------------------------------------

@pytest.fixture
def http_asks(start_http, tmp_path):
    """brig-mcp --http with servers, before a server of the test."""
    with Brokered({"t": own_server()}) as b:
        server = start_http("--servers", str(b.file), env={"BRIG_SOCKET": b.server})
        b.was_asked = True
        yield b, server
        server.close() # before the server, which serves it until it goes


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_person_is_asked_over_http(http_asks, revision):
    b, server = http_asks
    client = server.client(revision)
    yes = {"action": "accept", "content": {"answer": "once"}}
    if revision != "2026-07-28":
        client.initialize(revision, FORM)
    program = b.begin(client, revision=revision, capabilities=FORM)
    number = program.begin("t.wipe", what="x")
    if revision == "2026-07-28":
        result = program.asked.result()
        key = next(iter(result["inputRequests"]))
        program.asked = client.begin("tools/call", {"name": "execute_code", "arguments": {"code": "1", "detail": True}, "requestState": result["requestState"],
                                                    "inputResponses": {key: yes}}, capabilities=FORM)
    else:
        question = program.asked.wait_question()
        stranger = server.client(revision)
        stranger.initialize(revision, FORM)
        stranger.answer({"id": "brig-" + "0" * 32}, {"action": "decline"})
        client.answer(question, yes)
    assert program.answer(number)["result"] == "x is gone"
    program.end()
    assert data_of(program.asked.result())["tool_calls"]["n"] == 1
    client.close()


def test_a_legacy_http_client_that_offers_nothing_is_denied(http_asks):
    b, server = http_asks
    client = server.client("2025-11-25")
    client.initialize("2025-11-25", {})
    program = b.begin(client, revision="2025-11-25")
    assert program.error("t.wipe", what="x")[0] == "denied"
    program.end()
    program.asked.result()
    client.close()
