"""Runs that are not wanted any more: cancelled, yielded, left behind by their client, or by their brigd."""
import json
import random
import time

import jailed
import pytest
from jailed import FOREVER, HELD, LONGEST

from support import host
from support import mcp as mcp_client


def begin(mcp):
    """A program that is surely running: (what was asked, its mark)."""
    mark = jailed.marker()
    asked, = jailed.begin(mcp, mark, token=mark)
    return asked, mark


def yielded(mcp, code, before="", **arguments):
    """A run with a handle whose program stays until it is let go, and then does that: (its handle, its mark)."""
    mark = jailed.marker()
    said = mcp.execute(before + HELD + code, args=[mark], timeout=LONGEST, **arguments)
    assert said["exit_reason"] == "running", said
    return said["execution_id"], mark


def result_of(mcp, handle):
    """What it answers when the run has ended."""
    return mcp.data("wait_execution", {"execution_id": handle, "timeout": LONGEST})


def wait_for_line(asked, line):
    """Until the server has read it."""
    count = 1
    while not any(line in one["message"] for one in asked.wait_progress(count)):
        assert asked.reply is None, "it ended before"
        count = len(asked.progress()) + 1


# --- notifications/cancelled ------------------------------------------------------------------------------

def test_cancel_frees_the_jail(mcp, nothing_left):
    """How soon is measured by bench/mcp.py."""
    for _ in range(5):
        asked, mark = begin(mcp)
        asked.cancel()
        jailed.wait_gone(mark)


def test_nothing_is_answered_to_a_call_that_was_cancelled(mcp):
    asked, mark = begin(mcp)
    asked.cancel()
    jailed.wait_gone(mark)
    assert mcp.execute("2 + 2")["result"] == 4
    assert asked.reply is None and not mcp.strays


def test_cancel_before_the_run_has_started_is_not_forgotten(mcp, nothing_left):
    """Both lines arrive together: the run is cancelled before brigd has said that it started, at whatever moment that is."""
    mark = jailed.marker()
    for _ in range(10):
        asked = mcp.begin_call("execute_code", {"code": FOREVER, "args": [mark], "timeout": LONGEST})
        asked.cancel()
    assert mcp.execute("1")["result"] == 1
    jailed.wait_gone(mark)


def test_cancel_at_any_moment_of_the_start(mcp, nothing_left):
    mcp.execute("1")
    mark = jailed.marker()
    dice = random.Random(5)
    for _ in range(20):
        asked = mcp.begin_call("execute_code", {"code": FOREVER, "args": [mark], "timeout": LONGEST, "validate": dice.random() < 0.3})
        time.sleep(dice.random() * 0.06) # the moment is what is varied
        asked.cancel()
    jailed.wait_gone(mark)
    assert mcp.execute("1")["result"] == 1


def test_cancel_of_a_check_and_of_a_survey_leaves_nothing(start_mcp, nothing_left):
    for tool, arguments in (("validate_code", {"code": "x = 1\n" * 20000}), ("get_sandbox_info", {}), ("list_capabilities", {})):
        mcp = start_mcp()
        for _ in range(5):
            mcp.begin_call(tool, arguments).cancel()
        assert mcp.execute("1")["result"] == 1


# --- handles ----------------------------------------------------------------------------------------------

def test_a_long_run_answers_with_a_handle_and_is_waited_for(start_mcp, nothing_left):
    mcp, mark = start_mcp("--yield-after", "0.3"), jailed.marker()
    first = mcp.execute("print('first', flush=True)\n" + HELD + "print('last')\n'end'", args=[mark])
    assert first["exit_reason"] == "running" and first["success"] is False and first["error"] is None
    assert first["execution_id"] in first["hint"] and "wait_execution" in first["hint"]
    handle = {"execution_id": first["execution_id"], "timeout": 0.1}
    assert host.poll(lambda: (so_far := mcp.data("wait_execution", handle))["stdout"] == "first\n" and so_far["exit_reason"] == "running")
    jailed.let_go(mark)
    last = result_of(mcp, first["execution_id"])
    assert last["execution_id"] == first["execution_id"]
    assert last["success"] is True and last["result"] == "end" and last["stdout"] == "first\nlast\n"


def test_wait_execution_answers_with_what_is_new(start_mcp):
    mcp, mark = start_mcp("--yield-after", "0.1"), jailed.marker()
    said = [mcp.data("execute_code", {"code": "print('first', flush=True)\n" + HELD + "print('last')", "args": [mark]})]
    handle = {"execution_id": said[0]["execution_id"], "timeout": 0.1}
    assert host.poll(lambda: "first\n" in [one["stdout"] for one in said] or said.append(mcp.data("wait_execution", handle)))
    assert mcp.data("wait_execution", handle)["stdout"] == "", "what was told is not told again"
    jailed.let_go(mark)
    for _ in range(2):
        assert result_of(mcp, handle["execution_id"])["stdout"] == "last\n"


def test_wait_execution_also_works_after_the_end_and_more_than_once(start_mcp):
    mcp = start_mcp("--yield-after", "0.1")
    handle, mark = yielded(mcp, "42")
    jailed.let_go(mark)
    result_of(mcp, handle)
    for _ in range(2):
        said = mcp.data("wait_execution", {"execution_id": handle})
        assert said["result"] == 42 and said["exit_reason"] == "exited"


def test_wait_execution_answers_in_its_own_time(start_mcp):
    """The program would go on for minutes."""
    mcp = start_mcp("--yield-after", "0.1")
    handle = mcp.execute(FOREVER, timeout=LONGEST)["execution_id"]
    began = time.monotonic()
    assert mcp.data("wait_execution", {"execution_id": handle, "timeout": 0.5})["exit_reason"] == "running"
    assert time.monotonic() - began >= 0.5


def test_a_wait_that_is_cancelled_leaves_the_run_alone(start_mcp):
    mcp = start_mcp("--yield-after", "0.1")
    handle, mark = yielded(mcp, "7")
    waiting = mcp.begin_call("wait_execution", {"execution_id": handle})
    waiting.cancel()
    jailed.let_go(mark)
    assert result_of(mcp, handle)["result"] == 7
    assert waiting.reply is None


def test_several_may_wait_for_one_run(start_mcp):
    mcp = start_mcp("--yield-after", "0.1")
    handle, mark = yielded(mcp, "7")
    waiting = [mcp.begin_call("wait_execution", {"execution_id": handle, "timeout": LONGEST}) for _ in range(5)]
    jailed.let_go(mark)
    assert [mcp_client.data_of(one.result())["result"] for one in waiting] == [7] * 5


def test_cancel_execution_ends_it_and_tells_what_it_wrote(start_mcp, nothing_left):
    mcp = start_mcp("--yield-after", "0.1")
    mark = jailed.marker()
    handle = mcp.execute(FOREVER, args=[mark], timeout=LONGEST)["execution_id"]
    assert host.poll(lambda: mcp.data("wait_execution", {"execution_id": handle, "timeout": 0.1})["stdout"])
    for _ in range(2): # the second time it has ended
        said = mcp.data("cancel_execution", {"execution_id": handle})
        assert said["exit_reason"] == "cancelled" and said["stdout"] == "begun\n" and said["error"] == "Cancelled"
        assert not jailed.processes(mark)


@pytest.mark.parametrize("tool", ["wait_execution", "cancel_execution"])
def test_an_unknown_handle_is_told_what_to_do(mcp, tool):
    for handle in ("nope", "", "00000000-0000-4000-8000-000000000000"):
        result = mcp.call(tool, {"execution_id": handle})
        said = mcp_client.data_of(result)
        assert result["isError"] is True and said["exit_reason"] == "denied"
        assert "there is no run" in said["error"] and "execute_code" in said["error"]


def test_a_run_that_has_no_handle_cannot_be_found(mcp):
    said = mcp.execute("1")
    assert mcp.call("wait_execution", {"execution_id": said["execution_id"]})["isError"] is True


def test_what_a_running_program_wrote_so_far_is_whole_characters(start_mcp):
    mcp = start_mcp("--yield-after", "0.1")
    handle, mark = yielded(mcp, "sys.stdout.buffer.write(b'\\xac')", before="import sys\nsys.stdout.buffer.write(b'a\\xe2\\x82')\nsys.stdout.flush()\n")
    seen = []
    while "a" not in seen:
        said = mcp.data("wait_execution", {"execution_id": handle, "timeout": 0.1})
        assert said["exit_reason"] == "running" and said["stdout"] in ("", "a")
        seen.append(said["stdout"])
    jailed.let_go(mark)
    assert result_of(mcp, handle)["stdout"] == "a€"


@pytest.mark.nightly
def test_results_are_kept_in_a_bounded_number(start_mcp, nothing_left):
    """64 of them; the oldest go first."""
    mcp = start_mcp("--yield-after", "0.02")
    handles = []
    for _ in range(70):
        handle, mark = yielded(mcp, "")
        jailed.let_go(mark)
        handles.append(handle)
    for handle in handles[-10:]:
        assert result_of(mcp, handle)["exit_reason"] == "exited"
    assert host.poll(lambda: mcp.call("wait_execution", {"execution_id": handles[0]})["isError"])
    known = [not mcp.call("wait_execution", {"execution_id": handle})["isError"] for handle in handles]
    assert known.count(True) == 64 and all(known[-10:])


@pytest.mark.nightly
def test_results_are_kept_in_a_bounded_number_of_bytes(start_mcp):
    """64 MiB: twenty results of 4 MiB are too many."""
    mcp = start_mcp("--yield-after", "0.02", "--output", "4M", "--memory", "256M")
    handles = []
    for _ in range(20):
        handle, mark = yielded(mcp, "import sys\nsys.stdout.write('x' * 2**22)")
        jailed.let_go(mark)
        handles.append(handle)
        assert result_of(mcp, handle)["usage"]["stdout_bytes"] == 2**22
    known = [not mcp.call("wait_execution", {"execution_id": handle})["isError"] for handle in handles]
    assert 8 <= known.count(True) <= 16 and known[-1] and not known[0], known


def test_yield_after_0_waits_for_the_end(start_mcp):
    mcp = start_mcp("--yield-after", "0")
    assert mcp.execute("import time; time.sleep(0.2); 5")["result"] == 5


# --- progress ---------------------------------------------------------------------------------------------

def test_progress_tells_the_time_and_the_last_line(start_mcp):
    mcp, mark = start_mcp("--progress", "0.25"), jailed.marker()
    code = "for i in range(4): print('\\x1b[31mline', i, '\\x1b[0m', flush=True)\n" + HELD
    asked = mcp.begin_call("execute_code", {"code": code, "args": [mark], "timeout": LONGEST}, token="t")
    wait_for_line(asked, "last output: line 3")
    count = len(asked.progress())
    assert len(asked.wait_progress(count + 2)) >= count + 2 # though it prints nothing
    jailed.let_go(mark)
    asked.result()
    said = asked.progress()
    assert all(one["total"] == LONGEST for one in said)
    assert "\x1b" not in json.dumps(said) and "u001b" not in json.dumps(said)


def test_progress_is_bounded_and_whole_characters(start_mcp):
    mcp, mark = start_mcp("--progress", "0.25"), jailed.marker()
    asked = mcp.begin_call("execute_code", {"code": "print('\\u20ac' * 100000, end='', flush=True)\n" + HELD, "args": [mark], "timeout": LONGEST}, token=1)
    wait_for_line(asked, "\u20ac")
    jailed.let_go(mark)
    asked.result()
    assert all(len(one["message"].encode()) < 200 and "�" not in one["message"] for one in asked.progress())


def test_no_progress_without_a_token(start_mcp):
    """One with a token beside it is told."""
    mcp, mark = start_mcp("--progress", "0.25"), jailed.marker()
    silent, told = (mcp.begin_call("execute_code", {"code": HELD, "args": [mark], "timeout": LONGEST}, token=token) for token in (None, "t"))
    told.wait_progress(2)
    jailed.let_go(mark, 2)
    silent.result()
    assert not silent.progress()


# --- the client goes --------------------------------------------------------------------------------------

def test_end_of_input_ends_everything(start_mcp, nothing_left):
    mcp = start_mcp("--yield-after", "0.3")
    mark = jailed.marker()
    mcp.execute(FOREVER, args=[mark], timeout=LONGEST)                                             # one with a handle
    for _ in range(3):
        mcp.begin_call("execute_code", {"code": FOREVER, "args": [mark], "timeout": LONGEST}) # and three that are waited for
    jailed.wait_for(mark, 4)
    mcp.end_input()
    mcp.wait()
    assert not jailed.processes(mark)


def test_a_server_that_is_killed_at_any_moment_leaves_nothing(start_mcp, nothing_left):
    dice = random.Random(3)
    mark = jailed.marker()
    for _ in range(12):
        mcp = start_mcp()
        for _ in range(3):
            mcp.begin_call("execute_code", {"code": FOREVER, "args": [mark], "timeout": LONGEST})
        time.sleep(dice.random() * 0.15) # the moment is what is varied
        mcp.kill()
    jailed.wait_gone(mark)


# --- brigd goes -------------------------------------------------------------------------------------------

@pytest.mark.private("it kills the server's own brigd")
def test_brigd_killed_is_a_clear_error_and_the_next_call_works(start_mcp, nothing_left):
    mcp = start_mcp("--progress", "0.25")
    asked, mark = begin(mcp)
    wait_for_line(asked, "begun")
    jailed.kill(jailed.brigd_of(mcp))
    result = asked.result()
    said = mcp_client.data_of(result)
    assert result["isError"] is True and said["exit_reason"] == "cancelled" and "brigd was killed" in said["error"]
    assert said["execution_id"] and said["stdout"] == "begun\n"
    assert mcp.execute("2 + 2")["result"] == 4
    jailed.wait_gone(mark)


@pytest.mark.private("it kills the server's own brigd")
def test_brigd_killed_while_idle_goes_unnoticed(mcp):
    for _ in range(5):
        assert mcp.execute("2 + 2")["result"] == 4
        jailed.kill(jailed.brigd_of(mcp))


@pytest.mark.private("it kills the server's own brigd")
def test_brigd_killed_ends_all_calls_that_were_open(start_mcp, nothing_left):
    mcp = start_mcp("--progress", "0.25")
    mcp.execute("1")
    asked = [begin(mcp)[0] for _ in range(4)]
    for one in asked:
        wait_for_line(one, "begun")
    jailed.kill(jailed.brigd_of(mcp))
    for one in asked:
        assert mcp_client.data_of(one.result())["exit_reason"] == "cancelled"
    assert mcp.execute("3")["result"] == 3


def test_a_service_that_does_not_listen_is_told(start_mcp, tmp_path):
    mcp = start_mcp("--server", "service", env={"BRIG_SOCKET": str(tmp_path / "none.sock")})
    result = mcp.call("execute_code", {"code": "1"})
    said = mcp_client.data_of(result)
    assert result["isError"] is True and said["exit_reason"] == "setup_failed" and "start brigd" in said["error"]
    for tool in ("validate_code", "get_sandbox_info", "list_capabilities"):
        result = mcp.call(tool, {"code": "1"} if tool == "validate_code" else {})
        assert result["isError"] is True and "start brigd" in mcp_client.text_of(result)
