"""The internet that the other files attack: what a process without a jail can do in it. Without these, a refusal would prove nothing."""
import json

import pytest

from support import host
from support import internet as internets

pytestmark = pytest.mark.usefixtures("internet")


def dig(internet, *words):
    return internet.host.run(host.PYTHON, "-c", ASK, *words).stdout.split()


ASK = """
import socket, sys
kind = {"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[2]]
print(*sorted({found[4][0] for found in socket.getaddrinfo(sys.argv[1], 80, kind)}))
"""


def test_control_names_lead_to_servers_by_https(internet):
    assert internet.curl("https://shop.example/hello.txt").stdout == "hello from the world\n"
    assert "evil.example by HTTP/2.0 at 93.184.216.36:443" in internet.curl("-4", "https://evil.example/who").stdout
    assert "six.example by HTTP/2.0 at 2606:2800:220:1::47:443" in internet.curl("https://six.example/who").stdout


def test_control_certificates_are_checked(internet):
    assert "unknown CA" in internet.curl("-k", "https://unknown-ca.example/").stdout
    assert internet.curl("https://unknown-ca.example/", check=False).returncode == 60
    assert internet.curl("https://cert.example/", check=False).returncode == 60


@pytest.mark.parametrize("name", [name for name, addresses in internets.ODD.items() if set(addresses) <= set(internets.NOT_PUBLIC)])
def test_control_a_public_name_leads_to_a_private_server(internet, name):
    assert internet.curl(f"http://{name}/").stdout == "credentials of the machine\n"


@pytest.mark.control("G14")
def test_control_the_metadata_service_answers_in_every_spelling(internet):
    for address in ("169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"):
        assert internet.curl(f"http://{address}/").stdout == "credentials of the machine\n", address
    assert internet.curl("http://[fd00:ec2::254]/").stdout == "credentials of the machine\n"


def test_control_the_hosts_own_service_answers_on_all_its_addresses(internet):
    for name in ("127.0.0.1", "[::1]", internets.HOST_ADDRESS, internets.OWN_PUBLIC, "own.example", "0.0.0.0"):
        assert internet.curl(f"http://{name}:{internets.OWN_PORT}/").stdout == "the host's own\n", name


@pytest.mark.control("G4")
def test_control_a_name_moves_between_two_questions(internet):
    assert dig(internet, "rebind.example", "4") + dig(internet, "rebind.example", "4") in (["93.184.216.34", "169.254.169.254"], ["169.254.169.254"] * 2)


@pytest.mark.control("G7")
def test_control_a_question_carries_data(internet):
    internet.host.run(host.PYTHON, "-c", "import socket\ntry: socket.getaddrinfo('asked-by-the-host.evil.example', 80)\nexcept OSError: pass")
    assert ("A", "asked-by-the-host.evil.example") in internet.dns_questions()


@pytest.mark.control("G6")
def test_control_udp_comes_through(internet):
    internet.host.run(host.PYTHON, "-c", f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.settimeout({host.HANG})
    for port in 53, 443, 7007:
        udp.sendto(b"control", ("{internets.address_of('echo.example')}", port))
        assert udp.recv(100) == b"control"
""")
    assert {"echo udp 53", "echo udp 443", "echo udp 7007"} <= {one["at"] for one in internet.seen() if one["data"] == "control"}


@pytest.mark.control("G8")
def test_control_a_server_with_many_names_answers_for_another_one(internet):
    said = internet.curl("--connect-to", "::one.example:443", "-H", "Host: two.example", "https://one.example/").stdout
    assert said == "two.example over 2.0\n"


@pytest.mark.control("G12")
def test_control_tcp_and_websockets_are_echoed(internet):
    internet.host.run(host.PYTHON, "-c", f"""
import asyncio, socket, ssl, websockets
with socket.create_connection(("echo.example", 7007)) as tcp:
    tcp.sendall(b"there")
    assert tcp.recv(5) == b"there"
async def talk():
    async with websockets.connect("wss://ws.example/ws", ssl=ssl.create_default_context()) as ws:
        await ws.send("there")
        assert await ws.recv() == "there"
asyncio.run(talk())
""")


def test_control_git_clones_and_an_index_has_a_package(internet, tmp_path):
    internet.host.run("git", "clone", "-q", "https://git.example/repo.git", tmp_path / "clone", env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert (tmp_path / "clone/README").read_text() == "a repository of the world\n"
    assert "tiny-1.0-py3-none-any.whl#sha256=" in internet.curl("https://pypi.example/simple/tiny/").stdout


def test_neither_namespace_has_a_way_out(internet):
    for machine, ways in ((internet.world, {"up1"}), (internet.host, {"up0"})):
        links = {row["ifname"] for row in json.loads(machine.run("ip", "-json", "link").stdout)}
        assert links == {"lo", *ways}
    assert not [row for row in json.loads(internet.world.run("ip", "-json", "route").stdout) if row["dst"] == "default"]
