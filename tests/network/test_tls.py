"""TLS that brig-proxy ends, to read requests: what programs see, what servers see, and whom each of the two believes."""
import pathlib
import re
import subprocess

import pytest

from attack import attack
from support import host

RULE = {"host": "shop.example", "methods": ["GET"], "paths": ["/repos/"]}
REFUSED = "the method or the path is not allowed at shop.example"


@pytest.fixture
def reads(profiles):
    """A profile of whose host shop.example single paths are allowed, and raw.example."""
    return profiles.make("reads", {"allow": [RULE, "raw.example"]})


CLIENTS = {
    "requests": "import requests\ndef get(path, method='GET'):\n    said = requests.request(method, BASE + path)\n    return f'{said.status_code} {said.text}'",
    "httpx": "import httpx\ndef get(path, method='GET'):\n    said = httpx.Client(http2=True).request(method, BASE + path)\n    assert said.http_version == 'HTTP/1.1'\n    return f'{said.status_code} {said.text}'",
    "curl": "import subprocess\ndef get(path, method='GET'):\n    return subprocess.run(['curl', '-sS', '-X', method, '-w', '\\n%{http_code}', BASE + path], capture_output=True, text=True).stdout",
    "curl without a proxy": "import os, subprocess\nenv = {k: v for k, v in os.environ.items() if not k.lower().endswith('_proxy')}\ndef get(path, method='GET'):\n"
                            "    return subprocess.run(['curl', '-sS', '-X', method, '-w', '\\n%{http_code}', BASE + path], capture_output=True, text=True, env=env).stdout",
    "aiohttp": "import aiohttp, asyncio\nasync def fetch(path, method):\n    async with aiohttp.ClientSession(trust_env=True) as client:\n        async with client.request(method, BASE + path) as said:\n"
               "            return f'{said.status} {await said.text()}'\ndef get(path, method='GET'):\n    return asyncio.run(fetch(path, method))",
    "urllib.request": "import urllib.error, urllib.request\ndef get(path, method='GET'):\n    try:\n        said = urllib.request.urlopen(urllib.request.Request(BASE + path, method=method))\n"
                      "    except urllib.error.HTTPError as error:\n        said = error\n    return f'{said.status} {said.read().decode()}'",
    "ssl": "def get(path, method='GET'):\n    with tls(to('shop.example', 443), 'shop.example') as sock:\n        sock.sendall(f'{method} {path} HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n'.encode())\n        return all_of(sock).decode()",
}


@pytest.mark.sample(0, "curl", "ssl")
@pytest.mark.requirement("A74")
@pytest.mark.parametrize("client", CLIENTS)
def test_only_the_methods_and_paths_of_a_rule_reach_the_server(net, reads, client):
    before = len(net.requests())
    said = attack(net, f"""
BASE = "https://shop.example"
{CLIENTS[client]}
told("allowed", get, "/repos/x?y=1")
told("path", get, "/who")
told("method", get, "/repos/x", "POST")
""", profile=reads["profile"], env=reads["env"])
    assert "GET /repos/x?y=1" in said.said["allowed"] and "200" in said.said["allowed"]
    for name in ("path", "method"):
        assert "403" in said.said[name] and REFUSED in said.said[name], said.said[name]
    assert [one["request"] for one in net.requests()[before:]] == ["GET /repos/x?y=1 HTTP/1.1"]
    assert [(one["verdict"], one["reason"]) for one in said.network["connections"]] == [("done", None), ("refused", "request")]
    assert said.network["refused"] == 2


@pytest.mark.nightly
def test_git_clones_over_tls_that_is_ended(net, profiles):
    use = profiles.make("git", {"allow": [{"host": "git.example", "methods": ["GET", "POST"], "paths": ["/repo.git/"]}]})
    said = attack(net, """
import subprocess
done = subprocess.run(["git", "clone", "-q", "https://git.example/repo.git", "/tmp/clone"], capture_output=True, text=True)
said["clone"] = [done.returncode, done.stderr, open("/tmp/clone/README").read()]
done = subprocess.run(["git", "ls-remote", "https://git.example/other.git"], capture_output=True, text=True)
said["other"] = [done.returncode, done.stderr]
""", profile=use["profile"], env=use["env"]).said
    assert said["clone"] == [0, "", "a repository of the world\n"] and said["other"][0] != 0 and "403" in said["other"][1], said


# --- towards servers -------------------------------------------------------------------------------------

BLIND = "blind = ssl.create_default_context()\nblind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE\n"


@pytest.mark.requirement("A74")
def test_a_server_without_a_valid_certificate_is_sent_nothing(net, profiles):
    """Also when the program would take any: it is brig that sends the request."""
    hosts = ["shop.example", "cert.example", "cert.example:8443", "cert.example:8444", "unknown-ca.example"]
    use = profiles.make("certs", {"allow": [{"host": one, "methods": ["GET"]} for one in hosts]})
    before = len(net.requests())
    done = attack(net, BLIND + """
for name, port in ("shop.example", 443), ("cert.example", 443), ("cert.example", 8443), ("cert.example", 8444), ("unknown-ca.example", 443):
    told(f"{name}:{port}", lambda: page(tls(to(name, port), name, blind), f"{name}:{port}" if port != 443 else name, "/hello.txt"))
""", profile=use["profile"], env=use["env"])
    assert done.said.pop("shop.example:443").endswith("hello from the world\n")
    assert len(done.said) == 4
    for name, said in done.said.items():
        assert said.startswith("HTTP/1.1 502 ") and "has no certificate that is valid for its name" in said, (name, said)
    assert done.reasons("cert.example") == done.reasons("unknown-ca.example") == {"upstream_tls"} and done.verdicts("cert.example") == {"failed"}
    assert not [one for one in net.requests()[before:] if one["host"].startswith(("cert.", "unknown-ca."))]


@pytest.mark.nightly # ten seconds
def test_a_server_that_does_not_prove_its_name_has_seconds_for_it(net, profiles):
    use = profiles.make("mute", {"allow": [{"host": "raw.example:8444", "methods": ["GET"]}]})
    done = attack(net, """
began = time.monotonic()
told("mute", lambda: status(page(tls(to("raw.example", 8444), "raw.example"), "raw.example:8444")))
said["seconds"] = time.monotonic() - began
""", profile=use["profile"], env=use["env"])
    assert done.said["mute"] == "502" and 5 < done.said["seconds"] < 20 and done.reasons("raw.example") == {"unreachable"}, done.said


@pytest.fixture
def opened(profiles):
    """A profile for whose hosts TLS is ended, whatever the path."""
    return profiles.make("opened", {"allow": [{"host": "raw.example", "paths": ["/"]}, {"host": "shop.example", "paths": ["/"]}]})


def test_a_reply_that_is_cut_reaches_the_program_as_one_that_is_cut(net, opened):
    done = attack(net, """
def whole(path):
    with to("raw.example", 443) as sock:
        context = ssl.create_default_context()
        context.options &= ~0x80 # SSL_OP_IGNORE_UNEXPECTED_EOF, which Python sets and has no name for
        secure = context.wrap_socket(sock, server_hostname="raw.example", suppress_ragged_eofs=False)
        secure.sendall(f"GET {path} HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n".encode())
        heard = b""
        try:
            while data := secure.recv(65536):
                heard += data
        except ssl.SSLError:
            heard += b"<cut>"
        return heard
told("cut", whole, "/cut")
told("control", whole, "/chunked")
""", profile=opened["profile"], env=opened["env"])
    assert done.said["cut"].endswith("half of it<cut>"), done.said
    assert done.said["control"].endswith("0\r\n\r\n"), done.said


# --- towards programs ------------------------------------------------------------------------------------

def test_http_2_and_old_tls_are_not_spoken_where_requests_are_read(net, opened):
    said = attack(net, """
def speaks(protocols, **versions):
    context = ssl.create_default_context()
    if protocols:
        context.set_alpn_protocols(protocols)
    for name, value in versions.items():
        setattr(context, name, value)
    with tls(to("shop.example", 443), "shop.example", context) as sock:
        return [sock.selected_alpn_protocol(), sock.version(), sock.session_reused]
told("both", speaks, ["h2", "http/1.1"])
told("none", speaks, [])
told("h2 alone", speaks, ["h2"])
told("1.0", speaks, ["http/1.0"])
told("1.2", lambda: speaks(["http/1.1"], maximum_version=ssl.TLSVersion.TLSv1_2))
old = ssl.create_default_context()
old.set_ciphers("ALL:@SECLEVEL=0")
old.options &= ~(ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1)
old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
told("1.1", lambda: tls(to("shop.example", 443), "shop.example", old).version())
""", profile=opened["profile"], env=opened["env"]).said
    assert said["both"] == ["http/1.1", "TLSv1.3", False] and said["none"] == [None, "TLSv1.3", False] and said["1.2"] == ["http/1.1", "TLSv1.2", False], said
    assert said["1.0"][0] == "http/1.0" and "SSL" in said["h2 alone"] and "SSL" in said["1.1"], said


def test_no_header_makes_another_method_or_path_of_an_allowed_one(net, profiles):
    names = ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE", "X-Original-URL", "X-Original-URI", "X-Rewrite-URL",
             "X-Forwarded-Uri", "X-Forwarded-Method", "x_forwarded_uri"]
    use = profiles.make("echoes", {"allow": [{"host": "raw.example", "paths": ["/echo"]}]})
    done = attack(net, f"""
def get(headers):
    with tls(to("raw.example", 443), "raw.example") as sock:
        sock.sendall(f"GET /echo HTTP/1.1\\r\\nHost: raw.example\\r\\n{{headers}}Connection: close\\r\\n\\r\\n".encode())
        return all_of(sock)
told("names", get, "".join(name + ": /who\\r\\n" for name in {names!r}))
told("control", get, "X-Other: /who\\r\\n")
""", profile=use["profile"], env=use["env"])
    assert "200 OK" in done.said["names"] and "/who" not in done.said["names"] and "X-Other: /who" in done.said["control"], done.said


PATHS = ["/repos/../who", "/repos/%2e%2e/who", "/repos/%2E./who", "/repos/..;x/who", "/repos/..%2fwho", "/repos/..%5cwho", "/repos/..\\who", "//repos/x", "/Repos/x", "/repos", "/repository", "/%72epos/x",
         "/x/../repos/y", "/repos/./x", "/repos/%252e%252e/who", "/repos/%u002e%u002e/who", "/repos/%c0%ae%c0%ae/who", "/repos/..%20/who", "/repos/..%00", "/repos/..x/who", "/who?/repos/", "/who#/repos/", "repos/x"]


def test_no_spelling_of_a_path_leads_out_of_those_of_a_rule(net, reads):
    before = len(net.requests())
    done = attack(net, f"""
def get(path):
    with tls(to("shop.example", 443), "shop.example") as sock:
        return status(page(sock, "shop.example", path))
for path in {PATHS!r}:
    told(path, get, path)
told("control", get, "/repos/%78//.x/a..b/y?a=/../b")
""", profile=reads["profile"], env=reads["env"])
    assert done.said.pop("control") == "200", done.said
    assert len(done.said) == len(PATHS) and set(done.said.values()) <= {"400", "403"}, done.said
    assert [one["request"] for one in net.requests()[before:]] == ["GET /repos/%78//.x/a..b/y?a=/../b HTTP/1.1"]


def test_a_program_that_does_not_trust_the_ca_is_told_in_the_record(net, reads):
    done = attack(net, """
strange = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) # which trusts none
told("strange", lambda: tls(to("shop.example", 443), "shop.example", strange).version())
told("control", lambda: status(page(tls(to("shop.example", 443), "shop.example"), "shop.example", "/repos/x")))
""", profile=reads["profile"], env=reads["env"])
    assert "CERTIFICATE_VERIFY_FAILED" in done.said["strange"], done.said
    assert done.said["control"] == "200" and done.network["connections"][0]["verdict"] == "failed" and done.reasons("shop.example") == {"program_tls"}, done.network


# --- the CA ----------------------------------------------------------------------------------------------

def test_the_ca_is_for_the_hosts_of_the_rules_alone_and_its_key_is_not_in_the_jail(net, reads):
    done = attack(net, """
import re
said["trust"] = open(os.environ["SSL_CERT_FILE"]).read()
keys = []
for top in "/etc", "/tmp", "/work", "/run", "/home", "/dev/shm", "/proc/self/environ":
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and b"PRIVATE KEY" in open(path, "rb").read() and path != sys.argv[0]:
                    keys.append(path)
            except OSError:
                pass
said["keys"] = [path for path in keys if path.startswith("/etc")]
said["fds"] = sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
told("write", lambda: open(os.environ["SSL_CERT_FILE"], "a").close())
with tls(to("shop.example", 443), "shop.example") as sock:
    said["leaf"] = ssl.DER_cert_to_PEM_cert(sock.getpeercert(True))
    said["names"] = sock.getpeercert()["subjectAltName"]
""", profile=reads["profile"], env=reads["env"]).said
    assert done["keys"] == [] and not [one for one in done["fds"] if "brig-network" in one or "memfd:brig-trust" in one], done["fds"]
    assert done["write"] in ("EROFS", "EACCES", "EPERM") or "Permission" in str(done["write"]) or "Read-only" in str(done["write"]), done["write"]
    assert done["names"] == [["DNS", "shop.example"]]
    certificates = [one for one in done["trust"].split("-----BEGIN CERTIFICATE-----") if one.strip()]
    assert len(certificates) > 100, "the rootfs's own are in front"
    ca = "-----BEGIN CERTIFICATE-----" + certificates[-1]
    text = subprocess.run(["openssl", "x509", "-noout", "-text"], input=ca, capture_output=True, text=True, check=True).stdout
    assert "X509v3 Name Constraints: critical" in text and "DNS:shop.example" in text and "raw.example" not in text and "pathlen:0" in text


def make_leaf(folder, ca, name):
    """What somebody who had the key could sign."""
    (folder / "leaf.cnf").write_text(f"subjectAltName={name}\nextendedKeyUsage=serverAuth\n")
    for argv in (["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a leaf", "-keyout", "leaf.key", "-out", "leaf.csr"],
                 ["x509", "-req", "-in", "leaf.csr", "-CA", ca, "-CAkey", ca, "-CAcreateserial", "-days", "2", "-extfile", "leaf.cnf", "-out", "leaf.crt"]):
        subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=folder)
    done = subprocess.run(["openssl", "verify", "-CAfile", ca, "leaf.crt"], capture_output=True, text=True, check=False, cwd=folder)
    return done.stdout + done.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize("hosts, good, bad", [
    (["shop.example"], ["DNS:shop.example"], ["DNS:evil.example", "DNS:shop.example.evil.example", "DNS:xshop.example", "IP:93.184.216.34", "IP:::1"]),
    (["*.wild.example", "10.0.0.5"], ["DNS:a.wild.example", "IP:10.0.0.5"], ["DNS:example", "IP:10.0.0.6", "IP:::1"]),
    (["*"], ["DNS:any.example"], ["IP:10.0.0.5", "IP:::1"]),
    (["2001:db8::1"], ["IP:2001:db8::1"], ["IP:2001:db8::2", "DNS:shop.example", "IP:10.0.0.5"]),
])
def test_the_ca_cannot_sign_for_another_host(tmp_path, hosts, good, bad):
    ca = tmp_path / "ca.pem"
    ca.write_bytes(subprocess.run([host.build_dir() / "bin" / "proxy", "--make-ca", *hosts], check=True, capture_output=True).stdout)
    for name in good:
        assert make_leaf(tmp_path, ca, name) == "leaf.crt: OK\n", name
    for name in bad:
        assert "subtree violation" in make_leaf(tmp_path, ca, name), name


def test_too_many_hosts_for_one_ca_are_refused_in_a_sentence():
    done = subprocess.run([host.build_dir() / "bin" / "proxy", "--make-ca", *(f"{'a' * 60}.{n}.{'b' * 60}.example" for n in range(70))], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "do not fit" in done.stderr and "PRIVATE" not in done.stdout


def test_a_run_of_another_profile_does_not_trust_it(net, opened, profiles):
    """Each run has a CA of its own: what one serves another refuses."""
    first = attack(net, "said['ca'] = open(os.environ['SSL_CERT_FILE']).read()[-800:]", profile=opened["profile"], env=opened["env"]).said["ca"]
    second = attack(net, "said['ca'] = open(os.environ['SSL_CERT_FILE']).read()[-800:]", profile=opened["profile"], env=opened["env"]).said["ca"]
    plain = profiles.make("plain", {"allow": ["shop.example"]})
    third = attack(net, "said['variables'] = [name for name in os.environ if 'CERT' in name or 'CA_' in name]; told('page', lambda: page(tls(to('shop.example', 443), 'shop.example'), 'shop.example', '/hello.txt'))",
                   profile=plain["profile"], env=plain["env"]).said
    assert first != second and third["variables"] == [] and third["page"].endswith("hello from the world\n")


def test_no_core_and_no_line_of_a_log_has_the_key(net, reads):
    program = "import requests; print(requests.get('https://shop.example/repos/x').text); input()"
    child = net.start_brig("-p", reads["profile"], program=program, env=reads["env"], json_record=False, popen={"stdin": subprocess.PIPE})
    assert "GET /repos/x" in child.line()
    looked = 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() != "brig-proxy\n":
                continue
            said, limits = (path / "environ").read_bytes() + (path / "cmdline").read_bytes(), (path / "limits").read_text()
        except OSError: # it is another test's, and has ended
            continue
        assert re.search(r"Max core file size\s+[01]\s+[01]\s", limits) and b"PRIVATE" not in said
        looked += 1
    assert looked
    run = child.wait(input=b"\n")
    assert "PRIVATE KEY" not in run.stdout + run.stderr
