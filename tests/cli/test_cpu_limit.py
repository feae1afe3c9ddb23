"""--cpus 0.5 is at most half a CPU for the whole run, however many processes and threads share it: told by the record, and by the kernel's counter."""
import os
import time

import pytest

from support import host

MOST = 0.55 # seconds of CPU time in a second; the kernel deals out a tenth of a second at a time

ALONE = """
import time
end = time.monotonic() + 3
while time.monotonic() < end: pass
"""
PROCESSES = "\nimport os\nfor _ in range(3): os.fork()\n" + ALONE
THREADS = """
import hashlib, threading, time
data = bytes(1 << 20)
def burn():
    end = time.monotonic() + 3
    while time.monotonic() < end: hashlib.sha256(data) # without the interpreter's lock
threads = [threading.Thread(target=burn) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
WAYS = [("one process", ALONE, 1), ("eight processes", PROCESSES, 8), ("four threads", THREADS, 4)]


@pytest.fixture
def needs_cpu(jail, needs_cgroup):
    needs_cgroup("cpu")


@pytest.mark.parametrize("program, at_once", [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
@pytest.mark.requirement("A57", "B4")
def test_half_a_cpu_by_the_record(needs_cpu, run_brig, program, at_once):
    run = run_brig("--cpus", "0.5", program=program)
    assert run.reason == "exited" and run.record["wall_ms"] > 2500 and run.record["pids_peak"] >= at_once, str(run)
    assert 0.02 < run.record["cpu_ms"] / run.record["wall_ms"] <= MOST, str(run)


@pytest.mark.parametrize("program, at_once", [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
@pytest.mark.requirement("A57", "B4")
def test_half_a_cpu_by_the_kernels_counter(needs_cpu, start_brig, program, at_once):
    """Asked from outside, while it runs."""
    child = start_brig("--cpus", "0.5", program="print('ready', flush=True)" + program.replace("+ 3", "+ 30"), args=[f"token-half-{at_once}"], json_record=False)
    assert child.line() == "ready"
    pid = next(pid for pid, uid in host.with_token(f"token-half-{at_once}") if uid != os.geteuid())
    before, began = host.group_cpu_seconds(pid), time.monotonic()
    host.poll(lambda: host.group_cpu_seconds(pid) - before >= 1, 6) # a busy machine gives it less
    used = host.group_cpu_seconds(pid) - before
    assert 0.1 < used <= MOST * (time.monotonic() - began)
