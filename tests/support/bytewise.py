"""A program that writes byte by byte, and how often its reader is woken for it."""
import re

from support import host

BYTES = 30000

# At most some 100,000 bytes a second; then how many milliseconds that took.
PROGRAM = f"""
import os, time
began = time.monotonic()
for n in range({BYTES}):
    os.write(1, b".")
    until = time.perf_counter_ns() + 10000
    while time.perf_counter_ns() < until: pass
print(f"\\n{{(time.monotonic() - began) * 1000:.0f}}", flush=True)
"""


def wakes(pid):
    """How often a process waited and was woken since it began."""
    return int(re.search(r"^voluntary_ctxt_switches:\s(\d+)", host.read(f"/proc/{pid}/status"), re.M)[1])


def bound(took_ms):
    """Some for what has nothing to do with it, and two a millisecond: it rests for one, and one may be lost to another stream."""
    return min(2 * took_ms + 200, BYTES // 2)
