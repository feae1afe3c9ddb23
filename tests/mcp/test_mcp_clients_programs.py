"""Programs that do to their own reply what they can: each is answered with one whole object, and the next one runs."""
import json

import jailed
import pytest

from support import mcp as mcp_client

KEYS = {"success", "execution_id", "result", "stdout", "stderr", "execution_time", "variables", "error", "traceback", "exit_reason", "timeout",
        "security_warnings", "security_event", "validation_errors", "return_code"}

# sentence, program, what must be in the reply
NEVER_ENDS = "class A:\n    def __repr__(self):\n        while True: pass\nA()"
PROGRAMS = [
    ("a result without end", "x = []\nx.append(x)\nx", {"success": True}),
    ("a result that is a thousand deep", "x = 1\nfor _ in range(1000): x = [x]\nx", {"success": True}),
    ("a result of many megabytes", "'x' * (8 << 20)", {"success": True}),
    ("a result of a million keys", "{n: n for n in range(10 ** 6)}", {"success": True}),
    ("a number beyond every bound", "10 ** 5000", {"success": True}),
    ("a number beyond 53 bits", "2 ** 60 + 1", {"result": str(2 ** 60 + 1)}),
    ("no number", "[float('nan'), float('inf'), -float('inf')]", {"success": True}),
    ("half a character", "'a\\ud800b'", {"success": True}),
    ("NUL in a text", "'a\\0b'", {"success": True}),
    ("keys that are no text", "{1: 2, None: 3, (1, 2): 4, b'x': 5}", {"success": True}),
    ("one key in two kinds", "{1: 'a', '1': 'b'}", {"success": True}),
    ("a repr that raises", "class A:\n    def __repr__(self): raise ValueError('no')\nA()", {"success": True}),
    ("a repr that never ends", NEVER_ENDS, {"success": False, "exit_reason": "timeout_wall"}),
    ("a repr that exits", "class A:\n    def __repr__(self): raise SystemExit(3)\nA()", {}),
    ("an exception whose text raises", "class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E()", {"success": False, "error_type": "E"}),
    ("an exception of many megabytes", "raise ValueError('x' * (4 << 20))", {"success": False, "error_type": "ValueError"}),
    ("an exception called by a forged name", "raise type('A\\nB\\x1b[31m', (Exception,), {})('x')", {"success": False}),
    ("recursion without end", "def f(): f()\nf()", {"success": False, "error_type": "RecursionError"}),
    ("exceptions that hold each other", "a, b = ValueError(), KeyError()\na.__cause__, b.__cause__ = b, a\nraise a", {"success": False}),
    ("a group of exceptions", "raise ExceptionGroup('g', [ValueError(n) for n in range(1000)])", {"success": False}),
    ("an exit with a status", "print('x'); raise SystemExit(7)", {"exit_code": 7, "stdout": "x\n"}),
    ("an exit with a text", "import sys; sys.exit('why')", {"exit_code": 1}),
    ("an exit at once", "import os; print('lost?', flush=True); os._exit(5)", {"exit_code": 5, "stdout": "lost?\n"}),
    ("an abort", "import os; os.abort()", {"success": False, "exit_reason": "signaled"}),
    ("killing everybody", "import os; os.kill(-1, 9)", {}),
    ("killing the parent", "import os, signal; os.kill(os.getppid() or 1, signal.SIGKILL)", {"success": False, "error_type": "PermissionError"}),
    ("another program in its place", "import os; os.execv('/usr/bin/python3', ['python3', '-c', 'print(1)'])", {"stdout": "1\n"}),
    ("standard streams closed", "import sys; sys.stdout.close(); sys.stderr.close()\n1", {"result": 1}),
    ("descriptors closed", "import os; os.closerange(0, 100)\n1", {}),
    ("a report of its own", "import os\nfor fd in range(3, 60):\n    try: os.write(fd, b'{\"result\": 666}' * 1000)\n    except OSError: pass\n1", {}),
    ("a report without end",
     "import os\nfor fd in range(3, 60):\n    try:\n        for _ in range(1000): os.write(fd, b'[' * 65536)\n    except OSError: pass\n1", {}),
    ("a descriptor held by a child", "import os\nif os.fork() == 0:\n    import time; time.sleep(600)\n1", {"result": 1, "exit_reason": "exited"}),
    ("output after the end, of a thread",
     "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\n1", {"result": 1, "stdout": "late\n"}),
    ("output at exit", "import atexit; atexit.register(print, 'bye')\n1", {"result": 1, "stdout": "bye\n"}),
    ("json replaced", "import json, builtins\njson.dumps = lambda *a, **k: '{'\nbuiltins.repr = None\nbuiltins.print = None\n1", {"result": 1}),
    ("modules removed", "import sys\nfor name in list(sys.modules): del sys.modules[name]\n1", {}),
    ("hooks replaced",
     "import sys\nsys.excepthook = lambda *a: 1 / 0\nsys.unraisablehook = None\nraise ValueError('x')", {"success": False, "error": "ValueError: x"}),
    ("tracing", "import sys\nsys.settrace(lambda *a: 1 / 0)\n1", {}),
    ("thousands of names", "globals().update({f'v{n}': n for n in range(5000)})", {"success": True}),
    ("names that are no names", "globals().update({'a b': 1, '\\n': 2, '\\x1b[31m': 3, 'x' * 10000: 4, 7: 5})", {}),
    ("an await", "import asyncio\nawait asyncio.sleep(0)\n7", {"result": 7}),
    ("a result that is a coroutine", "async def f(): return 1\nf()", {"success": True}),
    ("a generator", "(n for n in range(3))", {"success": True}),
    ("no text at all", "", {"success": False}),
    ("a comment only", "# nothing", {"success": True, "result": None}),
    ("a docstring only", "'doc'", {"success": True}),
    ("bytes of an odd encoding", "# -*- coding: latin-1 -*-\n'ä'", {"success": True}),
    ("form feed and tabs", "if True:\n\tx = 1\n\f\nx", {"result": 1}),
    ("a line without end", "x = [" + "1," * 40000 + "]\nlen(x)", {"result": 40000}),
    ("carriage returns", "x = 1\r\ny = 2\r\nx + y", {"result": 3}),
]


@pytest.fixture(scope="module")
def shared(built_mcp):
    with mcp_client.McpStdio() as one:
        yield one


@pytest.mark.sample(8)
@pytest.mark.parametrize("program, wanted", [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS])
def test_answers(shared, program, wanted):
    timeout = 0.5 if program == NEVER_ENDS else 50
    result = shared.call("execute_code", {"code": program, "timeout": timeout})
    assert len(json.dumps(result)) < 4 << 20
    said = mcp_client.data_of(result)
    assert set(said) >= KEYS, KEYS - set(said)
    short = {key: value if len(str(value)) < 300 else f"{str(value)[:300]}..." for key, value in said.items()}
    assert {key: said[key] for key in wanted} == wanted, short
    text = mcp_client.text_of(shared.call("execute_code", {"code": program, "timeout": timeout, "format": "text"}))
    assert 0 < len(text.encode()) < 16 << 10, len(text)
    assert "\x1b" not in text and "\0" not in text, repr(text[:300])
    assert shared.execute("6 * 7")["result"] == 42


def test_progress_of_hostile_output_is_one_short_line(start_mcp):
    mcp, mark = start_mcp("--progress", "0.25"), jailed.marker()
    code = "import os\nfor _ in range(8): os.write(1, b'\\x1b[2J\\xff\\x00' + b'A' * 100000 + b'\\n\\r\\n')\n" + jailed.HELD
    asked = mcp.begin_call("execute_code", {"code": code, "args": [mark]}, token=0)
    jailed.wait_held(mark)
    asked.wait_progress(len(asked.progress()) + 2) # the first of them may have been on its way
    jailed.let_go(mark)
    asked.result()
    assert any("A" in said["message"] for said in asked.progress())
    for said in asked.progress():
        text = said["message"]
        assert len(text) < 1000 and all(c.isprintable() or c == " " for c in text), repr(text[:200])


@pytest.mark.sample(2)
@pytest.mark.parametrize("token", [0, "", -1, 2**53, "x" * 2000, "ä\n"], ids=repr)
def test_a_progress_token_comes_back_as_it_was(start_mcp, token):
    mcp, mark = start_mcp("--progress", "0.25"), jailed.marker()
    asked = mcp.begin_call("execute_code", {"code": jailed.HELD, "args": [mark]}, token=token)
    asked.wait_progress()
    jailed.let_go(mark)
    asked.result()
    assert asked.progress() and all(said["progressToken"] == token for said in asked.progress())
