"""Programs that run longer than clients wait."""
import time

import pytest

from support import mcp as mcp_client

pytestmark = pytest.mark.long

CODE = "import time\nfor i in range(90):\n    print('second', i, flush=True)\n    time.sleep(1)\n'end'"


def test_a_run_of_90_seconds_and_a_client_that_waits_60(jail):
    """No answer takes longer than 60 s, and none is lost."""
    with mcp_client.McpStdio() as mcp:
        began = time.monotonic()
        said = mcp.execute(CODE, timeout=120)
        assert said["exit_reason"] == "running" and said["execution_id"]
        waits = 0
        while said["exit_reason"] == "running":
            said = mcp.data("wait_execution", {"execution_id": said["execution_id"]})
            waits += 1
        assert waits >= 1 and said["success"] is True and said["result"] == "end" and said["stdout"].count("second") == 90
        assert time.monotonic() - began >= 90


def test_progress_keeps_a_patient_client_waiting(jail):
    """A client that counts from the last progress gets one every three seconds, for 90 of them."""
    with mcp_client.McpStdio("--yield-after", "0") as mcp:
        asked = mcp.begin_call("execute_code", {"code": CODE, "timeout": 120}, token="t")
        for n in range(1, 25):
            asked.wait_progress(n)
        said = mcp_client.data_of(asked.result())
        assert said["result"] == "end" and asked.progress()[-1]["progress"] > 60
