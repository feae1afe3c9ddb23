"""What a hostile program does with a network that it was given, against real servers. Each has its control: the same by the way that is allowed."""
import json
import os
import re
import signal
import subprocess

import pytest

from attack import PRELUDE, allowed, attack
from support import host, tiers
from support import internet as internets

RAW = "raw.example"


# --- requests in requests --------------------------------------------------------------------------------

# Each is one text that a server and a proxy may divide differently; SMUGGLED must never be a request of its own.
SMUGGLES = {
    "length and chunked": "POST /echo HTTP/1.1\r\nHost: H\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "chunked and length": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n60\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n0\r\n\r\n",
    "two lengths": "POST /echo HTTP/1.1\r\nHost: H\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "list of lengths": "POST /echo HTTP/1.1\r\nHost: H\r\nContent-Length: 0, 44\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "length with a sign": "POST /echo HTTP/1.1\r\nHost: H\r\nContent-Length: +0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "length in hex": "POST /echo HTTP/1.1\r\nHost: H\r\nContent-Length: 0x0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "space before colon": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "folded": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "bare line feed": "POST /echo HTTP/1.1\r\nHost: H\nX: y\r\nContent-Length: 0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "bare carriage return": "POST /echo HTTP/1.1\r\nHost: H\r\nX: y\rContent-Length: 9\r\nContent-Length: 0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "two encodings": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "an unknown encoding": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "two hosts": "GET /echo HTTP/1.1\r\nHost: H\r\nHost: evil.example\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "a long chunk": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff0\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "chunk without its end": "POST /echo HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "pipelined": "GET /echo HTTP/1.1\r\nHost: H\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "pipelined to another": "GET /echo HTTP/1.1\r\nHost: H\r\n\r\nGET http://evil.example/SMUGGLED HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a newline in the target": "GET /echo\r\nX: HTTP/1.1\r\nHost: H\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "HTTP/0.9": "GET /SMUGGLED\r\n\r\n",
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "a websocket that the server does not agree to": "GET /echo HTTP/1.1\r\nHost: H\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
    "upgrade to h2c": "GET /echo HTTP/1.1\r\nHost: H\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nGET /SMUGGLED HTTP/1.1\r\nHost: H\r\n\r\n",
}


@pytest.mark.row("G8")
def test_no_request_is_hidden_in_another(net):
    before = len(net.seen())
    sent = {name: text.replace("H\r\n", f"{RAW}\r\n").replace("Host: H\n", f"Host: {RAW}\n") for name, text in SMUGGLES.items()}
    done = attack(net, f"""
def transparent(text):
    with to({RAW!r}, 80) as sock:
        sock.sendall(text)
        return status(all_of(sock))
def absolute(text):
    line, rest = text.split(b"\\r\\n", 1)
    return status(proxy(line.replace(b" /", b" http://{RAW}/", 1) + b"\\r\\n" + rest))
for name, text in {sent!r}.items():
    told(name + ", transparent", transparent, text.encode())
    told(name + ", proxy", absolute, text.encode())
told("control", transparent, b"GET /control HTTP/1.1\\r\\nHost: {RAW}\\r\\n\\r\\n")
""", RAW)
    assert done.said["control"] == "200", done.said
    assert host.poll(lambda: [one for one in net.seen()[before:] if one["data"].startswith("GET /control ")])
    assert not [one for one in net.seen()[before:] if one["data"].startswith("GET /SMUGGLED")], "a hidden request came as one of its own"
    assert not [one for one in net.requests() if "SMUGGLED" in one["request"]]
    good = {name for name, word in done.said.items() if word == "200"} - {"control"}
    assert good <= {f"{name}, {way}" for name in ("pipelined", "pipelined to another", "a websocket that the server does not agree to", "upgrade to h2c") for way in ("transparent", "proxy")}, good


@pytest.mark.row("G8")
def test_a_connection_for_one_name_serves_no_other(net):
    before = len(net.requests())
    done = attack(net, """
blind = ssl.create_default_context()
blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
told("control", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example")))
told("other SNI", lambda: page(blind.wrap_socket(to("shop.example", 443), server_hostname="evil.example"), "evil.example"))
told("other SNI by the proxy", lambda: page(blind.wrap_socket(tunnel("shop.example:443"), server_hostname="evil.example"), "evil.example"))
told("no SNI", lambda: page(blind.wrap_socket(to("shop.example", 443)), "evil.example"))
told("other Host", lambda: status(page(to("shop.example", 80), "evil.example")))
told("other Host with a dot", lambda: status(page(to("shop.example", 80), "evil.example.")))
told("other Host by the proxy", lambda: status(proxy(b"GET http://shop.example/who HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n")))
told("other target", lambda: status(proxy(b"GET http://evil.example/who HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")))
told("absolute in a connection", lambda: status(page(to("shop.example", 80), "shop.example", "http://evil.example/who")))
told("tunnel in a tunnel", lambda: page(tunnel("shop.example:80"), "evil.example", "http://evil.example/who"))
told("websocket to another", lambda: status(proxy(b"GET http://shop.example/ws HTTP/1.1\\r\\nHost: evil.example\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")))
""", "shop.example")
    said = done.said
    assert said.pop("control") == "200"
    assert not [word for word in said.values() if word == "200" or "evil.example by" in word], said
    assert not [one for one in net.requests()[before:] if "evil.example" in (one["host"] + one["sni"])]
    assert done.reasons("shop.example") >= {"other_name", "no_name"}, done.network


@pytest.mark.row("G8")
def test_what_an_allowed_server_does_with_names_inside_of_tls_is_its_own_affair(net):
    """The documented limit of brig-security(7): one.example and two.example are one server, and TLS is not opened."""
    said = attack(net, """
told("fronted", lambda: page(tls(to("one.example", 443), "one.example"), "two.example", "/"))
told("not fronted", lambda: to("two.example", 443).close())
""", "one.example").said
    assert "two.example over 1.1" in said["fronted"] and said["not fronted"].startswith("gaierror"), said


@pytest.mark.row("G8")
def test_no_shape_of_a_first_message_of_tls_hides_the_name_that_the_server_reads(net):
    before = len(net.requests())
    done = attack(net, """
blind = ssl.create_default_context()
blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
def hello(name):
    "The record that a client begins with, and what goes on with it."
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = blind.wrap_bio(come, go, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return tls, come, go, go.read()
def record(data, kind=22):
    return bytes([kind, 3, 1]) + struct.pack("!H", len(data)) + data
def pieces(data, size):
    return b"".join(record(data[5:][at:at + size]) for at in range(0, len(data) - 5, size))
def extension(data, add):
    "With one more extension behind the others."
    body = data[9:]
    at = 2 + 32
    at += 1 + body[at]
    at += 2 + struct.unpack("!H", body[at:at + 2])[0]
    at += 1 + body[at]
    body = body[:at] + struct.pack("!H", struct.unpack("!H", body[at:at + 2])[0] + len(add)) + body[at + 2:] + add
    return record(b"\\1" + struct.pack("!I", len(body))[1:] + body)
def names(*all_of):
    listed = b"".join(b"\\0" + struct.pack("!H", len(name)) + name.encode() for name in all_of)
    return struct.pack("!HHH", 0, len(listed) + 2, len(listed)) + listed
def talk(shape, name, slow=False):
    tls, come, go, first = hello(name)
    with to("shop.example", 443) as sock:
        first = shape(first)
        for at in range(0, len(first), 40 if slow else len(first)):
            sock.sendall(first[at:at + (40 if slow else len(first))])
            if slow: time.sleep(0.01)
        while True:
            data = sock.recv(65536)
            if not data:
                return "closed"
            come.write(data)
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(go.read())
        tls.write(f"GET /who HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        sock.sendall(go.read())
        while True:
            data = sock.recv(65536)
            if not data:
                return "closed"
            come.write(data)
            try:
                return "spoken" if f"{name} by".encode() in tls.read(10000) else "another"
            except ssl.SSLWantReadError:
                continue
whole = {"one": lambda d: d, "records": lambda d: pieces(d, 50), "bytes": lambda d: pieces(d, 1)}
for what, shape in whole.items():
    for name in "shop.example", "evil.example":
        told(f"{what} {name}", talk, shape, name)
        told(f"{what} {name} slowly", talk, shape, name, True)
odd = {
    "another name behind": lambda d: extension(d, names("evil.example")),
    "the same name behind": lambda d: extension(d, names("shop.example")),
    "an alert before": lambda d: record(b"\\1\\0", 21) + d,
    "an empty record before": lambda d: record(b"") + d,
    "two hellos": lambda d: d + hello("evil.example")[3],
    "SSL 2": lambda d: bytes([0x80, 46, 1, 3, 1, 0, 3, 0, 0, 0, 32]) + bytes(35),
}
for what, shape in odd.items():
    told(what, talk, shape, "shop.example")
told("another name before", talk, lambda d: extension(hello("evil.example")[3], names("shop.example")), "evil.example")
""", "shop.example")
    said = done.said
    assert {name for name, word in said.items() if word == "spoken"} == {f"{shape} shop.example{how}" for shape in ("one", "records", "bytes") for how in ("", " slowly")}, said
    assert {word for name, word in said.items() if "evil.example" in name or name in ("another name behind", "another name before", "SSL 2")} <= {"ECONNRESET", "closed"}, said
    assert not [one for one in net.requests()[before:] if "evil.example" in one["host"] + one["sni"]]


@pytest.mark.row("G8")
def test_two_names_of_one_server_share_no_connection(net):
    """Clients of HTTP/2 coalesce names that have one address and are on one certificate. Here each name has an address of its own."""
    program = """
import httpx
said["addresses"] = sorted({socket.gethostbyname(name) for name in NAMES})
for env in True, False: # by the proxy, and by address
    with httpx.Client(http2=True, trust_env=env) as client:
        for name in "one.example", "two.example":
            try:
                said[f"{name} {env}"] = client.get(f"https://{name}/").text
            except httpx.HTTPError as error:
                said[f"{name} {env}"] = f"error: {error}"
"""
    both = attack(net, program.replace("NAMES", "('one.example', 'two.example')"), "one.example", "two.example")
    assert both.said == {"addresses": ["198.18.1.0", "198.18.1.1"], **{f"{name} {env}": f"{name} over 2.0\n" for name in ("one.example", "two.example") for env in (True, False)}}, both.said
    assert sorted(one["name"] for one in both.network["connections"]) == ["one.example"] * 2 + ["two.example"] * 2, both.network
    one = attack(net, program.replace("NAMES", "('one.example',)"), "one.example").said
    assert one["one.example True"] == one["one.example False"] == "one.example over 2.0\n", one
    assert one["two.example True"].startswith("error:") and one["two.example False"].startswith("error:"), one


@pytest.mark.row("G8")
def test_a_websocket_goes_to_the_host_that_it_named_and_on_to_no_other(net):
    done = attack(net, """
UPGRADE = "Upgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n"
def upgrade(line, host, then=b"\\x81\\x85\\0\\0\\0\\0hello"):
    with to(GATEWAY, 3128) as sock:
        sock.sendall(f"GET {line} HTTP/1.1\\r\\nHost: {host}\\r\\n{UPGRADE}".encode())
        heard = b""
        while b"\\r\\n\\r\\n" not in heard:
            more = sock.recv(1000)
            if not more:
                return status(heard)
            heard += more
        if b" 101 " not in heard.split(b"\\r\\n")[0]:
            return status(heard)
        sock.sendall(then)
        return "101 " + sock.recv(1000).decode("latin-1")
told("itself", upgrade, "http://ws.example/ws", "ws.example")
told("another", upgrade, "http://evil.example/ws", "evil.example")
told("another Host", upgrade, "http://ws.example/ws", "evil.example")
told("another target", upgrade, "http://evil.example/ws", "ws.example")
told("request behind it", upgrade, "http://ws.example/ws", "ws.example", b"GET http://evil.example/who HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n")
""", "ws.example")
    said = done.said
    assert said["itself"].endswith("hello") and said["itself"].startswith("101 "), said
    assert said["another"] == "403" and said["another Host"][0] == said["another target"][0] == "4", said
    assert "evil.example by" not in said["request behind it"], said


@pytest.mark.row("G8")
def test_a_redirect_leads_to_no_host_that_is_not_allowed(net):
    run = net.brig("-p", "network", *allowed("shop.example"), program="""
import requests
said = requests.get("https://shop.example/away", allow_redirects=False)
print(said.status_code, said.headers["location"])
try:
    print(requests.get("https://shop.example/away").text)
except requests.RequestException as error:
    print("error:", error)
""")
    lines = run.out.splitlines()
    assert lines[0] == "302 https://evil.example/who" and lines[1].startswith("error:") and "evil.example by" not in run.out, str(run)


# --- floods ----------------------------------------------------------------------------------------------

@pytest.mark.gate # six hundred connections
def test_hundreds_of_connections_that_are_not_read_hold_little_of_the_hosts_memory_for_tcp(net):
    """They held 1,000 MiB, and the sockets of a host have one bound in common."""
    held = internets.most_held(net, 600)
    assert 1 << 20 < held <= 64 << 20, held


def test_names_that_are_looked_up_below_a_wildcard_count_as_bytes_and_are_bounded(net):
    """The name itself carries data to whoever serves the domain."""
    done = attack(net, """
said["answered"] = sum(ask(f"{n}.{'x' * 60}.shop.example")[1] for n in range(60))
""", "*.shop.example", options=["--net-bytes", "2000"])
    assert 5 < done.said["answered"] < 40 and done.reasons(f"59.{'x' * 60}.shop.example") == {"too_much"}, (done.said, done.network)


@pytest.mark.nightly
@pytest.mark.row("G12")
@pytest.mark.parametrize("many", tiers.amounts(1000, 10000))
def test_a_program_that_opens_thousands_of_connections_harms_itself_alone(net, many):
    flood = net.start_brig("-p", "network", *allowed("shop.example"), "--timeout", "120", program=PRELUDE + f"\nMANY = {many}\n" + """
refused = 0
for n in range(MANY):
    try:
        with to(GATEWAY, 3128) as sock:
            sock.sendall(b"CONNECT shop.example:443 HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
    except OSError:
        refused += 1
held = []
try:
    for n in range(400):
        held.append(to(GATEWAY, 3128))
        held[-1].sendall(b"CONNECT ")
except OSError:
    pass
for sock in held:
    sock.close()
def after():
    for _ in range(200): # the proxy needs a moment to see that these are closed
        try:
            said = proxy(b"GET http://shop.example/who HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
        except OSError:
            said = b""
        if b" 200 " in said:
            return status(said)
        time.sleep(0.05)
told("after", after)
print(json.dumps(said))
""")
    other = attack(net, "told('page', lambda: status(page(tls(to('shop.example', 443), 'shop.example'), 'shop.example')))", "shop.example")
    assert other.said["page"] == "200"
    run = flood.wait(host.HANG * 4)
    assert run.reason == "exited" and '"after": "200"' in run.out, str(run)
    assert len(run.record["network"]["connections"]) <= 64 and run.record["network"]["left_out"] > 0, run.record["network"]


@pytest.mark.row("G12")
def test_bytes_are_counted_over_all_connections_and_end_at_their_limit(net):
    done = attack(net, """
def much():
    with to("shop.example", 80) as sock:
        return len(page(sock, "shop.example", "/big"))
for n in range(4):
    told(f"try {n}", much)
""", "shop.example", options=("--net-bytes", "3M"))
    got = sum(word for word in done.said.values() if isinstance(word, int))
    assert (1 << 20) <= got <= 3 << 20, done.said
    assert done.network["bytes_in"] + done.network["bytes_out"] <= 3 << 20 and done.reasons("shop.example") == {"too_much"}, done.network


@pytest.mark.row("G12")
def test_a_client_that_says_nothing_keeps_no_other_one_waiting(net):
    said = attack(net, """
silent = [to(GATEWAY, 3128) for _ in range(20)] + [to("shop.example", 443) for _ in range(20)]
for sock in silent[:10]:
    sock.sendall(b"GET http://shop.example/who HTT")
told("beside them", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example")))
""", "shop.example").said
    assert said["beside them"] == "200"


@pytest.mark.row("G12")
def test_a_body_that_never_ends_and_an_answer_that_nobody_reads_hold_up_no_other_connection(net):
    child = net.start_brig("-p", "network", *allowed("shop.example", RAW), popen={"stdin": subprocess.PIPE}, program=PRELUDE + """
held = []
for n in range(15): # a body that never ends
    held.append(to("raw.example", 80))
    held[-1].sendall(b"POST /echo HTTP/1.1\\r\\nHost: raw.example\\r\\nContent-Length: 1000000\\r\\n\\r\\n" + bytes(n))
for n in range(15): # an answer that stops
    held.append(to("raw.example", 80))
    held[-1].sendall(b"GET /slow HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n")
for n in range(15): # a gigabyte that nobody reads
    held.append(to("shop.example", 80))
    held[-1].sendall(b"GET /big HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
    held[-1].recv(1)
told("beside them", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example")))
print(json.dumps(said), flush=True)
page(to("shop.example", 80), "shop.example", "/all-are-held")
sys.stdin.readline()
""")
    assert host.poll(lambda: [one for one in net.requests() if "all-are-held" in one["request"]]), str(child.wait(input=b"\n"))
    (pid,) = proxies_of(child.pid)
    memory = int(host.read(f"/proc/{pid}/status").partition("VmRSS:")[2].split()[0])
    assert memory < 64 * 1024, f"brig-proxy keeps {memory} kB"
    other = attack(net, "told('page', lambda: status(page(tls(to('shop.example', 443), 'shop.example'), 'shop.example')))", "shop.example")
    assert other.said["page"] == "200"
    run = child.wait(input=b"\n")
    assert run.reason == "exited" and json.loads(run.out.splitlines()[-1]) == {"beside them": "200"}, str(run)


@pytest.mark.nightly
@pytest.mark.row("G12")
def test_who_does_not_say_what_it_wants_in_time_is_refused(net):
    done = attack(net, """
def dribble(first, sock):
    began = time.monotonic()
    try:
        sock.sendall(first)
        while True: # a byte now and then does not make it longer
            sock.settimeout(1)
            try:
                return [time.monotonic() - began, status(all_of(sock))]
            except TimeoutError:
                sock.sendall(b"x")
    except OSError as error:
        return [time.monotonic() - began, type(error).__name__]
import threading
ways = {"head": (b"GET http://shop.example/who HTTP/1.1\\r\\nX: ", GATEWAY, 3128), "CONNECT": (b"CONNECT ", GATEWAY, 3128), "SOCKS": (b"\\5", GATEWAY, 3128),
        "TLS": (b"\\x16\\3\\1\\2\\0\\1\\0\\1\\xfc\\3\\3", socket.gethostbyname("shop.example"), 443), "transparent head": (b"GET / HTTP/1.1\\r\\nX: ", socket.gethostbyname("shop.example"), 80)}
def one(name):
    first, address, port = ways[name]
    with to(address, port) as sock:
        said[name] = dribble(first, sock)
threads = [threading.Thread(target=one, args=[name]) for name in ways]
for thread in threads: thread.start()
for thread in threads: thread.join()
""", "shop.example")
    assert len(done.said) == 5 and all(seconds >= 9 for seconds, _ in done.said.values()), done.said
    assert {reason for one in done.network["connections"] if (reason := one["reason"])} == {"too_slow"} and done.network["refused"] == 5, done.network


# --- the proxy itself ------------------------------------------------------------------------------------

# A private run has a proxy from then on.
USES = "import socket, sys; socket.create_connection(('198.18.0.1', 3128)).close()\n"


def proxies_of(pid):
    """brig-proxy below this process."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        children = [int(word) for task in os.listdir(f"/proc/{one}/task") for word in host.read(f"/proc/{one}/task/{task}/children").split()]
        todo += children
        found += [child for child in children if os.path.basename(host.read(f"/proc/{child}/cmdline").split("\0")[0]) in ("proxy", "brig-proxy")]
    return found


@pytest.mark.row("G13")
@pytest.mark.control("G13")
def test_a_proxy_that_is_killed_leaves_a_run_without_a_network_and_nothing_opens(net):
    child = net.start_brig("-p", "network", *allowed("shop.example"), popen={"stdin": subprocess.PIPE}, program=PRELUDE + """
held = to(GATEWAY, 3128)
told("before", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example", "/waits-for-a-kill")))
sys.stdin.readline()
told("held", lambda: held.recv(10))
told("proxy", lambda: to(GATEWAY, 3128).close())
told("name", socket.getaddrinfo, "shop.example", 443)
told("its address", lambda: to("198.18.1.0", 443).close())
told("the address itself", lambda: to("93.184.216.34", 443).close())
print(json.dumps(said))
""")
    assert host.poll(lambda: [one for one in net.requests() if "waits-for-a-kill" in one["request"]])
    (pid,) = proxies_of(child.pid)
    os.kill(pid, signal.SIGKILL)
    assert host.poll(lambda: "State:\tR" not in (state := host.read(f"/proc/{pid}/status")) and "State:\tS" not in state)
    run = child.wait(input=b"\n")
    assert run.reason == "exited" and run.record["exit_code"] == 0, str(run)
    said = json.loads(run.out.splitlines()[-1])
    assert said["before"] == "404" and said["held"] in ("", "ECONNRESET"), said
    assert said["proxy"] == said["its address"] == "ECONNREFUSED" and said["the address itself"] == "ENETUNREACH" and said["name"].startswith("gaierror"), said
    assert "proxy_gone" in {one["reason"] for one in run.record["network"]["connections"]}, run.record["network"]


@pytest.mark.row("G9")
@pytest.mark.control("G9")
def test_no_jail_finds_the_proxy_of_another_one_nor_its_own_by_another_way(net):
    with_a_network = net.start_brig("-p", "network", *allowed("shop.example"), popen={"stdin": subprocess.PIPE}, program=USES + "sys.stdin.readline()")
    assert host.poll(lambda: proxies_of(with_a_network.pid))
    (pid,) = proxies_of(with_a_network.pid)
    listens = net.host.run("ss", "-lntupH").stdout
    assert f"pid={pid}," not in listens, listens # no address of the host's
    assert f"pid={pid}," not in net.host.run("ss", "-lxpH").stdout and not [line for line in host.read(f"/proc/{pid}/net/unix").splitlines() if "brig-proxy" in line]
    said = attack(net, """
told("proxy", lambda: to(GATEWAY, 3128).close())
told("name", lambda: to("198.18.1.0", 443).close())
told("resolver", ask, "shop.example")
def abstract():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("\\0brig-proxy")
told("abstract", abstract)
told("unix", lambda: [line.split()[-1] for line in open("/proc/net/unix").read().splitlines()[1:] if "@" in line or "/" in line])
""").said
    assert said["proxy"] == said["name"] == "ENETUNREACH" and said["resolver"] == "ENETUNREACH", said
    assert said["abstract"] in ("ECONNREFUSED", "EPERM", "EACCES"), said
    told = attack(net, "told('page', lambda: status(page(tls(to('shop.example', 443), 'shop.example'), 'shop.example')))\ntold('other', lambda: to('one.example', 443).close())", "shop.example")
    assert told.said["page"] == "200" and told.said["other"].startswith("gaierror") # the control: its own one, with its own list
    assert with_a_network.wait(input=b"\n").reason == "exited"


@pytest.mark.nightly
def test_a_program_that_sends_and_ends_at_once_reaches_no_host_that_its_record_does_not_name(net):
    """At once, or a moment later: on a slow host the moment is what brig-proxy takes to be there."""
    told, reached = set(), set()
    for n in range(80):
        if n >= 40 and reached:
            break
        done = net.brig("-p", "network", *allowed(RAW), program=f"""
import os, socket, time
with socket.create_connection(("198.18.0.1", 3128)) as sock:
    sock.sendall(b"GET http://{RAW}/last-word-{n}- HTTP/1.1\\r\\nHost: {RAW}\\r\\nConnection: close\\r\\n\\r\\n")
    time.sleep({max(0, n - 39) / 200})
    os._exit(0)
""")
        assert done.status == 0, str(done)
        told |= {n} if any(one["name"] == RAW for one in done.record["network"]["connections"]) else set()
        reached = {int(n) for one in net.seen() for n in re.findall(r"last-word-(\d+)-", one["data"])}
    assert reached <= told, (reached, told)
    assert reached, "the control: some are fast enough"


def test_a_private_run_has_a_proxy_when_it_sends_something_and_none_before(net):
    child = net.start_brig("-p", "network", *allowed("shop.example"), json_record=False, popen={"stdin": subprocess.PIPE}, program="import sys; print('begun', flush=True); sys.stdin.readline()\n" + USES + "print('used', flush=True); sys.stdin.readline()")
    assert child.line() == "begun" and not proxies_of(child.pid)
    child.process.stdin.write(b"\n")
    child.process.stdin.flush()
    assert child.line() == "used" and host.poll(lambda: len(proxies_of(child.pid)) == 1)
    assert child.wait(input=b"\n").status == 0


@pytest.mark.row("G13")
def test_the_proxy_ends_with_its_run(net):
    child = net.start_brig("-p", "network", *allowed("shop.example"), popen={"stdin": subprocess.PIPE}, program=USES + "sys.stdin.readline()")
    assert host.poll(lambda: proxies_of(child.pid))
    (pid,) = proxies_of(child.pid)
    child.process.kill()
    assert host.poll(lambda: not os.path.exists(f"/proc/{pid}")), "brig-proxy outlives its run"
    child.process.wait()
