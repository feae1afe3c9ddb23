"""Servers at an address that speak HTTP+SSE, the transport of 2024-11-05: one stream brings the endpoint, then every answer."""
import contextlib
import json
import threading

import pytest

from brokered import Brokered, wait_until
from http_servers import Server
from support import host

SECRET = "t0p-s3cr3t"


class SseServer(Server):
    """Streamable HTTP is refused with `status`; endpoint: the bytes with which the stream begins, {} stands for the honest address."""

    def __init__(self, status=405, endpoint=b"event: endpoint\ndata: {}\n\n", odd=None):
        self.status, self.endpoint, self.stream = status, endpoint, None
        super().__init__("legacy", "json", odd, session=None, path="/sse")

    def entry(self, kind=None, **more):
        return {"url": self.url, "headers": {"Authorization": f"Bearer {SECRET}"}, **({"type": kind} if kind else {}), **more}

    def listen_for(self, handler):
        begin = self.endpoint(self) if callable(self.endpoint) else self.endpoint
        self.stream = handler # before a client can know where to post
        handler.events(begin.replace(b"{}", b"/messages?session=1"), end=False)
        self.gone.wait(host.HANG)
        handler.close_connection = True

    def write(self, data):
        self.stream.wfile.write(data)
        self.stream.wfile.flush()

    def end_stream(self):
        self.gone.set()

    def take(self, handler, message):
        if handler.path == "/sse":
            return handler.body(b"Cannot POST", self.status, "text/html")
        if message.get("method") in self.odd:
            return self.odd[message["method"]](handler, message)
        if "id" in message and "method" in message:
            result = self.result_of(message["method"], message, handler)
            self.write(b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n\n")
        return handler.body(b"Accepted", 202, "text/plain")


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind, status", [("sse", 405), ("http", 400), (None, 404), (None, 405)])
def test_a_server_of_http_sse_is_called(kind, status):
    with SseServer(status) as server, Brokered({"h": server.entry(kind)}) as b, b.run() as program:
        assert program.result("h.echo", text="hällo\n") == "hällo\n"
        assert program.result("h.echo", text="y" * 300000) == "y" * 300000
        numbers = [program.begin("h.echo", text=str(n)) for n in range(40)]
        assert [program.answer(number)["result"] for number in numbers] == [str(n) for n in range(40)]
    assert server.methods().count("GET") == 1 and server.headers_of("GET")["accept"] == "text/event-stream"
    assert all(headers["authorization"] == f"Bearer {SECRET}" for headers, _ in server.heard) and SECRET not in b.log
    if kind == "sse":
        assert server.methods()[:2] == ["GET", "initialize"], "nothing is tried that it has not"


@pytest.mark.parametrize("status", [401, 403, 500])
def test_another_refusal_is_no_reason_to_try_http_sse(status):
    with SseServer(status) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        kind, words = program.error("h.echo", text="x")
    assert kind == "lost" and f"HTTP status {status}" in words and "GET" not in server.methods()


def test_both_refusals_are_told():
    with Server("legacy", odd={"initialize": lambda h, m: h.body(b"", 404), "server/discover": lambda h, m: h.body(b"", 404)}) as server:
        with Brokered({"h": server.entry()}) as b, b.run() as program:
            kind, words = program.error("h.echo", text="x")
    assert kind == "lost" and "HTTP status 404 without an answer; HTTP+SSE: HTTP status 405 and no event stream" in words


@contextlib.contextmanager
def thief():
    """Another server of this host: it has the address, and another port."""
    with Server("legacy") as other:
        yield other


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["sse", "http"])
@pytest.mark.parametrize("name, form", [("another port", "http://127.0.0.1:{port}/messages"), ("no scheme", "//127.0.0.1:{port}/messages"),
                                        ("a name before the host", "http://127.0.0.1:{own}@127.0.0.1:{port}/messages"),
                                        ("another scheme", "https://127.0.0.1:{own}/messages"), ("another name of the host", "http://localhost:{own}/messages"),
                                        ("a file", "file:///etc/passwd")], ids=lambda value: value.replace(" ", "-") if ":" not in value and "/" not in value else "")
def test_an_endpoint_of_another_origin_is_told_nothing(kind, name, form):
    with thief() as other:
        def endpoint(server):
            return b"event: endpoint\ndata: " + form.format(port=other.server_port, own=server.server_port).encode() + b"\n\n"
        with SseServer(endpoint=endpoint) as server, Brokered({"h": server.entry(kind)}) as b, b.run() as program:
            refused, words = program.error("h.echo", text="x")
    assert refused == "lost" and ("another origin" in words or "no address" in words), words
    assert not other.heard and SECRET not in b.log + json.dumps(program.reply)
    assert not [headers for headers, message in server.heard if message != "GET" and kind == "sse"], "nothing is posted"


def test_an_endpoint_of_the_same_origin_may_be_a_whole_address():
    def endpoint(server):
        return f"event: endpoint\r\ndata: HTTP://127.0.0.1:{server.server_port}/other?x=1\r\n\r\n".encode()
    with SseServer(endpoint=endpoint) as server, Brokered({"h": server.entry()}) as b, b.run() as program:
        assert program.result("h.echo", text="x") == "x"


def test_a_second_endpoint_changes_nothing():
    with thief() as other, SseServer() as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        assert program.result("h.echo", text="x") == "x"
        server.write(f"event: endpoint\ndata: {other.url}\n\nevent: endpoint\ndata: /gone\n\n".encode())
        assert program.result("h.echo", text="y") == "y" and not other.heard


HOSTILE_STREAMS = [
    ("an endless line", b"x" * (6 << 20), "more than 4 MiB"),
    ("an endless comment", b":" + b"x" * (6 << 20), "more than 4 MiB"),
    ("an event of 100 MB", (b"data: " + b"x" * 1000000 + b"\n") * 100 + b"\n", "more than 4 MiB"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("when", ["before the endpoint", "in a call"])
@pytest.mark.parametrize("name, data, words", HOSTILE_STREAMS, ids=[row[0].replace(" ", "-") for row in HOSTILE_STREAMS])
def test_a_stream_without_measure_is_the_end_of_its_server(when, name, data, words):
    def flood(handler, _):
        with contextlib.suppress(OSError):
            server.write(data)
        handler.body(b"", 202)
    early = when.startswith("before")
    with SseServer(endpoint=data if early else b"event: endpoint\ndata: {}\n\n", odd={} if early else {"tools/call": flood}) as server:
        with Brokered({"h": server.entry("sse")}) as b, b.run() as program:
            kind, said = program.error("h.echo", text="x")
            assert kind == "lost" and words in said, said
            wait_until(lambda: "started again" in program.error("h.echo", text="x")[1], "it rests as others do")


@pytest.mark.nightly
def test_a_server_that_names_no_endpoint_is_given_up():
    """The bound is 10 s; other events are not taken for answers meanwhile."""
    forged = b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}}).encode() + b"\n\n"
    with SseServer(endpoint=forged) as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        kind, words = program.error("h.echo", text="x")
    assert kind == "lost" and "no endpoint in 10 s" in words and server.methods() == ["GET"]


def test_a_stream_that_ends_in_a_call_ends_the_server_and_it_is_started_again():
    def end(handler, _):
        handler.body(b"", 202)
        server.end_stream()
    with SseServer(odd={"tools/call": end}) as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        kind, words = program.error("h.echo", text="x")
        assert kind == "lost" and "the event stream has ended" in words and "whether it was done is not known" in words
        server.odd.clear()
        server.gone = threading.Event()
        wait_until(lambda: program.call("h.echo", text="y").get("result") == "y", "the server again")
    assert server.methods().count("GET") == 2


@pytest.mark.parametrize("name, do, words", [
    ("a refusal", lambda h, m: h.body(b"", 500), "HTTP status 500"),
    ("a redirect", lambda h, m: h.body(b"", 307, Location="http://127.0.0.1:1/steal"), "HTTP status 307"),
    ("6 MiB instead of 202", lambda h, m: h.body(b"x" * (6 << 20)), "more than 4 MiB")], ids=["refusal", "redirect", "large"])
def test_a_post_that_is_not_taken_ends_its_call(name, do, words):
    with SseServer(odd={"tools/call": do}) as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        assert words in program.error("h.echo", text="x")[1]
        server.odd.clear()
        assert program.result("h.echo", text="honest") == "honest", "the control"


def test_an_answer_twice_counts_once_and_an_event_of_another_name_is_none():
    def twice(handler, message):
        for name, text in (("news", "other"), ("message", "first"), ("message", "second")):
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}
            server.write(f"event: {name}\ndata: {json.dumps(reply)}\n\n".encode())
        handler.body(b"", 202)
    with SseServer(odd={"tools/call": twice}) as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        assert [program.result("h.echo", text="x") for _ in range(2)] == ["first", "first"]


def test_a_cancelled_call_is_told_to_the_server():
    with SseServer(odd={"tools/call": lambda h, m: h.body(b"", 202)}) as server, Brokered({"h": server.entry("sse")}) as b, b.run() as program:
        number = program.begin("h.hang")
        wait_until(lambda: "tools/call" in server.methods(), "the call")
        program.send({"id": number, "op": "cancel"})
        assert program.answer(number)["error"]["kind"] == "cancelled"
        wait_until(lambda: "notifications/cancelled" in server.methods(), "the cancel")
        server.odd.clear()
        assert program.result("h.echo", text="x") == "x"
