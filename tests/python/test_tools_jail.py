"""Programs in jails that call tools: however a run starts, the clock, the record, the audit, and what a program cannot reach by its socket."""
import asyncio
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from support import daemon as daemons
from support import host, metrics, tool_bridge, warm
from support.brig import binary
from support.tool_bridge import brig

pytestmark = pytest.mark.usefixtures("jail")


def add(a: int, b: int = 5) -> int:
    """Adds."""
    return a + b


def nap(seconds: float):
    time.sleep(seconds)


@pytest.fixture(scope="module")
def services():
    """One whose runs are forked ahead, one that forks on demand."""
    scratch, profiles = warm.scratch_profiles("basic")
    with scratch, tempfile.TemporaryDirectory(prefix="brig-test-tools-") as folder:
        os.chmod(folder, 0o755)
        os.chown(folder, daemons.ACCOUNTS["_brig-door"], -1)
        log = pathlib.Path(folder) / "audit.jsonl"
        with daemons.Daemon({"audit": {"file": str(log)}}) as ready, daemons.Daemon(env={"BRIG_PRESETS": str(profiles)}) as demand:
            yield {"ready": ready, "demand": demand, "log": log}


WAYS = ["private", "ready", *(pytest.param(way, marks=pytest.mark.nightly) for way in ("demand", "cold"))]


@pytest.fixture(params=WAYS)
def where(request, monkeypatch):
    monkeypatch.delenv("BRIG_SOCKET", raising=False)
    if request.param == "private":
        return {"server": "private"}
    services = request.getfixturevalue("services")
    daemon = services["demand" if request.param == "demand" else "ready"]
    return {"server": "service", "path": str(daemon.path), **({"cold": True} if request.param == "cold" else {})}


@pytest.fixture
def ready(services):
    return {"server": "service", "path": str(services["ready"].path)}


def test_a_program_calls_functions_of_its_caller(where):
    done = brig.run("print(tools.add(1)); tools.add(a=1, b=2)", tools={"add": add}, **where)
    assert (done.value, done.stdout, done.verdict) == (3, "6\n", "exited"), done
    calls = done.record["tool_calls"]
    assert (calls["n"], calls["failed"], calls["denied"]) == (2, 0, 0) and [call["name"] for call in calls["calls"]] == ["add", "add"]


def test_with_input_files_and_arguments_as_well(where):
    done = brig.run("import sys; open('o', 'w').write(open('i').read()); [sys.stdin.read(), sys.argv[1], tools.add(1)]", tools={"add": add}, stdin="in", args=["x"],
                    files={"i": "file"}, get=["o"], **where)
    assert (done.value, done.files) == (["in", "x", 6], {"o": b"file"})


def test_a_run_without_tools_has_no_socket(where):
    seen = "import os, builtins; [sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1], hasattr(builtins, 'tools'), [n for n in os.environ if 'TOOLS' in n]]"
    without, with_ = brig.run(seen, **where), brig.run(seen, tools={"add": add}, **where)
    assert with_.value[0] == sorted({*without.value[0], 4}) and without.value[1:] == [False, []] and with_.value[1:] == [True, []]
    assert "tool_calls" not in without.record or without.record["tool_calls"] is None


@pytest.mark.sample(2)
@pytest.mark.parametrize("request_", [{"op": "exec", "argv": ["python3", "-c", "SOURCE"]}, {"op": "run", "mode": "script"}])
def test_a_program_without_the_runner_speaks_on_the_socket_itself(where, request_):
    source = """
import json, os, socket
tools = socket.socket(fileno=int(os.environ["BRIG_TOOLS"]))
tools.sendall(json.dumps({"id": 1, "op": "call", "name": "add", "args": {"a": 2}}).encode() + b"\\n")
print(json.loads(tools.makefile().readline())["result"])
"""
    request = json.loads(json.dumps(request_).replace("SOURCE", json.dumps(source)[1:-1]))
    where = dict(where)
    if where.pop("cold", False):
        request["cold"] = True
    fds = [brig.client._sealed(source)] if request["op"] == "run" else []
    with brig.Connection(**where) as connection:
        done = connection.carry_out(request, fds, None, None, None, brig.bridge.Bridge(brig.Toolbox({"add": add})))
    assert done.stdout == "7\n", done


def test_a_plain_user_has_tools(world, user):
    script = f"""
import sys
sys.path.insert(0, {str(tool_bridge.ROOT / 'python')!r})
import brig
print(brig.run("tools.add(1, 2)", tools={{"add": lambda a, b: a + b}}, server="private").value)
"""
    done = world.shell(user, f"/usr/bin/python3 {world.program(script)}")
    assert done.stdout == "3\n", done.stderr


# --- the clock ---

def with_time(run, holds):
    """What run(scale) gives, all of whose times are so much longer. A busy machine may keep a program from its calls until its time is over: one that
    had used half of it outside of calls, and only such a one, is run again with more."""
    for scale in (1, 4, 16):
        done, limit = run(scale)
        calls = done.record["tool_calls"]
        if holds(done, scale) or done.record["wall_ms"] - calls["wait_ms"] < 1000 * limit / 2:
            break
    return done, scale


def ends_by_itself(done, _scale):
    return done.verdict == "exited"


def took(seconds):
    return lambda done, scale: done.record["wall_ms"] >= 1000 * seconds * scale


def test_a_call_that_takes_long_stops_the_wall_clock(where):
    def run(scale):
        return brig.run(f"tools.nap({1.2 * scale}); 'there'", tools={"nap": nap}, timeout=0.6 * scale, **where), 0.6 * scale
    done, scale = with_time(run, ends_by_itself)
    assert (done.value, done.verdict) == ("there", "exited"), done.record
    assert done.record["tool_calls"]["wait_ms"] >= 1200 * scale


BESIDE = """
import threading, time
thread = threading.Thread(target=tools.nap, args=(SECONDS,))
thread.start()
while thread.is_alive():
    tools.add(1)
    time.sleep(0.02)
'there'
"""


def test_short_calls_beside_a_long_one_do_not_start_the_clock_again(ready):
    def run(scale):
        return brig.run(BESIDE.replace("SECONDS", str(1.2 * scale)), tools={"nap": nap, "add": add}, timeout=0.6 * scale, **ready), 0.6 * scale
    done, _ = with_time(run, ends_by_itself)
    assert (done.value, done.verdict) == ("there", "exited"), done.record


def test_after_the_call_it_goes_on(where):
    def run(scale):
        return brig.run(f"tools.nap({0.5 * scale})\nwhile True: pass", tools={"nap": nap}, timeout=0.4 * scale, **where), 0.4 * scale
    done, scale = with_time(run, took(0.8))
    assert done.verdict == "timeout_wall" and done.record["wall_ms"] >= 800 * scale, done.record


def test_it_stands_still_no_longer_than_the_limit_says(where):
    gate = threading.Event()

    def run(scale):
        return brig.run("tools.hang()", tools={"hang": lambda: gate.wait(host.HANG)}, timeout=0.3 * scale, tool_wait=0.5 * scale, **where), 0.3 * scale
    done, scale = with_time(run, took(0.8))
    gate.set()
    assert done.verdict == "timeout_wall" and 800 * scale <= done.record["wall_ms"] < 1000 * host.HANG / 2, done.record
    assert [call["verdict"] for call in done.record["tool_calls"]["calls"]] == ["lost"]


def test_the_cpu_clock_does_not_stop(ready):
    gate = threading.Event()
    done = brig.run("import threading\nthreading.Thread(target=tools.hang, daemon=True).start()\nwhile True: pass", tools={"hang": lambda: gate.wait(host.HANG)},
                    cpu_time=0.5, timeout=host.HANG / 2, **ready)
    gate.set()
    assert done.verdict == "timeout_cpu"


def test_a_program_that_waits_for_no_call_stops_no_clock(ready):
    done = brig.run("import os\nos.write(4, b'{\"id\": 1, \"op\": \"call\"')\nimport time; time.sleep(60)", tools={"add": add}, timeout=0.4, **ready)
    assert done.verdict == "timeout_wall" and done.record["tool_calls"]["n"] == 0


@pytest.mark.parametrize("way", ["private", "ready"])
def test_more_waiting_than_the_ceiling_is_refused(way, request, monkeypatch):
    monkeypatch.delenv("BRIG_SOCKET", raising=False)
    where = {"server": "private"} if way == "private" else request.getfixturevalue("ready")
    with pytest.raises(brig.Refused, match="above the ceiling"):
        brig.run("1", tools={"add": add}, tool_wait=7200, **where)
    assert brig.run("tools.add(1)", tools={"add": add}, tool_wait=3600, **where).value == 6


# --- many ---

def test_many_programs_have_tools_over_one_connection(ready):
    done = list(brig.map([f"tools.add({i}, 1)" for i in range(40)], tools=brig.Toolbox({"add": add}), workers=8, **ready))
    assert [each.value for each in done] == [i + 1 for i in range(40)]
    assert all(each.record["tool_calls"]["n"] == 1 for each in done)


def test_coroutines_run_in_the_loop_of_the_caller(ready):
    async def main():
        loop = asyncio.get_running_loop()

        async def same():
            await asyncio.sleep(0)
            return asyncio.get_running_loop() is loop
        return await asyncio.gather(*[brig.arun("tools.same()", tools={"same": same}, **ready) for _ in range(4)])
    assert [each.value for each in asyncio.run(main())] == [True] * 4


# --- the record and the audit ---

def test_the_audit_has_each_call_with_the_digest_of_its_arguments(services, ready):
    done = brig.run("tools.add(1)\ntry:\n    tools.drop(x='secret')\nexcept ToolDenied:\n    pass\ntry:\n    tools.call('add', {'a': 1, 'b': 0})\nexcept ToolError:\n    pass",
                    tools={"add": add, "drop": lambda x: x}, deny="drop", **ready)
    lines = []

    def has_all():
        lines[:] = [entry for entry in map(json.loads, services["log"].read_text().splitlines()) if entry["run_id"] == done.record["run_id"]]
        return len(lines) == 4
    assert host.poll(has_all), lines
    assert "secret" not in services["log"].read_text()
    calls = [entry for entry in lines if entry["op"] == "tool"]
    assert [(call["tool"], call["exit_reason"], call["error"]) for call in calls] == [("add", "exited", None), ("drop", "denied", "denied"), ("add", "exited", None)]
    assert calls[0]["code_sha256"] != calls[1]["code_sha256"] and all(call["peer_uid"] == os.geteuid() for call in calls)


def figures(services):
    """Calls by outcome: what the page says, and what stats says."""
    page = metrics.page(services["ready"])
    with services["ready"].connect() as talk:
        return {labels["outcome"]: value for labels, value in page.of("brig_tool_calls_total")}, talk.ask("stats")["tool_calls"]


def test_calls_are_counted_by_how_they_ended(services, ready):
    before, same = figures(services)
    assert before == same and before.keys() == {"ok", "denied", "failed"}, "each is there before it counts"
    done = brig.run("tools.add(1)\ntools.add(2)\nfor name in 'drop', 'boom':\n    try:\n        tools.call(name, {})\n    except ToolError:\n        pass",
                    tools={"add": add, "drop": lambda: 1, "boom": lambda: 1 // 0}, deny="drop", **ready)
    assert done.ok, done.stderr
    grown = {"ok": before["ok"] + 2, "denied": before["denied"] + 1, "failed": before["failed"] + 1}
    assert host.poll(lambda: figures(services) == (grown, grown)), (before, figures(services))
    said = subprocess.run([binary(), "stats"], env=metrics.environment(services["ready"]), capture_output=True, text=True).stdout
    assert f"tool calls  ok {grown['ok']:.0f}, failed {grown['failed']:.0f}, denied {grown['denied']:.0f}\n" in said, said


def test_a_verdict_of_the_clients_own_is_no_label(services, ready):
    before, _ = figures(services)
    with brig.Connection(**ready) as connection:
        body, streams = started(connection, "import os; os.read(4, 1)")
        connection._send({"op": "tools", "run": body["run"], "calls": [{"name": "a", "verdict": 'x"} 1\ny', "args_sha256": SHA}]})
        assert connection._receive()[0]["reply"] == "tools"
        for fd in streams.values():
            os.close(fd)
        connection._send({"op": "cancel", "run": body["run"]})
    after, _ = figures(services)
    assert after == {**before, "failed": before["failed"] + 1}


# --- by hand ---

def started(connection, code, **keys):
    connection._send({"op": "run", "mode": "report", "tools": True, **keys}, [fd := brig.client._sealed(code)])
    os.close(fd)
    body, fds = connection._receive()
    assert body["event"] == "started", body
    return body, dict(zip(body["streams"], fds))


def test_the_socket_is_the_last_stream_and_no_descriptor_of_the_client(ready):
    with brig.Connection(**ready) as connection:
        body, streams = started(connection, "import os, socket, struct\ns = socket.socket(fileno=4)\nos.write(4, repr(struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))).encode())")
        assert body["streams"] == ["stdout", "stderr", "result", "tools"]
        with socket.socket(fileno=streams["tools"]) as tools:
            tools.settimeout(host.HANG)
            pid, uid, gid = eval(tools.recv(100))
        assert pid == 0 and (uid, gid) == (65534, 65534) # whose it is, is not told in there
        for name in "stdout", "stderr", "result":
            os.close(streams[name])


def test_tools_of_a_check_are_refused(ready):
    with brig.Connection(**ready) as connection:
        with pytest.raises(brig.Refused, match="calls nothing"):
            connection.carry_out({"op": "run", "mode": "check", "tools": True}, [brig.client._sealed("1")], None, None, None)


SHA = "0" * 64


@pytest.mark.parametrize("message, code", [
    ({}, None), ({"waiting": True}, None), ({"calls": []}, None), ({"calls": [{"name": "a\nb\x1b", "verdict": "ok", "args_sha256": SHA}]}, None),
    ({"waiting": 1}, "bad_field"), ({"calls": [{}]}, "bad_field"), ({"calls": [{"name": "a", "verdict": "ok"}]}, "bad_field"), ({"calls": ["a"]}, "bad_field"),
    ({"calls": [{"name": "a", "verdict": "ok", "args_sha256": "0"}]}, "bad_field"), ({"calls": [{"name": "a" * 600, "verdict": "ok", "args_sha256": SHA}]}, "bad_field"),
    ({"calls": [{"name": "a", "verdict": "ok", "args_sha256": SHA, "uid": 0}]}, "bad_field"), ({"calls": [{"name": "a", "verdict": "ok", "args_sha256": SHA}] * 65}, "bad_field"),
    ({"run": "6f0c0d5e-0000-4000-8000-000000000001"}, "not_found"), ({"run": ""}, "not_found")])
def test_what_a_client_tells_of_calls_is_looked_at(ready, message, code):
    with brig.Connection(**ready) as connection:
        body, streams = started(connection, "import os; os.read(4, 1)")
        connection._send({"op": "tools", "run": body["run"], "tag": 9, **message})
        said = connection._receive()[0]
        assert (said["error"]["code"] if code else said["reply"]) == (code or "tools") and said["tag"] == 9, said
        for fd in streams.values():
            os.close(fd)
        connection._send({"op": "cancel", "run": body["run"]})


def test_nobody_tells_of_the_calls_of_another_connection_or_of_a_run_without_tools(ready):
    with brig.Connection(**ready) as one, brig.Connection(**ready) as other:
        body, streams = started(one, "import os; os.read(4, 1)")
        other._send({"op": "tools", "run": body["run"], "waiting": True})
        assert other._receive()[0]["error"]["code"] == "not_found"
        other._send({"op": "run", "stdin": True}, [fd := brig.client._sealed("input()")])
        os.close(fd)
        without, pipes = other._receive()
        other._send({"op": "tools", "run": without["run"], "waiting": True})
        assert other._receive()[0]["error"]["code"] == "not_found"
        for fd in [*streams.values(), *pipes]:
            os.close(fd)


# --- attacks ---

FLOOD = """
import os, threading
line = b'{"id": %d, "op": "call", "name": "add", "args": {"a": 1}}\\n'
def read():
    while os.read(4, 1 << 16):
        pass
READ
sent = 0
try:
    while True:
        os.write(4, b"".join(line % (i + 1) for i in range(sent, sent + 500)))
        sent += 500
except OSError as error:
    print(type(error).__name__)
"""


def test_a_flood_ends_the_bridge_and_the_record_stays_honest(where):
    done = brig.run(FLOOD.replace("READ", "threading.Thread(target=read, daemon=True).start()"), timeout=host.HANG / 2,
                    tools=brig.Toolbox({"add": add}, limits=brig.ToolLimits(calls=100, bytes=1 << 20)), **where)
    calls = done.record["tool_calls"]
    assert done.stdout in ("BrokenPipeError\n", "ConnectionResetError\n"), done
    assert calls["n"] - calls["failed"] == 100 and len(calls["calls"]) == 200 and calls["bytes"] < 4 << 20


def test_a_run_is_not_lost_for_the_number_of_its_calls(ready, monkeypatch):
    """The service ends the connection of a client that reports calls, and reads no reply."""
    monkeypatch.setattr(brig.client, "CALLS_MAX", 1) # as if each call was reported when it ended
    done = brig.run(FLOOD.replace("READ", "threading.Thread(target=read, daemon=True).start()"), timeout=host.HANG / 2,
                    tools=brig.Toolbox({"add": add}, limits=brig.ToolLimits(calls=10, bytes=1 << 18)), **ready)
    assert done.verdict == "exited" and done.record["tool_calls"]["n"] > 1000, done


def test_a_flood_that_reads_no_answers_waits_for_itself_until_its_time_is_over(where):
    def slow(a: int) -> str:
        """Not one that is waited for before the next call is read: all places are taken, and calls wait for their turn."""
        time.sleep(0.002)
        return "x" * 10_000
    done = brig.run(FLOOD.replace("READ", ""), timeout=1, tool_wait=2 * host.HANG, tools=brig.Toolbox({"add": slow}, limits=brig.ToolLimits(calls=1000)), **where)
    assert done.verdict == "timeout_wall" and done.record["wall_ms"] < 1000 * (1 + 2 * host.HANG) and done.record["tool_calls"]["bytes"] < 4 << 20, done # its clock stood still for less than it could


def test_a_process_that_outlives_its_program_calls_nothing_after_the_end(ready):
    called = []
    done = brig.run("import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        os.write(4, b'{\"id\": 1, \"op\": \"call\", \"name\": \"f\", \"args\": {}}\\n') if 0 else time.sleep(1)\n1",
                    tools={"f": lambda: called.append(1)}, **ready)
    assert done.verdict == "exited" and not called


def test_a_socket_that_was_sent_away_leads_nowhere_after_the_end(ready):
    """A program may put its end into the queue of the socket itself, which nobody empties."""
    done = brig.run("import array, socket\ns = socket.socket(fileno=4)\ns.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [4, 0, 1, 2]))])\nimport os; os._exit(0)",
                    tools={"add": add}, **ready)
    assert done.verdict == "exited"
    assert brig.run("tools.add(1)", tools={"add": add}, **ready).value == 6


def test_a_context_of_one_run_cannot_call_for_another(ready):
    """Two runs at once, each with tools of its own name: neither reaches the other's."""
    one = brig.Toolbox({"mine": lambda: "one"})
    two = brig.Toolbox({"mine": lambda: "two"})
    results = {}
    threads = [threading.Thread(target=lambda box=box, name=name: results.update({name: brig.run("[tools.mine() for _ in range(50)]", tools=box, **ready).value}))
               for name, box in (("one", one), ("two", two))]
    [thread.start() for thread in threads]
    [thread.join(host.HANG) for thread in threads]
    assert results == {"one": ["one"] * 50, "two": ["two"] * 50}


def test_a_client_that_is_gone_ends_the_run(ready):
    connection = brig.Connection(**ready)
    _, streams = started(connection, "import os; os.read(4, 1); open('/dev/null').read()")
    connection.close()
    tools = socket.socket(fileno=streams["tools"])
    tools.settimeout(host.HANG)
    assert tools.recv(1) == b"" # nobody holds the other end any more
    tools.close()
