"""Libraries and commands reach the hosts that are allowed, as they do without a jail, and no other."""
import os
import subprocess
import uuid

import pytest

from attack import Attacked, allowed, attack
from support import host
from support import internet as internets

REFUSED = "evil.example is not on the list of hosts that this run may reach"


def runs(net, program, *rules, profile="network", **kw):
    return net.brig("-p", profile, *allowed(*rules), program=program, **kw)


@pytest.mark.requirement("A30")
def test_nothing_is_reached_unless_it_is_named(net):
    program = """
told("name", socket.getaddrinfo, "shop.example", 443)
told("address", lambda: to("93.184.216.34", 443).close())
told("proxy", lambda: to(GATEWAY, 3128).close())
said["variables"] = [name for name in os.environ if "proxy" in name.lower()]
"""
    said = attack(net, program).said
    assert said["name"].startswith("gaierror") and said["address"] == said["proxy"] == "ENETUNREACH" and said["variables"] == []
    said = attack(net, "told('page', lambda: page(tls(to('shop.example', 443), 'shop.example'), 'shop.example', '/hello.txt'))", "shop.example").said
    assert said["page"].endswith("hello from the world\n")


@pytest.mark.requirement("A11", "A73", "A92")
@pytest.mark.parametrize("client", ["requests", "httpx", "urllib.request"])
def test_an_allowed_host_answers_and_another_is_refused_in_a_sentence(net, client):
    get = {"requests": "requests.get(url).text", "httpx": "httpx.get(url).text", "urllib.request": "urllib.request.urlopen(url).read().decode()"}[client]
    run = runs(net, f"""
import {client}
def get(url):
    return {get}
print(get("https://shop.example/hello.txt"), get("http://shop.example/hello.txt"))
for url in "https://evil.example/who", "http://evil.example/who":
    try:
        print(url, get(url))
    except Exception as error:
        print(url, "error:", error)
""", "shop.example")
    lines = run.out.splitlines()
    assert lines[:2] == ["hello from the world", " hello from the world"], str(run)
    assert len(lines) >= 4 and REFUSED in run.out.partition("https://evil.example")[2].partition("http://evil.example")[0], str(run)
    assert "evil.example" in run.out.partition("http://evil.example")[2], str(run)
    assert {"evil.example"} == {one["name"] for one in run.record["network"]["connections"] if one["verdict"] == "refused"}


@pytest.mark.requirement("A73")
def test_httpx_speaks_http_2_with_an_allowed_host(net):
    run = runs(net, """
import httpx
with httpx.Client(http2=True) as client:
    said = client.get("https://shop.example/who")
    print(said.http_version, said.text)
""", "shop.example")
    assert run.out.startswith("HTTP/2 shop.example by HTTP/2.0"), str(run)


@pytest.mark.requirement("A74")
def test_aiohttp_reaches_an_allowed_host_and_no_other(net):
    run = runs(net, """
import aiohttp, asyncio
async def get(url, **kw):
    async with aiohttp.ClientSession(**kw) as session, session.get(url) as answer:
        return await answer.text()
async def main():
    for kw in {}, {"trust_env": True}: # without the variables, and with them
        print(await get("https://shop.example/hello.txt", **kw), end="")
        try:
            print(await get("https://evil.example/who", **kw))
        except aiohttp.ClientError as error:
            print("error:", error)
asyncio.run(main())
""", "shop.example")
    assert run.out.count("hello from the world") == 2 and run.out.count("error:") == 2 and run.out.count("evil.example") >= 2, str(run)


@pytest.mark.requirement("A74")
@pytest.mark.parametrize("client", ["websocket", "websockets"])
def test_a_websocket_goes_to_an_allowed_host_and_to_no_other(net, client):
    talks = {
        "websocket": """
import websocket
def talk(url):
    ws = websocket.create_connection(url, timeout=20)
    ws.send("ping from websocket")
    return ws.recv()
""", "websockets": """
import asyncio, websockets
def talk(url):
    async def go():
        async with websockets.connect(url) as ws:
            await ws.send("ping from websockets")
            return await ws.recv()
    return asyncio.run(go())
"""}
    run = runs(net, talks[client] + """
for url in "wss://ws.example/ws", "ws://ws.example/ws", "wss://shop.example/ws":
    try:
        print(url, talk(url))
    except Exception as error:
        print(url, "error:", error)
""", "ws.example")
    lines = run.out.splitlines()
    assert [line.partition(" ")[2] for line in lines[:2]] == [f"ping from {client}"] * 2, str(run)
    assert lines[2].startswith("wss://shop.example/ws error:"), str(run)


def test_curl_and_git_work_and_are_refused(net):
    run = runs(net, """
import subprocess
def sh(line):
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    print(f"{line}: {done.returncode}\\n{done.stdout}{done.stderr}")
sh("curl -sS https://shop.example/hello.txt")
sh("curl -sS --noproxy '*' https://shop.example/hello.txt")
sh("curl -sS https://evil.example/who")
sh("curl -sS --noproxy '*' https://evil.example/who")
sh("curl -sS --socks5-hostname 198.18.0.1:3128 https://shop.example/hello.txt")
sh("git clone -q https://git.example/repo.git && cat repo/README")
sh("git clone -q https://evil.example/repo.git bad")
""", "shop.example", "git.example")
    if "curl: not found" in run.out:
        pytest.skip("needs curl and git in the rootfs network: ./dev rootfs network")
    assert run.out.count("hello from the world") == 3 and "a repository of the world" in run.out, str(run)
    assert "evil.example/who: 56" in run.out or "evil.example/who: 22" in run.out, str(run)
    assert "--noproxy '*' https://evil.example/who: 6" in run.out and "repo.git bad: 128" in run.out, str(run)


def test_a_package_is_downloaded_as_pip_does(net):
    run = runs(net, """
import hashlib, html.parser, sys, urllib.parse, urllib.request
page = "https://pypi.example/simple/tiny/"
class Links(html.parser.HTMLParser):
    found = []
    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if tag == "a" and name == "href"]
links = Links()
links.feed(urllib.request.urlopen(page).read().decode())
url, _, digest = urllib.parse.urljoin(page, links.found[0]).partition("#sha256=")
data = urllib.request.urlopen(url).read()
assert hashlib.sha256(data).hexdigest() == digest
open("tiny.whl", "wb").write(data)
sys.path.insert(0, "tiny.whl")
import tiny
print(tiny.answer)
""", "pypi.example")
    assert run.out == "42\n", str(run)


def test_another_protocol_goes_to_a_port_that_was_named_for_it(net):
    said = attack(net, """
def echo(host, port):
    with to(host, port) as sock:
        sock.sendall(b"plain bytes")
        return sock.recv(100)
told("named", echo, "echo.example", 7007)
told("other port", echo, "echo.example", 7008)
told("not TLS", echo, "shop.example", 443)
""", "tcp://echo.example:7007", "shop.example").said
    assert said["named"] == "plain bytes" and said["other port"] == "ECONNREFUSED"
    assert said["not TLS"] in ("ECONNRESET", ""), said


def test_an_urgent_byte_of_a_host_keeps_nothing_that_follows_it(net):
    """The kernel moves nothing from one socket to another over such a byte, and goes on saying that there is something to read."""
    said = attack(net, """
def echo(host, port):
    with to(host, port) as sock:
        sock.settimeout(20)
        sock.sendall(b"urgent")
        return sock.recv(100)
told("echo", echo, "echo.example", 7007)
""", "tcp://echo.example:7007").said
    assert said["echo"] in ("urgent", "!urgent"), said


def test_a_host_that_has_ipv6_only_is_reached(net):
    done = attack(net, "told('six', lambda: page(tls(to('six.example', 443), 'six.example'), 'six.example'))", "six.example")
    assert "2606:2800:220:1::47" in done.said["six"]
    assert [one["address"] for one in done.network["connections"]] == [f"{internets.SIX_PREFIX}47"]


def test_certificates_are_the_programs_to_check(net):
    said = attack(net, """
told("unknown CA", lambda: page(tls(to('unknown-ca.example', 443), 'unknown-ca.example'), 'unknown-ca.example'))
told("other name", lambda: page(tls(to('cert.example', 443), 'cert.example'), 'cert.example'))
""", "unknown-ca.example", "cert.example").said
    assert all("CERTIFICATE_VERIFY_FAILED" in word for word in said.values()), said


def test_the_record_says_what_was_reached(net):
    done = attack(net, """
import requests
requests.get("https://shop.example/hello.txt")
told("refused", requests.get, "https://evil.example/")
told("closed", requests.get, "https://closed.example:444/")
""", "shop.example", "closed.example:444")
    rows = {one["name"]: one for one in done.network["connections"]}
    good = rows["shop.example"]
    assert good["address"] in ("93.184.216.34", f"{internets.SIX_PREFIX}34") and good["port"] == 443 and good["verdict"] in ("done", "open")
    assert good["bytes_in"] > 1000 and good["bytes_out"] > 300 and good["secret"] is False and good["ms"] > 0
    assert (rows["evil.example"]["verdict"], rows["evil.example"]["reason"]) == ("refused", "not_allowed")
    assert (rows["closed.example"]["verdict"], rows["closed.example"]["reason"]) == ("failed", "unreachable")
    assert done.network["refused"] == 1 and done.network["bytes_in"] >= good["bytes_in"]


@pytest.mark.nightly
def test_a_gigabyte_arrives_whole(net):
    run = runs(net, """
import hashlib, urllib.request
with urllib.request.urlopen("http://shop.example/big") as answer:
    count = 0
    while data := answer.read(1 << 20):
        count += len(data)
print(count)
""", "shop.example")
    assert run.out == f"{internets.BIG}\n", str(run)
    assert run.record["network"]["connections"][0]["bytes_in"] >= internets.BIG


def without_chunks(body):
    pieces = []
    while size := int((part := body.partition("\r\n"))[0], 16):
        pieces.append(part[2][:size])
        body = part[2][size + 2:]
    return "".join(pieces)


@pytest.mark.parametrize("way", ["its proxy", "the address"])
def test_a_body_in_chunks_goes_out_and_comes_back_whole(net, way):
    token = f"chunks-{uuid.uuid4()}"
    run = runs(net, f"""
import requests
session = requests.Session()
session.trust_env = {way == "its proxy"}
answer = session.post("http://raw.example/whole", data=iter([b"a", b"b" * 70000, b"{token}"]))
print(answer.status_code, answer.text)
""", "http://raw.example")
    assert run.out == "200 hello world\n", str(run)
    sent = lambda: [said["data"] for said in net.seen() if token in said["data"]]
    (data,) = host.poll(sent)
    head, _, body = data.partition("\r\n\r\n")
    assert head.startswith("POST /whole HTTP/1.1\r\n") and "transfer-encoding: chunked" in head.lower() and "content-length" not in head.lower()
    assert without_chunks(body) == "a" + "b" * 70000 + token


def test_what_comes_to_a_program_is_not_paced_whatever_the_host_prefers(net):
    token = f"brig-test-{uuid.uuid4()}"
    child = net.start_brig("-p", "network", *allowed("shop.example"), popen={"stdin": subprocess.PIPE}, args=[token], json_record=False,
                           program="import socket, sys\nsock = socket.create_connection(('198.18.0.1', 3128))\nprint('there', flush=True)\nsys.stdin.readline()\n")
    assert child.line().strip() == "there"
    outside = os.readlink(f"/proc/{net.host.holder.pid}/ns/net")
    pid = next(pid for pid, _ in host.with_token(token) if os.readlink(f"/proc/{pid}/ns/net") != outside)
    told = subprocess.run(["nsenter", "-t", str(pid), "-n", "ss", "-tinH", "state", "established", "sport", "=", ":3128"], capture_output=True, text=True).stdout
    assert " reno " in told, told
    child.process.stdin.close()
    assert child.process.wait(host.HANG) == 0


def test_requests_over_one_connection_stay_on_it(net, profiles):
    """Plain and inside TLS that is read, transparent and by the proxy; a request to another host over the same connection to the proxy finds its own."""
    use = profiles.make("kept", {"allow": [{"host": "shop.example", "paths": ["/"]}, "ws.example"]})
    done = attack(net, """
import http.client
def ports(connection, *urls):
    seen = []
    for url in urls:
        connection.request("GET", url)
        reply = connection.getresponse()
        assert reply.status == 200 and reply.read(), reply.status
        seen.append(connection.sock and connection.sock.getsockname()[1])
    return len(set(seen)) == 1 and seen[0] is not None
told("plain", lambda: ports(http.client.HTTPConnection("shop.example"), "/hello.txt", "/hello.txt"))
told("tls", lambda: ports(http.client.HTTPSConnection("shop.example"), "/hello.txt", "/hello.txt"))
told("proxy", lambda: ports(http.client.HTTPConnection(GATEWAY, 3128), "http://shop.example/who", "http://ws.example/who", "http://shop.example/who"))
""", profile=use["profile"], env=use["env"])
    assert done.said == {"plain": True, "tls": True, "proxy": True}, done.said


def test_a_reset_and_an_early_answer_reach_the_program_as_they_are(net, profiles):
    use = profiles.make("early", {"allow": [{"host": "raw.example", "paths": ["/"]}]})
    done = attack(net, """
import http.client
def post(kind, path):
    connection = kind("raw.example", timeout=20)
    connection.putrequest("POST", path)
    connection.putheader("Content-Length", str(8 << 20))
    connection.endheaders()
    try:
        for _ in range(128):
            connection.send(bytes(1 << 16))
    except (BrokenPipeError, ConnectionResetError):
        pass
    return connection.getresponse().status
for name, kind in ("plain", http.client.HTTPConnection), ("tls", http.client.HTTPSConnection):
    told(name + " early", post, kind, "/early")
    told(name + " reset", post, kind, "/reset")
""", profile=use["profile"], env=use["env"])
    assert (done.said["plain early"], done.said["tls early"]) == (413, 413), done.said
    assert 502 not in done.said.values(), done.said # which error it is depends on the call that meets it first
    assert done.reasons("raw.example") - {None} == {"reset"}, done.network


def test_dots_and_utf_8_in_a_path_pass_where_no_rule_has_a_path(net):
    done = attack(net, """
import http.client
def get(path):
    with to("raw.example", 80) as sock:
        sock.sendall(b"GET " + path + b" HTTP/1.1\\r\\nHost: raw.example\\r\\nConnection: close\\r\\n\\r\\n")
        return all_of(sock)
for path in "/a/../b", "/%2e%2e/b", "/\u00e9":
    told(path, get, path.encode())
""".replace("\\\\", "\\"), "raw.example")
    for path in "/a/../b", "/%2e%2e/b", "/\u00e9":
        assert f"GET {path.encode().decode('latin-1')} HTTP/1.1" in done.said[path], done.said


def test_requests_sends_the_body_of_a_generator_over_https_with_and_without_proxy_variables(net):
    """requests 2.28 (Debian 12) sends such a body to a proxy without CONNECT; the guide says what to do there."""
    done = attack(net, """
import requests
session = requests.Session()
session.trust_env = False
told("by proxy", lambda: requests.post("https://raw.example/whole", data=(part for part in (b"one", b"two"))).text)
told("reply", lambda: session.post("https://raw.example/whole", data=(part for part in (b"one", b"two")), verify="/etc/ssl/certs/ca-certificates.crt").text)
""", "raw.example")
    assert done.said["reply"] == done.said["by proxy"] == "hello world", done.said
