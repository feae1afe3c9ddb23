"""HTTP: who is let in at all, what clients that go away or are slow do to a server, and what is known of its token."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import threading
import time

import jailed
import pytest

from support import host, mcp
from support.mcp_http import TOKEN, HttpServer, modern, post, samples

ASLEEP = {"name": "execute_code", "arguments": {"code": jailed.FOREVER, "timeout": jailed.LONGEST}}


def programs(pid):
    """The command lines of the Pythons that run below it."""
    lines = []
    for child in host.below(pid):
        try:
            line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if "python3" in line:
            lines.append(line)
    return lines


def start_fails(*args, env=None):
    given = {key: value for key, value in os.environ.items() if not key.startswith(("BRIG_MCP_", "SANDBOX_"))} | (env or {})
    done = subprocess.run([mcp.binary(), "--http", "--port", "0", *args], env=given, cwd="/", capture_output=True, text=True, timeout=host.HANG, check=False)
    return done.returncode, done.stderr


# --- to start, or not ------------------------------------------------------------------------------------

@pytest.mark.parametrize("token", ["", "short", "x" * 31, "x" * 40 + " y", "ü" * 40])
def test_a_weak_token_is_refused_with_status_1_and_how_to_make_one(built_mcp, token):
    status, said = start_fails(env={"SANDBOX_API_TOKEN": token})
    assert status == 1
    assert "token" in said and ("openssl rand" in said or "--token-file" in said)
    assert len(said.splitlines()) == 1
    assert not token.strip() or token not in said


def test_no_token_is_refused_with_status_1_and_what_to_do(built_mcp):
    status, said = start_fails()
    assert status == 1
    assert "--token-file" in said and "--insecure-loopback" in said


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_a_token_only_loopback_is_served(built_mcp, address):
    status, said = start_fails("--insecure-loopback", "--host", address)
    assert status in (1, 2)
    assert address in said and "127.0.0.1" in said


def test_a_port_that_is_taken_is_told(built_mcp):
    with HttpServer() as one:
        status, said = start_fails("--insecure-loopback", "--port", str(one.port))
        assert status == 1
        assert str(one.port) in said and "in use" in said


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_addresses_are_served(built_mcp, address):
    if address == "::1" and not pathlib.Path("/proc/net/if_inet6").exists():
        pytest.skip("needs IPv6")
    with HttpServer("--host", address) as one:
        status, _, _ = one.say(post(*modern("tools/list"), host=f"[{one.host}]" if ":" in one.host else one.host))
        assert status == 200


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_and_leaves_nothing_though_a_program_runs(built_mcp, nothing_left, number):
    with HttpServer() as one:
        with one.connect() as raw, one.connect():
            raw.send(post(*modern("tools/call", ASLEEP)))
            assert host.poll(lambda: programs(one.pid))
            assert one.stop(number) == 0
            assert not programs(one.pid)


# --- the token ------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def guarded(built_mcp):
    with HttpServer(token=TOKEN) as one:
        yield one


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN.upper()}",
                                   f"Bearer x {TOKEN}", "Bearer " + "x" * 8000, f"Bearer={TOKEN}"])
def test_without_the_token_everything_is_unauthorized(guarded, given):
    for data in (post(*modern("tools/list")), b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        head, end, body = data.partition(b"\r\n\r\n")
        if given is not None:
            head += f"\r\nAuthorization: {given}".encode()
        status, headers, body = guarded.say(head + end + body)
        assert (status, json.loads(body)["error"], headers["www-authenticate"]) == (401, "Unauthorized", "Bearer")


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER   {TOKEN}  "])
def test_with_the_token_clients_are_let_in(guarded, given):
    message, headers = modern("tools/list")
    assert guarded.say(post(message, headers | {"Authorization": given}))[0] == 200


def test_the_published_sequence_of_authorization(guarded):
    """401 without, 401 with another one, 200 with the right one."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    statuses = [guarded.say(post(body, headers))[0] for headers in ({}, {"Authorization": "Bearer wrong-token"}, {"Authorization": f"Bearer {TOKEN}"})]
    assert statuses == [401, 401, 200]


def test_health_needs_no_token_and_a_foreign_page_is_refused_before_its_token_is_looked_at(guarded):
    assert guarded.say(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 200
    message, headers = modern("tools/list")
    assert guarded.say(post(message, headers | {"Authorization": f"Bearer {TOKEN}", "Origin": "null"}))[0] == 403


def test_a_token_in_the_query_is_none(guarded):
    assert guarded.say(post(*modern("tools/list"), path=f"/mcp?token={TOKEN}&access_token={TOKEN}"))[0] == 401


def mentions(pid, what):
    """Files of /proc/PID in which these bytes are."""
    found = []
    for name in ("environ", "cmdline", "comm", "status"):
        try:
            if what in pathlib.Path(f"/proc/{pid}/{name}").read_bytes():
                found.append(name)
        except OSError:
            pass
    return found


@pytest.mark.private("the processes below the server are looked at")
def test_nobody_can_read_the_token_from_a_process_or_a_jail(built_mcp):
    with HttpServer(token=TOKEN) as one:
        client = one.client()
        looked = client.execute("import os, pathlib\n"
                                "found = [str(p) for p in pathlib.Path('/proc').glob('*/environ') if os.access(p, os.R_OK)]\n"
                                "print(dict(os.environ), [open(p).read() for p in found])")
        assert looked["success"] and TOKEN not in json.dumps(looked)
        with one.connect() as raw:
            message, headers = modern("tools/call", ASLEEP)
            raw.send(post(message, headers | one.headers))
            assert host.poll(lambda: programs(one.pid))
            pids = [one.pid, *host.below(one.pid)]
            assert len(pids) > 2
            assert [(pid, mentions(pid, TOKEN.encode())) for pid in pids if mentions(pid, TOKEN.encode())] == []
    assert TOKEN.encode() not in one.said


def test_control_the_token_would_be_found_in_an_environment():
    with subprocess.Popen(["/bin/sleep", "60"], env={"SANDBOX_API_TOKEN": TOKEN}) as one:
        try:
            assert host.poll(lambda: mentions(one.pid, TOKEN.encode()) == ["environ"])
        finally:
            one.kill()


def memory(pid):
    """What it can write to, but for files and devices that it has mapped."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                mem.seek(start)
                yield mem.read(end - start)


@pytest.mark.parametrize("way", ["environment", "file"])
def test_a_server_that_nobody_has_asked_yet_has_forgotten_the_token(built_mcp, tmp_path, way):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n", encoding="ascii")
    path.chmod(0o600)
    with HttpServer(token=TOKEN) if way == "environment" else HttpServer("--token-file", path) as one:
        kept = b"".join(memory(one.pid))
        assert one.url.encode() in kept, "the control"
        assert TOKEN[-20:].encode() not in kept
        assert one.say(post(*modern("tools/list")))[0] == 401


def test_a_token_file_works_and_its_newline_is_not_part_of_it(built_mcp, tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    given = {key: value for key, value in os.environ.items() if not key.startswith(("BRIG_MCP_", "SANDBOX_"))}
    process = subprocess.Popen([mcp.binary(), "--http", "--port", "0", "--token-file", path], env=given, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        url = process.stderr.readline().decode().split()[-1]
        assert mcp.McpHttp(url, headers={"Authorization": f"Bearer {TOKEN}"}).list_tools()
    finally:
        process.terminate()
        assert process.wait(host.HANG) == 0
        process.stderr.close()


# --- clients that go away -----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def server(built_mcp):
    with HttpServer("--progress", "0.25", "--max-connections", "40", program=mcp.conformance()) as one:
        yield one


def run_asleep(raw, server):
    raw.send(post(*modern("tools/call", ASLEEP)))
    assert host.poll(lambda: programs(server.pid))


def all_gone(server):
    return host.poll(lambda: not programs(server.pid))


@pytest.mark.parametrize("how", ["close", "half", "reset"])
def test_a_modern_client_that_goes_takes_its_program_along(server, how):
    raw = server.connect()
    run_asleep(raw, server)
    if how == "half":
        raw.sock.shutdown(socket.SHUT_WR)
    elif how == "reset":
        raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    if how != "half":
        raw.close()
    assert all_gone(server)
    raw.close()


def test_so_does_one_that_is_being_told_progress(server):
    raw = server.connect()
    run_asleep(raw, server)
    raw.close()
    assert all_gone(server)
    message, headers = modern("tools/call", ASLEEP, meta={"progressToken": 1})
    raw = server.connect()
    raw.send(post(message, headers))
    assert raw.head()[0] == 200
    assert b"notifications/progress" in raw.chunk()
    raw.close()
    assert all_gone(server)


def test_a_legacy_client_that_goes_leaves_its_program_and_may_cancel_it_with_another_post(server):
    message = {"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": ASLEEP}
    headers = {"MCP-Protocol-Version": "2025-11-25"}
    raw = server.connect()
    raw.send(post(message, headers))
    assert host.poll(lambda: programs(server.pid))
    raw.close()
    assert server.say(post(*modern("tools/list")))[0] == 200, "the server has looked at its sockets since"
    assert programs(server.pid)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "mine"}}
    assert server.say(post(cancel, headers))[0] == 202
    assert all_gone(server)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seconds", [0, 3.5]) # longer than what was sent before the end may take to be read
def test_a_legacy_client_that_shuts_down_its_half_is_answered(server, seconds):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": f"import time; time.sleep({seconds}); print(7)"}}}
    with server.connect() as raw:
        raw.send(post(message, {"MCP-Protocol-Version": "2025-11-25"}))
        raw.sock.shutdown(socket.SHUT_WR)
        status, _, body = raw.reply()
        assert status == 200 and json.loads(json.loads(body)["result"]["content"][0]["text"])["stdout"] == "7\n"


@pytest.mark.sample(0, "100")
@pytest.mark.parametrize("part", [0, 5, 100, -5])
def test_who_ends_within_a_request_does_not_hold_a_place(server, part):
    data = post(*modern("tools/list"))[:part]
    with server.connect() as patient, server.connect() as raw: # the first one may take its time
        patient.send(data)
        raw.send(data)
        raw.sock.shutdown(socket.SHUT_WR)
        assert ended(raw) and is_open(patient)


def test_a_legacy_request_that_was_cancelled_ends_without_an_answer(server):
    message = {"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": ASLEEP}
    headers = {"MCP-Protocol-Version": "2025-11-25"}
    with server.connect() as raw:
        raw.send(post(message, headers))
        assert host.poll(lambda: programs(server.pid))
        assert server.say(post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "two"}}, headers))[0] == 202
        assert raw.reply()[::2] == (202, b"")


def test_a_cancel_of_one_session_does_not_reach_another_that_counts_alike(server):
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": ASLEEP}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    mine, theirs = ({"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": name} for name in ("mine", "theirs"))
    with server.connect() as raw:
        raw.send(post(message, theirs))
        assert host.poll(lambda: programs(server.pid))
        assert server.say(post(cancel, mine))[0] == 202
        with server.connect() as other:
            other.send(post(message, mine))
            assert host.poll(lambda: len(programs(server.pid)) == 2)
            assert server.say(post(cancel, mine))[0] == 202
            assert other.reply()[::2] == (202, b"")
        assert host.poll(lambda: len(programs(server.pid)) == 1)
        assert server.say(post(cancel, theirs))[0] == 202
        assert raw.reply()[::2] == (202, b"")


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("stranger", [{}, {"Mcp-Session-Id": "stranger"}], ids=["no session", "another session"])
def test_a_cancel_reaches_calls_of_its_own_session_only_alone_and_in_a_batch(server, stranger, batch):
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": ASLEEP}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for owner in ({"Mcp-Session-Id": "owner"}, {}):
        if not owner and not stranger:
            continue
        with server.connect() as raw:
            raw.send(post(call, owner))
            assert host.poll(lambda: programs(server.pid))
            for headers in (stranger, owner):
                assert not select.select([raw.sock], [], [], 0)[0], "it runs until its own session cancels it"
                assert server.say(post([cancel, ping] if batch else cancel, headers))[0] == (200 if batch else 202)
                assert server.say(post(*modern("tools/list")))[0] == 200, "the cancel has been taken"
            assert raw.reply()[::2] == (202, b""), headers
        assert all_gone(server)


def test_a_listener_that_goes_is_forgotten(server):
    message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    for _ in range(60): # more than there are connections
        with server.connect() as raw:
            raw.send(post(message, headers))
            assert raw.head()[0] == 200
    assert server.say(post(*modern("tools/call", {"name": "test_trigger_tool_change"})))[0] == 200


def test_tools_are_listed_while_programs_run(server):
    with server.connect() as raw:
        run_asleep(raw, server)
        assert server.say(post(*modern("tools/list")))[0] == 200
        assert programs(server.pid)
    assert all_gone(server)


def test_thirty_clients_at_once_get_each_their_own(server):
    clients = [server.client() for _ in range(30)]
    asked = [client.begin_call("execute_code", {"code": f"print({n})"}) for n, client in enumerate(clients)]
    assert [json.loads(mcp.text_of(one.result()))["stdout"] for one in asked] == [f"{n}\n" for n in range(30)]


# --- slow and greedy ones ----------------------------------------------------------------------------------------------

def test_silent_connections_make_room_for_whoever_has_something_to_say(server):
    """More than are allowed, none of which says anything: the one that was silent longest goes first."""
    silent = [server.connect() for _ in range(60)]
    try:
        assert server.say(post(*modern("tools/list")))[0] == 200
        assert ended(silent[0]) and is_open(silent[-1])
    finally:
        for one in silent:
            one.close()


def trickled(raw, part):
    """The seconds until it is cut off, while something is sent three times a second."""
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.3):
            try:
                raw.send(part)
            except OSError:
                return
    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        began = time.monotonic()
        assert ended(raw)
        return time.monotonic() - began
    finally:
        stop.set()
        thread.join()
        raw.close()


@pytest.mark.nightly
def test_a_head_that_trickles_is_cut_off_after_15_seconds(server):
    assert 13 < trickled(server.connect(), b"X") < 45 * host.SLOWER # a connection has 60 seconds between its requests


@pytest.mark.long
def test_a_body_that_trickles_is_cut_off_after_30_seconds(server):
    message, headers = modern("tools/list")
    raw = server.connect()
    raw.send(post(json.dumps(message).encode() + b" " * 1000, headers)[:-1000])
    assert 28 < trickled(raw, b" ") < 55 * host.SLOWER


def is_open(raw):
    raw.sock.setblocking(False)
    try:
        return raw.sock.recv(1) != b""
    except BlockingIOError:
        return True


def ended(raw):
    try:
        return raw.sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_does_not_read_holds_up_nobody(server):
    message, headers = modern("tools/call", {"name": "execute_code", "arguments": {"code": "print('x' * 900000)", "detail": True}})
    raws = [server.connect() for _ in range(5)]
    try:
        for raw in raws:
            raw.send(post(message, headers))
        assert server.say(post(*modern("tools/list")))[0] == 200
        status, _, body = raws[0].reply()
        assert (status, len(body) > 900000) == (200, True)
    finally:
        for raw in raws:
            raw.close()


@pytest.mark.nightly
def test_a_client_that_reads_none_of_very_many_answers_loses_its_connection_and_no_other_one_does(server):
    """What waits for it is bounded. It was freed twice."""
    much = {"name": "execute_code", "arguments": {"code": "print('x' * 900000)", "detail": True}}
    calls = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {**(much if n else {"name": "test_tool_with_progress"}), "_meta": {"progressToken": n}}} for n in range(40)]
    before = figure(server, "brig_mcp_runs_total")
    with contextlib.ExitStack() as stack:
        for raw in [stack.enter_context(server.connect()) for _ in range(3)]: # what grows in turn moves
            raw.send(post(calls, {"MCP-Protocol-Version": "2025-03-26"}))
        assert host.poll(lambda: server.process.poll() is not None or figure(server, "brig_mcp_runs_total") >= before + 3 * 39), "not all have run"
    assert server.process.poll() is None and all_gone(server)
    assert server.client().execute("print(1)")["stdout"] == "1\n"


def figure(server, name):
    """The sum of a figure, over all labels."""
    return sum(value for sample, value in samples(server).items() if sample.partition("{")[0] == name)


def whims(dice):
    """Requests of all kinds, some of which last."""
    sleepy = {"name": "execute_code", "arguments": {"code": f"import time\nprint('x' * {dice.choice([1, 100000])})\ntime.sleep({dice.random() * 2})"}}
    legacy = {"MCP-Protocol-Version": "2025-03-26"}
    return dice.choice([
        lambda: post(*modern("tools/call", sleepy, meta=dice.choice([{}, {"progressToken": 1}]))),
        lambda: post(*modern("tools/call", {"name": "test_tool_with_progress"}, meta={"progressToken": 1})),
        lambda: post(*modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})),
        lambda: post(*modern("tools/call", {"name": "test_trigger_tool_change"})),
        lambda: post({"jsonrpc": "2.0", "id": dice.randrange(3), "method": "tools/call", "params": sleepy}, legacy),
        lambda: post([{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": sleepy | {"_meta": {"progressToken": n}}} for n in range(3)], legacy),
        lambda: post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": dice.randrange(3)}}, legacy),
        lambda: post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_elicitation", "arguments": {"message": "?"}}}, legacy),
    ])()


def whim(server, seed):
    dice = random.Random(seed)
    data = whims(dice)
    with server.connect() as raw:
        try:
            cut = dice.choice([len(data), len(data), dice.randrange(len(data))])
            raw.send(data[:cut])
            raw.sock.settimeout(dice.random() * 1.5 + 0.001)
            for _ in range(dice.randrange(4)):
                if not raw.sock.recv(dice.choice([1, 100, 65536])):
                    break
            if dice.random() < 0.3:
                raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass


@pytest.mark.nightly
def test_clients_that_end_at_random_moments_leave_nothing(server):
    seed = int(os.environ.get("BRIG_TEST_SEED", time.time()))
    print(f"BRIG_TEST_SEED={seed}")
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: whim(server, seed + n), range(120)))
    assert server.say(post(*modern("tools/list")))[0] == 200
    assert all_gone(server) # what legacy clients have started goes on for two seconds
    assert host.poll(lambda: not server.client().raw(method="GET", path="/metrics")[2].count(b"brig_mcp_running 1"))


def test_descriptors_and_memory_do_not_grow(server):
    def held():
        return len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))
    message, headers = modern("tools/list")
    server.say(post(message, headers))
    assert host.poll(lambda: held() < 20), sorted(os.readlink(p) for p in pathlib.Path(f"/proc/{server.pid}/fd").iterdir())
    before = held()
    for _ in range(300):
        server.say(post(message, headers))
    assert host.poll(lambda: held() <= before)
