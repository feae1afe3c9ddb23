"""Clients as they should not be: killed at any moment, deaf, greedy, of two minds, with strange ids. The server stays, or goes and leaves nothing."""
import json
import os
import random
import signal
import subprocess
import sys
import threading

import jailed
import pytest
from jailed import FOREVER, HELD, LONGEST

from support import brig, host, node
from support import mcp as mcp_client


def runs(pid):
    """A dead one that process 1 of this host has not reaped does not run."""
    return bool(host.read(f"/proc/{pid}/cmdline"))


# --- those who go ---------------------------------------------------------------------------------------------------

CLIENT = f"""
import json, subprocess, sys
server = subprocess.Popen([sys.argv[1], *sys.argv[3:]], stdin=subprocess.PIPE)
for n in range(4):
    call = dict(name="execute_code", arguments=dict(code={FOREVER!r}, args=[sys.argv[2]], timeout={LONGEST}))
    server.stdin.write(json.dumps(dict(jsonrpc="2.0", id=n, method="tools/call", params=call)).encode() + b"\\n")
    server.stdin.flush()
server.wait()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("who", ["client", "server", "both"])
def test_killed_at_random_moments_they_leave_nothing(built_mcp, nothing_left, who):
    dice = random.Random(who)
    for n in range(8):
        mark = jailed.marker()
        child = subprocess.Popen([sys.executable, "-c", CLIENT, mcp_client.binary(), mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=brig.environment())
        assert host.poll(lambda: host.children(child.pid))
        servers = host.children(child.pid)
        threading.Event().wait(dice.random() * 0.3) # the moment is what is tried here
        for pid in {"client": [child.pid], "server": servers, "both": [child.pid, *servers]}[who]:
            os.kill(pid, signal.SIGKILL)
        try:
            child.wait(host.HANG)
        finally:
            child.kill()
        assert host.poll(lambda: not any(map(runs, servers))), f"brig-mcp outlives its client: round {n}"
        jailed.wait_gone(mark)


def test_the_end_of_input_ends_every_run(start_mcp, nothing_left):
    mcp, mark = start_mcp(), jailed.marker()
    jailed.begin(mcp, mark, 2)
    assert mcp.close() == 0
    jailed.wait_gone(mark)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it_with_its_runs(start_mcp, nothing_left, number):
    mcp, mark = start_mcp(), jailed.marker()
    jailed.begin(mcp, mark)
    mcp.kill(number)
    jailed.wait_gone(mark)


def test_what_was_asked_before_the_end_of_input_is_answered(built_mcp):
    """printf '...' | brig-mcp"""
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_sandbox_info"}}\n'
    done = subprocess.run([mcp_client.binary()], input=asked, capture_output=True, env=brig.environment(), timeout=host.HANG)
    assert done.returncode == 0 and {json.loads(line)["id"] for line in done.stdout.splitlines()} >= {1}, done


def test_a_client_that_reads_nothing_is_left_when_its_input_ends(built_mcp, nothing_left):
    """Its pipe is full; whoever waits for room in it would wait for good."""
    process = subprocess.Popen([mcp_client.binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=brig.environment())
    try:
        call = {"name": "execute_code", "arguments": {"code": "print('x' * 900000)"}}
        for n in range(10):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call}).encode() + b"\n")
        process.stdin.flush()
        assert host.poll(lambda: readable(process.stdout))
        process.stdin.close()
        process.wait(host.HANG)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def readable(pipe):
    import select
    return bool(select.select([pipe], [], [], 0)[0])


def test_a_client_that_closes_its_end_of_the_output_ends_it(built_mcp, nothing_left):
    process = subprocess.Popen([mcp_client.binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=brig.environment())
    process.stdout.close()
    try:
        for n in range(3):
            process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n)
            process.stdin.flush()
        process.wait(host.HANG)
    except BrokenPipeError:
        process.wait(host.HANG)
    finally:
        process.kill()
        process.wait()


def test_closed_streams_at_the_start_are_survived_or_refused(built_mcp):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/null"):
        done = subprocess.run(["sh", "-c", f'exec "$0" {closed}', mcp_client.binary()], stdin=subprocess.DEVNULL, capture_output=True,
                              env=brig.environment(), timeout=host.HANG)
        assert done.returncode >= 0 and done.stdout == b"", (closed, done)


# --- cancelling -----------------------------------------------------------------------------------------------------

@pytest.mark.sample(2)
@pytest.mark.parametrize("revision", mcp_client.REVISIONS)
def test_a_cancel_frees_the_jail_and_is_not_answered(start_mcp, revision):
    mcp = start_mcp(revision=revision)
    for _ in range(3):
        mark = jailed.marker()
        asked, = jailed.begin(mcp, mark)
        asked.cancel()
        jailed.wait_gone(mark)
        assert mcp.execute("2")["result"] == 2
        assert asked.reply is None and not mcp.strays, asked.reply


@pytest.mark.nightly
def test_two_hundred_cancels_race_with_their_calls(start_mcp, nothing_left):
    mcp, dice = start_mcp(), random.Random(7)
    for n in range(200):
        asked = mcp.begin_call("execute_code", {"code": "print(1)"})
        if dice.random() < 0.7:
            threading.Event().wait(dice.random() * 0.02) # the moment is what is tried here
        asked.cancel()
    assert mcp.execute("'still there'")["result"] == "still there"
    mcp.close()


def test_cancels_that_make_no_sense_are_ignored(start_mcp):
    mcp = start_mcp()
    for params in ({"requestId": 999}, {"requestId": "1"}, {"requestId": None}, {"requestId": {}}, {}, {"requestId": 2**70}):
        mcp.notify("notifications/cancelled", params)
        mcp.notify("notifications/cancelled", params, revision="2025-06-18")
    mcp.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}\n')
    mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert mcp.execute("1")["result"] == 1


# --- many and much --------------------------------------------------------------------------------------------------

@pytest.mark.nightly
def test_a_hundred_calls_at_once_each_get_their_own_answer(start_mcp):
    mcp = start_mcp()
    asked = [mcp.begin_call("execute_code", {"code": f"print({n})\n{n} * 2"}) for n in range(100)]
    replies = [mcp_client.data_of(one.result()) for one in asked]
    assert [(one["stdout"], one["result"]) for one in replies] == [(f"{n}\n", n * 2) for n in range(100)], [one for one in replies if not one["success"]][:2]


def test_lists_are_answered_while_programs_run(start_mcp):
    """How soon is measured by bench/mcp.py."""
    mcp, mark = start_mcp(), jailed.marker()
    asked = jailed.begin(mcp, mark, 4)
    for _ in range(50):
        mcp.list_tools()
    assert len(jailed.processes(mark)) >= 4 and not any(one.reply for one in asked)
    for one in asked:
        one.cancel()
    jailed.wait_gone(mark)


def test_two_servers_at_once_do_not_disturb_each_other(start_mcp):
    servers, mark = [start_mcp() for _ in range(6)], jailed.marker()
    asked = [mcp.begin_call("execute_code", {"code": f"{HELD}{n}", "args": [mark], "timeout": LONGEST}) for n, mcp in enumerate(servers)]
    jailed.let_go(mark, 6)
    assert [mcp_client.data_of(one.result())["result"] for one in asked] == list(range(6))


@pytest.mark.private("a brigd below the server is looked for")
def test_starting_does_nothing_until_a_tool_is_called(start_mcp):
    """The official client starts the program twice for one connection."""
    mcp = start_mcp()
    mcp.request("server/discover")
    mcp.list_tools()
    assert not host.children(mcp.pid), "a brigd without a tool call"
    mcp.execute("1")
    assert host.children(mcp.pid)


def test_twenty_megabytes_of_output_are_cut_and_said_so(start_mcp):
    mcp = start_mcp()
    for code in ("print('x' * (20 << 20))", "import sys\nfor n in range(400000): print('y' * 50)", "import os\nfor _ in range(320): os.write(2, b'z' * 65536)"):
        result = mcp.call("execute_code", {"code": code})
        assert len(json.dumps(result)) < 8 << 20
        said = mcp_client.data_of(result)
        assert said["truncated"] and len(said["stdout"]) + len(said["stderr"]) < (2 << 20) + 10000, {**said, "stdout": "", "stderr": ""}
    text = mcp_client.text_of(mcp.call("execute_code", {"code": "print('x' * (20 << 20))", "format": "text"}))
    assert len(text.encode()) < 10 << 10 and "x" * 100 in text, text[:300]
    resident = next(int(line.split()[1]) for line in host.read(f"/proc/{mcp.pid}/status").splitlines() if line.startswith("VmHWM"))
    assert resident < 64 << 10, f"brig-mcp grew to {resident} KiB"


def test_output_that_is_no_text_arrives_as_text(start_mcp):
    said = start_mcp().execute(r"import os; os.write(1, bytes(range(256)) + b'\xf0\x9f\x98' + '\u2028\ud7ff'.encode() + b'\x1b[31mred\x1b[0m')")
    assert "red" in said["stdout"] and "\x1b" not in said["stdout"] and "\ufffd" in said["stdout"], said


# --- lines ----------------------------------------------------------------------------------------------------------

GOOD_IDS = [0, -1, 1, "1", "", "x" * 5000, "äöü\u2028😀", "\u0000", 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
BAD_IDS = [None, True, 1.5, [], {}, [1]]


@pytest.mark.parametrize("revision", [mcp_client.MODERN, "2025-11-25"])
def test_an_id_comes_back_as_it_was(start_mcp, revision):
    mcp = start_mcp(revision=revision)
    for id_ in GOOD_IDS:
        asked = mcp.begin("tools/list", id=id_)
        assert asked.result() and asked.reply["id"] == id_ and type(asked.reply["id"]) is type(id_), asked.reply
    mark = jailed.marker()
    both = [mcp.begin_call("execute_code", {"code": f"{HELD}{n}", "args": [mark]}, id=id_) for n, id_ in enumerate((1, "1"))]
    jailed.let_go(mark, 2)
    assert [mcp_client.data_of(one.result())["result"] for one in both] == [0, 1] # 1 and "1" are two


@pytest.mark.parametrize("id_", BAD_IDS, ids=json.dumps)
def test_an_id_that_is_none_is_refused(start_mcp, id_):
    mcp = start_mcp()
    mcp.send(json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/list"}).encode() + b"\n")
    said = mcp.stray()
    assert said["error"]["code"] == -32600 and "id" not in said, said
    assert mcp.list_tools()


def test_an_id_that_is_larger_than_any_number_is_refused_and_the_next_line_is_read(start_mcp):
    mcp = start_mcp()
    mcp.send(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % 2**64)
    assert mcp.stray()["error"]["code"] in (-32700, -32600)
    assert mcp.list_tools()


def test_an_id_that_is_in_use_is_refused_and_the_first_call_goes_on(start_mcp):
    mcp, mark = start_mcp(), jailed.marker()
    first = mcp.begin_call("execute_code", {"code": HELD + "'first'", "args": [mark]}, id="same")
    second = mcp.begin("tools/list", id="same")
    assert second.refused()["code"] == -32600
    jailed.let_go(mark)
    assert mcp_client.data_of(first.result())["result"] == "first"


BROKEN = [b"{", b"nonsense", b'{"jsonrpc":"2.0","id":"b","method":"tools/list"', b"\xff\xfe", b'{"jsonrpc":"2.0","id":1,"method":"\xc3\x28"}', b"[" * 100000,
          b'{"a":' * 5000 + b"1" + b"}" * 5000, b'"text"', b"7", b"null", b"[]", b"[1]", b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
          b'{"id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
          b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}', b"\0",
          b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":2,"method":"tools/list"}']


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: line[:40].decode(errors="backslashreplace"))
def test_a_broken_line_is_answered_and_the_next_one_read(start_mcp, line):
    mcp = start_mcp()
    mcp.send(line + b"\n")
    assert mcp.stray()["error"]["code"] in (-32700, -32600, -32602)
    assert mcp.list_tools()


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read(start_mcp):
    mcp = start_mcp()
    mcp.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"' + b"x" * (20 << 20) + b'"}}\n')
    assert mcp.stray()["error"]["code"] in (-32700, -32600)
    assert mcp.list_tools()
    resident = next(int(line.split()[1]) for line in host.read(f"/proc/{mcp.pid}/status").splitlines() if line.startswith("VmHWM"))
    assert resident < 40 << 10, f"brig-mcp grew to {resident} KiB"


def test_lines_may_come_in_any_pieces(start_mcp):
    mcp = start_mcp()
    whole = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list"}\r\n\r\n\n  \n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    for n in range(len(whole)):
        mcp.write(whole[n:n + 1])
    assert [mcp.stray()["id"], mcp.stray()["id"]] == [1, 2]
    mcp.write(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n for n in range(500)))
    assert {mcp.stray()["id"] for _ in range(500)} == set(range(500))


# --- of two minds ---------------------------------------------------------------------------------------------------

def test_all_revisions_on_one_pipe_at_the_same_time(start_mcp):
    mcp = start_mcp()
    mcp.request("server/discover")
    for revision in (*mcp_client.LEGACY, mcp_client.MODERN, *reversed(mcp_client.LEGACY)):
        mark = jailed.marker()
        asked = mcp.begin_call("execute_code", {"code": HELD + "7", "args": [mark]}, revision=revision)
        modern = mcp.begin("tools/list")
        assert "resultType" in modern.result()
        jailed.let_go(mark)
        result = asked.result()
        assert mcp_client.data_of(result)["result"] == 7 and ("resultType" in result) == (revision == mcp_client.MODERN)
    with pytest.raises(mcp_client.Refused) as refused:
        mcp.request("initialize", {"protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": mcp_client.CLIENT})
    assert refused.value.code == -32601
    assert mcp.initialize("2024-11-05")["protocolVersion"] == "2024-11-05"
    with pytest.raises(mcp_client.Refused) as refused:
        mcp.request("ping")
    assert refused.value.code == -32601 and mcp.request("ping", revision="2024-11-05") == {}


def test_a_revision_that_nobody_knows_is_refused_with_those_that_are(start_mcp):
    mcp = start_mcp()
    asked = mcp.begin("tools/list", meta={"io.modelcontextprotocol/protocolVersion": "2031-01-01"})
    error = asked.refused()
    assert error["code"] == -32022 and error["data"]["requested"] == "2031-01-01" and mcp_client.MODERN in error["data"]["supported"], error


# --- longer than the client waits -----------------------------------------------------------------------------------

def test_a_run_that_outlasts_the_client_is_waited_for_by_its_handle(start_mcp):
    mcp, mark = start_mcp("--yield-after", "0.3"), jailed.marker()
    said = mcp.execute("print('begun', flush=True)\n" + HELD + "print('done')\n42", args=[mark])
    assert said["success"] is not True and said["execution_id"], said
    jailed.let_go(mark)
    later = mcp.data("wait_execution", {"execution_id": said["execution_id"], "timeout": LONGEST})
    assert later["success"] is True and later["result"] == 42 and later["execution_id"] == said["execution_id"] and "done" in later["stdout"], later


def test_a_yielded_run_can_be_cancelled_and_dies_with_the_server(start_mcp, nothing_left):
    mcp, marks = start_mcp("--yield-after", "0.1"), [jailed.marker(), jailed.marker()]
    first, _ = [mcp.execute(FOREVER, args=[mark], timeout_s=LONGEST) for mark in marks]
    jailed.wait_for(marks[1])
    mcp.call("cancel_execution", {"execution_id": first["execution_id"]})
    jailed.wait_gone(marks[0])
    assert jailed.processes(marks[1])
    for wrong in ("", "x", first["execution_id"][:-1] + ("1" if first["execution_id"].endswith("0") else "0"), 7, None, "../../etc"):
        for tool in ("wait_execution", "cancel_execution"):
            assert mcp.call(tool, {"execution_id": wrong}).get("isError") is True, (tool, wrong)
    mcp.close()
    jailed.wait_gone(marks[1])


@pytest.mark.long
@pytest.mark.parametrize("sdk, mode", [("v1", None), ("v2", {"pin": mcp_client.MODERN})], ids=["v1", "v2"])
def test_ninety_seconds_with_a_client_that_waits_sixty(built_mcp, sdk, mode):
    """No progress is asked for: the first call must be back in time, and the handle does the rest."""
    if node.lacks():
        pytest.skip(node.lacks())
    code = "import time\nfor n in range(90):\n    print(n, flush=True)\n    time.sleep(1)\n'done'"
    said = node.drive([{"do": "call", "name": "execute_code", "arguments": {"code": code, "timeout": 120}},
                       {"do": "wait", "name": "wait_execution"}], sdk=sdk, mode=mode, command=[mcp_client.binary()], timeout=90 + host.HANG)
    first, rest = said["steps"]
    assert json.loads(first["result"]["content"][0]["text"])["exit_reason"] == "running"
    assert json.loads(rest[-1]["result"]["content"][0]["text"])["result"] == "done", said


# --- everything at once ---------------------------------------------------------------------------------------------

QUICK = ["print(1)", "1 / 0", "6 * 7", "import os; os.abort()", "import time; time.sleep(0.2)", "print('x' * 300000)", "def", "import sys; sys.exit(3)"]


class Monkey:
    """Does whatever comes to its mind; remembers which answers it may expect."""

    def __init__(self, mcp, seed):
        self.mcp, self.dice, self.open, self.broken = mcp, random.Random(seed), [], 0

    def revision(self):
        return self.dice.choice([mcp_client.MODERN, mcp_client.MODERN, *mcp_client.LEGACY])

    def run(self):
        token = {"token": self.dice.choice([None, f"t{len(self.open)}"])}
        self.open.append(self.mcp.begin_call("execute_code", {"code": self.dice.choice(QUICK), "timeout": 5}, revision=self.revision(), **token))

    def ask(self):
        method = self.dice.choice(["tools/list", "tools/list", "no/such", "ping", "server/discover"])
        self.open.append(self.mcp.begin(method, revision=mcp_client.MODERN if method == "server/discover" else self.revision()))

    def check(self):
        self.open.append(self.mcp.begin_call("validate_code", {"code": self.dice.choice(QUICK)}, revision=self.revision()))

    def mistake(self):
        name, arguments = self.dice.choice([("execute_code", {}), ("execute_code", {"code": 1}), ("nothing", {}), (7, {}),
                                            ("wait_execution", {"execution_id": "x"})])
        self.open.append(self.mcp.begin("tools/call", {"name": name, "arguments": arguments}, revision=self.revision()))

    def cancel(self):
        if self.open:
            self.dice.choice(self.open).cancel()

    def garble(self):
        self.broken += 1
        self.mcp.send(self.dice.choice(BROKEN[:3]) + b"\n")

    def pause(self):
        threading.Event().wait(self.dice.random() * 0.05)

    def go(self, steps):
        ways = [self.run] * 4 + [self.ask] * 3 + [self.check, self.mistake, self.cancel, self.cancel, self.garble, self.pause]
        for _ in range(steps):
            self.dice.choice(ways)()
        for asked in self.open:
            if not asked.cancelled:
                assert asked.wait() is not None
        for _ in range(self.broken):
            assert self.mcp.stray()["error"]["code"] in (-32700, -32600)


@pytest.mark.sample(1)
@pytest.mark.private("a brigd below the server is looked for")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_client_does_each_request_is_answered_once(start_mcp, seed):
    mcp = start_mcp("--progress", "0.25")
    Monkey(mcp, seed).go(120)
    assert mcp.execute("'still there'")["result"] == "still there" and not mcp.strays, mcp.strays
    assert len(host.children(mcp.pid)) <= 1, host.children(mcp.pid)
