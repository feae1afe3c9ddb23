"""What a name leads to: public addresses only, the one that was checked, and never the host itself."""
import pytest

from attack import attack
from support import internet as internets

VISIT = """
for name in NAMES:
    told(f"{name} by connect", lambda: status(proxy(f"CONNECT {name}:80 HTTP/1.1\\r\\n\\r\\n".encode(), then=b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")))
    told(f"{name} by http", lambda: status(proxy(f"GET http://{name}/ HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())))
    told(f"{name} transparent", lambda: page(to(name, 80), name, "/"))
    told(f"{name} own port", lambda: status(proxy(f"GET http://{name}:8000/ HTTP/1.1\\r\\nHost: {name}:8000\\r\\n\\r\\n".encode())))
"""
PRIVATE = (*internets.NOT_PUBLIC, "the host's own")


def no_page(said):
    return {name: word for name, word in said.items() if "credentials" in str(word) or "own" in str(word)[-20:] or str(word) == "200"}


@pytest.mark.row("G3")
@pytest.mark.row("G4")
@pytest.mark.row("G5")
def test_a_public_name_leads_to_no_private_address(net):
    before = len(net.requests())
    done = attack(net, VISIT.replace("NAMES", repr(list(internets.ODD))), *internets.ODD, *(f"{name}:8000" for name in list(internets.ODD)[:20]))
    assert no_page(done.said) == {}, done.said
    assert len([word for word in done.said.values() if word == "403"]) > len(internets.ODD), done.said
    reasons = {reason for name in internets.ODD for reason in done.reasons(name)}
    assert reasons == {"not_public", "own_address"}, reasons
    assert done.reasons("metadata.example") == {"not_public"} and "own_address" in done.reasons("own.example")
    assert not [one for one in net.requests()[before:] if one["server"] in internets.NOT_PUBLIC]


@pytest.mark.row("G3")
def test_an_address_that_is_named_for_a_run_must_be_public_unless_the_user_names_it(net):
    done = attack(net, """
told("named", lambda: status(proxy(b"GET http://169.254.169.254/ HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n\\r\\n")))
told("other", lambda: status(proxy(b"GET http://10.1.2.3/ HTTP/1.1\\r\\nHost: 10.1.2.3\\r\\n\\r\\n")))
""", "169.254.169.254")
    assert done.said == {"named": "200", "other": "403"}, done.said # the user's own word, in a private run


@pytest.mark.row("G4")
def test_a_name_that_moves_after_it_was_checked_is_not_followed(net):
    before = len(net.requests())
    done = attack(net, """
for n in range(8):
    told(f"try {n}", lambda: proxy(b"GET http://rebind.example/who HTTP/1.1\\r\\nHost: rebind.example\\r\\n\\r\\n"))
""", "rebind.example")
    assert not [word for word in done.said.values() if "credentials" in word], done.said
    assert not [one for one in net.requests()[before:] if one["server"] in internets.NOT_PUBLIC]
    assert done.reasons("rebind.example") == {"not_public"}, done.network


@pytest.mark.row("G2")
def test_the_hosts_own_services_are_reached_by_no_name_and_no_address(net):
    before = net.own_seen()
    targets = ["127.0.0.1", "localhost", "[::1]", internets.HOST_ADDRESS, internets.OWN_PUBLIC, f"[{internets.HOST_SIX}]", "0.0.0.0", "own.example", "link.example", "loopback.example", "127.0.0.2"]
    done = attack(net, f"""
for target in {targets!r}:
    told("proxy " + target, lambda: status(proxy(f"GET http://{{target}}:{internets.OWN_PORT}/ HTTP/1.1\\r\\nHost: {{target}}:{internets.OWN_PORT}\\r\\n\\r\\n".encode())))
    told("connect " + target, lambda: status(connect(f"{{target}}:{internets.OWN_PORT}")))
    told("direct " + target, lambda: page(to(target.strip("[]"), {internets.OWN_PORT}, socket.AF_INET6 if ":" in target else socket.AF_INET), target, "/"))
""", "own.example:8000", "link.example:8000", "loopback.example:8000", "shop.example")
    # A connect() alone proves nothing: port 8000 was named, so the jail has a listener of its proxy there, which resets.
    assert not [word for word in done.said.values() if word == "200" or "the host's own" in word], done.said
    assert net.own_seen() == before
    assert net.curl(f"http://{internets.OWN_PUBLIC}:{internets.OWN_PORT}/").stdout == "the host's own\n" and net.own_seen() != before # the control


@pytest.mark.row("G3")
@pytest.mark.row("G5")
def test_a_library_that_reads_every_spelling_of_an_address_connects_to_none(net):
    """socket and libcurl read what inet_aton(3) does: the proxy sees only what they made of it, or the text."""
    spellings = ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]"]
    before = len(net.requests())
    done = attack(net, f"""
import subprocess, urllib.request
for word in {spellings!r}:
    told("connect " + word, lambda: page(socket.create_connection((word.strip("[]"), 80), 5), word, "/"))
    told("urllib " + word, lambda: urllib.request.urlopen(f"http://{{word}}/", timeout=20).read())
    for way in [], ["--noproxy", "*"], ["--socks5", "198.18.0.1:3128"], ["--socks5-hostname", "198.18.0.1:3128"]:
        told(f"curl {{way}} {{word}}", lambda: subprocess.run(["curl", "-sg", "--max-time", "20", *way, f"http://{{word}}/"], capture_output=True).stdout)
told("control", lambda: urllib.request.urlopen("http://shop.example/hello.txt").read())
""", "shop.example")
    assert done.said.pop("control") == "hello from the world\n"
    assert not [word for word in done.said.values() if "credentials" in word], done.said
    assert not [one for one in net.requests()[before:] if one["server"] in internets.NOT_PUBLIC]
    assert {one["verdict"] for one in done.network["connections"] if one["name"] != "shop.example"} == {"refused"}, done.network


@pytest.mark.row("G4")
def test_private_allows_what_a_profile_says_and_the_hosts_own_addresses_never(net, profiles):
    kw = profiles.make("inside", {"allow": [{"host": "private.example", "private": True}, {"host": "own.example:8000", "private": True}, "metadata.example"]})
    said = attack(net, """
for name in "private.example", "metadata.example", "own.example:8000":
    told(name, lambda: proxy(f"GET http://{name}/ HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode()))
""", **kw).said
    assert "credentials of the machine" in said["private.example"] and " 403 " in said["metadata.example"].split("\r\n")[0] and " 403 " in said["own.example:8000"].split("\r\n")[0], said


@pytest.mark.row("G5")
@pytest.mark.row("G6")
def test_no_datagram_no_raw_packet_and_no_ipv6_leaves_a_jail_with_a_network(net):
    before = len(net.seen())
    said = attack(net, f"""
def udp(address, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        sock.sendto(b"escaped", (address, port))
        return sock.recv(100)
for port in 53, 443, 7007:
    told(f"udp {{port}}", udp, "{internets.address_of('echo.example')}", port)
told("udp by its name", lambda: udp(socket.gethostbyname("echo.example"), 443))
told("udp six", udp, "2606:2800:220:1::41", 443, socket.AF_INET6)
for address in "2606:2800:220:1::34", "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "fe80::1", "fd00:ec2::254":
    told("tcp " + address, lambda: to(address, 443, socket.AF_INET6).close())
told("mapped gateway", lambda: to("::ffff:198.18.0.1", 3128, socket.AF_INET6).close())
for name, args in dict(raw=(socket.AF_INET, socket.SOCK_RAW, 1), ping=(socket.AF_INET, socket.SOCK_DGRAM, 1), ping6=(socket.AF_INET6, socket.SOCK_DGRAM, 58), packet=(17, socket.SOCK_RAW, 0), sctp=(socket.AF_INET, socket.SOCK_STREAM, 132)).items():
    told(name, lambda: socket.socket(*args).close())
told("multicast", udp, "224.0.0.251", 5353)
told("broadcast", udp, "255.255.255.255", 53)
told("interfaces", lambda: [name for _, name in socket.if_nameindex()])
""", "echo.example", "shop.example").said
    assert not [one for one in net.seen()[before:] if "escaped" in one["data"]], said
    assert "escaped" not in [word for name, word in said.items()], said
    assert {said[name] for name in ("udp 53", "udp 443", "udp 7007", "udp six")} <= {"ENETUNREACH", "EADDRNOTAVAIL"}, said
    assert all(said[name] not in (None, "") for name in said if name.startswith("tcp ")), said
    assert all(said[name] is not None for name in ("raw", "ping", "ping6", "packet", "sctp")), said
