"""Many clients of one HTTP server: at once, in every revision, gone at any moment. Every answer is validated against its revision's schema."""
import random
import threading

import jailed
import pytest
from jailed import FOREVER, HELD, LONGEST

from support import mcp as mcp_client


@pytest.fixture
def server(start_http):
    return start_http()


@pytest.fixture
def mark():
    return jailed.marker()


@pytest.mark.sample(2)
@pytest.mark.parametrize("revision", mcp_client.REVISIONS)
def test_each_revision_is_served(server, revision):
    with server.client(revision) as mcp:
        assert list(mcp.list_tools())[:3] == ["execute_code", "validate_code", "get_sandbox_info"]
        assert mcp.execute("print('x')\n7")["result"] == 7
        assert mcp.data("validate_code", {"code": "1"})["valid"] is True
        assert mcp.data("get_sandbox_info")["isolation"]
        assert mcp.call("execute_code", {"code": ""})["isError"] is True
        with pytest.raises(mcp_client.Refused) as refused:
            mcp.request("no/such")
        assert refused.value.code == -32601
        mcp.begin_call("execute_code", {"code": "1"}, token="t").result()


@pytest.mark.nightly
def test_a_hundred_calls_of_a_hundred_clients_each_get_their_own_answer(server):
    clients = [server.client(mcp_client.REVISIONS[n % len(mcp_client.REVISIONS)]) for n in range(100)]
    asked = [mcp.begin_call("execute_code", {"code": f"print({n})\n{n} * 2"}) for n, mcp in enumerate(clients)]
    replies = [mcp_client.data_of(one.result()) for one in asked]
    assert [(one["stdout"], one["result"]) for one in replies] == [(f"{n}\n", n * 2) for n in range(100)], [one for one in replies if not one["success"]][:2]
    for mcp in clients:
        mcp.close()


@pytest.mark.parametrize("token", [{}, {"token": "t"}], ids=["silent", "told progress"])
def test_a_modern_client_that_goes_takes_its_run_along(server, mark, token):
    with server.client() as mcp:
        asked, = jailed.begin(mcp, mark, **token)
        asked.close()
        jailed.wait_gone(mark)
        assert mcp.execute("2")["result"] == 2


def test_a_legacy_client_that_goes_does_not_cancel_and_one_that_says_so_does(server, mark):
    with server.client("2025-06-18") as mcp:
        asked, = jailed.begin(mcp, mark, id=4711)
        asked.close()
        assert mcp.execute("2")["result"] == 2 and jailed.processes(mark)
    server.stop()
    jailed.wait_gone(mark)


@pytest.mark.nightly
def test_clients_that_go_at_random_moments_leave_nothing(server, mark, nothing_left):
    dice = random.Random(5)
    with server.client() as mcp:
        for _ in range(40):
            call = {"code": FOREVER, "args": [mark], "timeout": LONGEST}
            asked = [mcp.begin_call("execute_code", call, **({"token": n} if n % 2 else {})) for n in range(1, 3)]
            threading.Event().wait(dice.random() * 0.15) # the moment is what is tried here
            for one in asked:
                one.close()
        jailed.wait_gone(mark)
        assert mcp.execute("'still there'")["result"] == "still there"
    server.stop()


def test_a_server_that_is_stopped_ends_every_run(server, mark, nothing_left):
    jailed.begin(server.client(), mark, 3)
    assert server.stop() == 0
    jailed.wait_gone(mark)


def test_handles_belong_to_whoever_began_the_run(start_http, mark):
    server = start_http("--yield-after", "0.3")
    with server.client() as mcp, server.client("2025-11-25") as same:
        said = mcp.execute(HELD + "42", args=[mark])
        assert said["exit_reason"] in (None, "running"), said
        jailed.let_go(mark)
        later = same.data("wait_execution", {"execution_id": said["execution_id"], "timeout": LONGEST})
        assert later["result"] == 42, later
