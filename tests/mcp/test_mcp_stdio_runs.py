"""brig-mcp on stdin and stdout while programs run: what goes on beside them, and what is left when somebody goes."""
import json
import os
import random
import signal
import time

import pytest

import raw_server
from support import host, mcp, runs

FOREVER = "import time\nprint('on', flush=True)\nwhile True: time.sleep(1)"


def is_running(server, count=1):
    """So many programs are in their cells."""
    return host.poll(lambda: len(jails_of(server)) >= count, 20)


def jails_of(pid):
    """The programs below a server, or the service that it asks, in its cells: their command line is ours to see."""
    found, todo = [], [pid, *([runs.SESSION.service.pid] if runs.SESSION.stands_in() else [])]
    while todo:
        one = todo.pop()
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children", encoding="ascii") as children:
                    todo += [int(child) for child in children.read().split()]
            with open(f"/proc/{one}/cmdline", "rb") as words:
                if b"guest.pyc" in words.read():
                    found.append(one)
        except OSError:
            pass
    return found


# --- side by side ------------------------------------------------------------------------------------------------

def test_the_list_is_answered_while_a_program_runs(mcp):
    call = mcp.begin_call("execute_code", {"code": FOREVER})
    assert is_running(mcp.pid), call.reply
    for revision in (*mcp_revisions(), None):
        began = time.monotonic()
        mcp.request("tools/list", revision=revision)
        assert time.monotonic() - began < 2 * host.SLOWER
    assert call.reply is None
    call.cancel()


def mcp_revisions():
    return mcp.REVISIONS


def test_answers_come_in_the_order_in_which_programs_end(mcp):
    slow = mcp.begin_call("execute_code", {"code": "import time; time.sleep(2); 'slow'"})
    quick = mcp.begin_call("execute_code", {"code": "'quick'"})
    assert json.loads(quick.result()["content"][0]["text"])["result"] == "quick"
    assert slow.reply is None
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
    answered = host.poll(lambda: third.reply or first.reply, 20)
    assert json.loads(answered["result"]["content"][0]["text"])["result"] == 1


# --- cancelled -----------------------------------------------------------------------------------------------------

def test_a_cancelled_call_is_never_answered_and_its_jail_is_gone(mcp, nothing_left):
    call = mcp.begin_call("execute_code", {"code": FOREVER})
    assert is_running(mcp.pid), call.reply
    call.cancel()
    assert host.poll(lambda: not jails_of(mcp.pid), 2), "the program goes on"
    mcp.request("tools/list")
    assert call.reply is None


def test_one_of_many_is_cancelled(mcp):
    calls = [mcp.begin_call("execute_code", {"code": "import time; time.sleep(1.5); 1"}) for _ in range(6)]
    calls[2].cancel()
    calls[4].cancel()
    for number, call in enumerate(calls):
        if number not in (2, 4):
            assert json.loads(call.result()["content"][0]["text"])["result"] == 1
    assert calls[2].reply is None and calls[4].reply is None


def test_of_a_batch_the_programs_that_were_not_cancelled_are_answered_together(mcp):
    mcp.initialize("2025-03-26")

    def call(number, code):
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": code}}}
    mcp.send([call("a", "1"), call("b", FOREVER), {"jsonrpc": "2.0", "id": "c", "method": "ping"}])
    assert is_running(mcp.pid)
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
    server = start_mcp("--max-calls", "1", "--yield-after", "0.2")
    handle = server.execute(FOREVER)["execution_id"]
    held = server.begin_call("wait_execution", {"execution_id": handle})
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

def test_progress_and_the_answer_never_come_in_one_read(start_mcp):
    """Clients forget whom the progress was for when the answer is there."""
    server = start_mcp("--conformance")
    for number in range(10):
        call = server.begin_call("test_tool_with_progress", {}, token=number)
        call.result()
        assert len(call.progress()) >= 3 and not call.together


def test_progress_is_told_while_a_program_runs(start_mcp):
    server = start_mcp("--progress", "0.25")
    call = server.begin_call("execute_code", {"code": "import time; time.sleep(2)"}, token="t")
    call.result()
    assert len(call.progress()) >= 2 and not call.together
    # Without a token nothing is told: progress that nobody waits for is Invalid.
    assert server.begin_call("execute_code", {"code": "import time; time.sleep(1)"}).result()["isError"] is False


# --- ends --------------------------------------------------------------------------------------------------------------

def test_the_end_of_input_ends_programs_within_two_seconds(start_mcp, nothing_left):
    server = start_mcp()
    server.begin_call("execute_code", {"code": FOREVER})
    assert is_running(server.pid)
    began = time.monotonic()
    server.end_input()
    assert server.wait() == 0
    assert time.monotonic() - began < 2 * host.SLOWER


def test_a_quick_program_may_finish_after_the_end_of_input(built_mcp, nothing_left):
    with raw_server.with_pipes() as server:
        server.say(raw_server.execute(1, "6 * 7") + raw_server.execute(2, FOREVER))
        server.shut()
        said = server.hear()
        assert said["id"] == 1 and json.loads(said["result"]["content"][0]["text"])["result"] == 42
        assert server.hear() is None and server.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_programs_within_two_seconds(start_mcp, nothing_left, number):
    server = start_mcp()
    server.begin_call("execute_code", {"code": FOREVER})
    assert is_running(server.pid)
    began = time.monotonic()
    assert server.kill(number) == 0
    assert time.monotonic() - began < 2 * host.SLOWER


def test_a_server_that_is_killed_leaves_nothing(start_mcp, nothing_left):
    server = start_mcp()
    for _ in range(3):
        server.begin_call("execute_code", {"code": FOREVER})
    assert is_running(server.pid, 3)
    server.kill(signal.SIGKILL)


def test_clients_that_go_at_any_moment_leave_nothing(built_mcp, nothing_left):
    choose = random.Random(5)
    for _ in range(12):
        with raw_server.with_pipes() as server:
            server.say(raw_server.execute(1, "1") + raw_server.execute(2, FOREVER) + raw_server.request(3, "tools/list"))
            time.sleep(choose.random() * 0.15) # the moment is what is tried here
            server.deafen()
            server.shut()
            assert server.wait(5) == 0


def test_a_reader_that_is_gone_ends_programs_too(built_mcp, nothing_left):
    with raw_server.with_pipes() as server:
        server.say(raw_server.execute(1, FOREVER))
        assert is_running(server.process.pid)
        server.deafen()
        assert server.wait(3) == 0


# --- two of them ---------------------------------------------------------------------------------------------------------

def test_two_servers_at_once_do_not_meet(start_mcp, nothing_left):
    """Clients start one to ask, and one to work with."""
    first, second = start_mcp(), start_mcp()
    calls = [server.begin_call("execute_code", {"code": f"{number} + 1"}) for number in range(4) for server in (first, second)]
    assert [json.loads(call.result()["content"][0]["text"])["result"] for call in calls] == [1, 1, 2, 2, 3, 3, 4, 4]
    first.kill(signal.SIGKILL)
    assert second.execute("1")["result"] == 1


def test_a_server_that_was_only_asked_disturbs_nobody(start_mcp):
    working = start_mcp()
    call = working.begin_call("execute_code", {"code": "import time; time.sleep(1); 1"})
    for _ in range(5):
        with raw_server.with_pipes() as probe:
            probe.ask(1, "server/discover")
            probe.shut()
            assert probe.wait() == 0
    assert json.loads(call.result()["content"][0]["text"])["result"] == 1
