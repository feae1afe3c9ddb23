"""brig-proxy, the real executable: what a program in a cell reaches through it, what it does not, and what the server is told of it."""
import os
import resource
import socket
import subprocess
import sys
import time

import pytest

from support import host
from support import internet as internets
from support import proxy as proxies

ALLOWED = ("shop.example", "*.wild.example", "one.example", "raw.example", "echo.example", "tcp://echo.example:7007", "closed.example", "unresolved.example",
           "six.example", *internets.ODD)
WHO = "shop.example by HTTP/2.0 at 93.184.216.34:443"


@pytest.fixture
def proxy(start):
    return start(allow=[*ALLOWED, "evil.example"], deny=["evil.example"])


@pytest.fixture
def run(proxy, cell):
    began = proxy.begin(cell, *ALLOWED, "evil.example")
    yield began
    assert proxy.process.poll() is None, f"the proxy died: {proxy.said()}"
    began.end()


WAYS = [None, "http", "socks5h", "socks5"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
def test_an_allowed_name_is_reached_over_https_end_to_end(run, cell, way):
    done = cell.curl("-4", "https://shop.example/who", proxy=way)
    assert WHO in done.stdout, done.stderr
    run.comes_to("shop.example", 443, "done", "")
    found = run.report.connection[run.connections().index(("shop.example", 443, "done", ""))]
    assert bytes(found.address[:4]) == bytes([93, 184, 216, 34]) and found.bytes_in > 1000 and found.bytes_out > 300 and found.ended_ms > found.began_ms > 0
    assert run.report.connections == 1 and run.report.bytes_in == found.bytes_in


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
def test_an_allowed_name_is_reached_over_http(run, cell, way):
    done = cell.curl("http://shop.example/who", proxy=way)
    assert "shop.example by HTTP/1.1 at 93.184.216.34:80" in done.stdout, done.stderr
    run.comes_to("shop.example", 80, "done", "")


def test_a_name_that_is_not_allowed_does_not_exist_for_the_program_and_is_asked_nowhere(run, cell, internet):
    done = cell.curl("https://stolen.another.example/")
    assert "Could not resolve host" in done.stderr
    run.comes_to("stolen.another.example", 0, "refused", "not_allowed")
    assert not [name for _, name in internet.dns_questions() if "stolen" in name]


def test_the_http_proxy_says_what_was_refused_and_how_to_allow_it(run, cell):
    done = cell.curl("https://two.example:8443/", proxy="http")
    assert done.returncode == 56 and "403" in done.stderr
    told = cell.curl("-v", "http://two.example/", proxy="http")
    assert "two.example is not on the list of hosts that this run may reach; allow it with --net two.example" in told.stdout
    run.comes_to("two.example", 8443, "refused", "not_allowed")
    run.comes_to("two.example", 80, "refused", "not_allowed")


def test_socks_refuses_with_its_own_code(run, cell):
    assert "(2)" in cell.curl("https://two.example/", proxy="socks5h").stderr
    run.comes_to("two.example", 443, "refused", "not_allowed")


@pytest.mark.parametrize("way", ["http", "socks5h", None])
def test_deny_wins(run, cell, way):
    done = cell.curl("https://evil.example/who", proxy=way)
    assert done.returncode and not done.stdout
    run.comes_to("evil.example", 443, "refused", "denied")


HELLO = """
import socket, ssl, sys
name, inside = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    with context.wrap_socket(socket.create_connection((name, 443), 20), server_hostname=inside or None) as s:
        s.sendall(f"GET /who HTTP/1.1\\r\\nHost: {inside or name}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        print(s.recv(10000))
except OSError as e:
    print(type(e).__name__)
"""


def test_tls_that_names_another_host_or_none_is_reset(run, cell):
    assert "HTTP/1.1 200" in cell.python(HELLO, "shop.example", "shop.example").stdout
    assert cell.python(HELLO, "shop.example", "evil.example").stdout in ("ConnectionResetError\n", "SSLEOFError\n")
    run.comes_to("shop.example", 443, "refused", "other_name")
    assert cell.python(HELLO, "shop.example", "").stdout in ("ConnectionResetError\n", "SSLEOFError\n")
    run.comes_to("shop.example", 443, "refused", "no_name")


def test_plain_http_that_names_another_host_is_refused(run, cell, internet):
    done = cell.curl("http://shop.example/who", "-H", "Host: evil.example")
    assert "names another host inside" in done.stdout
    run.comes_to("shop.example", 80, "refused", "other_name")
    assert not [one for one in internet.requests() if one["host"] == "evil.example"]


SPEAK = """
import socket, sys
name, port, text = sys.argv[1:]
s = socket.create_connection((name, int(port)), 20)
try:
    s.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
    heard = b""
    while data := s.recv(65536): heard += data
    print(heard)
except OSError as e: print(type(e).__name__, heard)
"""


def test_another_protocol_is_let_through_only_where_a_rule_says_tcp(run, cell):
    assert "ConnectionResetError" in cell.python(SPEAK, "echo.example", 443, "hello there").stdout
    run.comes_to("echo.example", 443, "refused", "not_tls")
    assert "b'hello echo'" in cell.python(ECHO, "echo.example", 7007).stdout


ECHO = """
import socket, sys
s = socket.create_connection(("198.18.0.1", 3128), 20)
s.sendall(f"CONNECT {sys.argv[1]}:{sys.argv[2]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
assert b" 200 " in s.recv(1000)
s.sendall(b"hello echo")
s.shutdown(socket.SHUT_WR)
heard = b""
while data := s.recv(1000): heard += data
print(heard)
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", internets.ODD)
def test_a_name_that_leads_to_where_no_program_may_come_is_refused(run, cell, name):
    done = cell.curl(f"http://{name}/", proxy="http")
    assert "credentials" not in done.stdout and "the host's own" not in done.stdout
    verdicts = [(verdict, reason) for found, port, verdict, reason in run.connections() if (found, port) == (name, 80)]
    assert verdicts in ([("refused", "not_public")], [("refused", "own_address")]), done.stdout


def test_a_private_address_is_reached_when_the_profile_says_so_and_the_hosts_own_is_not(start, cell):
    private = [proxies.rule(name, private=True) for name in ("private.example", "own.example")]
    run = start(allow=private).begin(cell, "private.example", "own.example")
    assert cell.curl("http://private.example/").stdout == "credentials of the machine\n"
    assert "leads to the host on which this run is" in cell.curl("http://own.example/").stdout
    run.comes_to("own.example", 80, "refused", "own_address")


@pytest.mark.parametrize("rules", [["*.example", proxies.rule("private.example", private=True)], [proxies.rule("private.example", private=True), "*.example"]], ids=["last", "first"])
def test_one_rule_that_says_private_is_enough_wherever_it_stands(start, cell, rules):
    start(allow=rules).begin(cell, "*.example")
    assert cell.curl("http://private.example/").stdout == "credentials of the machine\n"


def test_a_private_address_gets_those_requests_alone_whose_rule_says_private(start, cell):
    run = start(allow=[proxies.rule("http://private.example", private=True, methods=["HEAD"]), "http://*.example"]).begin(cell, "http://*.example")
    assert "credentials" not in cell.curl("http://private.example/").stdout
    run.comes_to("private.example", 80, "refused", "not_public")
    assert "200 OK" in cell.curl("--head", "http://private.example/").stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["own.example", "link.example", "loopback.example", "loopback6.example", "zero.example", "own-nat64.example", "own-sixtofour.example"])
def test_the_hosts_own_service_is_not_reached_even_where_private_addresses_are(start, cell, internet, name):
    before = internet.own_seen()
    run = start(allow=[proxies.rule(f"http://{name}:{internets.OWN_PORT}", private=True)]).begin(cell, f"http://{name}:{internets.OWN_PORT}")
    assert "leads to the host on which this run is" in cell.curl(f"http://{name}:{internets.OWN_PORT}/", proxy="http").stdout
    run.comes_to(name, internets.OWN_PORT, "refused", "own_address")
    assert internet.own_seen() == before


def test_deny_holds_for_an_address_by_whatever_name_a_program_gets_there(start, cell):
    run = start(allow=[proxies.rule("private.example", private=True)], deny=["10.1.2.3"]).begin(cell, "private.example")
    assert "no run may reach" in cell.curl("http://private.example/", proxy="http").stdout
    run.comes_to("private.example", 80, "refused", "denied")


@pytest.mark.parametrize("name, address", [("mapped.example", "10.1.2.3"), ("nat64.example", "169.254.169.254"), ("sixtofour.example", "169.254.169.254")])
def test_deny_holds_for_an_ipv4_address_inside_of_an_ipv6_one(start, cell, name, address):
    run = start(allow=[proxies.rule(name, private=True)], deny=[address]).begin(cell, name)
    assert "no run may reach" in cell.curl(f"http://{name}/", proxy="http").stdout
    run.comes_to(name, 80, "refused", "denied")


def test_deny_holds_for_an_ipv4_address_inside_of_an_ipv6_one_that_a_rule_names(start, cell):
    six = proxies.Rule(proxies.ADDRESS, proxies.SCHEMES["any"], host=b"64:ff9b::5db8:d822")
    run = start(allow=[six], deny=["93.184.216.34"]).begin(cell, six)
    assert "no run may reach" in cell.curl("http://[64:ff9b::5db8:d822]/", proxy="http").stdout
    run.comes_to("64:ff9b::5db8:d822", 80, "refused", "denied")


def test_a_name_that_moves_between_check_and_connection_leads_nowhere(start, cell):
    run = start(allow=["rebind.example"]).begin(cell, "rebind.example")
    for _ in range(4):
        assert "credentials" not in cell.curl("http://rebind.example/").stdout
    assert {reason for _, _, verdict, reason in run.connections() if verdict == "refused"} == {"not_public"}


def test_what_does_not_answer_is_told_as_failed(run, cell):
    assert "could not be connected to" in cell.curl("http://closed.example/", proxy="http").stdout
    run.comes_to("closed.example", 80, "failed", "unreachable")
    assert "could not be resolved" in cell.curl("http://unresolved.example/", proxy="http").stdout
    run.comes_to("unresolved.example", 80, "failed", "unresolved")


def test_a_request_is_written_anew_and_what_follows_it_goes_nowhere(run, cell, internet):
    said = "POST /echo HTTP/1.1\\r\\nHost: raw.example\\r\\nContent-Length: 5\\r\\nX-Mine: 1\\r\\nConnection: keep-alive\\r\\n\\r\\nhelloGET /smuggled HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n"
    heard = cell.python(SPEAK, "raw.example", 80, said).stdout
    assert "POST /echo HTTP/1.1" in heard and "Connection: close" in heard and "keep-alive" not in heard
    run.comes_to("raw.example", 80, "done", "")
    def whole():
        return [one["data"] for one in internet.seen() if "X-Mine: 1" in one["data"]]
    assert host.poll(whole) and [data.partition("\r\n\r\n")[2] for data in whole()] == ["hello"]


PIECES = """
import socket, sys
s = socket.create_connection(("198.18.0.1", 3128), 20)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
head = "GET /echo HTTP/1.1\\r\\nHost: raw.example\\r\\nX-Long: " + "x" * 2000 + "\\r\\nX-Last: 1\\r\\n\\r\\n"
for way in sys.argv[1:]:
    if way == "connect":
        for byte in b"CONNECT raw.example:80 HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n": s.send(bytes([byte]))
        assert b" 200 " in s.recv(1000)
    else:
        for byte in head.replace("/echo", way).encode(): s.send(bytes([byte]))
heard = b""
while data := s.recv(10000): heard += data
print(heard.count(b"x" * 2000), b"X-Last: 1" in heard)
"""


@pytest.mark.parametrize("words", [("connect", "/echo"), ("http://raw.example/echo",)])
def test_a_head_that_comes_byte_by_byte_is_understood(run, cell, words):
    assert cell.python(PIECES, *words).stdout.split() == ["1", "True"]
    run.comes_to("raw.example", 80, "done", "")


def test_an_ambiguous_request_is_refused(run, cell):
    said = "POST /echo HTTP/1.1\\r\\nHost: raw.example\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n"
    assert "malformed or ambiguous" in cell.python(SPEAK, "raw.example", 80, said).stdout
    run.comes_to("raw.example", 80, "refused", "bad_request")


def test_plain_requests_keep_to_their_methods(start, cell):
    rule = proxies.rule("http://shop.example", methods=["GET"])
    run = start(allow=[rule]).begin(cell, "http://shop.example")
    assert "shop.example by" in cell.curl("http://shop.example/who").stdout
    assert "the method or the path is not allowed" in cell.curl("-d", "x=1", "http://shop.example/who").stdout
    run.comes_to("shop.example", 80, "refused", "request")


@pytest.mark.nightly
def test_much_is_carried_whole(run, cell):
    done = cell.curl("-o", "/dev/null", "-w", "%{size_download}", "-r", f"0-{(200 << 20) - 1}", "https://shop.example/big")
    assert done.stdout == str(200 << 20), done.stderr
    run.comes_to("shop.example", 443, "done", "")
    assert run.report.bytes_in > 200 << 20


def test_net_bytes_ends_what_takes_more(proxy, cell):
    run = proxy.begin(cell, "shop.example", bytes_max=1 << 20)
    assert cell.curl("-o", "/dev/null", "https://shop.example/big").returncode
    run.comes_to("shop.example", 443, "refused", "too_much")
    assert run.report.bytes_in + run.report.bytes_out <= 1 << 20


# MANY tunnels, one after the other, kept until the input ends; prints how many were reset.
HOLD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
held = []
resets = 0
for _ in range(MANY):
    s = socket.socket()
    held.append(s)
    try:
        s.connect(("198.18.0.1", 3128))
        s.sendall(b"CONNECT shop.example:443 HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
        assert b" 200 " in s.recv(1000)
    except (ConnectionResetError, BrokenPipeError): resets += 1
print(resets, flush=True)
sys.stdin.read()
"""


def test_net_connections_bounds_what_is_open_at_once(proxy, cell):
    run = proxy.begin(cell, "shop.example", connections_max=3)
    done = cell.python(HOLD.replace("MANY", "5"))
    assert done.stdout == "2\n", done.stderr
    run.comes_to("", 0, "refused", "too_many")
    assert run.report.refused == 2


@pytest.mark.nightly
def test_all_runs_of_one_user_have_2048_connections_at_once_and_another_user_has_its_own(proxy, internet):
    def tunnels(user, many): # (the run, how many were reset)
        cell = proxies.Cell(internet)
        run = proxy.begin(cell, "shop.example", user=user, connections_max=1024)
        holder = cell.machine.start(host.PYTHON, "-c", HOLD.replace("MANY", str(many)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holders.append(holder)
        return run, int(holder.stdout.readline())

    holders = []
    try:
        assert [tunnels(1000, 1000)[1] for _ in range(2)] == [0, 0]
        run, resets = tunnels(1000, 60)
        assert resets == 12, resets
        run.comes_to("", 0, "refused", "too_many")
        assert run.report.refused == 12
        assert tunnels(1001, 20)[1] == 0
    finally:
        for holder in holders:
            holder.communicate()


# Connections over TLS that brig-proxy opens, each with a long reply that nobody reads, until the input ends.
UNREAD_TLS = """
import resource, socket, ssl, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
c = ssl.create_default_context(cafile=sys.argv[2])
held = [c.wrap_socket(socket.create_connection(("shop.example", 443)), server_hostname="shop.example") for _ in range(int(sys.argv[1]))]
for s in held: s.sendall(b"GET /big HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.gate
def test_memory_of_the_proxy_comes_back_after_a_run_with_hundreds_of_connections_over_tls(start, cell, tmp_path):
    made = subprocess.run([host.build_dir() / "bin/proxy", "--make-ca", "shop.example"], check=True, capture_output=True).stdout
    cert, key = (b"-----BEGIN" + part for part in made.split(b"-----BEGIN")[1:])
    host.open_way(tmp_path)
    (tmp_path / "ca.pem").write_bytes(cert)
    config = proxies.Config(proxies.rules("shop.example"), proxies.rules(), proxies.rules(), has_ca=1, ca_cert=cert, ca_key=key, secrets=1)
    config.secret[0] = proxies.Secret(name=b"T", host=b"shop.example", port=443, header=b"authorization", value=b"Bearer secret", secret_from=7, secret_len=6)
    proxy = start(config=proxies.memory(config))
    run = proxy.begin(cell, "shop.example", connections_max=200)
    kib = lambda: int(host.read(f"/proc/{proxy.process.pid}/status").partition("VmRSS:")[2].split()[0])
    holder = cell.machine.start(host.PYTHON, "-c", UNREAD_TLS, "200", tmp_path / "ca.pem", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        before = kib()
        assert holder.stdout.readline() == "held\n"
        assert host.poll(lambda: kib() > before + 8 * 1024), "the control: they hold something"
        assert kib() < before + 200 * 200
        run.end()
        assert host.poll(lambda: kib() < before + 4 * 1024), (before, kib())
    finally:
        holder.communicate()


# All that a run can do to keep brig-proxy busy, until its input ends.
FLOOD = """
import os, socket, sys
def connects():
    while True:
        try:
            with socket.create_connection(("198.18.0.1", 3128)) as s: s.sendall(b"CONNECT evil.example:443 HTTP/1.1\\r\\n\\r\\n")
        except OSError: pass
def asks():
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.connect(("198.18.0.1", 53))
    s.settimeout(0.1)
    n = 0
    while True:
        n += 1
        try:
            s.send(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4shop\\7example\\0\\0\\1\\0\\1")
            if n % 64 == 0: s.recv(512)
        except OSError: pass
children = []
for what in (connects, asks) * 2:
    children.append(os.fork())
    if not children[-1]: what()
print("floods", flush=True)
sys.stdin.read()
for child in children:
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    os.kill(child, 9)
"""


def test_a_run_is_answered_while_another_one_floods_the_proxy_that_both_share(proxy, cell, internet):
    other = proxies.Cell(internet)
    bad = proxy.begin(other, "shop.example")
    good = proxy.begin(cell, "shop.example")
    flood = other.machine.start(host.PYTHON, "-c", FLOOD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert flood.stdout.readline() == "floods\n"
        assert host.poll(lambda: bad.report.refused > 500)
        before = bad.report.refused
        for _ in range(5):
            assert WHO in cell.curl("-4", "https://shop.example/who").stdout
        assert good.report.connections == 5 and not good.report.failed
        assert host.poll(lambda: bad.report.refused > before) and flood.poll() is None # it goes on, when it has paid for what it used
        bad.end() # also while it waits for its share
        assert WHO in cell.curl("-4", "https://shop.example/who").stdout
    finally:
        flood.communicate()


def test_two_runs_have_rules_of_their_own_and_the_end_of_one_closes_its_own(proxy, cell):
    first = proxy.begin(cell, "shop.example")
    assert WHO in cell.curl("-4", "https://shop.example/who").stdout
    first.end()
    assert host.poll(lambda: "198.18.0.1:3128" not in cell.run("ss", "-ltnH").stdout), "its listeners are still there"
    proxy.begin(cell, "one.example")
    assert "Could not resolve" in cell.curl("https://shop.example/who").stderr
    assert "one.example over" in cell.curl("https://one.example/").stdout


def test_the_proxy_ends_with_its_server_and_the_cell_is_refused_at_once(proxy, cell):
    proxy.begin(cell, "shop.example")
    assert WHO in cell.curl("-4", "https://shop.example/who").stdout
    assert proxy.end() == 0 and proxy.said() == ""
    assert cell.curl("--connect-to", f"::{proxies.GATEWAY}:3128", "http://shop.example/").returncode == 7


def test_a_message_of_another_kind_ends_the_proxy(proxy):
    proxy.send(proxies.Message(7, 1))
    ends(proxy, "brig-proxy: the server sent a message that is none of its protocol: kind 7 for a new run, 1, with 0 descriptors\n")


def ends(proxy, *said):
    assert proxy.process.wait(host.HANG) == 1 and proxy.said() in said


def test_a_message_of_another_size_or_with_more_descriptors_ends_the_proxy(start):
    for message, fds in ((b"x", []), (bytes(100), []), (proxies.Message(proxies.BEGIN, 1), [0] * 4)):
        proxy = start()
        proxy.send(message, fds)
        ends(proxy, "brig-proxy: the server sent a message of another size, or with more descriptors, than its protocol has\n")


def test_a_run_that_begins_twice_ends_the_proxy(proxy, cell):
    run = proxy.begin(cell, "shop.example")
    fds = [proxies.memory(b"") for _ in range(3)]
    proxy.send(proxies.Message(proxies.BEGIN, run.number, 1, 1), fds)
    ends(proxy, f"brig-proxy: the server sent a message that is none of its protocol: kind 1 for the run, {run.number}, with 3 descriptors\n")


def malformed_configs():
    many = proxies.rules("shop.example")
    many.n = len(many.rule) + 1
    endless = proxies.rules("shop.example")
    endless.rule[0].host = b"a" * proxies.Rule.host.size
    yield "rules are malformed", proxies.memory(proxies.Config(many))
    yield "rules are malformed", proxies.memory(proxies.Config(deny=endless))
    yield "CA is malformed", proxies.memory(proxies.Config(ca_key=b"x" * proxies.Config.ca_key.size))
    yield "secrets are malformed", proxies.memory(proxies.Config(secrets=len(proxies.Config().secret) + 1))
    beyond = proxies.Config(secrets=1)
    beyond.secret[0] = proxies.Secret(header=b"authorization", value=b"x", secret_from=1, secret_len=1)
    yield "secrets are malformed", proxies.memory(beyond)
    yield "upstream is not HOST:PORT", proxies.memory(proxies.Config(upstream=b"proxy.example"))
    yield "the configuration: has", proxies.memory(bytes(proxies.Config()) + b"x")
    yield "another size", proxies.memory(bytes(proxies.Config())[1:])
    yield "the configuration", proxies.memory(b"")
    yield "the configuration", proxies.memory(proxies.Config(), sealed=False)


def test_a_configuration_that_is_malformed_ends_the_proxy_with_what_is_wrong(start):
    for wrong, config in malformed_configs():
        proxy = start(config=config)
        assert proxy.process.wait(host.HANG) == 1 and wrong in proxy.said() and proxy.said().count("\n") == 1, (wrong, proxy.said())


def test_a_run_that_is_malformed_has_no_network_and_the_others_keep_theirs(proxy, run, cell):
    many = proxies.rules("shop.example")
    many.n = len(many.rule) + 1
    good = proxies.rules("shop.example")
    for n, (said, limits, rules, report) in enumerate((
            ("net_connections is 0, and must be from 1 to 1024", (1, 0, 0, 1000), proxies.memory(good), proxies.memory(proxies.Report(), sealed=False)),
            ("net_connections is 1025, and must be from 1 to 1024", (1, 1025, 0, 1000), proxies.memory(good), proxies.memory(proxies.Report(), sealed=False)),
            ("cpus in thousandths is 0, and must be from 10 to 1024000", (1, 1, 0, 0), proxies.memory(good), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run are malformed", (1, 1, 0, 1000), proxies.memory(many), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run are malformed", (1, 1, 0, 1000), proxies.memory(b""), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run are malformed", (1, 1, 0, 1000), proxies.memory(b"x"), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run are malformed", (1, 1, 0, 1000), proxies.memory(bytes(good)[:proxies.used(good) - 1]), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run: has", (1, 1, 0, 1000), proxies.memory(bytes(good) + b"x"), proxies.memory(proxies.Report(), sealed=False)),
            ("the rules of a run", (1, 1, 0, 1000), proxies.memory(good, sealed=False), proxies.memory(proxies.Report(), sealed=False)),
            ("the report of a run cannot be written", (1, 1, 0, 1000), proxies.memory(good), proxies.memory(b"", sealed=False)),
            ("the report of a run cannot be written", (1, 1, 0, 1000), proxies.memory(good), proxies.memory(proxies.Report())))):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            proxy.send(proxies.Message(proxies.BEGIN, 100 + n, *limits), [channel.fileno(), rules, report])
        assert host.poll(lambda n=n: proxy.said().count("\n") == n + 1), proxy.said()
        assert proxy.said().splitlines()[n].startswith(f"brig-proxy: a run has no network: {said}")
    assert WHO in cell.curl("-4", "https://shop.example/who").stdout


# --- what it does when something lacks ---

def cpu_seconds(pid):
    return sum(map(int, host.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_without_descriptors_the_proxy_rests_and_goes_on_when_there_are_some(proxy, run, cell):
    assert WHO in cell.curl("-4", "https://shop.example/who").stdout
    limits = resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    asking = [cell.machine.start("curl", "-sS", "--cacert", cell.ca, *way, "https://shop.example/who", stdout=subprocess.PIPE, text=True)
              for way in (["--noproxy", "*"], ["--proxy", f"http://{proxies.GATEWAY}:3128"])]
    assert host.poll(lambda: "ESTAB" in cell.run("ss", "-tnH", "dport = :3128").stdout)
    before = cpu_seconds(proxy.process.pid)
    time.sleep(1) # what is measured
    assert cpu_seconds(proxy.process.pid) - before < 0.2 and all(one.poll() is None for one in asking)
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, limits)
    assert all("shop.example by" in one.communicate(timeout=host.HANG)[0] for one in asking)
    assert run.report.refused == 0


SILENT = "93.184.220.1" # no machine has it, and none says so

LEAVE = """
import socket, sys
s = socket.create_connection(("198.18.0.1", 3128), 20)
s.sendall(f"CONNECT {sys.argv[1]}:443 HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
"""


def test_a_program_that_leaves_while_its_host_is_dialed_gives_its_connection_back(start, cell):
    proxy = start(allow=["shop.example", SILENT])
    run = proxy.begin(cell, "shop.example", SILENT, connections_max=1)
    cell.python(LEAVE, SILENT)
    run.comes_to(SILENT, 443, "failed", "unreachable")
    row = run.report.connection[0]
    assert row.ended_ms - row.began_ms < 5000
    assert WHO in cell.curl("-4", "https://shop.example/who").stdout


HALF = """
import socket
with socket.create_server(("127.0.0.1", 3130)) as server:
    while True:
        s = server.accept()[0]
        s.recv(1000)
        s.sendall(b"HTTP/1.1 200 OK\\r\\n")
        s.shutdown(socket.SHUT_WR)
        held = s
"""


def test_a_proxy_of_the_host_that_ends_in_the_middle_of_its_answer_is_told_at_once(start, cell, internet):
    internet.host.start(host.PYTHON, "-c", HALF)
    internet.host.listens("127.0.0.1", 3130)
    run = start(allow=["shop.example"], upstream=b"127.0.0.1:3130").begin(cell, "shop.example")
    assert "could not be connected to" in cell.curl("http://shop.example/", proxy="http").stdout
    row = run.report.connection[0]
    assert row.ended_ms - row.began_ms < 5000


# An /etc of its own, and what systemd-resolved has.
OWN_ETC = 'mount --bind "$1/etc" /etc; mount -t tmpfs none /run; mkdir -p /run/systemd/resolve; mount --bind "$1/resolve" /run/systemd/resolve; shift; exec "$@"'


@pytest.fixture
def etc(tmp_path):
    """A folder of files that name no resolver."""
    tmp_path.chmod(0o755)
    for name in ("etc", "resolve"):
        (tmp_path / name).mkdir()
    (tmp_path / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (tmp_path / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (tmp_path / "etc/resolv.conf").write_text("nameserver 127.0.0.77\n")
    return tmp_path


def put(path, text):
    """As those that write such files do."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.rename(path)


@pytest.mark.nightly
def test_names_are_resolved_as_the_host_says_now_also_when_its_files_were_replaced(start, cell, etc):
    link = etc / "resolve/stub-resolv.conf"
    link.write_text("nameserver 127.0.0.77\n")
    proxy = start(allow=ALLOWED, through=["unshare", "--mount", "sh", "-ec", OWN_ETC, "sh", etc])
    proxy.begin(cell, *ALLOWED)

    def reached(name="shop.example"):
        return "shop.example by" in cell.curl("-H", "Host: " + name, f"http://{name}/who", proxy="http").stdout
    assert not reached()
    put(etc / "etc/resolv.conf", f"nameserver {internets.RESOLVER}\n")
    assert reached()
    (etc / "etc/link").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    (etc / "etc/link").rename(etc / "etc/resolv.conf")
    assert not reached()
    put(link, f"nameserver {internets.RESOLVER}\n")
    assert reached()
    put(link, "nameserver 127.0.0.77\n")
    assert not reached()
    put(etc / "etc/hosts", f"{internets.address_of('shop.example')} shop.example\n")
    assert reached()


WEBSOCKET = """
import socket
s = socket.create_connection(("shop.example", 80), 20)
s.sendall(b"GET /ws HTTP/1.1\\r\\nHost: shop.example\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
heard = b""
while b"\\r\\n\\r\\n" not in heard: heard += s.recv(1000)
print(heard.split(b"\\r\\n")[0])
s.sendall(b"\\x81\\x85\\0\\0\\0\\0hello")
print(s.recv(1000))
"""


def test_a_websocket_is_a_tunnel_once_the_server_agreed(run, cell):
    done = cell.python(WEBSOCKET)
    assert done.stdout == "b'HTTP/1.1 101 Switching Protocols'\nb'\\x81\\x05hello'\n", done.stderr
    run.comes_to("shop.example", 80, "done", "")


@pytest.mark.nightly
def test_net_rate_slows_all_connections_of_a_run_together(proxy, cell):
    proxy.begin(cell, "shop.example", rate_max=1 << 20)
    done = cell.curl("-o", "/dev/null", "-w", "%{size_download} %{time_total}", "-r", f"0-{(2 << 20) - 1}", "https://shop.example/big")
    size, seconds = done.stdout.split()
    assert int(size) == 2 << 20 and float(seconds) > 1.5, done.stderr


ASK = """
import socket, struct, sys
kind, name, over = int(sys.argv[1]), sys.argv[2], sys.argv[3]
question = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\\0" + struct.pack("!2H", kind, 1)
with socket.socket(type=socket.SOCK_STREAM if over == "tcp" else socket.SOCK_DGRAM) as s:
    s.settimeout(20)
    s.connect(("198.18.0.1", 53))
    s.send((struct.pack("!H", len(question)) if over == "tcp" else b"") + question)
    said = s.recv(2000)[2 if over == "tcp" else 0:]
    print(said[3] & 15, struct.unpack("!H", said[6:8])[0], ".".join(map(str, said[-4:])) if said[7] else "")
"""


@pytest.mark.parametrize("over", ["udp", "tcp"])
def test_the_resolver_gives_each_name_one_address_and_none_of_ipv6(run, cell, over):
    def ask(kind, name):
        done = cell.python(ASK, kind, name, over)
        return done.stdout.split() or done.stderr
    assert ask(1, "shop.example") == ["0", "1", "198.18.1.0"] and ask(1, "one.example") == ["0", "1", "198.18.1.1"]
    assert ask(1, "SHOP.example") == ["0", "1", "198.18.1.0"]
    assert ask(28, "shop.example") == ["0", "0"] and ask(16, "shop.example") == ["0", "0"]
    assert ask(1, "two.example") == ["3", "0"] and ask(16, "stolen.two.example") == ["3", "0"]
    run.comes_to("two.example", 0, "refused", "not_allowed")


@pytest.fixture(scope="module")
def upstream(internet):
    """The host's own proxy."""
    lack = host.lacks("tool:tinyproxy")
    if lack:
        pytest.skip(lack)
    conf = internet.folder / "tinyproxy.conf"
    conf.write_text("Port 3129\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nConnectPort 443\nConnectPort 80\n")
    internet.host.start("tinyproxy", "-d", "-c", conf)
    internet.host.listens("127.0.0.1", 3129)
    return b"127.0.0.1:3129"


def test_where_the_host_has_a_proxy_of_its_own_names_are_reached_through_it(start, cell, upstream):
    run = start(allow=ALLOWED, upstream=upstream).begin(cell, "shop.example", "closed.example")
    assert "shop.example by HTTP/2.0 at" in cell.curl("https://shop.example/who").stdout
    assert "shop.example by HTTP/1.1 at" in cell.curl("http://shop.example/who", proxy="http").stdout
    assert "could not be connected to" in cell.curl("http://closed.example/", proxy="http").stdout
    assert "403" in cell.curl("https://one.example/", proxy="http").stderr
    run.comes_to("shop.example", 443, "done", "")


def test_the_proxy_has_no_rights(proxy, run):
    def now():
        return dict(line.split(":\t", 1) for line in host.read(f"/proc/{proxy.process.pid}/status").splitlines() if ":\t" in line)
    assert host.poll(lambda: now()["Seccomp"] != "0"), "it is not confined" # it was started a moment ago
    status = now()
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert run.report.n == 0


def test_a_connection_that_begins_when_its_run_is_over_reaches_nothing(run, cell, internet):
    assert WHO in cell.curl("https://shop.example/who").stdout # the control
    run.comes_to("shop.example", 443, "done", "")
    before = len(internet.dns_questions())
    at = proxies.Report.over.offset
    run.mapped[at:at + 4] = (1).to_bytes(4, sys.byteorder) # as the server does
    for way in (None, "http", "socks5h"):
        done = cell.curl("https://one.example/who", proxy=way)
        assert done.returncode != 0 and WHO not in done.stdout, done.stdout
    assert run.report.connections == 1 and not [name for _, name in internet.dns_questions()[before:] if name == "one.example"]
