"""E18: programs cannot fill the kernel's log, and make audit records only of processes that die. The long tier crashes a hundred thousand times, the quick one five hundred times."""
import os
import subprocess
import time

import pytest

from support import audit_log, host, kernel_log

pytestmark = pytest.mark.alone("reads the kernel's log and audit, which are one for the whole machine")

QUICK, LONG, A_RUN = 500, 100000, 20000
CRASH = """
import ctypes, os, sys
for n in range(int(sys.argv[1])):
    if os.fork() == 0:
        ctypes.string_at(0)
    status = os.wait()[1]
print(n + 1, status & 127)
"""
FOREIGN = """
import ctypes, mmap, os, sys
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3")) # mov eax, 20 (getpid); int 0x80; ret
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
for n in range(int(sys.argv[1])):
    if os.fork() == 0:
        call()
        os._exit(0)
    status = os.wait()[1]
print(n + 1, status & 127)
"""
REFUSED = """
import ctypes, time
call, end, n = ctypes.CDLL(None).mount, time.monotonic() + 1, 0
while time.monotonic() < end:
    for _ in range(1000):
        call(b"a", b"b", b"c", 0, None)
    n += 1000
print(n, 0)
"""
FLOODS = {
    # what it does: program, the signal that its processes die of, records of the audit each time, at most
    "crashes": (CRASH, 11, 1),
    "calls of a foreign ABI, which kill": (FOREIGN, 31, 2),
    "refused calls for a second": (REFUSED, 0, 0),
}


def flood(run_brig, what, times):
    """(how often it happened, lines in the log, seconds)"""
    program, signal, _ = FLOODS[what]
    log, began = kernel_log.KernelLog(kernel_log.CRASHES), time.monotonic()
    try:
        run = run_brig("--timeout", "300", "--cpu-time", "300", "--cpus", "2", program=program, args=[str(times)], timeout=5 * host.HANG)
        seconds, lines = time.monotonic() - began, log.lines()
    finally:
        log.close()
    assert run.reason == "exited" and run.status == 0, str(run)
    count, died_of = map(int, run.out.split())
    assert died_of == signal and count >= min(times, QUICK), str(run)
    return count, lines, seconds


def check(run_brig, what, times):
    """In as many runs as it takes. The kernel lets 10 of a kind through in five seconds, each of two lines; and says how many it left out."""
    count, lines, seconds = 0, [], 0
    while count < times:
        more, new, took = flood(run_brig, what, min(times, A_RUN))
        count, lines, seconds = count + more, lines + new, seconds + took
    print(f"{what}: {count} in {seconds:.0f} s, {len(lines)} lines in the log")
    assert len(lines) <= 60 + 12 * seconds, f"{count} {what} made {len(lines)} lines in {seconds:.1f} s:\n{''.join(lines[:5])}"


@pytest.fixture(params=FLOODS)
def what(request):
    if request.param.startswith("calls of a foreign") and os.uname().machine != "x86_64":
        pytest.skip("needs x86_64: no other machine here has a second ABI")
    if request.param.startswith("calls of a foreign") and host.lacks("int80"):
        pytest.skip(host.lacks("int80"))
    return request.param


@pytest.mark.row("E18")
def test_the_kernels_log_grows_a_few_lines(jail, run_brig, token, nothing_left, what):
    check(run_brig, what, QUICK)


@pytest.mark.row("E18")
def test_the_audit_has_a_record_of_what_dies_and_none_of_what_is_refused(jail, run_brig, token, nothing_left, what):
    """Also where auditing is off: a kill of the filter is a record then, a crash is none."""
    log = audit_log.AuditLog(*audit_log.OF_PROGRAMS)
    try:
        count, _, _ = flood(run_brig, what, QUICK)
        records = log.records()
    finally:
        log.close()
    assert len(records) <= FLOODS[what][2] * count, f"{count} {what} made {len(records)} records:\n" + "\n".join(records[:5])


WITHOUT_MEMORY = {
    "pages": "b = bytearray(200 << 20)",
    "files": """f, keep = open('/tmp/f', 'wb', buffering=0), []
while True:
    try: f.write(bytes(1 << 20))
    except OSError: pass # ENOMEM: a call has no page, and a program that needs none would go on, or end by itself
    keep.append(bytearray(1 << 16))""",
    "a child": "import os, time\nif os.fork() == 0: b = bytearray(200 << 20)\ntime.sleep(600)",
    "what the kernel writes to": "import mmap, os\nb = mmap.mmap(-1, 200 << 20)\nos.readv(os.open('/dev/zero', os.O_RDONLY), [b])\nc = bytearray(200 << 20)",
    "processes": "import os, time\ntry:\n    while True:\n        if os.fork() == 0:\n            b = b'x' * (1 << 20)\n            time.sleep(600)\n"
                 "except BlockingIOError:\n    time.sleep(600)", # faster than its children take their memory
}


@pytest.mark.row("E18")
@pytest.mark.parametrize("program", WITHOUT_MEMORY.values(), ids=WITHOUT_MEMORY)
def test_runs_that_are_ended_for_their_memory_leave_no_line_in_the_kernels_log(jail, run_brig, token, nothing_left, program):
    """The kernel writes a hundred lines and more before it kills: a minute of such runs, and nothing else is left in its log."""
    log = kernel_log.KernelLog(kernel_log.MEMORY)
    try:
        for _ in range(3):
            run = run_brig("--memory", "32M", "--tmp-size", "64M", "--pids", "64", program=program)
            assert (run.reason, run.status) == ("oom", 137), str(run)
        assert log.lines() == []
    finally:
        log.close()


@pytest.mark.nightly
def test_a_run_without_memory_is_told_as_that_and_not_as_a_crash(run_brig):
    """Two of a hundred got SIGSEGV: the kernel touches a page behind a fork, and cannot wait for memory there."""
    for _ in range(100):
        run = run_brig("--memory", "32M", "--tmp-size", "64M", "--pids", "64", program=WITHOUT_MEMORY["processes"])
        assert (run.reason, run.status) == ("oom", 137), str(run)


@pytest.mark.long
@pytest.mark.row("E18")
def test_the_kernels_log_grows_a_few_lines_for_a_hundred_thousand(jail, run_brig, token, nothing_left, what):
    check(run_brig, what, LONG)


@pytest.mark.control("E18")
def test_control_a_crash_is_told_in_the_log():
    """Ten a five seconds at most, for all programs of the host: another may have used them up."""
    if host.read("/proc/sys/debug/exception-trace", "0").strip() == "0":
        pytest.skip("needs a kernel that tells of crashes: debug.exception-trace is 0")
    log = kernel_log.KernelLog(kernel_log.CRASHES)
    try:
        assert host.poll(lambda: subprocess.run([host.PYTHON, "-c", CRASH, "1"], capture_output=True) and log.lines(), every=1)
    finally:
        log.close()
