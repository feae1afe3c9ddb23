"""What `brig run` exits with, and what it says on which stream."""
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios

import pytest

from support import host

WAIT = "import time; print('ready', flush=True); time.sleep(600)"
STATUSES = [
    # sentence, options, program, status, exit_reason
    ("a program that ends", (), "pass", 0, "exited"),
    ("a program with a status of its own", (), "raise SystemExit(7)", 7, "exited"),
    ("a program that raises", (), "1 / 0", 1, "exited"),
    ("a program that does not parse", (), "def", 1, "exited"),
    ("a crash", (), "import ctypes; ctypes.string_at(0)", 128 + signal.SIGSEGV, "signaled"),
    ("an abort", (), "import os; os.abort()", 128 + signal.SIGABRT, "signaled"),
    ("a program that kills itself", (), "import os; os.kill(os.getpid(), 9)", 137, "signaled"),
    ("the wall time", ("--timeout", "0.5"), "import time; time.sleep(600)", 124, "timeout_wall"),
    ("the CPU time", ("--cpu-time", "0.5"), "while True: pass", 124, "timeout_cpu"),
    ("the memory", ("--memory", "32M"), "x = bytearray(64 << 20)", 137, "oom"),
    ("the output", ("--output", "1K"), "while True: print('x' * 1000)", 153, "output_limit"),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("options, program, status, reason", [row[1:] for row in STATUSES],
                         ids=[f"{row[0]}: {row[4]}, status {row[3]}" for row in STATUSES])
@pytest.mark.requirement("A5", "A61", "A90", "A91", "A110", "B15", "B20", "B23", "B34", "B35", "C18")
def test_status(jail, run_brig, options, program, status, reason):
    run = run_brig(*options, program=program)
    assert run.record and (run.reason, run.status) == (reason, status), str(run)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
                         ids=["SIGINT ends it with 130", "SIGTERM ends it with 143", "SIGHUP ends it with 143"])
def test_cancelled(jail, start_brig, tmp_path, number, status):
    token = f"token-cancel-{os.getpid()}-{status}"
    child = start_brig("--timeout", "300", program=WAIT, args=[token])
    assert host.poll(lambda: any(uid != os.geteuid() for _, uid in host.with_token(token))), "did not start"
    child.signal(number)
    run = child.wait()
    assert run.record and (run.reason, run.status) == ("cancelled", status), str(run)


def test_control_c_in_a_terminal_ends_it_with_130(jail, brig, tmp_path):
    """The terminal sends SIGINT to brig; the jail has no terminal and gets none."""
    program = tmp_path / "wait.py"
    program.write_text("import os\ntry: open('/dev/tty'); print('a terminal')\nexcept OSError: pass\n" + WAIT)
    master, slave = pty.openpty()
    child = subprocess.Popen([brig, "run", "--timeout", "300", program], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
    try:
        assert child.stdout.readline() == b"ready\n"
        os.write(master, b"\x03")
        _, stderr = child.communicate(timeout=host.HANG)
    finally:
        child.kill()
        os.close(master)
        os.close(slave)
    assert child.returncode == 130 and b"cancelled" in stderr and b"Traceback" not in stderr, (child.returncode, stderr)


def test_a_program_that_is_not_there_is_127_and_one_that_cannot_run_126(jail, run_brig):
    missing = run_brig(verb="exec", args=["--", "/usr/bin/no-such-program"])
    assert missing.status == 127, missing
    data = run_brig(verb="exec", args=["--", "/etc/passwd"])
    assert data.status == 126, data


def test_exec_runs_a_command_of_the_rootfs(jail, run_brig):
    run = run_brig(verb="exec", args=["--", "/usr/bin/python3", "-c", "import sys; print(sys.argv); raise SystemExit(5)", "--json", "-v"])
    assert run.out == "['-c', '--json', '-v']\n" and run.status == 5, str(run)


# --- streams ------------------------------------------------------------------------------------------------

def test_without_json_the_output_passes_through_unchanged(jail, run_brig):
    program = "import os\nos.write(1, bytes(range(256)))\nos.write(2, b'to stderr')"
    run = run_brig(program=program, json_record=False)
    assert run.stdout == bytes(range(256)).decode(errors="replace") and run.stderr == "to stderr" and run.status == 0, str(run)


def test_output_comes_while_the_program_runs(jail, start_brig):
    child = start_brig("--timeout", "300", program=WAIT, json_record=False)
    assert child.line() == "ready" and child.process.poll() is None


SUMMARIES = [
    ("nothing is said when the program simply exits", (), "raise SystemExit(3)", 0, ""),
    ("-v says it in one line anyway", ("-v",), "pass", 1, "exited"),
    ("a signal is named in one line", (), "import os; os.kill(os.getpid(), 11)", 1, "SIGSEGV"),
    ("a time limit is named in one line", ("--timeout", "0.5"), "import time; time.sleep(600)", 1, "timeout_wall"),
    ("an end for want of memory is named in one line", ("--memory", "32M"), "x = bytearray(64 << 20)", 1, "oom"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("options, program, lines, word", [row[1:] for row in SUMMARIES], ids=[row[0] for row in SUMMARIES])
@pytest.mark.requirement("A94")
def test_summary(jail, run_brig, options, program, lines, word):
    run = run_brig(*options, program=program, json_record=False)
    assert len(run.stderr.splitlines()) == lines and word in run.stderr, str(run)


def test_with_json_stdout_is_one_object_and_stderr_is_empty(jail, run_brig):
    run = run_brig(program="import sys; print('{}'); print('x', file=sys.stderr)")
    assert json.loads(run.stdout)["stdout"] == "{}\n" and run.record["stderr"] == "x\n" and run.stderr == "", str(run)


def test_output_that_is_no_text_still_makes_a_record(jail, run_brig):
    run = run_brig(program="import os; os.write(1, bytes(range(256)) * 4 + '\\ud800'.encode('utf-8', 'surrogatepass'))")
    assert run.record and run.record["stdout_bytes"] == 1027 and run.record["stdout"].startswith("\x00\x01"), str(run)


def test_a_reader_that_goes_away_ends_the_run(jail, start_brig, tmp_path):
    token = f"token-reader-{os.getpid()}"
    child = start_brig("--timeout", "300", program="while True: print('x' * 100, flush=True)", args=[token], json_record=False)
    child.line()
    child.process.stdout.close()
    child.process.stdout = None
    assert host.poll(lambda: child.process.poll() is not None), "brig still runs though nobody reads"
    assert host.poll(lambda: not host.with_token(token))


@pytest.mark.row("E9")
def test_a_reader_that_never_reads_does_not_stop_the_clock(jail, start_brig):
    token = f"token-blocked-{os.getpid()}"
    start_brig("--timeout", "1", "--output", "1M", program="while True: print('x' * 1000)", args=[token], json_record=False)
    cells = lambda: [pid for pid, uid in host.with_token(token) if uid != os.geteuid()]
    assert host.poll(cells), "did not start"
    assert host.poll(lambda: not cells()), "the program outlives its wall time when nobody reads"
