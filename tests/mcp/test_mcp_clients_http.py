"""Many clients of one HTTP server: at once, in every revision, gone at any moment. Every answer is validated against its revision's schema."""
import random
import threading
import time

import pytest

from support import host
from support import mcp as mcp_client

FOREVER = "import time\nprint('ready', flush=True)\ntime.sleep(120)\n"


def in_jail(token):
    return [pid for pid, uid in host.with_token(token) if uid >= 65536]


def wait_running(token, count=1, seconds=15):
    assert host.poll(lambda: len(in_jail(token)) >= count, seconds), f"{in_jail(token)} of {count} run"


def wait_gone(token, seconds=3):
    began = time.monotonic()
    assert host.poll(lambda: not in_jail(token), seconds, every=0.002), f"{in_jail(token)} still run"
    return time.monotonic() - began


def begin_forever(mcp, name, **kw):
    return mcp.begin_call("execute_code", {"code": FOREVER, "args": [name], "timeout": 100}, **kw)


@pytest.fixture
def server(start_http):
    return start_http()


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
        asked = mcp.begin_call("execute_code", {"code": "import time; time.sleep(0.5)"}, token="t")
        asked.result()


def test_a_hundred_calls_of_a_hundred_clients_each_get_their_own_answer(server):
    clients = [server.client(mcp_client.REVISIONS[n % len(mcp_client.REVISIONS)]) for n in range(100)]
    asked = [mcp.begin_call("execute_code", {"code": f"print({n})\n{n} * 2"}) for n, mcp in enumerate(clients)]
    replies = [mcp_client.data_of(one.result(100)) for one in asked]
    assert [(one["stdout"], one["result"]) for one in replies] == [(f"{n}\n", n * 2) for n in range(100)], [one for one in replies if not one["success"]][:2]
    for mcp in clients:
        mcp.close()


def test_a_modern_client_that_goes_takes_its_run_along_in_under_100_ms(server):
    with server.client() as mcp:
        mcp.execute("1")
        times = []
        for n in range(5):
            asked = begin_forever(mcp, f"token-gone-{n}", **({"token": "t"} if n % 2 else {}))
            wait_running(f"token-gone-{n}")
            asked.close()
            times.append(wait_gone(f"token-gone-{n}"))
        assert sorted(times)[2] < 0.1 * host.SLOWER, times
        assert mcp.execute("2")["result"] == 2


def test_a_legacy_client_that_goes_does_not_cancel_and_one_that_says_so_does(server):
    with server.client("2025-06-18") as mcp:
        asked = begin_forever(mcp, "token-legacy", id=4711)
        wait_running("token-legacy")
        asked.close()
        assert mcp.execute("2")["result"] == 2 and in_jail("token-legacy")
    server.stop()
    wait_gone("token-legacy", 3)


@pytest.mark.full
def test_clients_that_go_at_random_moments_leave_nothing(server, nothing_left):
    dice = random.Random(5)
    with server.client() as mcp:
        for _ in range(40):
            asked = [begin_forever(mcp, "token-random", **({"token": n} if n % 2 else {})) for n in range(1, 3)]
            threading.Event().wait(dice.random() * 0.15) # the moment is what is tried here
            for one in asked:
                one.close()
        wait_gone("token-random", 5)
        assert mcp.execute("'still there'")["result"] == "still there"
    server.stop()


def test_a_server_that_is_stopped_ends_every_run(server, nothing_left):
    mcp = server.client()
    for _ in range(3):
        begin_forever(mcp, "token-stop")
    wait_running("token-stop", 3)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 3 * host.SLOWER
    wait_gone("token-stop", 1)


def test_handles_belong_to_whoever_began_the_run(start_http):
    server = start_http("--yield-after", "0.3")
    with server.client() as mcp, server.client("2025-11-25") as same:
        said = mcp.execute("import time; time.sleep(1.5)\n42")
        assert said["exit_reason"] in (None, "running"), said
        end = time.monotonic() + 20
        while (later := same.data("wait_execution", {"execution_id": said["execution_id"]}))["exit_reason"] in (None, "running"):
            assert time.monotonic() < end
        assert later["result"] == 42, later
