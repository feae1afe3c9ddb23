"""HTTP: statuses, the rules of headers, eras, batches; every request is written byte by byte."""
import base64
import json
import re

import jailed
import pytest

from support import host, mcp
from support.mcp_http import HttpServer, modern, post, samples


@pytest.fixture(scope="module")
def server(built_mcp):
    with HttpServer("--allow-origin", "https://app.example", "--allow-host", "python.example,other.example:99", program=mcp.conformance()) as one:
        yield one


def said(server, message, headers=None, **kw):
    status, answer, body = server.say(post(message, headers, **kw))
    return status, answer, json.loads(body) if body else None


def ask(server, method, params=None, drop=(), **kw):
    message, headers = modern(method, params, **kw)
    return said(server, message, {name: None if name in drop else value for name, value in headers.items()})


# --- what is served where -----------------------------------------------------------------------------

def test_health_is_told_without_a_host_and_says_nothing_else(server):
    status, headers, body = server.say(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcpx", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/sse", "/../mcp"])
def test_other_paths_are_not_found_at_once(server, path):
    status, _, body = server.say(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert status == 404
    assert "/mcp" in json.loads(body)["error"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH", "TRACE"])
def test_only_post_is_served_and_the_answer_says_so(server, method):
    status, headers, _ = server.say(f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
    assert (status, headers["allow"]) == (405, "POST")
    assert "access-control-allow-origin" not in headers


def test_head_is_refused_without_a_body(server):
    with server.connect() as raw:
        raw.send(b"HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers = raw.head()
        assert (status, headers["allow"]) == (405, "POST")
        assert raw.reply()[0] == 200


# --- Host and Origin -------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1234", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:9015", "python.example", "python.example:1", "other.example:99"])
def test_hosts_that_are_served(server, name):
    assert ask_with(server, Host=name)[0] == 200


@pytest.mark.parametrize("name", ["evil.example", "evil.example:9015", "localhost.evil.example", "127.0.0.1.evil.example", "other.example", "other.example:98", "10.0.0.1",
                                  "[::2]", "[::1", "localhost:", "localhost:x", "localhost:123456", "", "localhost@evil.example"])
def test_hosts_that_are_not_served(server, name):
    status, _, body = ask_with(server, Host=name)
    assert (status, sorted(body)) == ((403, ["error"]) if name != "localhost:" else (200, sorted(body)))


def ask_with(server, **headers):
    message, given = modern("tools/list")
    return said(server, message, given | headers)


@pytest.mark.parametrize("origin", ["http://localhost", "http://localhost:6274", "https://localhost:1", "http://127.0.0.1:9015", "http://[::1]:9015", "https://app.example"])
def test_origins_that_may_call(server, origin):
    assert ask_with(server, Origin=origin)[0] == 200


@pytest.mark.parametrize("origin", ["null", "", "http://evil.example", "https://evil.example:9015", "http://localhost.evil.example", "file://", "http://app.example",
                                    "https://app.example:444", "https://app.example.evil.example", "chrome-extension://abc", "http://localhost:x", "localhost", "http://localhost/"])
def test_origins_that_may_not_call(server, origin):
    status, headers, body = ask_with(server, Origin=origin)
    assert status == 403
    assert "access-control-allow-origin" not in headers
    assert "origin" in body["error"]


def test_a_page_elsewhere_that_reaches_localhost_is_refused_though_the_host_is_right(server):
    assert ask_with(server, Host=f"localhost:{server.port}", Origin="https://evil.example")[0] == 403


def test_a_name_that_was_pointed_at_us_is_refused_though_origin_equals_host(server):
    """DNS rebinding: the browser believes that both are one."""
    assert ask_with(server, Host=f"evil.example:{server.port}", Origin=f"http://evil.example:{server.port}")[0] == 403
    assert ask_with(server, Host=f"evil.example:{server.port}")[0] == 403


def test_a_configured_page_may_read_and_its_preflight_is_answered(server):
    status, headers, _ = server.say(b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n\r\n")
    assert (status, headers["access-control-allow-origin"]) == (204, "https://app.example")
    assert {"authorization", "content-type", "mcp-method", "mcp-protocol-version"} <= set(headers["access-control-allow-headers"].split(", "))
    assert ask_with(server, Origin="https://app.example")[1]["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-origin" not in ask_with(server, Origin="http://localhost")[1]


# --- the body --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data"])
def test_other_content_types_are_refused(server, kind):
    """What a page may post without being asked about it."""
    assert ask_with(server, **{"Content-Type": kind})[0] == 415


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=utf-8"])
def test_json_is_taken_however_it_is_written(server, kind):
    assert ask_with(server, **{"Content-Type": kind})[0] == 200


@pytest.mark.parametrize("body", [b"", b"{", b"nothing", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b"\xff\xfe", b"[" * 100000], ids=lambda body: body[:20].hex())
def test_what_is_no_json_is_a_parse_error(server, body):
    status, _, answer = said(server, body)
    assert (status, answer["error"]["code"]) == (400, -32700)
    assert "id" not in answer


@pytest.mark.parametrize("body", [b"1", b'"text"', b"null", b"{}", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
                                  b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":7}'])
def test_what_is_no_message_is_an_invalid_request(server, body):
    status, _, answer = said(server, body)
    assert (status, answer["error"]["code"]) == (400, -32600)


def test_a_body_of_4_mib_is_taken_and_one_byte_more_is_not(server):
    message, headers = modern("tools/call", {"name": "test_simple_text", "arguments": {"x": ""}})
    room = 4 * 1024 * 1024 - len(json.dumps(message))
    message["params"]["arguments"]["x"] = "x" * room
    assert said(server, message, headers)[0] == 200
    message["params"]["arguments"]["x"] += "x"
    status, _, body = said(server, message, headers)
    assert (status, "4194304" in body["error"]) == (413, True)


def test_a_chunked_body_without_end_is_cut_off(server):
    with server.connect() as raw:
        raw.send(post(b"", {"Transfer-Encoding": "chunked"}, length=False))
        part = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        with pytest.raises(OSError):
            for _ in range(40):
                raw.send(part)
    assert server.client().request("tools/list")


def test_a_chunked_body_that_is_too_large_is_told_so(server):
    with server.connect() as raw:
        raw.send(post(b"", {"Transfer-Encoding": "chunked"}, length=False))
        raw.send((b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 5 + b"0\r\n\r\n")
        assert raw.reply()[0] == 413


def test_a_chunked_body_is_put_together(server):
    message, headers = modern("tools/list", id="chunks")
    body = json.dumps(message).encode()
    with server.connect() as raw:
        raw.send(post(b"", headers | {"Transfer-Encoding": "chunked"}, length=False))
        for at in range(0, len(body), 7):
            raw.send(b"%x\r\n%s\r\n" % (len(body[at:at + 7]), body[at:at + 7]))
        raw.send(b"0\r\n\r\n")
        status, _, answer = raw.reply()
    assert (status, json.loads(answer)["id"]) == (200, "chunks")


def test_who_expects_to_be_asked_for_the_body_is(server):
    message, headers = modern("tools/list")
    body = json.dumps(message).encode()
    with server.connect() as raw:
        raw.send(post(body, headers | {"Expect": "100-continue"})[:-len(body)])
        assert raw.head()[0] == 100
        raw.send(body)
        assert raw.reply()[0] == 200


def test_who_expects_to_be_asked_is_refused_before_he_sends(server):
    with server.connect() as raw:
        raw.send(post(b"", {"Expect": "100-continue", "Content-Length": "4194305"}))
        assert raw.reply()[0] == 413


@pytest.mark.parametrize("headers", [{"Transfer-Encoding": "chunked", "Content-Length": "5"}, {"Transfer-Encoding": "gzip, chunked"}, {"Content-Length": "+5"},
                                     {"Content-Length": ["5", "6"]}, {"Content-Length": "5 "  "5"}, {"Content-Length": "0x5"}, {"Content-Length": "-1"},
                                     {"Content-Length": "99999999999999999999999"}])
def test_a_length_that_two_could_read_differently_is_refused(server, headers):
    with server.connect() as raw:
        raw.send(post(b"", {"Content-Length": None} | headers))
        status, _, _ = raw.reply()
    assert status in (400, 413), "or what follows is taken for a request"


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Content-Type", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"])
def test_a_header_that_decides_and_comes_twice_is_refused(server, name):
    """Whoever stands in front of us may believe the other one."""
    message, headers = modern("tools/list")
    one = {"Host": "localhost", "Content-Type": "application/json", **headers}.get(name, "http://localhost")
    assert said(server, message, headers | {name: [one, one]})[0] == 400


def test_ten_thousand_bytes_of_headers_are_taken_and_more_than_16_kib_are_not(server):
    assert ask_with(server, **{"X-Long": "x" * 10000})[0] == 200
    status, _, _ = server.say(post(b"{}", {"X-Long": "x" * 17000}))
    assert status == 431
    status, _, _ = server.say(post(b"{}", {f"X-{i}": "x" * 100 for i in range(2000)}))
    assert status in (431, None)


def test_ten_thousand_headers_are_refused_and_the_server_goes_on(server):
    with server.connect() as raw:
        try:
            raw.send(post(b"{}", {f"X-{i}": "" for i in range(10000)}))
        except OSError:
            pass
        assert raw.head()[0] in (431, None)
    assert server.client().request("tools/list")


@pytest.mark.sample(3)
@pytest.mark.parametrize("data", [b"\r\n" * 100, b"\0" * 100, b"GET\r\n\r\n", b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                  b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"POST /mcp HTTP/1.1\r\nHost localhost\r\n\r\n", b"POST /m\0cp HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=lambda data: data[:12].hex())
def test_what_is_no_http_hurts_nobody(server, data):
    """Some of it is answered with 400; of the rest libmicrohttpd waits for more, until its time is over."""
    with server.connect() as raw:
        raw.send(data)
        assert server.client().request("tools/list")
        raw.sock.setblocking(False)
        try:
            said = raw.sock.recv(100)
        except BlockingIOError:
            said = b""
        assert not said or int(said.split()[1]) >= 400
    assert server.client().request("tools/list")


# --- headers of the newest revision -------------------------------------------------------------------------------

def test_a_request_with_all_its_headers_is_answered(server):
    status, headers, answer = ask(server, "tools/list", id="x")
    assert (status, answer["id"], answer["result"]["resultType"]) == (200, "x", "complete")
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("drop", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_missing_header_is_a_mismatch(server, drop):
    status, _, answer = ask(server, "tools/call", {"name": "test_simple_text"}, drop=[drop])
    assert (status, answer["error"]["code"], answer["id"]) == (400, -32020, 1)
    assert drop in answer["error"]["message"]


@pytest.mark.parametrize("headers", [{"Mcp-Method": "tools/list"}, {"Mcp-Method": "TOOLS/CALL"}, {"Mcp-Name": "Test_simple_text"}, {"Mcp-Name": "test_simple_tex"},
                                     {"MCP-Protocol-Version": "2025-11-25"}, {"MCP-Protocol-Version": "1999-01-01"}, {"Mcp-Method": ""}, {"Mcp-Name": ""}])
def test_a_header_that_says_something_else_is_a_mismatch(server, headers):
    message, given = modern("tools/call", {"name": "test_simple_text"})
    status, _, answer = said(server, message, given | headers)
    assert (status, answer["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method, key, value", [("prompts/get", "name", "test_simple_prompt"), ("resources/read", "uri", "test://static-text")])
def test_prompts_and_resources_are_named_in_a_header(server, method, key, value):
    assert ask(server, method, {key: value}, Mcp_Name=value)[0] == 200
    assert ask(server, method, {key: value}, Mcp_Name="another")[2]["error"]["code"] == -32020
    assert ask(server, method, {key: value}, Mcp_Name=None)[2]["error"]["code"] == -32020


def test_names_of_headers_have_no_case_and_values_lose_their_blanks(server):
    message, _ = modern("tools/call", {"name": "test_simple_text"})
    headers = {"mcp-protocol-version": f" \t{mcp.MODERN}\t ", "MCP-METHOD": "  tools/call", "mcp-NAME": "\ttest_simple_text  "}
    assert said(server, message, headers)[0] == 200


def wrapped(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("name", ["test_simple_text", "Grüße 日本"])
def test_names_may_be_wrapped_in_base64(server, name):
    status, _, answer = ask(server, "tools/call", {"name": name}, Mcp_Name=wrapped(name))
    assert status == 200
    assert "error" not in answer or answer["error"]["code"] == -32602, "an unknown tool, but no mismatch"


@pytest.mark.parametrize("value", ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVsbG9=?=", "=?base64?SGVsbG8==?=", "=?base64?SGVs bG8=?=", "=?base64?=GVsbG8=?=",
                                   "=?base64?SGVsbG8=SGVsbG8=?=", "=?base64?gIA=?=", "=?base64?SGVsbG8A?=", "=?base64??="])
def test_damaged_base64_is_a_mismatch(server, value):
    status, _, answer = ask(server, "tools/call", {"name": "test_mirrored_header", "arguments": {"region": "Hello"}}, Mcp_Param_Region=value)
    assert (status, answer["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("arguments, headers, fits", [
    ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, True),
    ({"region": "eu"}, {"mcp-param-REGION": " eu "}, True),
    ({"region": "eu"}, {"Mcp-Param-Region": wrapped("eu")}, True),
    ({"region": " eu "}, {"Mcp-Param-Region": wrapped(" eu ")}, True),
    ({"region": "=?base64?eu"}, {"Mcp-Param-Region": "=?base64?eu"}, True),
    ({"region": "SGVsbG8="}, {"Mcp-Param-Region": "SGVsbG8="}, True),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "7"}, True),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "7.0"}, True),
    ({"region": "eu", "count": None}, {"Mcp-Param-Region": "eu"}, True),
    ({"region": "eu"}, {"Mcp-Param-Region": "eu", "Mcp-Param-Other": "x"}, True),
    ({"region": "eu"}, {}, False),
    ({"region": "eu"}, {"Mcp-Param-Region": "EU"}, False),
    ({"region": "eu"}, {"Mcp-Param-Region": ["eu", "eu"]}, False),
    ({"region": "eu"}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "7"}, False),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu"}, False),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "8"}, False),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "7x"}, False),
    ({"region": "eu", "count": 7}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "nan"}, False),
])
def test_arguments_that_a_tool_wants_repeated(server, arguments, headers, fits):
    message, given = modern("tools/call", {"name": "test_mirrored_header", "arguments": arguments})
    status, _, answer = said(server, message, given | headers)
    if fits:
        assert (status, "result" in answer) == (200, True), answer
    else:
        assert status == 400 and (isinstance(answer["error"], str) or answer["error"]["code"] == -32020)


def test_a_version_that_nobody_serves_is_told_with_those_that_are(server):
    status, _, answer = ask(server, "tools/list", meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"}, MCP_Protocol_Version="2099-01-01")
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert answer["error"]["data"] == {"supported": [mcp.MODERN], "requested": "2099-01-01"}


def test_meta_that_lacks_something_is_invalid_though_the_header_is_right(server):
    headers = {"MCP-Protocol-Version": mcp.MODERN, "Mcp-Method": "tools/list"}
    for params in ({}, {"_meta": {}}, {"_meta": {"io.modelcontextprotocol/protocolVersion": mcp.MODERN}}, {"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}):
        status, _, answer = said(server, {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params}, headers)
        assert (status, answer["error"]["code"], answer["id"]) == (400, -32602, 0)


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "resources/subscribe", "nothing/there", "tasks/list"])
def test_methods_that_are_not_of_this_revision_are_not_found(server, method):
    status, _, answer = ask(server, method)
    assert (status, answer["error"]["code"], answer["id"]) == (404, -32601, 1)


def test_a_notification_is_accepted_and_a_response_is_nothing_here(server):
    assert ask(server, "notifications/cancelled", {"requestId": 7}, id=None)[0] == 202
    assert ask(server, "notifications/cancelled", {"requestId": 7}, id=None, drop=["Mcp-Method"])[0] == 400
    assert said(server, {"jsonrpc": "2.0", "id": 1, "result": {}}, {"MCP-Protocol-Version": mcp.MODERN})[0] == 400


def test_arrays_are_not_of_this_revision(server):
    message, headers = modern("tools/list")
    status, _, answer = said(server, [message], headers)
    assert (status, answer["error"]["code"]) == (400, -32600)


def test_a_session_id_is_ignored_and_never_given(server):
    message, headers = modern("tools/list")
    status, answer, _ = said(server, message, headers | {"Mcp-Session-Id": "anything"})
    assert status == 200 and "mcp-session-id" not in answer


def test_a_missing_capability_is_named(server):
    status, _, answer = ask(server, "tools/call", {"name": "test_missing_capability"})
    assert (status, answer["error"]["code"]) == (400, -32021)
    assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


# --- the revisions before ---------------------------------------------------------------------------------------------

def legacy(method, params=None, id=1):
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}) | ({} if id is None else {"id": id})


INIT = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.parametrize("asked, agreed", [(r, r) for r in mcp.LEGACY] + [("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")])
def test_each_legacy_revision_is_agreed_on(server, asked, agreed):
    status, headers, answer = said(server, legacy("initialize", INIT | {"protocolVersion": asked}))
    assert (status, answer["result"]["protocolVersion"]) == (200, agreed)
    assert re.fullmatch("[0-9a-f]{32}", headers["mcp-session-id"])


def test_a_session_id_is_never_asked_for_and_never_unknown(server):
    """After a restart of the server clients go on."""
    for session in (None, "0" * 32, "made up"):
        assert said(server, legacy("ping"), {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"})[0] == 200
    assert server.say(b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: x\r\n\r\n")[0] == 405


def test_bodies_of_requests_that_have_none_take_no_room_from_others(server):
    """Also of clients without a token: /healthz asks for none."""
    begun = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3ff000\r\n" + b"x" * 0x3ff000
    before, open_ones = refused(server, "busy"), []
    try:
        for _ in range(40):
            raw = server.connect()
            open_ones.append(raw)
            raw.send(begun)
        assert server.say(post(*modern("tools/call", {"name": "test_simple_text", "arguments": {"x": "x" * 4190000}})))[0] == 200
    finally:
        for raw in open_ones:
            raw.close()
    assert refused(server, "busy") == before


@pytest.mark.nightly
def test_bodies_that_are_being_sent_are_bounded_together(server):
    """Forty clients that stop before the end of 4 MiB each: what is too much is told so, and freed when they go."""
    message, headers = modern("tools/call", {"name": "test_simple_text", "arguments": {"x": "x" * 4190000}})
    data = post(message, headers)
    open_ones = []
    try:
        for _ in range(40):
            raw = server.connect()
            open_ones.append(raw)
            raw.send(data[:-10])
        before = refused(server, "busy")
        assert host.poll(lambda: refused(server, "busy") >= 8), before
        statuses = []
        for raw in open_ones:
            raw.send(data[-10:])
            statuses.append(raw.reply()[0])
        assert set(statuses) == {200, 503} and statuses.count(503) >= 8
    finally:
        for raw in open_ones:
            raw.close()
    assert host.poll(lambda: server.say(data)[0] == 200)


@pytest.mark.parametrize("revision", [None, *mcp.LEGACY])
def test_every_legacy_request_stands_alone(server, revision):
    headers = {"MCP-Protocol-Version": revision}
    assert said(server, legacy("notifications/initialized", id=None), headers)[0] == 202
    assert said(server, legacy("ping", id=0), headers)[2] == {"jsonrpc": "2.0", "id": 0, "result": {}}
    tools = said(server, legacy("tools/list"), headers)[2]["result"]["tools"]
    assert ("title" in tools[0]) == (revision in ("2025-06-18", "2025-11-25")), "no header means 2025-03-26, which has no titles"


def test_a_version_header_that_nobody_knows_is_refused(server):
    status, _, answer = said(server, legacy("tools/list"), {"MCP-Protocol-Version": "1999-01-01"})
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert "2026-07-28" in answer["error"]["message"]


def test_an_unknown_method_is_answered_with_200_there(server):
    status, _, answer = said(server, legacy("nothing/there"), {"MCP-Protocol-Version": "2025-11-25"})
    assert (status, answer["error"]["code"]) == (200, -32601)


def test_a_batch_is_answered_by_an_array_where_the_revision_has_them(server):
    batch = [legacy("ping", id=1), legacy("notifications/initialized", id=None), legacy("ping", id="two"), legacy("nothing", id=3), 5, legacy("initialize", INIT, id=4)]
    for headers in ({}, {"MCP-Protocol-Version": "2025-03-26"}):
        status, _, answer = said(server, batch, headers)
        assert status == 200
        assert {a.get("id"): a.get("error", {}).get("code", 0) for a in answer} == {1: 0, "two": 0, 3: -32601, None: -32600, 4: -32600}
    for revision in ("2024-11-05", "2025-06-18", "2025-11-25"):
        assert said(server, batch, {"MCP-Protocol-Version": revision})[0] == 400


def test_in_a_batch_too_only_requests_are_answered(server):
    odd = [{"jsonrpc": "1.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 7, "result": 5, "error": {}},
           {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}}}]
    assert said(server, odd)[0] == 202
    assert said(server, [*odd, legacy("ping", id=1)])[2] == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_batches_have_bounds(server):
    assert said(server, [])[0] == 400
    assert said(server, [legacy("notifications/initialized", id=None)] * 3)[0] == 202
    assert said(server, [legacy("ping", id=i) for i in range(256)])[0] == 200
    assert said(server, [legacy("ping", id=i) for i in range(257)])[0] == 400


def test_two_ids_alike_in_one_batch_are_one_too_many_only_while_the_first_lasts(server):
    calls = [legacy("tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.3}}, id=1), legacy("ping", id=1)]
    answers = said(server, calls)[2]
    assert sorted(a.get("error", {}).get("code", 0) for a in answers) == [-32600, 0]


# --- streams -----------------------------------------------------------------------------------------------------------

def test_progress_makes_it_a_stream_that_ends_with_the_answer(server):
    client = server.client()
    asked = client.begin_call("test_tool_with_progress", token="t")
    asked.wait_progress(3)
    assert mcp.text_of(asked.result())
    message, headers = modern("tools/call", {"name": "test_tool_with_progress"}, meta={"progressToken": "t"})
    status, answer, body = server.say(post(message, headers))
    assert (status, answer["content-type"], answer["cache-control"], answer["x-accel-buffering"]) == (200, "text/event-stream", "no-cache", "no")
    events = [json.loads(event.removeprefix("data: ")) for event in body.decode().strip().split("\n\n")]
    assert [event.get("params", {}).get("progress") for event in events] == [0, 50, 100, None]
    assert events[-1]["id"] == 1


def test_without_anything_to_tell_it_is_one_object(server):
    _, headers, _ = ask(server, "tools/call", {"name": "test_tool_with_progress"})
    assert headers["content-type"] == "application/json"


def test_who_takes_no_events_gets_the_answer_alone(server):
    message, headers = modern("tools/call", {"name": "test_tool_with_progress"}, meta={"progressToken": 1}, Accept="application/json")
    status, answer, body = said(server, message, headers)
    assert (status, answer["content-type"], body["id"]) == (200, "application/json", 1)


def test_the_last_progress_and_the_answer_do_not_come_in_one_read(server):
    """Clients forget whom progress was for as soon as they have read the answer."""
    message, headers = modern("tools/call", {"name": "test_tool_with_progress"}, meta={"progressToken": 1})
    for _ in range(5):
        with server.connect() as raw:
            raw.send(post(message, headers))
            reads = []
            while not reads or b'"result"' not in reads[-1]:
                reads.append(raw.sock.recv(65536))
        assert not any(b'"progress":' in one and b'"result"' in one for one in reads)


def test_a_listener_is_told_what_it_asked_for_and_nothing_else(server):
    message, headers = modern("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, id="listen:0")
    with server.connect() as raw:
        raw.send(post(message, headers))
        assert raw.head()[0] == 200
        assert b"acknowledged" in raw.chunk()
        for i in range(30):
            assert ask(server, "tools/call", {"name": "test_trigger_tool_change"})[0] == 200
            assert ask(server, "tools/call", {"name": "test_trigger_prompt_change"})[0] == 200
            event = json.loads(raw.chunk().decode().removeprefix("data: "))
            assert event["method"] == "notifications/prompts/list_changed", i
            assert event["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "listen:0"}


def test_a_question_of_the_server_is_answered_by_another_post(server):
    message = legacy("tools/call", {"name": "test_elicitation", "arguments": {"message": "Who?"}})
    with server.connect() as raw:
        raw.send(post(message, {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}))
        assert raw.head()[0] == 200
        question = json.loads(raw.chunk().decode().removeprefix("data: "))
        assert (question["method"], question["params"]["message"]) == ("elicitation/create", "Who?")
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"username": "u", "email": "e"}}}
        assert said(server, answer, {"MCP-Protocol-Version": "2025-11-25"})[0] == 202
        assert '"accept"' in json.loads(raw.chunk().decode().removeprefix("data: "))["result"]["content"][0]["text"].replace("\\", "")
        assert said(server, answer, {"MCP-Protocol-Version": "2025-11-25"})[0] == 202, "once more: nobody asks any longer"


def test_connections_are_kept_and_requests_in_one_write_are_answered_in_turn(server):
    message, headers = modern("tools/list")
    with server.connect() as raw:
        raw.send(post(message, headers) * 20)
        for _ in range(20):
            assert raw.reply()[0] == 200


def test_http_1_0_is_answered_and_closed(server):
    message, headers = modern("tools/list")
    status, _, body = server.say(post(message, headers).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    assert (status, "result" in json.loads(body)) == (200, True)


# --- metrics -------------------------------------------------------------------------------------------------------------

def refused(server, code):
    return samples(server).get(f'brig_mcp_refused_total{{code="{code}"}}', 0)


def test_metrics_count_runs_and_refusals(server):
    client = server.client()
    before = samples(server)
    assert client.execute("print(1)")["stdout"] == "1\n"
    client.execute("import time; time.sleep(9)", timeout=0.3)
    assert ask_with(server, Origin="http://evil.example")[0] == 403
    after = samples(server)

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)
    assert grown('brig_mcp_runs_total{exit_reason="exited",profile="basic"}') == 1
    assert grown('brig_mcp_runs_total{exit_reason="timeout_wall",profile="basic"}') == 1
    assert grown('brig_mcp_refused_total{code="origin"}') == 1
    assert after["brig_mcp_running"] == 0
    assert host.poll(lambda: samples(server).get("brig_mcp_cells_ready", -1) >= 0)


def test_asking_for_metrics_starts_nothing(built_mcp):
    with HttpServer() as one:
        for _ in range(3):
            found = samples(one)
        assert "brig_mcp_cells_ready" not in found
        assert not host.children(one.pid)


def test_running_counts_what_runs(server):
    asked = server.client().begin_call("execute_code", {"code": jailed.FOREVER, "timeout": jailed.LONGEST})
    assert host.poll(lambda: samples(server)["brig_mcp_running"] == 1)
    asked.close()
    assert host.poll(lambda: samples(server)["brig_mcp_running"] == 0)
