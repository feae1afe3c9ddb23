"""What brig is started with: closed streams, small limits, an odd umask, readers that are slow or gone."""
import json
import os
import resource
import select
import shutil
import subprocess

import pytest

from support import host

LARGE = "print('x' * 900000)"


def write(folder, text):
    program = folder / "program.py"
    program.write_text(text)
    return program


@pytest.mark.sample(2)
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)], ids=lambda fds: f"descriptors {fds} are closed")
def test_a_run_with_closed_streams_is_a_run(jail, brig, tmp_path, closed):
    """What was opened next would be taken for the stream; with 1 closed it was the socket to the launcher."""
    program = write(tmp_path, "import os, sys\nprint(os.fstat(0).st_rdev, flush=True)\nprint('e', file=sys.stderr)\nraise SystemExit(7)")
    done = subprocess.run([brig, "run", program], capture_output=True, text=True, preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert done.returncode == 7, done
    assert done.stdout == ("" if 1 in closed else f"{os.makedev(1, 3)}\n") and done.stderr == ("" if 2 in closed else "e\n"), done


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["the program's output", "the record"])
def test_a_full_pipe_that_does_not_block_loses_nothing_of(jail, brig, tmp_path, options):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    child = subprocess.Popen([brig, "run", *options, write(tmp_path, LARGE)], stdout=writing, stderr=subprocess.PIPE)
    assert host.poll(lambda: not select.select([], [writing], [], 0)[1]), "it is not full"
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read()
    assert (child.wait(host.HANG), child.stderr.read()) == (0, b"")
    assert (json.loads(text)["stdout"] if options else text.decode()) == "x" * 900000 + "\n"


def test_a_record_that_finds_no_room_is_no_success(jail, brig, tmp_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([brig, "run", "--json", write(tmp_path, "pass")], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 141 and "record cannot be written: No space left" in done.stderr, done


def test_a_record_that_nobody_reads_is_no_success(jail, brig, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([brig, "run", "--json", write(tmp_path, "pass")], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 141 and "record cannot be written: Broken pipe" in done.stderr, done


@pytest.mark.sample(2)
@pytest.mark.parametrize("mask", [0o777, 0o177, 0o077, 0], ids=lambda mask: f"umask {mask:03o} leaves nothing behind")
def test_umask(jail, brig, tmp_path, mask):
    before = host.Snapshot()
    done = subprocess.run([brig, "run", write(tmp_path, "print('ran')")], capture_output=True, text=True, preexec_fn=lambda: os.umask(mask))
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert not before.left_since()


@pytest.mark.sample(3)
@pytest.mark.parametrize("which, value", [("NOFILE", 4), ("NOFILE", 8), ("NOFILE", 16), ("NOFILE", 24), ("FSIZE", 0), ("FSIZE", 100), ("NPROC", 1)],
                         ids=lambda v: str(v))
def test_a_limit_that_is_too_small_is_named_and_nothing_is_left(jail, brig, tmp_path, which, value):
    before = host.Snapshot()
    number = getattr(resource, f"RLIMIT_{which}")
    done = subprocess.run([brig, "run", write(tmp_path, "print('ran')")], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(number, (value, value)))
    assert done.returncode == 125 and "ran" not in done.stdout and done.stderr.startswith("brig: "), done
    assert "launcher was killed" not in done.stderr, done
    assert not before.left_since()


@pytest.mark.row("E17")
def test_a_caller_without_cores_does_not_have_crash_handlers_called(jail, brig, tmp_path):
    """Only a limit of exactly 1 stops the kernel from starting the handler of core_pattern; 0 does not."""
    program = write(tmp_path, "print(next(l for l in open('/proc/self/limits') if l.startswith('Max core')).split()[4:6])")
    done = subprocess.run([brig, "run", program], capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    raised = done.returncode == 0 and done.stdout == "['1', '1']\n"
    harmless = not host.read("/proc/sys/kernel/core_pattern").startswith("|")
    refused = done.returncode == 125 and "core limit" in done.stderr
    assert raised or refused or harmless, done


def test_the_callers_priority_for_the_disk_is_not_lent(jail, start_brig, tmp_path):
    real_time, token = 1 << 13, f"token-ioprio-{os.getpid()}"
    child = start_brig("--timeout", "300", program="print('ready', flush=True)\nimport time; time.sleep(600)", args=[token], json_record=False,
                       popen={"preexec_fn": lambda: set_io_priority(real_time)})
    assert child.line() == "ready", child.wait(1)
    programs = [pid for pid, uid in host.with_token(token) if uid != os.geteuid()]
    assert programs and all(io_priority(pid) >> 13 != 1 for pid in programs)


def call(number, *args):
    import ctypes
    return ctypes.CDLL(None, use_errno=True).syscall(number, *args)


def set_io_priority(value):
    assert call(*{"x86_64": (251,), "aarch64": (30,)}[os.uname().machine], 1, 0, value) == 0


def io_priority(pid):
    return call(*{"x86_64": (252,), "aarch64": (31,)}[os.uname().machine], 1, pid)


def test_root_need_not_have_the_right_to_look_into_processes(jail, brig, tmp_path, needs_root):
    """CAP_SYS_PTRACE, which containers do not give: a cell is entered as the owner of its user namespace."""
    if not shutil.which("setpriv"):
        pytest.skip("missing program: setpriv")
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    done = subprocess.run([*without, brig, "run", write(tmp_path, "print('ran')")], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


@pytest.mark.parametrize("argv", [["brig", "rootfs", "--help"], ["brig", "doctor", "--help"], ["brig", "metrics", "--help"], ["brigd", "--help"]], ids=" ".join)
def test_no_variable_of_the_caller_loads_code_into_what_brig_executes(brig, argv):
    """AppArmor may let brig make user namespaces, and what it executes, too. LD_DEBUG shows what the loader reads of the variables."""
    done = subprocess.run(argv, executable=brig, capture_output=True, text=True, env={**os.environ, "LD_DEBUG": "libs", "LD_PRELOAD": "/nowhere/evil.so"})
    assert (done.returncode, done.stderr) == (0, "") and "usage: " in done.stdout, done
