"""brig-api as an HTTP server: who is let in, what each token may do, how it is full, stops and counts."""
import base64
import json
import os
import signal
import subprocess
import threading

import pytest

from support import api as apis
from support import daemon as daemons
from support import host
from support.api import TOKEN, digest
from support.mcp_http import post

OTHER = "fedcba9876543210fedcba9876543210-of-another"
SLEEP = "import time\ntime.sleep(600)"


def fails(*args, tokens=None, tmp_path=None, mode=0o600):
    if tokens is not None:
        path = tmp_path / "tokens"
        path.write_bytes(tokens if isinstance(tokens, bytes) else tokens.encode())
        path.chmod(mode)
        args = ("--token-file", path, *args)
    done = subprocess.run([apis.binary(), "--listen", "127.0.0.1:0", *args], cwd="/", capture_output=True, text=True, timeout=host.HANG, check=False)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


def started(api, n=1):
    """n runs have begun."""
    def running():
        text = api.request("GET", "/metrics").body.decode()
        return f"brig_api_running {n}\n" in text
    host.poll(running)


class Later:
    """A request that another thread makes."""

    def __init__(self, ask, *args, **kw):
        self.thread = threading.Thread(target=self.run, args=(ask, args, kw))
        self.answer = self.error = None
        self.thread.start()

    def run(self, ask, args, kw):
        try:
            self.answer = ask(*args, **kw)
        except Exception as e: # noqa: BLE001  told by result()
            self.error = e

    def result(self):
        self.thread.join(host.HANG)
        if self.error:
            raise self.error
        return self.answer


# --- to start, or not ------------------------------------------------------------------------------------

@pytest.mark.parametrize("args, words", [
    ((), "--token-file"),
    (("--insecure-loopback", "--listen", "0.0.0.0:0"), "loopback address"),
    (("--insecure-loopback", "--listen", "nonsense"), "--listen"),
    (("--insecure-loopback", "--apis", "run_code,nonesuch"), "nonesuch"),
    (("--insecure-loopback", "--profile", "../x"), "--profile"),
    (("--insecure-loopback", "extra"), "extra"),
    (("--nonesuch",), "--nonesuch"),
])
def test_a_wrong_option_is_refused_with_status_2_and_what_to_do(built_api, args, words):
    status, said = fails(*args)
    assert status == 2 and words in said


@pytest.mark.parametrize("tokens, words", [
    ("short\n", "token"), ("", "no token"), (f"a:{'0' * 63}\n", "line 1"), (f"a:{digest(TOKEN)}\na:{digest(OTHER)}\n", "twice"), (f"a:{digest(TOKEN)} runs=0\n", "runs=N"),
    (f"a:{digest(TOKEN)} apis=x\n", "not an interface"), (f"a:{digest(TOKEN)} profile=..\n", "profile=NAME"), (f"{TOKEN}\n{OTHER}\n", "line 2"), (b"\0" * 40, "text"),
    (f"{'n' * 33}:{digest(TOKEN)}\n", "1 to 32"),
])
def test_a_wrong_token_file_is_refused_and_the_sentence_names_the_line(built_api, tmp_path, tokens, words):
    status, said = fails(tokens=tokens, tmp_path=tmp_path)
    assert status == 2 and words in said and TOKEN not in said


def test_a_token_file_that_others_may_read_is_refused(built_api, tmp_path):
    status, said = fails(tokens=TOKEN + "\n", tmp_path=tmp_path, mode=0o644)
    assert status == 1 and "chmod 600" in said


def test_check_runs_a_program_and_prints_what_is_there(built_api):
    done = subprocess.run([apis.binary(), "--insecure-loopback", "--check"], capture_output=True, text=True, timeout=host.HANG, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["client", "program", "brigd"]
    done = subprocess.run([apis.binary(), "--insecure-loopback", "--check", "--profile", "nonesuch"], capture_output=True, text=True, timeout=host.HANG, check=False)
    assert done.returncode == 1 and "nonesuch" in done.stderr


# --- who is let in -----------------------------------------------------------------------------------------

def test_health_and_the_description_need_no_token_and_all_else_does(start_api):
    api = start_api(tokens=f"# comment\n\na:{digest(TOKEN)}\n")
    assert api.ask("GET", "/healthz") == {"status": "ok"} and api.ask("GET", "/health") == {"status": "healthy"}
    for method, path in (("GET", "/metrics"), ("POST", "/run_code"), ("GET", "/sessions"), ("GET", "/languages")):
        answer = api.request(method, path, {"code": "1"} if method == "POST" else None)
        assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert api.request(method, path, {"code": "1"} if method == "POST" else None, token=OTHER).status == 401
    assert api.request("GET", "/languages", token=TOKEN).status == 200


@pytest.mark.parametrize("headers", [
    {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer  {TOKEN}"}, {"X-Auth-Token": TOKEN},
    {"Authorization": "Basic " + base64.b64encode(f"any:{TOKEN}".encode()).decode()},
], ids=["bearer", "case", "judge0", "url"])
def test_a_token_comes_in_each_way_that_a_client_can_send_it(start_api, headers):
    assert start_api(token=TOKEN).say(b"GET /languages HTTP/1.1\r\nHost: localhost\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items()) + b"\r\n")[0] == 200


@pytest.mark.sample(4)
@pytest.mark.parametrize("headers", [
    {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN} "+"x"}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Authorization": f"Bearer {digest(TOKEN)}"},
    {"Authorization": "Basic " + base64.b64encode(TOKEN.encode()).decode()}, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": "Bearer "}, {"X-Auth-Token": ""},
], ids=range(8))
def test_what_is_not_the_token_is_refused(start_api, headers):
    assert start_api(token=TOKEN).say(b"GET /languages HTTP/1.1\r\nHost: localhost\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items()) + b"\r\n")[0] == 401


def test_a_token_uses_its_interfaces_alone(start_api):
    api = start_api(tokens=f"a:{digest(TOKEN)} apis=judge0\nb:{digest(OTHER)}\n")
    assert api.request("GET", "/languages", token=TOKEN).status == 200
    assert api.request("GET", "/api/v2/runtimes", token=TOKEN).status == 403
    assert api.request("GET", "/api/v2/runtimes", token=OTHER).status == 200


def test_an_interface_that_is_not_switched_on_is_not_there(start_api):
    api = start_api("--apis", "piston")
    assert api.request("GET", "/api/v2/runtimes").status == 200
    for method, path in (("GET", "/languages"), ("GET", "/sessions"), ("GET", "/health")):
        assert api.request(method, path).status == 404
    assert api.request("POST", "/run_code", {"code": "1"}).status == 404


@pytest.mark.sample(3, "evil.example-403")
@pytest.mark.parametrize("name, status", [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]", 200), ("run.example", 200), ("evil.example", 403), ("localhost.evil.example", 403), ("", 403)])
def test_hosts_that_are_served(start_api, name, status):
    api = start_api("--allow-host", "run.example")
    assert api.say(f"GET /languages HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())[0] == status


def test_pages_of_no_origin_may_call_unless_it_is_named(start_api):
    api = start_api("--allow-origin", "https://app.example")
    answer = api.request("POST", "/run_code", {"code": "1"}, headers={"Origin": "https://evil.example"})
    assert answer.status == 403 and "access-control-allow-origin" not in answer.headers
    assert api.request("POST", "/run_code", {"code": "1"}, headers={"Origin": "null"}).status == 403
    answer = api.request("OPTIONS", "/run_code", headers={"Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
    assert answer.status == 204 and answer.headers["access-control-allow-origin"] == "https://app.example" and "authorization" in answer.headers["access-control-allow-headers"]
    assert api.request("GET", "/languages", headers={"Origin": "https://app.example"}).headers["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-origin" not in api.request("GET", "/languages").headers


@pytest.mark.parametrize("method, path, status, allow", [("GET", "/run_code", 405, "POST"), ("PUT", "/submissions", 405, "POST"), ("POST", "/submissions/x", 405, "GET, DELETE"),
                                                         ("GET", "/nonesuch", 404, None), ("GET", "/submissions/a/b", 404, None), ("GET", "/run_code/", 404, None), ("GET", "//languages", 404, None)])
def test_paths_and_methods_that_are_not_served(api, method, path, status, allow):
    answer = api.request(method, path, {} if method == "POST" else None)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)


# --- full --------------------------------------------------------------------------------------------------

def test_what_waits_too_long_is_told_to_come_again_and_never_that_its_program_failed(start_api, nothing_left):
    api = start_api("--runs", "1", "--wait", "0.2")
    first = Later(api.run_code, SLEEP, run_timeout=300)
    started(api)
    code = {"code": "print(1)"}
    answer = api.request("POST", "/run_code", code)
    assert answer.status == 504 and answer.json["brig"]["exit_reason"] == "busy" and int(answer.headers["retry-after"]) >= 1
    assert api.request("POST", "/execute", {"generated_code": "print(1)", "language": "python"}).status == 502
    for path, body in (("/api/v2/execute", {"language": "python", "version": "*", "files": [{"content": "1"}]}), ("/submissions?wait=true", {"source_code": "1", "language_id": 71})):
        answer = api.request("POST", path, body)
        assert answer.status == 503 and "retry-after" in answer.headers, path
    token = api.judge("print(1)", query="")["token"]
    host.poll(lambda: api.ask("GET", f"/submissions/{token}")["status"]["id"] == 13)
    api.stop(signal.SIGTERM), api.process.poll()
    with pytest.raises(AssertionError):
        first.result()


def test_a_queue_that_is_full_refuses_at_once(start_api):
    api = start_api("--runs", "1", "--queue", "1", "--wait", "60")
    running = [Later(api.request, "POST", "/run_code", {"code": SLEEP, "run_timeout": 300}) for _ in range(2)]

    def full():
        text = api.request("GET", "/metrics").body.decode()
        return "brig_api_running 1\n" in text and "brig_api_waiting 1\n" in text
    assert host.poll(full)
    assert api.run_code("1", 504)["brig"]["exit_reason"] == "queue"
    api.stop()
    for one in running:
        assert one.result().status == 504


def test_a_tokens_quota_is_its_own(start_api):
    api = start_api("--wait", "0.2", tokens=f"a:{digest(TOKEN)} runs=1\nb:{digest(OTHER)} per_minute=2\n")
    first = Later(api.request, "POST", "/run_code", {"code": SLEEP, "run_timeout": 300}, token=TOKEN)
    host.poll(lambda: "brig_api_running 1\n" in api.request("GET", "/metrics", token=TOKEN).body.decode())
    assert api.request("POST", "/run_code", {"code": "1"}, token=TOKEN).status == 504
    piston = {"language": "python", "version": "*", "files": [{"content": "1"}]}
    assert [api.request("POST", "/api/v2/execute", piston, token=OTHER).status for _ in range(2)] == [200, 200]
    answer = api.request("POST", "/api/v2/execute", piston, token=OTHER)
    assert answer.status == 429 and 1 <= int(answer.headers["retry-after"]) <= 31
    assert api.request("POST", "/run_code", {"code": "1"}, token=OTHER).status == 504
    api.stop()
    assert first.result().status == 504


def test_brigds_own_refusal_is_no_failure_of_the_program(start_api, service):
    api = start_api("--wait", "0.2", env=service(runs=1).env)
    first = Later(api.request, "POST", "/run_code", {"code": SLEEP, "run_timeout": 300})
    started(api)
    assert api.run_code("1", 504)["brig"]["exit_reason"] == "busy"
    api.stop()
    assert first.result().status == 504


def test_a_profile_that_is_not_there_is_no_failure_of_the_program(start_api):
    api = start_api("--profile", "nonesuch")
    assert "nonesuch" in api.run_code("1", 504)["error"]
    assert api.request("POST", "/execute", {"generated_code": "1", "language": "python"}).status == 502


def test_a_brigd_that_is_killed_is_no_failure_of_the_program(start_api, service):
    daemon = service()
    api = start_api(env=daemon.env)
    first = Later(api.request, "POST", "/run_code", {"code": SLEEP, "run_timeout": 300})
    started(api)
    daemon.kill_all()
    answer = first.result()
    assert answer.status == 504 and answer.json["brig"]["exit_reason"] in ("lost", "unavailable")


def test_the_audit_has_the_name_of_the_token_beside_the_user(start_api, service):
    with daemons.audit_log() as log:
        api = start_api(env=service(config={"audit": {"file": str(log)}}).env, tokens=f"trainer:{digest(TOKEN)}\n")
        api.run_code("1", token=TOKEN), api.execute("1", "s", token=TOKEN)
        entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["principal"] for entry in entries] == ["trainer", "trainer"] and {entry["peer_uid"] for entry in entries} == {os.geteuid()}


def test_a_session_is_new_until_its_client_had_a_result(start_api):
    api = start_api("--runs", "1", "--wait", "1")
    with api.connect() as raw:
        raw.send(post({"code": SLEEP, "run_timeout": 300}, path="/run_code"))
        started(api)
        assert api.request("POST", "/execute", {"generated_code": "x = 1"}, headers={"X-Session-ID": "s"}).status == 502
        assert "s" in api.ask("GET", "/sessions")["sessions"]
    started(api, 0)
    assert api.execute("x = 1", "s")["new_session_created"] and not api.execute("x", "s")["new_session_created"]


def test_a_submission_that_is_refused_at_once_is_answered_so(start_api):
    api = start_api(tokens=f"a:{digest(TOKEN)} per_minute=1\n")
    body = {"source_code": "1", "language_id": 71}
    assert [api.request("POST", "/submissions", body, token=TOKEN).status for _ in range(2)] == [201, 429]


def test_cells_have_their_time_whatever_they_waited_for(start_api):
    api = start_api("--runs", "1")
    first = Later(api.run_code, "import time\ntime.sleep(3)")
    started(api)
    assert api.jupyter("import time\ntime.sleep(0.3)", "2", total_timeout=2)["status"] == "Success"
    assert first.result()["status"] == "Success"


# --- stopping ----------------------------------------------------------------------------------------------

def test_a_stop_answers_what_is_under_way_and_refuses_what_is_new(start_api, nothing_left):
    api = start_api("--drain", "60")
    first = Later(api.run_code, "import time\ntime.sleep(1)\nprint(1)")
    started(api)
    with api.connect() as raw, api.connect() as health:
        api.process.send_signal(signal.SIGTERM)

        def stopping():
            health.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return health.reply()[0] == 503
        host.poll(stopping)
        raw.send(post({"code": "1"}, path="/run_code"))
        status, _, body = raw.reply()
        assert status == 504 and json.loads(body)["brig"]["exit_reason"] == "stopping"
        assert first.result()["run_result"]["stdout"] == "1\n"
    assert api.process.wait(host.HANG) == 0


def test_a_stop_gives_runs_no_more_than_its_time(start_api, nothing_left):
    api = start_api("--drain", "0.3")
    first = Later(api.request, "POST", "/run_code", {"code": SLEEP, "run_timeout": 300})
    started(api)
    assert api.stop() == 0
    assert first.result().status == 504 and first.result().json["brig"]["exit_reason"] == "stopping"


def test_a_client_that_goes_away_ends_its_run(start_api, nothing_left):
    api = start_api()
    with api.connect() as raw:
        raw.send(post({"code": SLEEP, "run_timeout": 300}, path="/run_code"))
        started(api)
    started(api, 0)


def test_the_figures_count_runs_and_refusals(start_api):
    api = start_api()
    api.run_code("1"), api.run_code("1"), api.piston("raise SystemExit(1)"), api.run_code("1", language="x", status=400)
    text = api.request("GET", "/metrics").body.decode()
    assert 'brig_api_runs_total{interface="run_code",exit_reason="exited"} 2\n' in text and 'interface="piston",exit_reason="exited"} 1\n' in text
    assert 'brig_api_refused_total{code="bad_field"} 1\n' in text and "brig_api_running 0\n" in text
