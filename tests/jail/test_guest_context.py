"""A context: calls in one interpreter after the other, as a notebook has them, whatever the program does to it."""
import json
import os
import socket
import threading

import pytest

from live import Live, Lost
from support import tiers


@pytest.fixture
def live(pyc, tmp_path):
    with Live(pyc, tmp_path) as live:
        yield live


class Row:
    """calls: a text, or a text and what is expected of it (keys of the report, out, err, error; `_has`: a part of it). What is not said must be no error."""

    def __init__(self, name, *calls):
        self.name, self.calls = name, calls


VALUES = [
    Row("names stay", ("x = 5", dict(result=None, variables=["x"])), ("x + 1", dict(result=6))),
    Row("the value of the last expression is the result", ("a = 1\n[a, 'b']", dict(result=[1, "b"], result_repr="[1, 'b']", exit_code=0))),
    Row("an underscore is the last value", "7", ("_ * 2", dict(result=14)), "x = 1", ("_ + 1", dict(result=15))),
    Row("a variable called underscore is the program's", "_ = 3", "8", ("_", dict(result=3))),
    Row("a semicolon mutes the last value", ("4;", dict(result=None)), ("x = 'a;b'; x", dict(result="a;b"))),
    Row("the variable result counts in the call that sets it", ("result = 5", dict(result=5)), ("y = 1", dict(result=None)), ("result = 6; y = 2", dict(result=6))),
    Row("the same result again is one, and that of a loop is none", ("result = 5", dict(result=5)), ("result = 5", dict(result=5)), ("for result in 1, 2: pass", dict(result=None)), ("if 0: result = 3", dict(result=None)), ("if 1: result = 3", dict(result=3))),
    Row("a function of an earlier call is there", "def f(x): return x * 2", ("f(21)", dict(result=42))),
    Row("modules stay imported", "import math", ("math.floor(2.5)", dict(result=2))),
    Row("a future statement counts from there on", "from __future__ import annotations", ("def f(x: Y): pass\nf.__annotations__", dict(result={"x": "Y"}))),
    Row("a module beside the data can be imported at once", "open('beside.py', 'w').write('a = 3')", ("import beside; beside.a", dict(result=3)),
        "open('other.py', 'w').write('a = 4')", ("import other; other.a", dict(result=4))),
    Row("the directory stays changed", "import os; os.mkdir('d'); os.chdir('d')", ("os.path.basename(os.getcwd())", dict(result="d"))),
    Row("a directory that is gone is no error", "import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')", ("1", dict(result=1))),
    Row("__main__ is the namespace, whatever the program puts there", "import sys; sys.modules['__main__'] = None", ("x = 2", {}), ("sys.modules['__main__'].x", dict(result=2))),
    Row("__name__ is __main__, and there is no __file__", ("[__name__, '__file__' in globals()]", dict(result=["__main__", False]))),
    Row("a pickle of a class of its own", "import pickle\nclass A: a = 1", ("pickle.loads(pickle.dumps(A())).a", dict(result=1))),
    Row("a cleared namespace", "globals().clear()", ("1 + 1", dict(result=2))),
    Row("an empty call", ("", dict(result=None, exit_code=0)), ("# nothing", dict(result=None))),
    Row("an encoding cookie", (b"# -*- coding: latin-1 -*-\nx = 'caf\xe9'\nx", dict(result="café"))),
    Row("a docstring alone is a value", ("'hello'", dict(result="hello"))),
    Row("the source of an earlier call", "def f():\n    return 1\n", ("import inspect; inspect.getsource(f)", dict(result="def f():\n    return 1\n"))),
    Row("what dies with the last value names the line that replaces it", ("async def f(): pass\nf()", dict(err="")),
        ("\n1", dict(result=1, err_has="<call 2>:2: RuntimeWarning: coroutine 'f' was never awaited"))),
    Row("what dies with an earlier result does so in the call that replaces it", ("import warnings; warnings.simplefilter('always')\nresult = open('/etc/passwd')\nNone", dict(err="")),
        ("result = 2", dict(result=2, err_has="<call 2>:1: ResourceWarning: unclosed file"))),
    Row("a warning at the same line of two calls", "import warnings", ("warnings.warn('one')", dict(err_has="UserWarning: one")), ("warnings.warn('one')", dict(err_has="UserWarning: one"))),
]

ERRORS = [
    Row("an exception is told as Python tells it", ("1 / 0", dict(exit_code=1, error="ZeroDivisionError: division by zero", line=1, text="1 / 0",
        err='Traceback (most recent call last):\n  File "<call 1>", line 1, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n')),
        ("'on'", dict(result="on"))),
    Row("a traceback has the lines of earlier calls", "def f(x):\n    return 1 / x", ("\nf(0)", dict(line=2, text="f(0)", error="ZeroDivisionError: division by zero",
        traceback='Traceback (most recent call last):\n  File "<call 2>", line 2, in <module>\n    f(0)\n  File "<call 1>", line 2, in f\n    return 1 / x\n           ~~^~~\nZeroDivisionError: division by zero\n'))),
    Row("the program's own traceback has them too", "def f(x):\n    return 1 / x", ("import traceback\ntry:\n    f(0)\nexcept ZeroDivisionError:\n    traceback.print_exc()",
        dict(err_has='File "<call 1>", line 2, in f\n    return 1 / x'))),
    Row("with linecache from the start", "import linecache\ndef f(x):\n    return 1 / x", ("f(0)", dict(traceback_has="    return 1 / x\n", error="ZeroDivisionError: division by zero"))),
    Row("names that an exception left behind stay", ("a = 1\nb = c", dict(error="NameError: name 'c' is not defined")), ("a", dict(result=1))),
    Row("sys.exit ends the call with its number", ("import sys; sys.exit(3)", dict(exit_code=3, out="", err="")), ("1", dict(result=1))),
    Row("sys.exit with a text prints it", ("import sys; sys.exit('bye')", dict(exit_code=1, err="bye\n"))),
    Row("exit() as well, and what it closes is there again", ("exit()", dict(exit_code=0)), ("input()", dict(error="EOFError: there is no input here; put the values into the code"))),
    Row("SystemExit in a coroutine", ("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(4)", dict(exit_code=4)), ("1", dict(result=1))),
    Row("input() says what to do", ("input('name? ')", dict(out="name? ", error="EOFError: there is no input here; put the values into the code"))),
    Row("reading stdin says it", "import sys", ("sys.stdin.read()", dict(error="EOFError: there is no input here; put the values into the code")),
        ("list(sys.stdin)", dict(error="EOFError: there is no input here; put the values into the code")),
        ("sys.stdin.buffer.readline()", dict(error="EOFError: there is no input here; put the values into the code"))),
    Row("a child's stdin is empty", ("import subprocess\nsubprocess.run(['cat'], stdin=None, capture_output=True).stdout.decode()", dict(result=""))),
    Row("work of its own for processes that cannot have it is an error at once", "import multiprocessing as mp\ndef f(n): return n * n",
        ("with mp.get_context('spawn').Pool(1) as pool: pool.map(f, [1])", dict(error_has="f is defined in this session, which processes that are started by spawn or forkserver do not have")),
        ("with mp.get_context('spawn').Pool(1, f, (1,)) as pool: pass", dict(error_has="PicklingError: f is defined in this session")),
        ("with mp.get_context('spawn').Pool(1) as pool: r = pool.map(abs, [-1])\nr", dict(result=[1])),
        ("with mp.get_context('fork').Pool(1) as pool: r = pool.map(f, [2])\nr", dict(result=[4])),
        ("from concurrent.futures import ProcessPoolExecutor as Executor\nwith Executor(1, mp.get_context('spawn')) as own: own.submit(f, 1).result()",
         dict(error_has="PicklingError: f is defined in this session, which processes that are started by spawn or forkserver do not have")),
        ("with Executor(1, mp.get_context('spawn')) as own: r = own.submit(abs, -1).result()\nr", dict(result=1)),
        ("with Executor(1, mp.get_context('fork')) as own: r = own.submit(f, 2).result()\nr", dict(result=4))),
    Row("a shell line", ("x = 1\n!ls -l", dict(exit_code=1, line=2, error="SyntaxError: invalid syntax: a line that begins with ! is IPython's; here: subprocess.run([...])"))),
    Row("a shell line that is assigned", ("x = !ls", dict(error_has="subprocess.run"))),
    Row("magic lines that change nothing are passed over, and texts with such a line stay", ("%matplotlib inline\n%load_ext autoreload\nx = \"\"\"\n%config\"\"\"\nx", dict(result="\n%config"))),
    Row("a magic line", ("%timeit 1\n1", dict(line=1, error_has="a line that begins with % is IPython's; here: plain Python"))),
    Row("help by a mark", ("x = 1\nx?", dict(line=2, error_has="a line with ? is IPython's; here: help(name)"))),
    Row("a line that installs", ("!pip install x", dict(line=1, error_has="nothing can be installed from inside"))),
    Row("a fence of Markdown", ("```python\n1\n```", dict(line=1, error_has="a fence of Markdown"))),
    Row("a magic cell", ("%%time\n1", dict(error_has="a line that begins with % is IPython's"))),
    Row("no advice for another mistake", ("x = (", dict(error="SyntaxError: '(' was never closed", line=1, text="x = ("))),
    Row("a mistake that the compiler finds late has its line", ("\nreturn 5", dict(error="SyntaxError: 'return' outside function", line=2, text="return 5", traceback_has="    return 5\n    ^^^^^^^^\n"))),
    Row("an exception group", ("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])", dict(error="ExceptionGroup: g (2 sub-exceptions)", err_has="| ValueError: 1"))),
    Row("a cause from an earlier call", "def f():\n    raise KeyError('k')", ("try:\n    f()\nexcept KeyError as error:\n    raise ValueError('v') from error",
        dict(error="ValueError: v", err_has="    raise KeyError('k')\nKeyError: 'k'\n\nThe above exception was the direct cause"))),
    Row("no NUL", (b"x = 1\0", dict(error="SyntaxError: source code cannot contain null bytes"))),
    Row("the last exception is where debuggers look", ("1 / 0", dict(error="ZeroDivisionError: division by zero")), ("import sys; sys.last_type.__name__", dict(result="ZeroDivisionError"))),
]

ASYNC = [
    Row("await at the top", ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\nawait f()", dict(result=5)), ("await f() + 1", dict(result=6))),
    Row("a task of an earlier call goes on", "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7\nawait asyncio.sleep(0)\ntask = asyncio.create_task(f())",
        ("await task", dict(result=7))),
    Row("a task can be made without await", "import asyncio\nseen = []\nasync def f():\n    seen.append(1)\n    await asyncio.sleep(0.01)\n    seen.append(2)",
        "task = asyncio.create_task(f())", ("list(seen)", dict(result=[1])), ("await task\nseen", dict(result=[1, 2]))),
    Row("asyncio.run works in code without await", "import asyncio\nasync def f(): return 3", ("asyncio.run(f())", dict(result=3)), ("await f()", dict(result=3))),
    Row("one loop for all calls", "import asyncio", "loop = asyncio.get_running_loop()", ("await asyncio.sleep(0)\nloop is asyncio.get_running_loop()", dict(result=True))),
    Row("a closed loop is followed by another", "import asyncio\nasync def f(): return 3\nawait f()\nloop = asyncio.get_running_loop()", "loop.close()", ("await f()", dict(result=3))),
    Row("an exception in a coroutine has no line of the loop", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0", ("await f()", dict(error="ZeroDivisionError: division by zero",
        err='Traceback (most recent call last):\n  File "<call 2>", line 1, in <module>\n    await f()\n  File "<call 1>", line 4, in f\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n'))),
    Row("async with and async for", ("import contextlib\n@contextlib.asynccontextmanager\nasync def c(): yield 4\nasync with c() as x:\n    pass\n[i async for i in (i async for i in g())] if 0 else x", dict(result=4))),
    Row("a coroutine that is not awaited is a value", "async def f(): pass", ("c = f()\nstr(type(c))", dict(result="<class 'coroutine'>")), "c.close()"),
]

HOSTILE = [
    Row("a SyntaxError that lies", ("class E(SyntaxError):\n    filename = property(lambda s: 1 / 0)\n    lineno = 'x'\nraise E('m')", dict(error="E: m", exit_code=1)), ("1", dict(result=1))),
    Row("a SyntaxError with fields of all kinds", ("e = SyntaxError('m')\ne.filename, e.lineno, e.offset, e.text = '<call 1>', 2**70, [], 5\nraise e", dict(error="SyntaxError: m")), ("1", dict(result=1))),
    Row("an exception whose str raises", ("class E(Exception):\n    def __str__(self): raise SystemExit(9)\nraise E", dict(exit_code=1, error_has="E: <exception str() failed>"))),
    Row("a repr that raises", ("class A:\n    def __repr__(self): raise KeyboardInterrupt\nA()", dict(result_has="whose repr() raised KeyboardInterrupt"))),
    Row("an excepthook that raises", "import sys\ndef hook(*a): raise ValueError('hook')\nsys.excepthook = hook", ("1 / 0", dict(exit_code=1, error="ZeroDivisionError: division by zero", err_has="Error in sys.excepthook")),
        ("1", dict(result=1))),
    Row("an excepthook that exits", "import sys\nsys.excepthook = lambda *a: sys.exit(7)", ("1 / 0", dict(error="ZeroDivisionError: division by zero", exit_code=7))),
    Row("no excepthook", "import sys\ndel sys.excepthook", ("1 / 0", dict(error="ZeroDivisionError: division by zero", err_has="sys.excepthook is missing"))),
    Row("endless recursion", ("def f(): f()\nf()", dict(error="RecursionError: maximum recursion depth exceeded", err_has="Previous line repeated")), ("1", dict(result=1))),
    Row("a low limit of recursion", ("import sys; sys.setrecursionlimit(60)", {}), ("1 + 1", dict(result=2))),
    Row("no memory", ("x = 'a' * (1 << 60)", dict(error_has="MemoryError")), ("1", dict(result=1))),
    Row("a tracer", ("import sys\nsys.settrace(lambda *a: 1 / 0)\n2", {"any": True}), ("3", dict(result=3))),
    Row("nested too deep to be a tree", ("(" * 150 + "1" + ")" * 150, dict(result=1)), ("-" * 5000 + "1", {"any": True}), ("1", dict(result=1))),
    Row("broken builtins", ("import builtins\nkept = dict(builtins.__dict__)\nfor name in ['len', 'type', 'next', 'map', 'iter', 'print', 'getattr', 'issubclass', 'compile', 'eval']:\n    delattr(builtins, name)", {}),
        ("1 + 1", dict(result=2)), ("nothing", dict(error="NameError: name 'nothing' is not defined"))),
    Row("a destructor that raises is told on stderr", ("class A:\n    def __del__(self): 1 / 0\nA()\nNone", dict(err_has="Exception ignored in: <function A.__del__"))),
    Row("a destructor that exits", ("class A:\n    def __del__(self):\n        import sys; sys.exit(5)\na = A()\ndel a\n1", dict(result=1)), ("2", dict(result=2))),
    Row("broken traceback module", ("import traceback\ntraceback.TracebackException = None", {}), ("1 / 0", dict(error="ZeroDivisionError: division by zero")), ("1", dict(result=1))),
    Row("no meta_path, no modules", ("import sys\nsys.meta_path.clear()", {}), ("1", dict(result=1))),
    Row("everything forgotten", ("import sys\nsys.modules.clear()", {"any": True}), ("1", dict(result=1))),
    Row("an import hook that raises", ("import sys\nclass F:\n    def find_spec(*a): 1 / 0\nsys.meta_path.insert(0, F)", {}), ("1 / 0", dict(error="ZeroDivisionError: division by zero")), ("1", dict(result=1))),
    Row("an int handler of its own counts for one call", ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", {}), ("signal.getsignal(signal.SIGINT).__name__", dict(result="on_interrupt"))),
]

STREAMS = [
    Row("output is the call's", ("print('a')", dict(out="a\n", err="")), ("import sys\nprint('b', file=sys.stderr)", dict(out="", err="b\n"))),
    Row("what is not flushed comes with its call", ("print('a', end='')", dict(out="a")), ("print('b', end='')", dict(out="b"))),
    Row("descriptors are the call's", ("import os\nos.write(1, b'a')\nos.write(2, b'b')", dict(out="a", err="b")), ("os.system('echo c')", dict(out="c\n"))),
    Row("a closed stdout is open in the next call", ("import sys\nsys.stdout.close()", {}), ("print('a')", dict(out="a\n"))),
    Row("closed descriptors are open in the next call", ("import os\nos.close(1); os.close(2)", {}), ("print('a')\nos.write(2, b'b')", dict(out="a\n", err="b"))),
    Row("another stdout is for one call", ("import sys, io\nsys.stdout = io.StringIO()\nprint('a')", dict(out="")), ("print('b')", dict(out="b\n"))),
    Row("a wrapper around stdout is for one call", ("import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('a')", dict(out="a\n")), ("print('b')", dict(out="b\n")), ("print('c')", dict(out="c\n"))),
    Row("a detached stdout", ("import sys\nb = sys.stdout.detach()", {}), ("print('b')", dict(out="b\n"))),
    Row("a handler of logging writes to the call", "import logging\nlogging.basicConfig(format='%(message)s')", ("logging.warning('w')", dict(err="w\n")), ("logging.warning('x')", dict(err="x\n"))),
    Row("no stdout at all", ("import sys\nsys.stdout = sys.stderr = None\n1 / 0", dict(error="ZeroDivisionError: division by zero")), ("print('a')", dict(out="a\n"))),
    Row("a child of multiprocessing prints", ("import multiprocessing\np = multiprocessing.get_context('fork').Process(target=lambda: print('child'))\np.start(); p.join()", dict(out="child\n"))),
    Row("a fork that comes to the end of the code ends there", ("import os\npid = os.fork()\nif pid:\n    print(os.waitpid(pid, 0)[1] >> 8)\nelse:\n    raise SystemExit(3)", dict(out="3\n")), ("1", dict(result=1))),
    Row("a fork that raises", ("import os, sys\npid = os.fork()\nif pid:\n    print(os.waitpid(pid, 0)[1] >> 8)\nelse:\n    1 / 0", dict(out="1\n", err_has="ZeroDivisionError")), ("1", dict(result=1))),
]

ROWS = [*VALUES, *ERRORS, *ASYNC, *HOSTILE, *STREAMS]


def check(done, expect):
    report = done.report
    failure = report["error"] or {}
    found = {**failure, **report, "out": done.out, "err": done.err, "error": done.error}
    expect = dict(expect)
    if not expect.pop("any", False) and not any(key.startswith("error") for key in expect):
        assert failure == {}, failure["traceback"]
    for key, wanted in expect.items():
        if key.endswith("_has"):
            assert wanted in found[key[:-4]], (key, found)
        else:
            assert found[key] == wanted, (key, found)
    assert done.exit_code == report["exit_code"] and "/usr/lib/brig" not in done.err


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_calls_in_a_context(live, row):
    for each in row.calls:
        code, expect = (each, {}) if isinstance(each, (str, bytes)) else each
        check(live(code), expect)


# --- interrupts ---

INTERRUPTED = {
    "a tight loop": "print('on', flush=True)\nwhile True: pass",
    "a sleep": "import time\nprint('on', flush=True)\ntime.sleep(1000)",
    "a lock": "import threading\nlock = threading.Lock()\nlock.acquire()\nprint('on', flush=True)\nlock.acquire()",
    "a child": "import subprocess\nsubprocess.run(['sh', '-c', 'echo on; exec sleep 1000'])",
    "await": "import asyncio\nasyncio.get_running_loop().call_later(0.01, lambda: print('on', flush=True))\nawait asyncio.sleep(1000)",
    "a loop within await": "import asyncio\nawait asyncio.sleep(0)\nprint('on', flush=True)\nwhile True: pass",
    "a loop in another task": "import asyncio\nasync def f():\n    print('on', flush=True)\n    while True: pass\ntask = asyncio.create_task(f())\nawait asyncio.sleep(1000)",
    "asyncio.run": "import asyncio\nasync def f():\n    print('on', flush=True)\n    while True: pass\nasyncio.run(f())",
    "await that goes on when it is cancelled": "import asyncio\nasyncio.get_running_loop().call_later(0.01, lambda: print('on', flush=True))\nwhile True:\n    try:\n        await asyncio.sleep(1000)\n    except asyncio.CancelledError: pass",
    "a repr": "class A:\n    def __repr__(self):\n        print('on', flush=True)\n        while True: pass\nA()",
    "an excepthook": "import sys\ndef hook(*_):\n    print('on', flush=True)\n    while True: pass\nsys.excepthook = hook\n1 / 0",
    "a long computation": "print('on', flush=True)\nfor i in range(10**9): sum(range(1000))",
}


@pytest.mark.parametrize("name", tiers.few(INTERRUPTED, "a tight loop", "a child", "await that goes on when it is cancelled"))
def test_an_interrupt_ends_the_call_and_not_the_context(live, name):
    live("kept = 5\nimport asyncio")
    code = INTERRUPTED[name]
    done = live.begin(code).until("on").interrupt().done()
    if "__repr__" not in code and "hook" not in code:
        assert done.exit_code == 130 and done.error == "KeyboardInterrupt" and done.err.endswith("KeyboardInterrupt\n")
        assert "/usr/lib/brig" not in done.err and ("<call 2>" in done.err or "CancelledError" in code)
    assert live("kept").value == 5
    assert live("import asyncio\nawait asyncio.sleep(0)\n6").value == 6


def test_a_task_beside_one_that_was_interrupted_goes_on(live):
    live("import asyncio\nready = asyncio.Event()\nasync def f():\n    await ready.wait()\n    return 8\ntask = asyncio.create_task(f())")
    done = live.begin("asyncio.get_running_loop().call_later(0.01, lambda: print('on', flush=True))\nawait asyncio.sleep(1000)").until("on").interrupt().done()
    assert done.error == "KeyboardInterrupt"
    assert live("ready.set()\nawait task").value == 8


def test_a_program_that_catches_the_interrupt_goes_on(live):
    done = live.begin("try:\n    print('on', flush=True)\n    while True: pass\nexcept KeyboardInterrupt:\n    x = 'caught'\nx").until("on").interrupt().done()
    assert done.value == "caught" and done.exit_code == 0


def test_between_calls_an_interrupt_is_ignored(live):
    live("x = 1")
    for _ in range(20):
        live.begin("x").interrupt().done() # it may come before, in or after that call
    os.kill(live.process.pid, 2)
    assert live("x").value == 1


def test_a_child_that_is_started_between_calls_can_be_interrupted(live):
    live("import threading, subprocess, signal\ngo = threading.Event()\nchild = []\ndef run():\n    go.wait()\n    child.append(subprocess.Popen(['sleep', '1000']))\n"
         "thread = threading.Thread(target=run)\nthread.start()\nthreading.Timer(0.05, go.set).start()")
    assert live("thread.join()\nchild[0].send_signal(signal.SIGINT)\nchild[0].wait()").value == -2


# --- what goes on between calls ---

def test_what_a_thread_prints_between_calls_comes_first_in_the_next(live):
    done = live("import threading, sys\nend = threading.Event()\ndef run():\n    end.wait()\n    print('from a thread', flush=True)\n    print('error', file=sys.stderr, flush=True)\n"
                "thread = threading.Thread(target=run)\nthread.start()\nthreading.Timer(0.1, end.set).start()\nprint('first')")
    assert done.out == "first\n"
    until_a_thread_is_over(live)
    done = live("print('second')")
    assert done.out == "from a thread\nsecond\n" and done.err == "error\n"
    assert live("print('third')").out == "third\n"


def until_a_thread_is_over(live):
    """Without a call, in which it would print: its process has one thread again."""
    while len(os.listdir(f"/proc/{live.process.pid}/task")) > 1:
        pass


def test_of_much_that_is_printed_between_calls_the_last_is_kept(live):
    live("import threading, os\ngo = threading.Event()\ndef run():\n    go.wait()\n    os.write(2, b'e' * 10)\n    for i in range(50_000): os.write(1, b'%08d\\n' % i)\n"
         "threading.Thread(target=run).start()\nthreading.Timer(0.05, go.set).start()")
    until_a_thread_is_over(live)
    done = live("print('now')")
    first, *lines = done.out.splitlines()
    assert first == f"[{50_000 * 9 - 65536} bytes that were written between calls are cut here]"
    assert lines[-2:] == ["00049999", "now"] and len(done.out) < 66_000 and done.err == "e" * 10


def test_a_character_that_is_cut_is_left_out(live):
    live("import threading, os\ngo = threading.Event()\ndef run():\n    go.wait()\n    os.write(1, ('é' * 40_000 + 'x').encode())\nthreading.Thread(target=run).start()\nthreading.Timer(0.05, go.set).start()")
    until_a_thread_is_over(live)
    done = live("1")
    assert done.out == f"[{80_001 - 65535} bytes that were written between calls are cut here]\n" + "é" * 32767 + "x"


def test_what_a_child_of_a_thread_prints_between_calls_is_kept(live):
    live("import threading, subprocess\ngo = threading.Event()\ndef run():\n    go.wait()\n    subprocess.run(['echo', 'late'])\n"
         "threading.Thread(target=run).start()\nthreading.Timer(0.05, go.set).start()")
    until_a_thread_is_over(live)
    assert live("1").out == "late\n"


def test_a_thread_that_fills_its_pipe_does_not_stop_the_context(live):
    live("import threading, os, time\nstop = []\ndef run():\n    while not stop: os.write(1, b'x' * 4096)\nthread = threading.Thread(target=run)\nthread.start()")
    done = live.begin("import time\ntime.sleep(0.05)\nstop.append(1)\nthread.join()\n'on'").done()
    assert done.value == "on"


def test_threads_and_tasks_are_not_waited_for(live):
    done = live("import threading\nend = threading.Event()\nthread = threading.Thread(target=end.wait)\nthread.start()\n1")
    assert done.value == 1
    assert live("end.set()\nthread.join()\nthread.is_alive()").value is False


# --- the channel ---

def test_the_server_that_goes_takes_the_context_with_it(pyc, tmp_path):
    with Live(pyc, tmp_path) as live:
        live("import threading\nthreading.Thread(target=threading.Event().wait).start()")
    assert live.process.returncode == 0


@pytest.mark.parametrize("code, status", [("import os\nos._exit(7)", 7), ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9), ("import os\nos.execv('/bin/true', ['true'])", 0),
                                          ("import os\nos.closerange(3, 1000)", 1)], ids=["exit", "kill", "exec", "descriptors"])
def test_a_context_that_is_lost_ends_its_channel(pyc, tmp_path, code, status):
    with Live(pyc, tmp_path) as live:
        with pytest.raises(Lost) as lost:
            live(code)
        assert lost.value.status == status


def test_a_signal_handler_that_raises_anywhere_loses_no_answer(live):
    live("import signal\ndef handler(*_): raise TimeoutError\nsignal.signal(signal.SIGALRM, handler)\nsignal.setitimer(signal.ITIMER_REAL, 0.0013, 0.0013)")
    for _ in range(300):
        live.begin("x = sum(range(3000))\nx").done()
    while live.begin("signal.setitimer(signal.ITIMER_REAL, 0)").done().exit_code:
        pass
    assert live("6 * 7").value == 42


def test_a_fork_has_no_channel_and_no_report(live):
    done = live("import os, stat\ndef sockets():\n    found = []\n    for fd in map(int, os.listdir('/proc/self/fd')):\n        try:\n            if fd > 2 and stat.S_ISSOCK(os.fstat(fd).st_mode): found.append(fd)\n        except OSError: pass\n    return len(found)\n"
                "pid = os.fork()\nif pid == 0:\n    print(sockets(), flush=True)\n    os._exit(0)\nos.waitpid(pid, 0)\nsockets()")
    assert done.value == 1 and done.out == "0\n"


def test_no_descriptor_is_left_of_calls(live):
    before = live("import os\nlen(os.listdir('/proc/self/fd'))").value
    for _ in range(50):
        live("print(1)")
        live("1 / 0")
    assert live("len(os.listdir('/proc/self/fd'))").value == before


def test_what_a_client_that_has_gone_did_not_read_is_not_for_the_next_one(live, tmp_path):
    """Of the output, and of the traceback of the interrupt by which its call is ended."""
    call = live.begin(f"import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists({str(tmp_path / 'gone')!r}): time.sleep(0.01)\nsys.stdout.write('mine'); sys.stderr.write('mine')\n1 / 0").until("up")
    call.close()
    (tmp_path / "gone").touch()
    call.streams = []
    call.open.clear()
    while call.answer is None:
        call.step(60)
    done = live("print('next')")
    assert (done.out, done.err) == ("next\n", "")


C_PRINTS = "import ctypes\nC = ctypes.CDLL(None)\nC.printf(b'of C\\n')"


def test_what_c_code_prints_is_output_of_the_call_that_did_it(live):
    assert (live(C_PRINTS).out, live("print('next')").out) == ("of C\n", "next\n")


def test_what_c_code_prints_in_a_fork_that_comes_to_the_end_is_written_once(live):
    live("import os")
    assert live(f"if (pid := os.fork()) == 0:\n    {C_PRINTS}\nelse:\n    os.waitpid(pid, 0)".replace("\nC", "\n    C")).out == "of C\n"


def test_a_thread_that_reads_by_the_c_library_does_not_keep_a_call_from_its_end(live):
    """It holds the lock of its stream meanwhile."""
    code = "import ctypes, os, threading\nC = ctypes.CDLL(None)\nC.fdopen.restype = ctypes.c_void_p\nreading, writing = os.pipe()\nstream = ctypes.c_void_p(C.fdopen(reading, b'r'))\n" \
           "threading.Thread(target=C.fgetc, args=(stream,), daemon=True).start()\n1"
    assert (live(code).value, live("2").value) == (1, 2)


def test_a_report_that_nobody_reads_is_no_error(live):
    call = live.begin("print('on', flush=True)\nimport time\ntime.sleep(0.2)\n'x' * 300000")
    call.until("on")
    os.close(call.streams.pop())
    call.open = set(call.streams)
    while call.answer is None:
        call.step(1)
    assert call.answer["exit_code"] == 0
    call.close()
    assert live("1").value == 1


# --- tools ---

def answer(theirs, results, asked):
    """The other side of the bridge: one tool for each name in results."""
    with theirs.makefile("rb") as lines:
        for line in lines:
            request = json.loads(line)
            asked.append(request["op"])
            if request["op"] == "names":
                text = {"names": [name for name in results if name.startswith(request["under"])]}
            elif request["op"] == "describe":
                text = {"tool": {"name": request["name"], "description": "", "inputSchema": {"type": "object"}}}
            else:
                text = {"result": results[request["name"]]}
            theirs.sendall(json.dumps({"id": request["id"], **text}).encode() + b"\n")


def with_tools(live, code, results):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        asked = []
        thread = threading.Thread(target=answer, args=(ours, results, asked), daemon=True)
        thread.start()
        call = live.begin(code, tools=theirs.fileno())
        theirs.close()
        done = call.done()
        thread.join()
    return done, asked


def test_tools_are_asked_anew_in_each_call(live):
    assert with_tools(live, "tools.a()", {"a": 1})[0].value == 1
    assert with_tools(live, "tools.b()", {"b": 2})[0].value == 2
    assert with_tools(live, "import tools\nkept = tools.a\nkept()", {"a": 3})[0].value == 3
    assert with_tools(live, "[kept(), tools.a()]", {"a": 4})[0].value == [4, 4]
    assert with_tools(live, "await tools.a()", {"a": 5})[0].value == 5
    assert with_tools(live, "await kept()", {"a": 6})[0].value == 6


def test_in_a_call_without_tools_they_are_gone(live):
    assert with_tools(live, "kept = tools.a\nkept()", {"a": 1})[0].value == 1
    assert live("kept()").error == "ToolError: a: the call is over that had these tools"
    assert with_tools(live, "kept()", {"a": 2})[0].value == 2


def test_a_thread_that_waits_for_a_tool_is_told_when_the_call_ends(live):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        call = live.begin("import threading\nsaid = []\ndef run():\n    try:\n        tools.a()\n    except ToolError as error:\n        said.append(str(error))\n"
                          "thread = threading.Thread(target=run)\nthread.start()\nimport time\nwhile not builtins_asked(): time.sleep(0.01)".replace("builtins_asked()", "tools._catalogue.bridge.now.waiting"),
                          tools=theirs.fileno())
        theirs.close()
        assert call.done().error is None
    assert live("thread.join()\nsaid").value == ["a: the call is over that had these tools"]
