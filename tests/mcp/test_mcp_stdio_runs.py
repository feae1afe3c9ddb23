"""brig-mcp on stdin and stdout while programs run: what goes on beside them, and what is left when somebody goes."""
import json
import random
import re
import signal
import time

import jailed
import pytest
from jailed import FOREVER, HELD, LONGEST

import raw_server
from support import host, mcp


@pytest.fixture
def mark():
    return jailed.marker()


def execute_forever(number, mark):
    return raw_server.execute(number, FOREVER, args=[mark], timeout=LONGEST)


# --- side by side ------------------------------------------------------------------------------------------------

def test_the_list_is_answered_while_a_program_runs(mcp, mark):
    call, = jailed.begin(mcp, mark)
    for revision in (*mcp_revisions(), None):
        mcp.request("tools/list", revision=revision)
    assert call.reply is None and jailed.processes(mark)
    call.cancel()


def mcp_revisions():
    return mcp.REVISIONS


def test_answers_come_in_the_order_in_which_programs_end(mcp, mark):
    slow = mcp.begin_call("execute_code", {"code": HELD + "'slow'", "args": [mark]})
    quick = mcp.begin_call("execute_code", {"code": "'quick'"})
    assert json.loads(quick.result()["content"][0]["text"])["result"] == "quick"
    assert slow.reply is None
    jailed.let_go(mark)
    assert json.loads(slow.result()["content"][0]["text"])["result"] == "slow"


def test_both_eras_run_programs_on_one_pipe(mcp):
    for revision in (*mcp_revisions(), *reversed(mcp_revisions())):
        assert mcp.execute("6 * 7", revision=revision)["result"] == 42


def test_an_id_that_is_being_worked_on_cannot_be_used_again(mcp):
    first = mcp.begin_call("execute_code", {"code": FOREVER}, id="same")
    second = mcp.begin_call("execute_code", {"code": "1"}, id="same")
    assert second.refused()["code"] == -32600
    assert first.reply is None
    first.cancel()
    third = mcp.begin_call("execute_code", {"code": "1"}, id="same") # the client gives its answer to the first that has none
    answered = host.poll(lambda: third.reply or first.reply)
    assert json.loads(answered["result"]["content"][0]["text"])["result"] == 1


# --- cancelled -----------------------------------------------------------------------------------------------------

def test_a_cancelled_call_is_never_answered_and_its_jail_is_gone(mcp, mark, nothing_left):
    call, = jailed.begin(mcp, mark)
    call.cancel()
    jailed.wait_gone(mark)
    mcp.request("tools/list")
    assert call.reply is None


def test_one_of_many_is_cancelled(mcp):
    marks = [jailed.marker() for _ in range(6)]
    calls = [mcp.begin_call("execute_code", {"code": HELD + "1", "args": [mark]}) for mark in marks]
    calls[2].cancel()
    calls[4].cancel()
    for number, mark in enumerate(marks):
        jailed.wait_gone(mark) if number in (2, 4) else jailed.let_go(mark)
    for number, call in enumerate(calls):
        if number not in (2, 4):
            assert json.loads(call.result()["content"][0]["text"])["result"] == 1
    assert calls[2].reply is None and calls[4].reply is None


def test_of_a_batch_the_programs_that_were_not_cancelled_are_answered_together(mcp, mark):
    mcp.initialize("2025-03-26")

    def call(number, code, **arguments):
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": code, **arguments}}}
    mcp.send([call("a", "1"), call("b", FOREVER, args=[mark], timeout=LONGEST), {"jsonrpc": "2.0", "id": "c", "method": "ping"}])
    jailed.wait_for(mark)
    mcp.request("ping", revision="2025-03-26")
    assert not mcp.strays, "the batch is answered when all of it is done"
    mcp.notify("notifications/cancelled", {"requestId": "b"}, revision="2025-03-26")
    said = {one["id"]: one["result"] for one in (mcp.stray(), mcp.stray())}
    assert said["c"] == {} and json.loads(said["a"]["content"][0]["text"])["result"] == 1


# --- too many ------------------------------------------------------------------------------------------------------

def test_a_call_too_many_is_refused_with_when_to_try_again(start_mcp):
    server = start_mcp("--max-calls", "2")
    held = [server.begin_call("execute_code", {"code": FOREVER}) for _ in range(2)]
    said = server.call("execute_code", {"code": "1"})
    text = said["content"][0]["text"]
    assert said["isError"] is True and "Busy: 2 calls" in text and "ry again" in text
    held[0].cancel()
    assert server.execute("1")["result"] == 1
    held[1].cancel()


def test_who_has_too_many_calls_can_end_one(start_mcp):
    server = start_mcp("--max-calls", "1", "--yield-after", "0.1")
    handle = server.execute(FOREVER, timeout=LONGEST)["execution_id"]
    held = server.begin_call("wait_execution", {"execution_id": handle, "timeout": LONGEST})
    assert "Busy" in server.call("execute_code", {"code": "1"})["content"][0]["text"]
    assert server.data("cancel_execution", {"execution_id": handle})["exit_reason"] == "cancelled"
    held.wait()


def test_a_call_too_many_in_a_minute_is_refused_with_when_to_try_again(start_mcp):
    server = start_mcp("--calls-per-minute", "2")
    assert [server.execute("1")["result"] for _ in range(2)] == [1, 1]
    said = server.call("execute_code", {"code": "1"})
    text = said["content"][0]["text"]
    assert said["isError"] is True and "2 a minute" in text and "ry again in " in text


# --- progress --------------------------------------------------------------------------------------------------------

def test_progress_and_the_answer_are_written_apart(start_mcp, tmp_path):
    """Clients forget whom the progress was for when they read the answer with it. What a busy machine lets a client read is not up to the server."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    log = tmp_path / "strace"
    server = start_mcp("-ttt", "-s", "60", "-e", "trace=write", "-o", log, mcp.conformance(), program="strace")
    for number in range(10):
        call = server.begin_call("test_tool_with_progress", {}, token=number)
        call.result()
        assert len(call.progress()) >= 3
    server.close()
    written = re.findall(r'^([\d.]+) write\(\d+, "\{\\"jsonrpc\\":\\"2\.0\\",\\"(\w+)', log.read_text(), re.M)
    assert [kind for _, kind in written].count("id") == 10
    apart = [float(after) - float(before) for (before, progress), (after, kind) in zip(written, written[1:]) if (progress, kind) == ("method", "id")]
    assert len(apart) == 10 and min(apart) > 0.002, apart


def test_progress_is_told_while_a_program_runs(start_mcp, mark):
    server = start_mcp("--progress", "0.25")
    silent, call = (server.begin_call("execute_code", {"code": HELD, "args": [mark]}, token=token) for token in (None, "t"))
    assert len(call.wait_progress(3)) >= 3
    jailed.let_go(mark, 2)
    call.result()
    # Without a token nothing is told: progress that nobody waits for is Invalid.
    assert silent.result()["isError"] is False


# --- ends --------------------------------------------------------------------------------------------------------------

@pytest.mark.nightly
def test_the_end_of_input_ends_programs(start_mcp, mark, nothing_left):
    server = start_mcp()
    jailed.begin(server, mark)
    server.end_input()
    assert server.wait() == 0
    jailed.wait_gone(mark)


def test_a_quick_program_may_finish_after_the_end_of_input(built_mcp, mark, nothing_left):
    with raw_server.with_pipes() as server:
        quick = jailed.marker()
        server.say(raw_server.execute(1, HELD + "6 * 7", args=[quick]) + execute_forever(2, mark))
        jailed.wait_held(quick)
        jailed.wait_for(mark)
        server.shut()
        jailed.let_go(quick)
        said = server.hear()
        assert said["id"] == 1 and json.loads(said["result"]["content"][0]["text"])["result"] == 42
        assert server.hear() is None and server.wait() == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_programs(start_mcp, mark, nothing_left, number):
    server = start_mcp()
    jailed.begin(server, mark)
    assert server.kill(number) == 0
    jailed.wait_gone(mark)


def test_a_server_that_is_killed_leaves_nothing(start_mcp, mark, nothing_left):
    server = start_mcp()
    jailed.begin(server, mark, 3)
    server.kill(signal.SIGKILL)
    jailed.wait_gone(mark)


@pytest.mark.nightly
def test_clients_that_go_at_any_moment_leave_nothing(built_mcp, mark, nothing_left):
    choose = random.Random(5)
    for _ in range(12):
        with raw_server.with_pipes() as server:
            server.say(raw_server.execute(1, "1") + execute_forever(2, mark) + raw_server.request(3, "tools/list"))
            time.sleep(choose.random() * 0.15) # the moment is what is tried here
            server.deafen()
            server.shut()
            assert server.wait() == 0
    jailed.wait_gone(mark)


def test_a_reader_that_is_gone_ends_programs_too(built_mcp, mark, nothing_left):
    with raw_server.with_pipes() as server:
        server.say(execute_forever(1, mark))
        jailed.wait_for(mark)
        server.deafen()
        assert server.wait() == 0
    jailed.wait_gone(mark)


# --- two of them ---------------------------------------------------------------------------------------------------------

def test_two_servers_at_once_do_not_meet(start_mcp, nothing_left):
    """Clients start one to ask, and one to work with."""
    first, second = start_mcp(), start_mcp()
    calls = [server.begin_call("execute_code", {"code": f"{number} + 1"}) for number in range(4) for server in (first, second)]
    assert [json.loads(call.result()["content"][0]["text"])["result"] for call in calls] == [1, 1, 2, 2, 3, 3, 4, 4]
    first.kill(signal.SIGKILL)
    assert second.execute("1")["result"] == 1


def test_a_server_that_was_only_asked_disturbs_nobody(start_mcp, mark):
    working = start_mcp()
    call = working.begin_call("execute_code", {"code": HELD + "1", "args": [mark]})
    for _ in range(5):
        with raw_server.with_pipes() as probe:
            probe.ask(1, "server/discover")
            probe.shut()
            assert probe.wait() == 0
    jailed.let_go(mark)
    assert json.loads(call.result()["content"][0]["text"])["result"] == 1
