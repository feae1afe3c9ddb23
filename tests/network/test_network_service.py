"""The network of a service's runs: ready cells, lists that requests narrow, and a brig-proxy that is killed."""
import json
import os
import pathlib
import shutil
import signal

import pytest

from support import client, host
from support import mcp as mcp_client

REPO = pathlib.Path(__file__).resolve().parents[2]
PAGE = """
import urllib.error, urllib.request
def page(name):
    try:
        return urllib.request.urlopen(f"https://{name}/hello.txt").read().decode().strip()
    except OSError as e:
        return str(e)
"""
HELLO = "hello from the world"


@pytest.fixture(scope="module")
def service(net, tmp_path_factory):
    profiles = tmp_path_factory.mktemp("profiles")
    host.open_way(profiles)
    for policy in (REPO / "profiles").glob("*.policy"):
        shutil.copy(policy, profiles)
    basic = json.loads((REPO / "profiles" / "network.json").read_text())
    (profiles / "closed.json").write_text(json.dumps(basic))
    (profiles / "open.json").write_text(json.dumps({**basic, "network": {"allow": ["shop.example"], "ceiling": ["*.example"], "deny": ["evil.example"]}}))
    for path in profiles.iterdir():
        path.chmod(0o644)
    with net.daemon({"ready": 1}, env={"BRIG_PROFILES": str(profiles)}) as daemon:
        yield daemon


def run(service, program, **keys):
    return service.run(PAGE + program, profile="open", **keys)


def proxies(service):
    """(pid, uid) of each brig-proxy of the service."""
    monitor = service.one("monitor")
    found = []
    for pid in host.read(f"/proc/{monitor}/task/{monitor}/children").split():
        if host.read(f"/proc/{pid}/comm") == "brig-proxy\n":
            found.append((int(pid), os.stat(f"/proc/{pid}").st_uid))
    return found


def await_ready(service):
    assert host.poll(lambda: run(service, "print(page('shop.example'))").record["warm"]), service.words()


@pytest.mark.sample(1)
@pytest.mark.parametrize("cold", [False, True])
def test_a_run_reaches_what_its_profile_allows_and_nothing_else(service, cold):
    await_ready(service)
    ran = run(service, "print(page('shop.example')); print(page('api.example'))", cold=cold)
    assert ran.stdout.startswith(HELLO + "\n") and "api.example is not on the list" in ran.stdout and "not on the list" not in ran.stdout.splitlines()[0], ran
    assert ran.record["warm"] is not cold
    assert [(one["name"], one["verdict"], one["reason"]) for one in ran.record["network"]["connections"]] == [
        ("shop.example", "done", None), ("api.example", "refused", "not_allowed")]


def test_a_request_has_its_own_list_below_the_ceiling(service):
    ran = run(service, "print(page('shop.example')); print(page('api.example'))", network=["api.example"])
    assert "shop.example is not on the list" in ran.stdout.splitlines()[0] and ran.stdout.splitlines()[1] == HELLO, ran
    assert run(service, "print(page('shop.example'))", network=[]).stdout.strip() not in ("", HELLO)


@pytest.mark.parametrize("profile, name", [("open", "example.com"), ("open", "evil.example"), ("closed", "shop.example")])
def test_what_the_profile_does_not_offer_is_refused_before_anything_runs(service, profile, name):
    with pytest.raises(client.Refused) as refused:
        service.run("print(1)", profile=profile, network=[name])
    assert name in str(refused.value), refused.value


@pytest.mark.row("G9")
def test_a_profile_without_a_network_has_no_proxy_and_nothing_answers_in_its_cells(service):
    ran = service.run(PAGE + "print(page('shop.example'))", profile="closed")
    assert "resolution" in ran.stdout or "not known" in ran.stdout, ran
    assert not ran.record["network"], ran.record
    assert len(proxies(service)) == 1


def test_the_proxy_has_an_id_that_root_of_the_profile_has_no_power_over(service):
    (_, uid), = proxies(service)
    namespaces = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            lines = [[int(word) for word in line.split()] for line in host.read(f"/proc/{pid}/uid_map").splitlines()]
        except OSError:
            continue
        if len(lines) > 1: # of P
            namespaces.add(any(outside <= uid < outside + count for _, outside, count in lines))
    assert namespaces == {False}, "each P was looked at, and the proxy's id is in none"


@pytest.mark.row("G9")
def test_two_runs_that_share_a_proxy_have_each_their_own_list_and_addresses(service):
    await_ready(service)
    program = """
import socket
def at(address):
    try:
        with socket.create_connection((address, 80), 20) as sock:
            sock.sendall(b"GET /hello.txt HTTP/1.0\\r\\nHost: HOST\\r\\n\\r\\n".replace(b"HOST", HOST.encode()))
            return "open" if b"hello from" in sock.makefile("rb").read() else "nothing"
    except OSError as e:
        return e.strerror
print(page(HOST), flush=True)
input()
print(page(HOST), at(socket.gethostbyname(HOST)), at("198.18.1.1"), at("198.18.1.2"), page(OTHER))
"""
    with service.connect() as talk:
        going = [talk.start(PAGE + f"HOST, OTHER = {names!r}\n" + program, profile="open", network=names[:1], stdin=True)
                 for names in (["shop.example", "api.example"], ["api.example", "shop.example"])]
        assert [one.line() for one in going] == [HELLO] * 2 and len(proxies(service)) == 1
        for one in going:
            one.feed(b"go on\n")
        ended = [one.finish() for one in going]
    for done, other in zip(ended, ("api.example", "shop.example")):
        assert done.stdout.startswith(f"{HELLO} open Connection reset by peer Connection reset by peer ") and f"{other} is not on the list" in done.stdout, done
        assert {one["name"] for one in done.record["network"]["connections"] if one["verdict"] != "refused"} == {"shop.example" if other == "api.example" else "api.example"}, done


@pytest.mark.row("G12")
def test_a_run_that_floods_its_proxy_keeps_no_other_run_of_the_profile_from_it(service):
    await_ready(service)
    flood = """
import socket
def begun(text):
    sock = socket.create_connection(("198.18.0.1", 3128), 20)
    sock.sendall(text)
    return sock
held = [begun(b"GET http://shop.example/big HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n") for _ in range(30)] # a gigabyte each, which nobody reads
print("held", flush=True)
import sys, threading
ends = threading.Thread(target=sys.stdin.readline)
ends.start()
count = 0
while ends.is_alive():
    try:
        for sock in [begun(b"CONNECT shop.example:443 HTTP/1.1\\r\\n") for _ in range(30)]:
            sock.close()
    except ConnectionError: # the proxy has enough of this run
        pass
    count += 30
print(count)
"""
    with service.connect() as talk:
        going = talk.start(flood, profile="open", stdin=True)
        assert going.line() == "held"
        beside = [run(service, "print(page('shop.example'))") for _ in range(5)]
        going.feed(b"enough\n")
        ended = going.finish()
    assert [one.stdout for one in beside] == [f"{HELLO}\n"] * 5, [str(one) for one in beside]
    assert ended.status == 0 and int(ended.stdout.splitlines()[-1]) >= 30, str(ended)


@pytest.mark.row("G13")
def test_a_proxy_that_is_killed_costs_the_network_and_not_the_run_and_nothing_opens(service):
    await_ready(service)
    (pid, _), = proxies(service)
    with service.connect() as talk:
        going = talk.start(PAGE + "print(page('shop.example'), flush=True); input(); print(page('shop.example'))\n"
                           "import socket\nfor address in ('198.18.0.1', 3128), ('93.184.216.34', 443):\n"
                           "    try: socket.create_connection(address, 5); print('open')\n    except OSError as e: print(e.strerror)", profile="open", stdin=True)
        assert going.line() == HELLO
        os.kill(pid, signal.SIGKILL)
        assert host.poll(lambda: [one for one, _ in proxies(service) if one != pid]), "another one is started"
        going.feed(b"go on\n")
        ended = going.finish()
    lines = ended.stdout.splitlines()
    assert ended.record["exit_reason"] == "exited" and "refused" in lines[0] and lines[1:] == ["Connection refused", "Network is unreachable"], ended
    assert host.poll(lambda: run(service, "print(page('shop.example'))").stdout.strip() == HELLO), service.words()
    assert "brig-proxy of profile open ended" in service.words()


def test_a_host_that_was_refused_is_reached_after_the_person_has_allowed_it(service):
    call = {"name": "execute_code", "arguments": {"code": PAGE + "print(page('api.example'))"}}
    with mcp_client.McpStdio("--ask-hosts", "--profile", "open", env={"BRIG_SOCKET": str(service.path)}) as mcp:
        mcp.initialize("2025-11-25", {"elicitation": {}})
        begun = mcp.begin("tools/call", call, revision="2025-11-25")
        question = begun.wait_question(1)
        assert "api.example:443" in question["params"]["message"], question
        mcp.answer(question, {"action": "accept", "content": {"answer": "yes"}})
        refused = mcp_client.data_of(begun.result())
        assert HELLO not in str(refused["stdout"]) and "api.example:443 is allowed now" in refused["hint"], refused
        reached = mcp_client.data_of(mcp.begin("tools/call", call, revision="2025-11-25").result())
        assert HELLO in reached["stdout"], reached


def test_every_proxy_of_a_service_is_in_one_group_that_bounds_what_all_their_sockets_hold(service):
    await_ready(service)
    mounts = [line.split()[1] for line in host.read("/proc/mounts").splitlines() if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(",")]
    if not mounts or not os.path.exists(f"{mounts[-1]}/memory.kmem.tcp.limit_in_bytes"):
        pytest.skip("needs control groups of version 1, whose memory controller counts sockets")
    groups = {line.split(":", 2)[2] for pid, _ in proxies(service) for line in host.read(f"/proc/{pid}/cgroup").splitlines() if "memory" in line.split(":")[1].split(",")}
    assert len(groups) == 1 and "/brig/" in (group := groups.pop()), groups
    bound = int(host.read(f"{mounts[-1]}{group}/memory.kmem.tcp.limit_in_bytes"))
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < bound <= whole // 64, (group, bound)
