"""A secret that the program never sees: it reaches its one host over TLS, and comes back in no reply, file, memory or record."""
import json
import os
import pathlib
import pwd
import re
import shutil

import pytest

from attack import PRELUDE, attack
from support import daemon as daemons
from support import host
from test_attacks import SMUGGLES

VALUE = "sesame-4f9c1e7b2a"
PLACEHOLDER = "brig-secret-TEST_TOKEN"
SECRETS = {"TEST_TOKEN": {"from": {"env": "TEST_TOKEN"}, "host": "raw.example", "header": "Authorization: Bearer {}"}}
HOSTS = ["raw.example", "raw.example:8443", "shop.example"]
STARS = "*" * len(VALUE)
HEAD = "Host: raw.example\\r\\nConnection: close\\r\\n"


@pytest.fixture
def secret(profiles):
    made = profiles.make("secret", {"allow": HOSTS, "secrets": SECRETS})
    return {"profile": made["profile"], "env": {**made["env"], "TEST_TOKEN": VALUE}}


SAY = """
def say(host, text, port=443):
    with tls(to(host, port), host) as sock:
        sock.sendall(text.encode("latin-1"))
        return all_of(sock)
"""


def with_secret(net, secret, program, *rules):
    return attack(net, SAY + program, *rules, **secret)


def heard(net, before, where="raw https"):
    return [one["data"] for one in net.seen()[before:] if one["at"] == where]


def sent_values(data):
    return re.findall(r"(?im)^authorization: *(.*?)\r?$", data)


def must_not_know(run):
    for text in (run.stdout, run.stderr, json.dumps(run.record)):
        assert VALUE not in text


# --- the way there ---------------------------------------------------------------------------------------

@pytest.mark.sample(2)
@pytest.mark.requirement("A74")
@pytest.mark.parametrize("client", ["requests", "httpx", "urllib.request", "curl"])
def test_the_token_reaches_its_server_and_the_program_has_a_placeholder(net, secret, client):
    get = {"requests": "requests.get(url, headers=headers).text", "httpx": "httpx.get(url, headers=headers).text",
           "urllib.request": "urllib.request.urlopen(urllib.request.Request(url, headers=headers)).read().decode()",
           "curl": "subprocess.run(['curl', '-sS', *(word for name in headers for word in ('-H', f'{name}: {headers[name]}')), url], capture_output=True, text=True).stdout"}[client]
    before = len(net.seen())
    done = with_secret(net, secret, f"""
import {client.replace("curl", "subprocess")}
said["variable"] = os.environ["TEST_TOKEN"]
url, headers = "https://raw.example/echo", {{"Authorization": "Bearer " + os.environ["TEST_TOKEN"], "X-Other": "stays", "Accept-Encoding": "gzip"}}
said["echo"] = {get}
""")
    assert done.said["variable"] == PLACEHOLDER
    assert host.poll(lambda: heard(net, before))
    data, = heard(net, before)
    assert sent_values(data) == [f"Bearer {VALUE}"] and PLACEHOLDER not in data and "x-other: stays" in data.lower()
    assert re.findall(r"(?im)^accept-encoding: *(.*?)\r?$", data) == ["identity"]
    assert sent_values(done.said["echo"].replace("\n", "\r\n").replace("\r\r", "\r")) == [f"Bearer {STARS}"], "the control: the server did repeat it"
    must_not_know(done.run)
    connection, = done.network["connections"]
    assert connection["name"] == "raw.example" and connection["verdict"] in ("done", "open") and connection["secret"] is True, connection


SPELLINGS = ["authorization: guess", "AUTHORIZATION: guess", "Authorization:guess", "Authorization: a\r\nAuthorization: b", "Connection: authorization\r\nAuthorization: guess"]


def test_a_header_of_the_programs_own_is_replaced_in_every_spelling(net, secret):
    before = len(net.seen())
    done = with_secret(net, secret, f"""
for name in {SPELLINGS!r}:
    told(name, lambda: status(say("raw.example", "GET /echo HTTP/1.1\\r\\n{HEAD}" + name + "\\r\\n\\r\\n")))
told("folded", lambda: status(say("raw.example", "GET /echo HTTP/1.1\\r\\n{HEAD}Authorization: guess\\r\\n more\\r\\n\\r\\n")))
told("blank", lambda: status(say("raw.example", "GET /echo HTTP/1.1\\r\\n{HEAD}Authorization : guess\\r\\n\\r\\n")))
""")
    assert {done.said[name] for name in SPELLINGS} == {"200"} and done.said["folded"] == done.said["blank"] == "400", done.said
    assert host.poll(lambda: len(heard(net, before)) == len(SPELLINGS))
    for data in heard(net, before):
        assert sent_values(data) == [f"Bearer {VALUE}"] and "guess" not in data.lower()


def test_it_goes_to_exactly_one_host_port_and_scheme(net, secret):
    before, answered = len(net.seen()), len(net.requests())
    done = with_secret(net, secret, f"""
get = "GET /who HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\nAuthorization: Bearer mine\\r\\n\\r\\n"
told("right", lambda: status(say("raw.example", get % "raw.example")))
told("other port", lambda: status(say("raw.example", get % "raw.example:8443", 8443)))
told("other host", lambda: status(say("shop.example", get % "shop.example")))
with to("raw.example", 80) as sock:
    sock.sendall((get % "raw.example").encode())
    said["other scheme"] = status(all_of(sock))
told("by the proxy", lambda: status(proxy((get % "raw.example").replace("/who", "http://raw.example/who").encode())))
""")
    assert set(done.said.values()) == {"200"}, done.said
    assert host.poll(lambda: len(net.seen()[before:]) == 4)
    assert sent_values(heard(net, before)[0]) == [f"Bearer {VALUE}"]
    assert [sent_values(data) for where in ("raw https 8443", "raw http", "raw http") for data in heard(net, before, where)[:1]] == [["Bearer mine"]] * 3
    assert [one["authorization"] for one in net.requests()[answered:]] == ["Bearer mine"]
    assert VALUE not in "".join(heard(net, before, "raw http") + heard(net, before, "raw https 8443"))


def test_methods_that_make_a_server_repeat_requests_are_refused(net, secret):
    before = len(net.seen())
    done = with_secret(net, secret, f"""
for method in "GET", "TRACE", "OPTIONS", "trace", "Options", "TRACK", "CONNECT":
    told(method, lambda: status(say("raw.example", method + " /echo HTTP/1.1\\r\\n{HEAD}\\r\\n")))
told("asterisk", lambda: status(say("raw.example", "OPTIONS * HTTP/1.1\\r\\n{HEAD}\\r\\n")))
""")
    assert done.said.pop("GET") == "200", done.said
    assert set(done.said.values()) <= {"403", "400"}, done.said
    assert host.poll(lambda: heard(net, before))
    assert not [data for data in heard(net, before) if not data.startswith("GET ")]


def test_a_redirect_leads_the_program_and_not_the_token(net, secret):
    before, answered = len(net.seen()), len(net.requests())
    done = with_secret(net, secret, """
import requests
first = requests.get("https://raw.example/redirect", allow_redirects=False)
said["first"] = [first.status_code, first.headers["Location"]]
told("followed", lambda: requests.get("https://raw.example/redirect", headers={"Authorization": "Bearer " + os.environ["TEST_TOKEN"]}).status_code)
told("by hand", lambda: requests.get("https://shop.example/who", headers={"Authorization": "Bearer " + os.environ["TEST_TOKEN"]}).text)
""")
    assert done.said["first"] == [302, "https://evil.example/who"] and "evil.example is not on the list" in str(done.said["followed"]), done.said
    assert PLACEHOLDER in done.said["by hand"]
    assert not [one for one in net.requests()[answered:] if one["host"] == "evil.example" or VALUE in one["authorization"]]
    assert host.poll(lambda: len(heard(net, before)) == 2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("call", ["recvfrom", "sendto", "epoll_wait"])
def test_a_request_is_sent_whichever_call_the_servers_answer_meets(net, profiles, call):
    """Once a run waited for its end: the last bytes of the handshake (TLS 1.2) came between two reads, and the second knew of no request."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    made = profiles.make("secret", {"allow": ["shop.example"], "secrets": {"TEST_TOKEN": {**SECRETS["TEST_TOKEN"], "host": "shop.example"}}})
    late = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:delay_exit=10000"]
    done = attack(net, """
for n in range(4):
    told(str(n), lambda: page(tls(to("shop.example", 443), "shop.example"), "shop.example"))
""", **{**made, "env": {**made["env"], "TEST_TOKEN": VALUE}}, through=late)
    assert [f"authorization Bearer {STARS}" in answer for answer in done.said.values()] == [True] * 4, done.said


# --- the way back ----------------------------------------------------------------------------------------

def test_no_reply_repeats_it_however_it_is_divided(net, secret):
    done = with_secret(net, secret, f"""
import requests
for path in "echo", "dribble", "split":
    reply = requests.get("https://raw.example/" + path)
    said[path] = [reply.text, dict(reply.headers)]
for n in range(10): # wherever the server's pieces end
    reply = requests.get("https://raw.example/dribble", headers={{"X-Long": "x" * n * 389}})
    said["long"] = said.get("long", 0) + reply.text.count({STARS!r})
told("range", lambda: say("raw.example", "GET /echo HTTP/1.1\\r\\n{HEAD}Range: bytes=0-40\\r\\nIf-Range: x\\r\\n\\r\\n"))
""")
    for path in ("echo", "dribble", "split"):
        assert f"authorization: Bearer {STARS}" in done.said[path][0], done.said[path]
    assert done.said["dribble"][1]["X-Echo"] == f"authorization: Bearer {STARS}" and done.said["long"] == 10
    assert "200 OK" in done.said["range"] and "ange: " not in done.said["range"]
    must_not_know(done.run)


@pytest.mark.parametrize("path", ["lf-only", "folded", "odd-coding", "part", "coded"])
def test_a_reply_in_which_a_secret_could_not_be_found_is_a_502(net, secret, path):
    """A head that brig-proxy and the program understand in two ways showed the program the secret in chunks."""
    done = with_secret(net, secret, f"""
told("reply", lambda: say("raw.example", "GET /{path} HTTP/1.1\\r\\n{HEAD}\\r\\n"))
""")
    assert done.said["reply"].startswith("HTTP/1.1 502 ") and done.reasons("raw.example") == {"bad_reply"}, done.said
    must_not_know(done.run)


def test_a_websocket_shows_no_secret_however_small_its_pieces_are(net, secret):
    done = with_secret(net, secret, f"""
ask = "GET /websocket HTTP/1.1\\r\\nHost: raw.example\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n"
heard = said["reply"] = say("raw.example", ask).decode("latin-1")
""")
    assert done.said["reply"].startswith("HTTP/1.1 101 ") and "<end>" in done.said["reply"] and not re.search("[a-z0-9]{4}-[a-z0-9]|sesa", done.said["reply"]), done.said
    must_not_know(done.run)


def test_the_end_of_a_reply_does_not_tell_how_much_of_a_secret_it_is_like(net, secret):
    """A program that chooses the end of a reply tried one character after the other: asterisks said that it had found one."""
    guesses = [VALUE[:n] + rest for n in (1, 4, 9) for rest in (VALUE[n], "~")] + [VALUE[:-1], VALUE[:-2] + "~"]
    done = with_secret(net, secret, f"""
import requests
for path in "ends", "ends-in-chunks":
    for guess in {guesses!r}:
        said[path + "?" + guess] = requests.get("https://raw.example/" + path + "?" + guess).text
""")
    assert len(done.said) == 2 * len(guesses)
    for asked, answer in done.said.items():
        assert answer == asked.partition("?")[2], (asked, answer)
    must_not_know(done.run)


def test_it_is_nowhere_in_the_jail(net, secret):
    """In no environment, command line, memory or file, while the proxy uses it. The program knows the text backwards, so as to have it in no place itself."""
    done = with_secret(net, secret, f"""
import requests, re
wanted, control = {VALUE[::-1]!r}.encode(), {PLACEHOLDER[::-1]!r}.encode()
for path in "echo", "dribble":
    requests.get("https://raw.example/" + path)
found, looked = dict(wanted=[], control=[]), 0
def look(where, data):
    for name in found:
        if globals()[name] in data[::-1]:
            found[name].append(where)
for entry in os.listdir("/proc"):
    for name in "environ", "cmdline", "maps":
        try:
            look(f"/proc/{{entry}}/{{name}}", open(f"/proc/{{entry}}/{{name}}", "rb").read())
        except OSError:
            pass
memory, regions = open("/proc/self/mem", "rb", 0), open("/proc/self/maps").read()
for first, last, name in re.findall(r"^(\\w+)-(\\w+) rw\\S* \\S+ \\S+ \\d+ *(.*)$", regions, re.M):
    try:
        memory.seek(int(first, 16))
        look("memory " + name, memory.read(int(last, 16) - int(first, 16)))
        looked += 1
    except (OSError, ValueError):
        pass
for top in "/etc", "/tmp", "/work", "/home", "/run", "/dev/shm", "/var", "/root":
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path):
                    look(path, open(path, "rb").read())
            except OSError:
                pass
said.update(found=found, looked=looked, fds=os.listdir("/proc/self/fd"))
""")
    assert done.said["found"]["wanted"] == [], done.said["found"]
    assert any("environ" in where for where in done.said["found"]["control"]) and any(where.startswith("memory") for where in done.said["found"]["control"]), done.said
    assert done.said["looked"] > 5


# --- what else a program could try -------------------------------------------------------------------------

@pytest.mark.nightly
@pytest.mark.row("G8")
def test_no_request_is_hidden_in_another_inside_of_tls(net, secret):
    before = len(net.seen())
    texts = {name: text.replace("H\r\n", "raw.example\r\n").replace("Host: H\n", "Host: raw.example\n") for name, text in SMUGGLES.items()}
    texts["absolute to another"] = "GET https://evil.example/SMUGGLED HTTP/1.1\r\nHost: raw.example\r\n\r\n"
    texts["absolute over HTTP"] = "GET http://raw.example/SMUGGLED HTTP/1.1\r\nHost: raw.example\r\n\r\n"
    texts["another host"] = "GET /SMUGGLED HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    texts["another port"] = "GET /SMUGGLED HTTP/1.1\r\nHost: raw.example:8443\r\n\r\n"
    done = with_secret(net, secret, f"""
for name, text in {texts!r}.items():
    told(name, lambda: status(say("raw.example", text)))
told("control", lambda: status(say("raw.example", "GET /control HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n")))
""")
    assert done.said.pop("control") == "200", done.said
    assert host.poll(lambda: [data for data in heard(net, before) if data.startswith("GET /control ")])
    assert not [data for data in heard(net, before) if "SMUGGLED" in data.split("\r\n")[0]]
    assert not [data for data in heard(net, before) if data and data.count(VALUE) != 1] # an empty one: a connection that was given up before its request
    good = {name for name, word in done.said.items() if word == "200"}
    assert good <= {"pipelined", "pipelined to another", "a websocket that the server does not agree to", "upgrade to h2c"}, good


@pytest.mark.row("G8")
def test_a_pipelined_request_goes_nowhere(net, secret):
    before = len(net.seen())
    done = with_secret(net, secret, """
told("both", lambda: say("raw.example", "POST /echo HTTP/1.1\\r\\nHost: raw.example\\r\\nContent-Length: 5\\r\\n\\r\\nhelloGET /second HTTP/1.1\\r\\nHost: raw.example\\r\\n\\r\\n"))
""")
    assert done.said["both"].count("HTTP/1.1 200 OK") == 1
    assert host.poll(lambda: heard(net, before))
    data, = heard(net, before)
    assert data.startswith("POST /echo ") and data.partition("\r\n\r\n")[2] in ("", "hello") # the server answers before it has read that


@pytest.mark.row("G7")
def test_a_name_that_leads_inside_gets_no_token(net, profiles):
    names = ("private.example", "metadata.example", "own.example")
    secrets = {f"T{n}": {**SECRETS["TEST_TOKEN"], "host": name} for n, name in enumerate(names)}
    before = len(net.requests())
    use = profiles.make("inside", {"allow": [*names, "raw.example"], "secrets": {**secrets, **SECRETS}})
    done = attack(net, SAY + """
for name in "private.example", "metadata.example", "own.example", "raw.example":
    told(name, lambda: status(say(name, f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n")))
""", profile=use["profile"], env={**use["env"], "TEST_TOKEN": VALUE})
    assert done.said.pop("raw.example") == "200" and "200" not in done.said.values(), done.said
    assert done.reasons("private.example") == done.reasons("metadata.example") == {"not_public"} and done.reasons("own.example") == {"own_address"}
    assert not [one for one in net.requests()[before:] if VALUE in one["authorization"]]


# --- where it comes from ---------------------------------------------------------------------------------

def test_a_secret_that_is_not_there_is_told_by_its_name_before_anything_runs(net, secret):
    run = net.brig("-p", "secret", program="print(1)", env={**secret["env"], "TEST_TOKEN": None})
    assert run.status != 0 and "TEST_TOKEN" in run.stderr and "1" not in run.stdout.split(), str(run)


@pytest.fixture(scope="module")
def service(net, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    host.open_way(folder)
    for policy in (host.REPO / "profiles").glob("*.policy"):
        shutil.copy(policy, folder)
    token = folder / "token"
    token.write_text(VALUE + "\n")
    token.chmod(0o400)
    basic = {"rootfs": "network", "policy": "python", "warm": "ready"}
    made = {"secret": {"allow": HOSTS, "secrets": {"TEST_TOKEN": {**SECRETS["TEST_TOKEN"], "from": {"file": str(token)}}}}, "other": {"allow": ["raw.example", "shop.example"]}}
    for name, network in made.items():
        (folder / f"{name}.json").write_text(json.dumps({**basic, "network": network}))
    for one in folder.glob("*.json"):
        one.chmod(0o644)
    audit = folder / "audit" / "audit.log"
    audit.parent.mkdir(mode=0o700)
    for one in (token, audit.parent): # of the server, which reads the one and writes in the other
        os.chown(one, pwd.getpwnam("_brig-door").pw_uid if daemons.has_account("_brig-door") else daemons.ACCOUNTS["_brig-door"], 0)
    with net.daemon({"ready": 1, "audit": {"file": str(audit)}}, env={"BRIG_PROFILES": str(folder)}) as daemon:
        daemon.audit = audit
        yield daemon


FETCH = PRELUDE + SAY + """
import requests
said["variable"] = os.environ.get("TEST_TOKEN")
told("echo", lambda: requests.get("https://raw.example/echo").text)
print(json.dumps(said))
"""


@pytest.mark.requirement("A74")
@pytest.mark.parametrize("cold", [False, True])
def test_a_service_gives_its_secret_to_the_server_and_to_no_run(net, service, cold):
    before = len(net.seen())
    ran = service.run(FETCH, profile="secret", cold=cold)
    said = json.loads(ran.stdout)
    assert said["variable"] == PLACEHOLDER and f"Bearer {STARS}" in said["echo"], said
    assert host.poll(lambda: heard(net, before))
    assert sent_values(heard(net, before)[0]) == [f"Bearer {VALUE}"]
    assert [one["secret"] for one in ran.record["network"]["connections"]] == [True]
    assert VALUE not in json.dumps(ran.record) + service.words() + host.read(service.audit)
    assert "raw.example" in host.read(service.audit)


def test_a_profile_without_the_secret_gets_neither_value_nor_placeholder(net, service):
    before = len(net.seen())
    said = json.loads(service.run(FETCH, profile="other").stdout)
    assert said["variable"] is None and "uthorization" not in said["echo"] and "GET /echo" in said["echo"], said
    assert host.poll(lambda: heard(net, before)) and sent_values(heard(net, before)[0]) == []


def test_the_value_is_in_no_process_that_meets_programs(net, service):
    """In the reader that reads it, and in brig-proxy, which needs it: environment and command line of none, also as root sees them."""
    with service.connect() as talk:
        going = talk.start(FETCH + "input()\n", profile="secret", stdin=True)
        assert PLACEHOLDER in going.line()
        for name in ("environ", "cmdline"):
            for path in pathlib.Path("/proc").glob(f"[0-9]*/{name}"):
                try:
                    assert VALUE.encode() not in path.read_bytes(), path
                except OSError:
                    continue
        going.feed(b"\n")
        going.finish()
