"""What brig-mcp makes of a brigd that is slow, mad or gone: looked at without a jail."""
import contextlib
import itertools
import os
import socket
import threading
import time

import pytest

from support import fake_server, host
from support import mcp as mcp_client

LIMITS = {"wall_ms": 30000, "cpu_ms": 30000, "memory_bytes": 1 << 28, "pids": 64, "cpus": 1.0, "output_bytes": 1 << 20, "tmp_bytes": 1 << 26,
          "workspace_bytes": 1 << 28, "inodes": 10000, "files": 256}
CEILINGS = {**LIMITS, "wall_ms": 300000, "cpu_ms": 300000, "memory_bytes": 1 << 30}
EXPLAINED = {"reply": "explain", "profile": "basic", "rootfs": "basic", "policy": "python", "limits": LIMITS, "ceilings": CEILINGS,
             "quota": {"runs": None, "memory_bytes": None, "runs_per_minute": None, "sessions": None, "contexts": 16}, "filter_sha256": None, "modules": ["math"], "calls": [],
             "packages": [{"name": "python3", "version": "3.11.2-1+b1"}]}


@contextlib.contextmanager
def served(script, *args, **explained):
    """A server of MCP in front of a server that explains, and then does what the script says: script(connection, the request)."""
    def serve(connection):
        while True:
            request = connection.receive()
            if request is None:
                return
            if request["op"] == "explain":
                connection.send({**EXPLAINED, **explained, "tag": request["tag"]})
            elif script(connection, request) == "end":
                return
    with fake_server.server(serve) as env, mcp_client.McpStdio(*args, env=env) as mcp:
        yield mcp


def start(connection, request, *more):
    connection.start("result", *more, tag=request["tag"])


def end(connection, request, **record):
    for name in ("stdout", "stderr", "result"):
        if name in connection.pipes:
            os.close(connection.pipes.pop(name))
    connection.send({**fake_server.ended(**record), "tag": request["tag"]})


def test_what_is_asked_for_is_what_was_said():
    asked = []

    def script(connection, request):
        asked.append(request)
        start(connection, request, "stdin")
        end(connection, request)
    with served(script) as mcp:
        mcp.execute("1", timeout=60, memory_limit="512m", args=["a"], env={"K": "v"}, stdin="x", allowed_imports=["json"])
        mcp.execute("1")
    first, second = asked
    assert (first["mode"], first["profile"], first["args"], first["env"], first["stdin"], first["imports"]) == ("report", "basic", ["a"], ["K=v"], True, ["json"])
    assert first["limits"] == {"wall_ms": 60000, "cpu_ms": 60000, "memory_bytes": 512 << 20, "output_bytes": 1 << 20}
    assert second["limits"] == {"wall_ms": 30000, "cpu_ms": 30000, "output_bytes": 1 << 20}, "what nobody asked for need not be held"
    assert not {"imports", "args", "env", "stdin"} & set(second)


@pytest.mark.parametrize("code, field, words, reason", [
    ("denied", "env[0]", "env: K: no", "denied"), ("above_ceiling", "limits.wall_ms", "timeout: no", "denied"), ("missing", None, "no", "setup_failed"),
    ("unavailable", None, "no", "setup_failed"), ("broken", None, "no", "setup_failed"), ("bad_field", "imports[1]", "allowed_imports: no", "denied")])
def test_a_refusal_names_the_argument(code, field, words, reason):
    def script(connection, request):
        connection.send({**fake_server.refusal(code, "no", field), "tag": request["tag"]})
    with served(script) as mcp:
        result = mcp.call("execute_code", {"code": "1", "env": {"K": "v"}})
        said = mcp_client.data_of(result)
    assert said["error"] == words and said["exit_reason"] == reason and result["isError"] is True


def waiting(tag):
    return {"event": "waiting", "run": fake_server.STARTED["run"], "tag": tag, "why": "8 runs at once: your quota is used up"}


def test_a_program_waits_for_a_place_for_a_minute():
    asked = []

    def script(connection, request):
        asked.append(request["wait_ms"])
        connection.send(waiting(request["tag"]))
        start(connection, request)
        end(connection, request)
    with served(script) as mcp:
        assert mcp.execute("1")["exit_reason"] == "exited"
    assert asked == [60000]


def test_a_program_for_which_no_place_became_free_says_so():
    def script(connection, request):
        connection.send({**fake_server.refusal("busy", "waited too long: 8 runs at once", retry_after_ms=100), "tag": request["tag"]})
    with served(script) as mcp:
        said = mcp.execute("1")
    assert said["exit_reason"] == "busy" and "waited too long" in said["error"], said


def test_a_run_that_waits_for_a_place_can_be_cancelled_and_yields():
    told, answered, cancelled = threading.Event(), threading.Semaphore(0), []

    def script(connection, request):
        if request["op"] == "cancel":
            cancelled.append(request["run"])
            connection.send({**fake_server.refusal("busy", "cancelled while it waited"), "tag": tags[-1]})
            answered.release()
            return
        tags.append(request["tag"])
        connection.send(waiting(request["tag"]))
        told.set()
    tags = []
    with served(script, "--yield-after", "0.3", "--progress", "0.25") as mcp:
        said = mcp.execute("1")
        assert said["exit_reason"] == "running" and said["execution_id"]
        ended = mcp.data("cancel_execution", {"execution_id": said["execution_id"]})
        assert ended["exit_reason"] == "cancelled" and ended["execution_id"] == said["execution_id"]
        told.clear()
        asked = mcp.begin_call("execute_code", {"code": "1"}, token=1)
        assert told.wait(host.HANG)
        asked.cancel()
        assert set(mcp.list_tools())
        for _ in range(2): # else the server writes to a server that has gone
            assert answered.acquire(timeout=host.HANG)
    assert cancelled[0] == fake_server.STARTED["run"]


def test_a_run_that_is_cancelled_before_it_hears_that_there_is_no_place_is_cancelled():
    cancelled = threading.Event()

    def script(connection, request):
        assert cancelled.wait(host.HANG)
        connection.send({**fake_server.refusal("busy", "all places are taken", retry_after_ms=50), "tag": request["tag"]})
    with served(script, "--yield-after", "0.05") as mcp:
        said = mcp.execute("1")
        asked = mcp.begin_call("cancel_execution", {"execution_id": said["execution_id"]})
        assert set(mcp.list_tools()) # what was sent before has been read
        cancelled.set()
        assert mcp_client.data_of(asked.result())["exit_reason"] == "cancelled"


def test_cancel_is_sent_as_soon_as_the_run_has_started():
    cancelled, asked, go = [], threading.Event(), threading.Event()

    def script(connection, request):
        if request["op"] == "cancel":
            cancelled.append(request)
            return "end"
        asked.set()
        assert go.wait(host.HANG)
        start(connection, request)
        return None
    with served(script) as mcp:
        call = mcp.begin_call("execute_code", {"code": "1"})
        assert asked.wait(host.HANG)
        call.cancel()
        assert mcp.list_tools() # the cancel was read
        go.set()
        assert host.poll(lambda: cancelled)
    assert [{key: value for key, value in one.items() if key != "tag"} for one in cancelled] == [{"op": "cancel", "run": fake_server.STARTED["run"], "reason": "cancelled"}]


MADNESS = {
    "garbage": lambda connection, request: connection.send(b"}{"),
    "no-object": lambda connection, request: connection.send(b"[1]"),
    "unknown-event": lambda connection, request: connection.send({"event": "exploded", "run": "x", "tag": request["tag"]}),
    "no-descriptors": lambda connection, request: connection.send({**fake_server.STARTED, "tag": request["tag"]}),
    "no-record": lambda connection, request: connection.send({"event": "ended", "run": "x", "tag": request["tag"]}),
    "too-deep": lambda connection, request: connection.send(b"[" * 60000),
}


@pytest.mark.parametrize("name", MADNESS)
def test_a_brigd_that_says_what_it_may_not_is_hung_up_on(name):
    with served(MADNESS[name]) as mcp:
        result = mcp.call("execute_code", {"code": "1"})
        said = mcp_client.data_of(result)
        assert result["isError"] is True and said["success"] is False and "brigd broke the protocol" in said["error"], said["error"]
        assert mcp.list_tools()


def test_answers_to_nobody_are_dropped():
    def script(connection, request):
        connection.send({**fake_server.ended(), "tag": 999999})
        reading, writing = os.pipe()
        connection.send({**fake_server.STARTED, "tag": 888888}, [reading, writing])
        os.close(reading)
        os.close(writing)
        start(connection, request)
        start(connection, request) # a second start of the same run
        end(connection, request)
    with served(script) as mcp:
        assert mcp.execute("1")["exit_reason"] == "exited"


def test_an_end_without_a_start_is_told():
    def script(connection, request):
        connection.send({**fake_server.ended(exit_reason="setup_failed", exit_code=None, error={
            "type": "SETUP", "message": "set-up step seccomp: no", "traceback": None, "line": None, "offset": None}), "tag": request["tag"]})
    with served(script) as mcp:
        result = mcp.call("execute_code", {"code": "1", "detail": True})
        said = mcp_client.data_of(result)
    assert result["isError"] is True and said["error"] == "set-up step seccomp: no" and said["exit_reason"] == "setup_failed" and said["error_type"] is None


def test_an_end_without_a_start_does_not_count_for_another_that_runs(tmp_path):
    def script(connection):
        n = 0
        while request := connection.receive():
            if request["op"] == "explain":
                connection.send({**EXPLAINED, "tag": request["tag"]})
            elif request["op"] == "run":
                n += 1
                if n == 1:
                    start(connection, request)
                else:
                    connection.send({**fake_server.ended(exit_reason="setup_failed", exit_code=None), "tag": request["tag"]})
    with servers(tmp_path, script) as env, mcp_client.HttpServer(env=env) as server:
        client = server.client()
        client.begin_call("execute_code", {"code": "1"})
        assert host.poll(lambda: b"brig_mcp_running 1" in client.raw(own=True, method="GET", path="/metrics")[2])
        client.execute("2")
        assert b"brig_mcp_running 1\n" in client.raw(own=True, method="GET", path="/metrics")[2]


def test_the_last_word_of_a_brigd_that_cannot_serve_is_told():
    def script(connection, request):
        connection.send(fake_server.refusal("broken", "set-up step start-brigd: no control groups"))
        return "end"
    with served(script) as mcp:
        said = mcp.execute("1")
    assert said["error"] == "set-up step start-brigd: no control groups" and said["exit_reason"] == "setup_failed"


def test_a_brigd_that_goes_in_the_middle_of_a_run():
    def script(connection, request):
        start(connection, request)
        os.write(connection.pipes["stdout"], b"so far\n")
        return "end"
    with served(script) as mcp:
        result = mcp.call("execute_code", {"code": "1"})
        said = mcp_client.data_of(result)
    assert result["isError"] is True and said["exit_reason"] == "cancelled" and said["stdout"] == "so far\n" and "brigd was killed" in said["error"]
    assert said["execution_id"] == fake_server.STARTED["run"]


def test_a_stream_that_somebody_keeps_open_does_not_delay_the_end():
    def script(connection, request):
        start(connection, request)
        os.write(connection.pipes["stdout"], b"all\n")
        connection.send({**fake_server.ended(), "tag": request["tag"]}) # the pipes stay open
    with served(script) as mcp:
        assert mcp.execute("1")["stdout"] == "all\n"


def test_a_service_that_lets_nobody_in_is_told_soon(tmp_path, start_mcp):
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        listening.bind(str(tmp_path / "brig.sock"))
        listening.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True: # fills its line
                one = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
                one.connect(str(tmp_path / "brig.sock"))
        mcp = start_mcp(env={"BRIG_SOCKET": str(tmp_path / "brig.sock")})
        began = time.monotonic()
        result = mcp.call("execute_code", {"code": "1"})
        patience = time.monotonic() - began
        said = mcp_client.data_of(result)
        assert result["isError"] is True and said["exit_reason"] == "setup_failed" and "accepts no connection" in said["error"]
        began = time.monotonic()
        asked = [mcp.begin_call("execute_code", {"code": "1"}) for _ in range(20)]
        assert all(one.result()["isError"] for one in asked) and time.monotonic() - began < 10 * patience # not 20 times that
        assert mcp.list_tools()


REPORT = b'{"result":%s,"result_repr":null,"error":null,"variables":[],"exit_code":0,"security_event":null,"security_warnings":[]}'


@pytest.mark.parametrize("report, result", [(REPORT % b"[1,2]", [1, 2]), (REPORT % b"[1,2]" + b"x", None), (REPORT % (b'"' + b"x" * 2000000 + b'"'), None), (b"", None),
                                            (REPORT % (b"[" * 40 + b"]" * 40), None)])
def test_a_report_is_checked(report, result):
    def script(connection, request):
        start(connection, request)
        sent = memoryview(report)
        while sent:
            sent = sent[os.write(connection.pipes["result"], sent):]
        end(connection, request)
    with served(script) as mcp:
        said = mcp.execute("1")
    assert said["result"] == result and said["exit_reason"] == "exited"
    assert (said["security_warnings"] is not None) == (result is None and report != b""), said["security_warnings"]


def test_an_event_is_no_answer_to_a_question():
    def script(connection):
        request = connection.receive()
        connection.start("result", tag=request["tag"])
        connection.receive()
    with fake_server.server(script) as env, mcp_client.McpStdio(env=env) as mcp:
        said = mcp.execute("1")
    assert said["exit_reason"] == "setup_failed" and "brigd" in said["error"]


@contextlib.contextmanager
def servers(folder, *scripts):
    """A service that serves one connection after another, each by its own script(connection)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(folder / "brig.sock"))
        listening.listen()
        listening.settimeout(host.HANG)

        def serve():
            for script in scripts:
                sock, _ = listening.accept()
                sock.settimeout(host.HANG)
                connection = fake_server.Connection(sock)
                try:
                    script(connection)
                finally:
                    connection.close()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield {"BRIG_SOCKET": str(folder / "brig.sock")}
        thread.join(host.HANG)


def test_what_was_not_sent_yet_when_brigd_hung_up_is_asked_anew(tmp_path):
    def runs(connection):
        while request := connection.receive():
            if request["op"] == "explain":
                connection.send({**EXPLAINED, "tag": request["tag"]})
            else:
                yield request

    def leaves(connection):
        asked = list(itertools.islice(runs(connection), 16)) # no more are asked at once
        start(connection, asked[0])
        end(connection, asked[0])

    def stays(connection):
        for request in runs(connection):
            start(connection, request)
            end(connection, request)
    with servers(tmp_path, leaves, stays) as env, mcp_client.McpStdio(env=env) as mcp:
        asked = [mcp.begin_call("execute_code", {"code": "1"}) for _ in range(40)]
        said = [mcp_client.data_of(one.result()) for one in asked]
        assert [one["exit_reason"] for one in said] == ["exited"] * 40, {one["error"] for one in said}


def test_a_check_that_brigd_did_not_survive_is_no_finding(tmp_path):
    def script(connection, request):
        start(connection, request)
        return "end"
    with served(script) as mcp:
        result = mcp.call("execute_code", {"code": "1", "validate": True})
        said = mcp_client.data_of(result)
    assert result["isError"] is True and said["exit_reason"] == "cancelled" and "brigd was killed" in said["error"] and said["validation_errors"] is None


# --- hosts that a person allows ---

NETWORK = {"allow": ["a.example"], "ceiling": ["a.example", "*.example:8443", "b.example", "xn--e1afmkfd.example"], "deny": ["bad.example:8443"], "secrets": {}}
YES, NO = ({"action": "accept", "content": {"answer": word}} for word in ("yes", "no"))


def missed(*names, reason="not_allowed"):
    rows = [{"name": name, "port": port, "address": None, "verdict": "refused", "reason": reason, "bytes_in": 0, "bytes_out": 0, "ms": 1.0, "secret": False} for name, port in names]
    return {"network": {"connections": rows, "more": 0}}


@contextlib.contextmanager
def refusing(record, *args, network=NETWORK):
    """The server, and the requests of its runs: each of these is refused what the record says."""
    asked = []

    def script(connection, request):
        asked.append(request)
        start(connection, request)
        end(connection, request, **record)
    with served(script, *args, network=network) as mcp:
        yield mcp, asked


def ask(mcp, revision, *answers, can=True):
    """One call; its questions are answered in their order. What was asked, and the reply."""
    call, can, asked = {"name": "execute_code", "arguments": {"code": "1"}}, {"elicitation": {}} if can else {}, []
    if revision == mcp_client.MODERN:
        result = mcp.request("tools/call", call, capabilities=can)
        for answer in answers:
            assert result["resultType"] == "input_required", result
            asked += [one["params"]["message"] for one in result["inputRequests"].values()]
            result = mcp.request("tools/call", {**call, "requestState": result["requestState"], "inputResponses": {key: answer for key in result["inputRequests"]}}, capabilities=can)
        return asked, mcp_client.data_of(result)
    if mcp.legacy is None:
        mcp.initialize(revision, can)
    begun = mcp.begin("tools/call", call, revision=revision)
    for n, answer in enumerate(answers, 1):
        question = begun.wait_question(n)
        asked.append(question["params"]["message"])
        mcp.answer(question, answer)
    return asked, mcp_client.data_of(begun.result())


@pytest.mark.parametrize("revision", ["2025-11-25", mcp_client.MODERN])
def test_a_host_that_a_person_allows_is_for_later_runs_and_nothing_runs_twice(revision):
    with refusing(missed(("B.example", 443), ("b.example", 443), ("c.example", 8443)), "--ask-hosts") as (mcp, asked):
        questions, said = ask(mcp, revision, YES, NO)
        assert "b.example:443, " in questions[0] and "c.example:8443, " in questions[1]
        assert len(asked) == 1 and "network" not in asked[0] and "b.example:443 is allowed now over HTTPS," in said["hint"] and "run the program again" in said["hint"], said
        questions, said = ask(mcp, revision)
        assert questions == [], "a host is asked about once"
        assert said["hint"].startswith("b.example:443 is allowed over HTTPS, to runs and sessions that began after"), said # it was refused again
        assert asked[1]["network"] == ["a.example", "https://b.example"]


@pytest.mark.parametrize("names, args, network, can", [
    ([("b.example", 443)], [], NETWORK, True),                                                    # without the option
    ([("b.example", 443)], ["--ask-hosts"], NETWORK, False),                                      # its client can ask nobody
    ([("b.example", 443)], ["--ask-hosts"], {**NETWORK, "ceiling": None}, True),                   # a service that lets its clients widen nothing
    ([("b.example", 443)], ["--ask-hosts"], {**NETWORK, "allow": [{"host": "a.example", "methods": ["GET"]}]}, True), # a request cannot repeat that rule
    ([("d.example", 443), ("bad.example", 8443), ("c.example.org", 8443)], ["--ask-hosts"], NETWORK, True), # above the ceiling, denied, another domain
    ([("b.example\u202e", 443), ("\u0431.example", 443), ("127.0.0.1", 8443), ("::1", 8443), ("localhost", 8443), ("-x.example", 8443), ("a" * 260 + ".example", 8443)], ["--ask-hosts"], NETWORK, True),
], ids=["off", "nobody", "service", "methods", "ceiling", "no-names"])
def test_no_person_is_asked_about_a_host_that_cannot_be_allowed_or_is_no_plain_name(names, args, network, can):
    with refusing(missed(*names), *args, network=network) as (mcp, asked):
        questions, said = ask(mcp, "2025-11-25", can=can)
        assert (questions, len(asked)) == ([], 1) and "allowed now" not in said.get("hint", ""), said


def test_a_name_that_may_look_like_another_is_shown_as_it_is_sent():
    with refusing(missed(("xn--e1afmkfd.example", 443)), "--ask-hosts") as (mcp, _):
        questions, said = ask(mcp, "2025-11-25", {"action": "cancel"})
    assert "reach xn--e1afmkfd.example:443," in questions[0] and "may look like another" in questions[0] and "stays refused" in said["hint"], said
