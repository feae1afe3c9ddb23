"""Servers and resolvers of the world that attack brig-proxy, and programs that want more than their share of it: it lives, and so do the others."""
import re
import subprocess

import pytest

from support import host
from support import internet as internets
from support import proxy as proxies

DNS = "10.1.2.3" # an address of the world at which nothing else answers questions
MEMORY = 48 << 20 # of the whole proxy


@pytest.fixture(scope="module", name="hostile")
def hostile_(internet):
    internet.world.start(host.PYTHON, host.REPO / "tests/network/hostile.py", internets.address_of("echo.example"), DNS)
    internet.world.listens(internets.address_of("echo.example"), 8100)
    internet.world.listens(DNS, 53)
    return "http://echo.example:8100"


@pytest.fixture(scope="module")
def other_cell(internet):
    return proxies.Cell(internet)


def memory_of(proxy):
    return int(re.search(r"VmHWM:\s+(\d+)", host.read(f"/proc/{proxy.process.pid}/status"))[1]) << 10


def is_well(proxy, cell):
    """It serves others, and has not grown."""
    assert proxy.process.poll() is None, proxy.said()
    assert "shop.example by" in cell.curl("http://shop.example/who").stdout
    assert memory_of(proxy) < MEMORY and proxy.said() == ""


WITHOUT_END = ("headers", "line", "continue", "body", "chunks", "switch")
CUT = ("half-head", "half-body", "reset", "nothing", "garbage")


@pytest.mark.sample(6)
@pytest.mark.parametrize("upgrade", [(), ("-H", "Upgrade: websocket", "-H", "Connection: Upgrade", "-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")], ids=["plain", "upgrade"])
@pytest.mark.parametrize("what", WITHOUT_END + CUT)
def test_a_server_that_attacks_hurts_its_own_connection(start, cell, other_cell, hostile, what, upgrade):
    proxy = start(allow=[hostile, "shop.example"])
    run = proxy.begin(cell, hostile, bytes_max=8 << 20)
    proxy.begin(other_cell, "shop.example")
    done = cell.curl("-o", "/dev/null", *upgrade, f"{hostile}/{what}", proxy="http")
    assert host.poll(lambda: run.connections() and run.connections()[0][2] != "open"), run.connections()
    if what in WITHOUT_END:
        assert done.returncode or upgrade or what == "garbage", done
        assert run.report.bytes_in <= 8 << 20
    is_well(proxy, other_cell)


@pytest.mark.nightly
def test_a_server_that_never_answers_is_left_when_the_program_leaves(start, cell, other_cell, hostile):
    proxy = start(allow=[hostile, "shop.example"])
    run = proxy.begin(cell, hostile)
    proxy.begin(other_cell, "shop.example")
    assert cell.run("curl", "-sS", "--max-time", "1", "--proxy", f"http://{proxies.GATEWAY}:3128", f"{hostile}/silent").returncode == 28
    run.comes_to("echo.example", 8100, "done", "")
    is_well(proxy, other_cell)


# --- a resolver that attacks ---

OWN_ETC = 'mount --bind "$1" /etc; shift; exec "$@"'


@pytest.fixture
def lied_to(start, tmp_path, hostile):
    tmp_path.chmod(0o755)
    (tmp_path / "hosts").write_text(f"{internets.address_of('shop.example')} shop.example\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
    (tmp_path / "resolv.conf").write_text(f"nameserver {DNS}\noptions timeout:1 attempts:1\n")
    return start(allow=["*.echo.example", "shop.example"], through=["unshare", "--mount", "sh", "-ec", OWN_ETC, "sh", tmp_path])


def reached(cell, name):
    return cell.curl("-o", "/dev/null", "-w", "%{http_code}", f"http://{name}.echo.example/", proxy="http").stdout


@pytest.mark.sample(0, "loop", "pointer", "length", "truncated")
@pytest.mark.parametrize("what", ["id", "question", "loop", "pointer", "length", "truncated", "garbage", "silent"])
def test_a_resolver_that_lies_leads_nowhere(lied_to, cell, other_cell, what):
    run = lied_to.begin(cell, "*.echo.example")
    lied_to.begin(other_cell, "shop.example")
    assert reached(cell, what) == "502", run.connections()
    run.comes_to(f"{what}.echo.example", 80, "failed", "unresolved")
    is_well(lied_to, other_cell)


def test_a_name_that_moves_after_it_was_looked_at_is_refused_the_second_time(lied_to, cell):
    run = lied_to.begin(cell, "*.echo.example")
    assert reached(cell, "good") == "200" and reached(cell, "moves") == "200"
    assert reached(cell, "moves") == "403"
    run.comes_to("moves.echo.example", 80, "refused", "not_public")


ASK = """
import socket, sys
asked = [socket.create_connection(("198.18.0.1", 3128), 20) for _ in range(int(sys.argv[1]))]
for s in asked: s.sendall(b"CONNECT silent.echo.example:80 HTTP/1.1\\r\\nHost: silent.echo.example:80\\r\\n\\r\\n")
sys.stdin.read()
"""


def test_what_a_run_has_asked_of_a_resolver_that_is_silent_ends_with_the_run(lied_to, cell, other_cell, internet):
    """c-ares numbers its questions, and looks for a free number for ever when many runs have left theirs behind."""
    def sockets():
        return internet.host.run("ss", "-Hun", "dst", DNS).stdout

    run = lied_to.begin(cell, "*.echo.example")
    asking = cell.machine.start(host.PYTHON, "-c", ASK, "64", stdin=subprocess.PIPE)
    assert host.poll(lambda: len(run.connections()) == 64 and sockets()), run.connections()
    run.end()
    lied_to.begin(other_cell, "shop.example")
    is_well(lied_to, other_cell)
    assert sockets() == ""
    asking.stdin.close()


def test_of_thousands_of_addresses_only_those_that_were_judged_are_connected_to(lied_to, cell, other_cell):
    run = lied_to.begin(cell, "*.echo.example")
    lied_to.begin(other_cell, "shop.example")
    assert reached(cell, "many") in ("200", "403", "502")
    assert bytes(run.report.connection[0].address[:4]) in (b"\x5d\xb8\xd8\x22", bytes(4))
    is_well(lied_to, other_cell)


# --- a program that wants all of it ---

MANY = """
import socket, sys
held, lost = [], 0
for _ in range(int(sys.argv[1])):
    s = socket.socket()
    s.settimeout(20)
    try:
        s.connect(("198.18.0.1", 3128))
        s.sendall(b"CONNECT ")
        held.append(s)
    except OSError: lost += 1
    if len(held) > 500: held.pop(0).close()
print("done")
"""


def test_thousands_of_connections_of_one_run_are_bounded_and_others_go_on(start, cell, other_cell):
    proxy = start(allow=["shop.example"])
    run = proxy.begin(cell, "shop.example", connections_max=64)
    proxy.begin(other_cell, "shop.example")
    flood = cell.machine.start(host.PYTHON, "-c", MANY, "2000")
    for _ in range(3):
        is_well(proxy, other_cell)
    assert flood.wait(host.HANG) == 0
    assert run.report.refused > 1000 and ("", 0, "refused", "too_many") in run.connections()
    assert run.report.n <= 64
    is_well(proxy, other_cell)


NAMES = """
import socket, struct, sys
s = socket.socket(type=socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("198.18.0.1", 53))
said = []
for n in range(int(sys.argv[1])):
    s.send(struct.pack("!6H", n, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(one)]) + one for one in (b"n%d" % n, b"echo", b"example")) + b"\\0\\0\\1\\0\\1")
    said.append(s.recv(2000)[3] & 15)
print([(code, said.count(code)) for code in sorted(set(said))])
"""


def test_a_run_has_an_address_for_so_many_names_and_no_more(start, cell, other_cell):
    proxy = start(allow=["*.echo.example", "shop.example"])
    run = proxy.begin(cell, "*.echo.example")
    proxy.begin(other_cell, "shop.example")
    assert cell.python(NAMES, 6000).stdout == "[(0, 4096), (2, 1904)]\n"
    assert run.report.n == 0
    is_well(proxy, other_cell)


REFUSED = """
import socket, sys
for n in range(int(sys.argv[1])):
    with socket.create_connection(("198.18.0.1", 3128), 20) as s:
        s.sendall(b"CONNECT n%d.example:443 HTTP/1.1\\r\\n\\r\\n" % n if n % 2 else b"CONNECT n%d.example:443 HTTP/1.1\\r\\nHost: n%d.example:443\\r\\n\\r\\n" % (n, n))
        while s.recv(1000): pass
"""


def test_a_report_tells_of_the_first_and_counts_the_others(start, cell):
    proxy = start(allow=["shop.example"])
    run = proxy.begin(cell, "shop.example")
    assert cell.python(REFUSED, 400).returncode == 0
    report = run.report
    assert report.n == 64 and report.refused == 400 and 0 < report.left_out < 400, (report.n, report.left_out, report.refused)
    assert cell.curl("http://shop.example/who").stdout
    assert host.poll(lambda: run.report.connections == 1 and run.report.bytes_in > 0), "what is not listed is counted"
