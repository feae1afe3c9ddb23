"""The client of these tests is strict: a server that says anything wrong fails the test that asked."""
import json
import sys

import pytest

from support import mcp as mcp_client

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    for answer in json.loads(sys.argv[1]):
        if isinstance(answer, dict) and answer.get("id") == "ID":
            answer["id"] = asked["id"]
        print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)
"""
LIST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
GOOD = {"jsonrpc": "2.0", "id": "ID", "result": LIST}
WRONG = {
    "a list without ttlMs": {"jsonrpc": "2.0", "id": "ID", "result": {"resultType": "complete", "cacheScope": "public", "tools": []}},
    "a result without resultType": {"jsonrpc": "2.0", "id": "ID", "result": {**{k: v for k, v in LIST.items() if k != "resultType"}}},
    "a tool without a schema": {"jsonrpc": "2.0", "id": "ID", "result": {**LIST, "tools": [{"name": "a"}]}},
    "a tool twice": {"jsonrpc": "2.0", "id": "ID", "result": {**LIST, "tools": LIST["tools"] * 2}},
    "a result and an error": {**GOOD, "error": {"code": 1, "message": "x"}},
    "no jsonrpc": {"id": "ID", "result": LIST},
    "a code of the old eras": {"jsonrpc": "2.0", "id": "ID", "error": {"code": -32002, "message": "x"}},
    "noise": "starting up",
    "a key twice": '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}',
    "not a number": '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","x":NaN}}',
    "id null": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
    "a notification that nobody knows": {"jsonrpc": "2.0", "method": "notifications/hello"},
    "a question to a modern client": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    "progress for nobody": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}},
}


def server(*answers):
    return mcp_client.McpStdio("-c", SERVER, json.dumps(answers), program=sys.executable)


def test_a_valid_answer_is_returned():
    with server(GOOD) as mcp:
        assert list(mcp.list_tools()) == ["a"]


@pytest.mark.sample(5)
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_the_client_refuses(answer):
    mcp = server(answer)
    try:
        with pytest.raises(mcp_client.Invalid):
            mcp.request("tools/list")
        with pytest.raises(mcp_client.Invalid):
            mcp.close()
    finally:
        mcp.abandon()


def test_progress_must_grow_and_belongs_to_its_request():
    def told(progress):
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t", "progress": progress}}
    with server(told(1), told(2), GOOD) as mcp:
        asked = mcp.begin("tools/list", token="t")
        asked.result()
        assert [said["progress"] for said in asked.progress()] == [1, 2]
    mcp = server(told(2), told(2), GOOD)
    with pytest.raises(mcp_client.Invalid):
        mcp.begin("tools/list", token="t").result()
    mcp.abandon()


def test_an_error_is_raised_with_its_code():
    with server({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32601, "message": "no such method"}}) as mcp:
        with pytest.raises(mcp_client.Refused) as refused:
            mcp.request("no/such")
        assert refused.value.code == -32601
