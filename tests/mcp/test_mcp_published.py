"""A client that was written for the published Python sandbox server works unchanged, with our command in the place of theirs.

The conversation of its examples is held twice: by the TypeScript client, and by a client of the standard library as somebody would have
written it. Each example then has the reply that its documentation shows.
"""
import json
import re
import subprocess
import uuid

import pytest

from support import brig, host, node
from support import mcp as mcp_client

FIBONACCI = """
def fibonacci(n):
    if n <= 1:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

result = [fibonacci(i) for i in range(10)]
print(f"Fibonacci sequence: {result}")
"""
STATISTICS = """
import statistics
data = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
result = {
    'mean': statistics.mean(data),
    'median': statistics.median(data),
    'stdev': statistics.stdev(data),
}
for key, value in result.items():
    print(f"{key}: {value}")
"""
BUBBLE_SORT = """
def bubble_sort(items):
    n = len(items)
    for i in range(n):
        for j in range(0, n - i - 1):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items

result = bubble_sort([64, 34, 25, 12, 22, 11, 90])
print("Sorted:", result)
"""
PI = """
import math
terms = 100000
total = 0
sign = 1
for k in range(terms):
    total += sign / (2 * k + 1)
    sign *= -1
result = 4 * total
print(f"difference {abs(result - math.pi):.1e}")
"""
MATRIX = """
import numpy as np
a = np.random.rand(1000, 1000)
result = float(np.trace(a @ np.linalg.inv(a)))
"""
PARTIAL = "print('before', flush=True)\nimport time\nwhile True: time.sleep(0.1)\n"
SNIPPETS = ["result = 1 + 1", "result = 'a' * 3", "result = [n * n for n in range(4)]"]
UNSAFE = "import os\nos.system('ls -la')"

EXAMPLES = { # name: tool, arguments
    "two plus two": ("execute_code", {"code": "result = 2 + 2\nprint(f\"The answer is: {result}\")"}),
    "average": ("execute_code", {"code": "import math\nnumbers = [1, 2, 3, 4, 5]\nresult = sum(numbers) / len(numbers)", "timeout": 15,
                                 "allowed_imports": ["math"]}),
    "unsafe": ("validate_code", {"code": UNSAFE}),
    "info": ("get_sandbox_info", {}),
    "capabilities": ("list_capabilities", {}),
    "fibonacci": ("execute_code", {"code": FIBONACCI}),
    "statistics": ("execute_code", {"code": STATISTICS}),
    "bubble sort": ("execute_code", {"code": BUBBLE_SORT}),
    "pi": ("execute_code", {"code": PI, "allowed_imports": ["math"]}),
    "check first": ("validate_code", {"code": "result = 6 * 7"}),
    "then run": ("execute_code", {"code": "result = 6 * 7"}),
    "container": ("execute_code", {"code": "result = 1", "use_container": True, "memory_limit": "256m"}),
    "no container": ("execute_code", {"code": "result = 1", "use_container": False}),
    "syntax error": ("execute_code", {"code": "x = 1\nif x = 2:\n    pass"}),
    "syntax checked": ("validate_code", {"code": "x = 1\nif x = 2:\n    pass"}),
    "exception": ("execute_code", {"code": "print('before')\nvalue = 10 / 0"}),
    "timeout": ("execute_code", {"code": PARTIAL, "timeout": 2}),
    "memory": ("execute_code", {"code": "x = bytearray(1 << 30)\nx[::4096] = bytes(len(x[::4096]))", "memory_limit": "128m"}),
    "blocked": ("execute_code", {"code": "import os\nprint(os.getcwd())", "allowed_imports": ["math"]}),
    "empty": ("execute_code", {"code": ""}),
    "large": ("execute_code", {"code": "#" * 100001}),
    **{f"batch {n}": ("execute_code", {"code": code}) for n, code in enumerate(SNIPPETS)},
}
NUMBERS = { # of a server that has the data profile on
    "numpy": ("execute_code", {"code": "import numpy as np\nresult = np.mean([1, 2, 3, 4, 5])", "memory_limit": "256m", "use_container": True}),
    "matrix": ("execute_code", {"code": MATRIX, "memory_limit": "512m", "timeout": 60, "use_container": True}),
}


class PlainClient:
    """As in the published example: a process, lines of JSON, nothing else."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.last = 0
        self.ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "example", "version": "1.0"}})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params=None):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, **({"params": params} if params is not None else {})})
        reply = json.loads(self.process.stdout.readline())
        assert reply["id"] == self.last, reply
        return reply["result"]

    def close(self):
        self.process.stdin.close()
        return self.process.wait(host.HANG)


def plain(examples, command, env):
    client = PlainClient(command, brig.environment(env))
    try:
        return [tool["name"] for tool in client.ask("tools/list")["tools"]], {
            name: client.ask("tools/call", {"name": tool, "arguments": given}) for name, (tool, given) in examples.items()}
    finally:
        assert client.close() == 0


def typescript(examples, command, env):
    lack = node.lacks()
    if lack:
        pytest.skip(lack)
    steps = [{"do": "list"}, *({"do": "call", "name": tool, "arguments": given} for tool, given in examples.values())]
    said = node.drive(steps, sdk="v1", command=command, env=env)
    listed, *called = said["steps"]
    return [tool["name"] for tool in listed["result"]["tools"]], {name: step.get("result", step) for name, step in zip(examples, called)}


@pytest.fixture(scope="module", params=[plain, pytest.param(typescript, marks=pytest.mark.nightly)], ids=["a client of the standard library", "the TypeScript client"])
def talked(request, built_mcp):
    """(names of the tools, {example: result}), of one conversation."""
    return request.param(EXAMPLES, [str(mcp_client.binary())], {})


@pytest.fixture(scope="module", params=[plain, pytest.param(typescript, marks=pytest.mark.nightly)], ids=["a client of the standard library", "the TypeScript client"])
def numbers(request, built_mcp):
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)
    return request.param(NUMBERS, [str(mcp_client.binary())], {"SANDBOX_ENABLE_DATA_SCIENCE": "true"})


def reply(talked, name):
    """What the example does: json.loads(result.content[0].text)"""
    result = talked[1][name]
    assert result["content"][0]["type"] == "text", result
    return json.loads(result["content"][0]["text"])


KEYS = {"success", "execution_id", "result", "stdout", "stderr", "execution_time", "variables", "error", "traceback", "exit_reason", "timeout",
        "security_warnings", "security_event", "validation_errors", "return_code"}


@pytest.mark.requirement("A17", "A26", "A39", "A51")
def test_the_three_tools_are_there(talked):
    assert set(talked[0]) >= {"execute_code", "validate_code", "get_sandbox_info"}


def test_every_outcome_has_every_key(talked):
    for name, (tool, _) in EXAMPLES.items():
        if tool == "execute_code":
            assert set(reply(talked, name)) >= KEYS, (name, KEYS - set(reply(talked, name)))


@pytest.mark.requirement("A40", "A43", "A44", "A51", "B30")
def test_two_plus_two(talked):
    said = reply(talked, "two plus two")
    assert (said["success"], said["result"], said["stdout"], said["stderr"], said["variables"], said["error"]) == (
        True, 4, "The answer is: 4\n", "", ["result"], None), said
    assert isinstance(said["execution_time"], float) and 0 <= said["execution_time"] < 5, said
    assert uuid.UUID(said["execution_id"]).variant == uuid.RFC_4122, said


@pytest.mark.requirement("A41")
def test_the_average_with_math_allowed(talked):
    said = reply(talked, "average")
    assert said["success"] is True and said["result"] == 3.0 and isinstance(said["result"], float), said


@pytest.mark.requirement("A32", "A42")
def test_numpys_mean_is_a_number(numbers):
    said = reply(numbers, "numpy")
    assert said["success"] is True and said["result"] == 3.0 and isinstance(said["result"], float), said


@pytest.mark.requirement("A87")
def test_a_thousand_squared_fits_into_512_megabytes(numbers):
    said = reply(numbers, "matrix")
    assert said["success"] is True and abs(said["result"] - 1000) < 0.01, said


@pytest.mark.requirement("A3", "A25", "A45", "A46", "A52", "A54", "B1")
def test_the_check_of_unsafe_code(built_mcp):
    """As published, where the list of modules is enforced: else the program runs, and it is a warning."""
    with mcp_client.McpStdio("--imports", "enforce") as mcp:
        said = mcp.data("validate_code", {"code": UNSAFE})
    assert said["valid"] is False and said["validation"]["valid"] is False, said
    assert said["validation"]["errors"][0] == "Line 1: Import 'os' is not allowed", said
    assert said["validation"]["message"] == said["message"], said
    assert (said["analysis"]["line_count"], said["analysis"]["character_count"]) == (2, len(UNSAFE)), said
    assert said["analysis"]["estimated_complexity"] in ("low", "medium", "high") and isinstance(said["recommendations"], list), said


@pytest.mark.requirement("A4", "A6", "A26", "A47", "A48", "A49")
def test_the_info_of_three_generations(talked):
    said = reply(talked, "info")
    assert set(said["security_profiles"]) >= {"basic", "data_science", "network", "filesystem"}, said
    assert all(isinstance(one["enabled"], bool) and one["modules"] for one in said["security_profiles"].values()), said
    assert said["security_profiles"]["basic"]["enabled"] is True
    assert set(said["resource_limits"]) >= {"timeout", "max_output_size", "memory_limit"} and said["resource_limits"]["timeout"] == 30, said
    assert said["container_mode"] == {"available": True, "enabled": True}, said
    assert isinstance(said["timeout_seconds"], (int, float)) and said["timeout_seconds"] == 30 and said["max_output_size"] == 1 << 20, said
    assert set(said["security_capabilities"]) >= {"network_enabled", "filesystem_enabled", "data_science_enabled"}, said
    assert len(said["allowed_imports"]["safe_stdlib"]) >= 40 and said["total_allowed_modules"] >= 40 and said["safe_builtins"], said
    assert said["isolation"], said


def test_the_capabilities_of_the_first_generation(talked):
    said = reply(talked, "capabilities")
    assert {"sandbox_type", "security_features", "limits", "safe_modules"} <= set(said), said
    assert set(said["limits"]) >= {"default_timeout", "max_timeout", "default_memory_limit", "max_output_size"}, said
    assert (said["limits"]["default_timeout"], said["limits"]["max_timeout"]) == (30, 300), said


@pytest.mark.requirement("A81", "B22")
def test_fibonacci(talked):
    said = reply(talked, "fibonacci")
    assert said["result"] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34] and "Fibonacci sequence: [0, 1, 1, 2" in said["stdout"], said


@pytest.mark.requirement("A82")
def test_statistics(talked):
    said = reply(talked, "statistics")
    assert said["result"]["mean"] == 5.5 and said["result"]["median"] == 5.5 and "mean: 5.5" in said["stdout"], said


@pytest.mark.requirement("A83", "B22")
def test_bubble_sort(talked):
    said = reply(talked, "bubble sort")
    assert said["result"] == [11, 12, 22, 25, 34, 64, 90], said
    assert set(said["variables"]) == {"bubble_sort", "result"}, said


@pytest.mark.requirement("A84", "B22")
def test_pi(talked):
    assert abs(reply(talked, "pi")["result"] - 3.14159) < 1e-4, reply(talked, "pi")


@pytest.mark.requirement("A10", "A85", "A112")
def test_check_then_run(talked):
    assert reply(talked, "check first")["valid"] is True and reply(talked, "check first")["validation"]["valid"] is True
    assert reply(talked, "then run")["result"] == 42
    # The result's dict can be indexed by clients that take structured content.
    if "structuredContent" in talked[1]["check first"]:
        assert talked[1]["check first"]["structuredContent"]["valid"] is True


@pytest.mark.requirement("A86", "A93")
def test_a_loop_of_snippets(talked):
    said = [reply(talked, f"batch {n}") for n in range(len(SNIPPETS))]
    assert [one["result"] for one in said] == [2, "aaa", [0, 1, 4, 9]], said
    assert len({one["execution_id"] for one in said}) == len(SNIPPETS)


@pytest.mark.requirement("A23", "A34", "A114")
def test_both_values_of_use_container_run(talked):
    for name in ("container", "no container"):
        said = reply(talked, name)
        assert said["success"] is True and said["result"] == 1 and said["return_code"] == 0, said


@pytest.mark.requirement("A88", "C12")
def test_a_syntax_error_is_told_in_detail(talked):
    said = reply(talked, "syntax error")
    assert said["success"] is False and said["error_type"] == "SyntaxError" and re.search(r"syntax", said["error"], re.I), said
    checked = reply(talked, "syntax checked")
    assert checked["valid"] is False and checked["error"].startswith("Syntax error: ") and checked["line"] == 2, checked
    assert checked["text"].strip() == "if x = 2:" and checked["offset"] >= 4, checked


@pytest.mark.requirement("A89", "B26", "C13")
def test_an_exception_is_told_with_what_was_printed(talked):
    said = reply(talked, "exception")
    assert (said["success"], said["error"], said["stdout"]) == (False, "ZeroDivisionError: division by zero", "before\n"), said
    assert said["error_type"] == "ZeroDivisionError"
    assert "line 2" in said["traceback"] and "value = 10 / 0" in said["traceback"] and "guest" not in said["traceback"], said["traceback"]
    assert talked[1]["exception"].get("isError") in (None, False)


@pytest.mark.requirement("A5", "A90", "B23", "C11")
def test_a_time_out_keeps_what_was_printed(talked):
    said = reply(talked, "timeout")
    assert said["success"] is False and said["stdout"] == "before\n" and said["exit_reason"] == "timeout_wall", said
    assert "timeout" in said["error"].lower() and "timed out after 2 seconds" in said["error"] and said["timeout"] == 2, said


@pytest.mark.requirement("A5", "A24", "A91")
def test_using_up_the_memory_is_told_as_that(talked):
    said = reply(talked, "memory")
    assert said["success"] is False and said["exit_reason"] == "oom" and "memory" in said["error"].lower() and "128" in said["error"], said


@pytest.mark.requirement("A11", "A22", "A54", "A92", "C7")
def test_an_import_outside_of_the_list_is_blocked(talked):
    said = reply(talked, "blocked")
    assert said["success"] is False and "Import of 'os' is not allowed in sandbox" in said["error"], said
    assert said["security_event"] == "blocked_import" and said["error_type"] == "ImportError", said


@pytest.mark.requirement("A18", "B33")
def test_arguments_that_cannot_be_run(talked):
    assert "Empty code" in reply(talked, "empty")["error"] and reply(talked, "empty")["exit_reason"] == "denied"
    assert "too large" in reply(talked, "large")["error"] and reply(talked, "large")["exit_reason"] == "denied"
    assert talked[1]["empty"]["isError"] is True and talked[1]["large"]["isError"] is True
