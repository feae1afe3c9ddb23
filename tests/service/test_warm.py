"""Runs that a zygote forks into their cells are the same as cold ones."""
import json

import pytest

from support import host
from warm_runs import folder, kept, talk, told # noqa: F401

# What a warm run must answer exactly as a cold one of the same service does: output, error output, and how it ended.
SAME = {
    "an exception has the traceback of the program alone": "def f():\n    1/0\nf()\n",
    "an exception that a hook raises is told with the first one": "import sys\nsys.excepthook = lambda *a: 1/0\nraise ValueError('x')\n",
    "a syntax error is told": "x = (\n",
    "source in another encoding is read as it says": "# -*- coding: latin-1 -*-\nprint(ascii('ä'))\n",
    "an exit status is passed on": "import sys; print('a', end=''); sys.exit(3)",
    "an exit with a text prints it": "import sys; sys.exit('bad')",
    "an interrupt that nobody catches is a death by signal": "raise KeyboardInterrupt",
    "exit functions run": "import atexit; atexit.register(print, 'bye'); print('hi')",
    "a thread is waited for": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('t'))).start()\nprint('m')\n",
    "a daemon thread is not": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\nprint('x')\n",
    "objects of the program are finalised": "class A:\n    def __del__(self): print('del')\na = A(); _b = A()\nc = A(); c.c = c\ndel c\n",
    "weak finalisers run": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'fin')\n",
    "what was written and not flushed is not lost": "import os\nf = os.fdopen(os.dup(1), 'w')\nf.write('late')\n",
    "a closed stdout is no error": "import sys; sys.stdout.close()",
    "argv, flags and paths": "import sys; print(sys.argv, sys.orig_argv, sys.flags, sys.path, sys.executable, sys.prefix, sys.warnoptions)",
    "the modules that are loaded": "import sys; print(sorted(sys.modules))",
    "the environment, for Python, for the kernel and for children":
        "import os, subprocess\nprint(sorted(os.environ.items()), open('/proc/self/environ').read().rstrip('\\0'))\nos.environ['A'] = 'b'\n"
        "print(sorted(subprocess.run(['env'], capture_output=True, text=True).stdout.split()))\n",
    "signal dispositions and mask":
        "import signal; print([str(signal.getsignal(n)) for n in range(1, 65) if n not in (32, 33)], signal.pthread_sigmask(0, []))",
    "identity and rights, but for the parent":
        "keep = 'Name Umask Pid Uid Gid Groups NSpid Threads SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters'\n"
        "print([l for l in open('/proc/self/status') if l.split(':')[0] in keep.split()])\n",
    "session, cwd, umask and files": "import os; print(os.getpid(), os.getsid(0), os.getpgrp(), os.getcwd(), os.umask(0), os.listdir('/workspace'), os.listdir('/proc'))",
    "descriptors": "import os\nfor fd in range(64):\n    try: print(fd, os.readlink(f'/proc/self/fd/{fd}').split(':')[0])\n    except OSError: pass\n",
    "resource limits": "import resource as r; print([(n, r.getrlimit(getattr(r, n))) for n in sorted(dir(r)) if n.startswith('RLIMIT_')])",
    "standard streams": "import sys\nfor s in sys.stdin, sys.stdout, sys.stderr:\n    print(s, s.buffer, s.line_buffering, s.seekable(), s.errors, s.isatty())\n"
                        "open('/dev/stdout', 'w').write('by name\\n')\n",
    "an empty stdin": "import sys; print(repr(sys.stdin.read()))",
    "the collector works": "import gc; print(gc.isenabled(), gc.get_threshold(), gc.callbacks)",
    "names of the main module": "import __main__; print(sorted(__main__.__dict__), __name__, __file__, __spec__, __doc__, __builtins__)",
    "host name, locale and time zone": "import os, time, locale; print(os.uname().nodename, locale.getlocale(), time.tzname)",
    "recursion has as much room": "import sys\ndef f(n):\n    return n and f(n - 1)\nprint(sys.getrecursionlimit(), f(985))\n",
    "thread ids": "import os, threading; print(os.getpid(), threading.get_native_id(), threading.main_thread().native_id, threading.current_thread().name)",
    "signals to oneself": "import signal, threading, os\nsignal.signal(signal.SIGUSR1, lambda *a: print('got'))\nsignal.pthread_kill(threading.get_ident(), signal.SIGUSR1)\n"
                          "signal.raise_signal(signal.SIGUSR1)\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print('interrupted')\n",
    "a death by signal": "import signal; signal.raise_signal(signal.SIGTERM)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "multiprocessing in every way": "import multiprocessing as m\nif __name__ == '__main__':\n    for way in 'fork', 'spawn', 'forkserver':\n"
                                    "        with m.get_context(way).Pool(2) as pool: print(way, pool.map(abs, [-1, 2]))\n",
    "executors": "import concurrent.futures as c\nfor kind in c.ThreadPoolExecutor, c.ProcessPoolExecutor:\n    with kind(2) as e: print(list(e.map(abs, [-1, 2])))\n",
    "asyncio with a child": "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n    print(await p.communicate())\nasyncio.run(f())\n",
    "orphans come to PID 1 and are reaped": "import os, time\nif os.fork() == 0:\n    if os.fork() == 0:\n        while os.getppid() != 1: time.sleep(.01)\n        print('orphan of', os.getppid(), flush=True); os._exit(0)\n    os._exit(0)\n"
                                            "os.wait()\nwhile len([n for n in os.listdir('/proc') if n.isdigit()]) > 1: time.sleep(.01)\nprint('alone')\n",
    "what it leaves behind ends with it": "import os, time\nif os.fork() == 0: time.sleep(600)\nprint('end')\n",
    "too much memory": "b = bytearray(600 << 20); print(len(b))",
    "warnings show the line": "import warnings; warnings.warn('careful')",
    "source can be looked at": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))\n",
    "the process is called as it should be": "print(open('/proc/self/cmdline').read().rstrip('\\0').split('\\0'), open('/proc/self/comm').read())",
    "clocks": "import time; print(time.process_time() < 5, time.thread_time() < 5)",
    "much output": "print('x' * 200000)",
}


@pytest.mark.diagonal("folder")
@pytest.mark.parametrize("name", SAME)
def test_a_warm_run_is_the_same_as_a_cold_one(talk, name):
    forked, executed = talk.run(SAME[name]), talk.run(SAME[name], cold=True)
    assert (forked.record["warm"], executed.record["warm"]) == (True, False)
    assert told(forked) == told(executed)


def test_arguments_and_environment_are_the_runs_own(talk):
    program = "import sys, os; print(sys.argv, sys.orig_argv, os.environ.get('A'), os.environ.get('HOME'), os.environb.get(b'B'))"
    found = [talk.run(program, args=["x", "ä"], env=["A=1", "B=ä"], **keys) for keys in ({}, {"cold": True})]
    assert told(found[0]) == told(found[1]) and found[0].record["warm"]
    assert "None" in talk.run(program).stdout, "the next run has the environment of the one before"


def test_they_are_seen_in_proc(talk):
    """Of a fork that was there before them with zeros behind, for the kernel was told of two pages."""
    program = "print(*[open(f'/proc/self/{name}', 'rb').read().rstrip(b'\\0') for name in ('cmdline', 'environ')])"
    forked, executed = [talk.run(program, args=["x", "ä"], env=["A=1"], **keys).stdout for keys in ({}, {"cold": True})]
    assert forked == executed


def test_a_time_zone_of_the_environment_holds_in_a_fork(talk):
    """The zygote's C library has read another one when it began."""
    program = "import time; print(time.tzname, time.timezone, time.localtime(0).tm_hour, time.strftime('%H', time.localtime(0)))"
    forked, executed = [talk.run(program, env=["TZ=JST-9"], **keys) for keys in ({}, {"cold": True})]
    assert forked.record["warm"] and forked.stdout == executed.stdout == "('JST', 'JST') -32400 9 09\n", (forked, executed)


def test_standard_input_is_read_from_a_pipe(talk):
    run = talk.start("import sys; print(sys.stdin, sys.stdin.buffer, sys.stdin.seekable(), repr(sys.stdin.read()))", stdin=True)
    run.feed("eins\nzwei".encode())
    ended = run.finish()
    assert ended.record["warm"] and "'eins\\nzwei'" in ended.stdout, ended
    again = talk.start("import sys; print(sys.stdin, sys.stdin.buffer, sys.stdin.seekable(), repr(sys.stdin.read()))", stdin=True, cold=True)
    again.feed("eins\nzwei".encode())
    assert again.finish().stdout == ended.stdout


def test_a_command_and_a_cold_run_are_executed(talk):
    assert talk.command("true").record["warm"] is False
    assert talk.run("print(1)", cold=True).record["warm"] is False


@pytest.mark.parametrize("profile", ["basic", "strict"])
def test_the_report_of_a_warm_run_is_that_of_a_cold_one(talk, profile):
    program = "x = 41\ndef f():\n    1/0\nprint('hi')\nx + 1\n"
    reports = []
    for keys in {}, {"cold": True}:
        run = talk.start(program, profile=profile, mode="report", **keys)
        ended = run.finish()
        assert ended.record["warm"] is not bool(keys), ended
        reports.append((told(ended), json.loads(run.text["result"])))
    assert reports[0] == reports[1] and reports[0][1]["result"] == 42, reports


def test_a_report_of_an_error_shows_no_line_of_ours(talk):
    reports = []
    for keys in {}, {"cold": True}:
        run = talk.start("def f():\n    1/0\nf()\n", mode="report", **keys)
        ended = run.finish()
        reports.append((told(ended), json.loads(run.text["result"])))
    assert reports[0] == reports[1]


def test_time_and_memory_are_counted_for_the_run_alone(talk):
    idle, busy = talk.run("pass").record, talk.run("import time\nend = time.process_time() + .2\nwhile time.process_time() < end: pass\nb = bytearray(30 << 20)\n").record
    assert idle["cpu_ms"] < 100 * host.SLOWER and 180 <= busy["cpu_ms"] < 400 * host.SLOWER, (idle, busy)
    assert busy["memory_peak_bytes"] > 30 << 20 and idle["memory_peak_bytes"] < 20 << 20
    assert idle["pids_peak"] <= 2


@pytest.mark.parametrize("limit, program, reason", [
    ({"wall_ms": 200}, "import time; time.sleep(600)", "timeout_wall"),
    ({"cpu_ms": 200}, "while 1: pass", "timeout_cpu"),
    ({"memory_bytes": 64 << 20}, "b = bytearray(200 << 20)", "oom"),
])
def test_a_limit_ends_a_warm_run(talk, limit, program, reason):
    run = talk.run(program, limits=limit)
    assert run.record["warm"] and run.reason == reason, run


def test_a_cancelled_run_is_over(talk):
    run = talk.start("import time; time.sleep(600)", limits={"wall_ms": 300000})
    talk.ask("cancel", run=run.id)
    assert run.wait()["exit_reason"] == "cancelled"
    run.close()
