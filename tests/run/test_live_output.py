"""What a program prints is there when it is printed, line by line, however it is started and however it ends."""
import pytest

ENDS = {
    "a time-out": ("while True: pass", ("--timeout", "1")), "os._exit": ("import os; os._exit(0)", ()), "a signal": ("import os; os.kill(os.getpid(), 9)", ()),
    "a crash": ("import ctypes; ctypes.string_at(0)", ()), "no memory": ("x = []\nwhile True: x.append(bytearray(1 << 20))", ("--memory", "64M")),
    "exec": ("import os; os.execv('/usr/bin/python3', ['python3', '-I', '-c', ''])", ()),
}


BOTH = pytest.mark.parametrize("json_record", [False, True], ids=["by the interpreter", "by the runner"])


@pytest.mark.sample(6)
@BOTH
@pytest.mark.parametrize("start", [("--cold",), ()], ids=["cold", "as it comes"])
@pytest.mark.parametrize("way", ENDS)
def test_what_was_printed_is_not_lost_however_a_program_ends(run_brig, way, start, json_record):
    code, options = ENDS[way]
    run = run_brig(*start, *options, program=f"print('one')\nprint('two', 2)\n{code}", json_record=json_record)
    assert run.out == "one\ntwo 2\n", str(run)


def test_a_line_is_there_while_the_program_runs(start_brig):
    child = start_brig("--timeout", "300", program="import time\nprint('here')\ntime.sleep(600)", json_record=False)
    assert child.line() == "here"


@pytest.mark.parametrize("code", ["print('x' * 5, end='')", "import sys; sys.stdout.write('x' * 5)"])
def test_what_is_no_line_comes_at_the_end(run_brig, code):
    assert run_brig(program=code).out == "xxxxx"


FLOOD = "for i in range(200000): print(i)"


def test_who_prints_fast_has_a_buffer_and_loses_nothing(run_brig):
    run = run_brig("--output", "4M", program=FLOOD)
    assert run.out == "".join(f"{i}\n" for i in range(200000))


SLOWS = """
import os, time
for i in range(200000): print(i)
for i in range(100):
    print("slow", i, "x" * 60)
    time.sleep(0.02)
    if i == 50: break
os._exit(0)
"""


def test_who_was_fast_and_is_slow_has_his_lines_shown_again(run_brig):
    run = run_brig("--output", "4M", program=SLOWS)
    assert run.out.endswith(f"slow 50 {'x' * 60}\n"), run.out[-200:]


WRITES = {
    "reconfigured": "import sys\nsys.stdout.reconfigure(line_buffering=False)\nprint('a')", "detached": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint('a')",
    "the buffer": "import sys\nsys.stdout.buffer.write(b'a\\n'); sys.stdout.buffer.flush()", "the raw file": "import sys\nsys.stdout.buffer.raw.write(b'a\\n')",
    "another one": "import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint('a')", "closed": "import sys\nprint('a')\nsys.stdout.close()",
    "threads": "import threading\nt = threading.Thread(target=print, args=('a',))\nt.start(); t.join()", "a fork": "import os\nif os.fork() == 0: print('a')\nelse: os.wait()",
    "a child": "import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', 'print(chr(97))'])", "at exit": "import atexit\natexit.register(print, 'a')",
    "a finaliser": "class A:\n    def __del__(self): print('a')\nx = A()",
}


@pytest.mark.sample(6)
@BOTH
@pytest.mark.parametrize("how", WRITES)
def test_whatever_a_program_does_to_its_output_it_is_written(run_brig, how, json_record):
    run = run_brig(program=WRITES[how], json_record=json_record)
    assert (run.out, run.stderr, run.status) == ("a\n", "", 0), str(run)


def test_a_flood_from_many_threads_loses_nothing(run_brig):
    """A print() is two writes, its text and the end of the line: threads may come between the two, with any buffer."""
    program = "import threading\ndef work(n):\n    for i in range(20000): print(f'{n}-{i}')\nts = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]"
    run = run_brig("--output", "4M", program=program)
    assert sorted(run.out) == sorted("".join(f"{n}-{i}\n" for n in range(4) for i in range(20000)))
