"""--cpus 0.5 is at most half a CPU for the whole run, however many processes and threads share it: told by the record, and by the kernel's counter."""
import os
import time

import pytest

from support import host

HALF, BEGUN = 0.5, 0.1 # CPU time in a time, and what it may be ahead of that: the kernel deals it out for a tenth of a second

ALONE = """
import time
end = time.monotonic() + SECONDS
while time.monotonic() < end: pass
"""
PROCESSES = "\nimport os\nfor _ in range(3): os.fork()\n" + ALONE
THREADS = """
import hashlib, threading, time
data = bytes(1 << 20)
def burn():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end: hashlib.sha256(data) # without the interpreter's lock
threads = [threading.Thread(target=burn) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
WAYS = [("one process", ALONE, 1), ("eight processes", PROCESSES, 8), ("four threads", THREADS, 4)]


@pytest.fixture
def needs_cpu(jail, needs_cgroup):
    needs_cgroup("cpu")


@pytest.mark.sample(1)
@pytest.mark.parametrize("program, at_once", [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
@pytest.mark.requirement("A57", "B4")
def test_half_a_cpu_by_the_record(needs_cpu, run_brig, program, at_once):
    run = run_brig("--cpus", "0.5", program=program.replace("SECONDS", "1"))
    assert run.reason == "exited" and run.record["wall_ms"] > 1000 and run.record["pids_peak"] >= at_once, str(run)
    assert 0.02 * run.record["wall_ms"] < run.record["cpu_ms"] <= HALF * run.record["wall_ms"] + 1000 * BEGUN, str(run)


@pytest.mark.sample(1)
@pytest.mark.parametrize("program, at_once", [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
@pytest.mark.requirement("A57", "B4")
def test_half_a_cpu_by_the_kernels_counter(needs_cpu, start_brig, program, at_once):
    """Asked from outside, while it runs."""
    token, program = f"token-half-{at_once}-{os.getpid()}", program.replace("SECONDS", "600")
    child = start_brig("--cpus", "0.5", "--timeout", "300", program="print('ready', flush=True)" + program, args=[token], json_record=False)
    assert child.line() == "ready"
    pid = next(pid for pid, uid in host.with_token(token) if uid != os.geteuid())
    began, before = time.monotonic(), host.group_cpu_seconds(pid)
    assert host.poll(lambda: host.group_cpu_seconds(pid) - before >= 0.5)
    used = host.group_cpu_seconds(pid) - before
    assert used <= HALF * (time.monotonic() - began) + BEGUN
