"""Section E: what a program takes is bounded, told in the record, and not missing elsewhere."""
import concurrent.futures
import functools
import os
import resource
import shutil
import subprocess
import tempfile
import time

import pytest

from support import brig, host, tiers

MIB = 1 << 20
GROW = """
chunks = []
for n in range(160):
    chunks.append(bytearray(1 << 20))
print("survived", flush=True)
"""


def cost_of_a_start(until):
    """Milliseconds of CPU time for /bin/true, which is started again and again until then. To wait for a CPU costs nothing: others use them, too."""
    def spent():
        return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    before, n = spent(), 0
    while not until():
        subprocess.run(["/bin/true"], check=True)
        n += 1
    return 1000 * (spent() - before) / n


def costs_beside(child):
    """(what a start costs while it runs, what it costs afterwards)"""
    beside = cost_of_a_start(lambda: os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) # it is not counted, as long as nobody reaps it
    end = time.monotonic() + 1
    return beside, cost_of_a_start(lambda: time.monotonic() > end)


# --- memory -------------------------------------------------------------------------------------------

@pytest.mark.row("E1")
@pytest.mark.requirement("A91", "B35")
def test_a_memory_bomb_ends_as_oom_at_its_limit(jail, run_brig, bystander, token, nothing_left):
    run = run_brig("--memory", "64M", program=GROW, args=[token])
    assert (run.reason, run.status) == ("oom", 137) and "survived" not in run.out, str(run)
    assert 55 * MIB <= run.record["memory_peak_bytes"] <= 65 * MIB, str(run)


@pytest.mark.row("E1")
def test_a_child_that_uses_up_the_memory_ends_the_whole_run_as_oom(jail, run_brig, token, nothing_left):
    program = f"import os, time\nif os.fork() == 0:\n  exec({GROW!r})\n  os._exit(0)\nos.wait()\nprint('parent lives', flush=True)\ntime.sleep(600)"
    run = run_brig("--memory", "64M", "--timeout", "50", program=program, args=[token])
    assert (run.reason, run.status) == ("oom", 137), str(run)


@pytest.mark.row("E1")
def test_swap_is_no_memory_beyond_the_limit(jail, start_brig, token):
    """Asked of the kernel: what is out in the swap counts as what is in memory, or there may be none of it."""
    child = start_brig("--memory", "64M", "--timeout", "20", program="print('ready', flush=True)\nimport time; time.sleep(20)", args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    program = next(pid for pid, uid in host.with_token(token) if uid >= 65536)
    limits = {"memory.swap.max": "0", "memory.memsw.limit_in_bytes": str(64 * MIB)} # of version 2, and of version 1: memory and swap together
    told = {name: host.read(f"{group}/{name}").strip() for group in host.groups_of(program, "memory") for name in limits if os.path.exists(f"{group}/{name}")}
    if not told:
        pytest.skip("needs a kernel that counts what is in the swap of a group")
    assert told == {name: limits[name] for name in told}


@pytest.mark.control("E1")
def test_control_the_same_memory_is_there_without_a_jail():
    assert subprocess.run([host.PYTHON, "-c", GROW], capture_output=True, text=True).stdout == "survived\n"


HOARDS = {
    "a file in the workspace": "f = open('/workspace/f', 'wb', 0)\nfor n in range(160): f.write(b'x' * (1 << 20))",
    "a memfd": "import os\nf = os.memfd_create('m')\nfor n in range(160): os.write(f, b'x' * (1 << 20))",
    "files in /dev/shm": "for n in range(160):\n  open(f'/dev/shm/{n}', 'wb').write(b'x' * (1 << 20))",
    "shared memory": "import mmap\nm = mmap.mmap(-1, 160 << 20)\nfor n in range(160 << 8): m[n << 12] = 1",
    "page tables": "import mmap\nm = [mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000) for _ in range(8)]\n"
                   "for a in m:\n  for n in range(0, 8 << 30, 2 << 20): a[n] = 1",
    "pipes": "import os, fcntl\nkeep = []\nfor n in range(110):\n  r, w = os.pipe(); keep += [r, w]\n  os.set_blocking(w, False)\n"
             "  try: fcntl.fcntl(w, 1031, 1 << 20)\n  except OSError: pass\n  try:\n    while True: os.write(w, b'x' * 65536)\n  except BlockingIOError: pass",
    "socket buffers": "import socket\nkeep = []\nfor n in range(110):\n  a, b = socket.socketpair(); keep += [a, b]\n  a.setblocking(False)\n"
                      "  a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)\n  try:\n    while True: a.send(b'x' * 65536)\n  except OSError: pass",
}


@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.row("E2")
@pytest.mark.parametrize("program", HOARDS.values(), ids=[f"memory taken by {what} is charged" for what in HOARDS])
def test_memory_is_charged(jail, run_brig, program, token, nothing_left):
    before = host.mem_available()
    run = run_brig("--memory", "64M", "--timeout", "50", program=program + "\nprint('done')", args=[token])
    refused = any(e in run.record["stderr"] for e in ("ENOSPC", "ENOMEM", "No space left", "MemoryError", "Cannot allocate"))
    bounded = "done" in run.out and run.record["memory_peak_bytes"] <= 65 * MIB # the kernel's own bounds came first
    # With cgroup v1 a call that needs memory fails, also the one that would print why: then Python exits with 120.
    mute = (run.record["exit_code"], run.record["stderr"], run.record["memory_peak_bytes"]) == (120, "", 64 * MIB)
    assert run.reason == "oom" or refused or bounded or mute, str(run)
    assert run.record["memory_peak_bytes"] <= 66 * MIB, str(run)
    assert host.poll(lambda: host.mem_available() > before - 200 * MIB), f"the host lost memory\n{run}"


@pytest.mark.control("E2")
def test_control_a_memfd_takes_memory_without_a_jail():
    program = HOARDS["a memfd"] + "\nprint(next(l for l in open('/proc/self/status') if 'RssShmem' in l) and os.fstat(f).st_blocks * 512)"
    assert int(subprocess.run([host.PYTHON, "-c", program], capture_output=True, text=True).stdout) >= 160 * MIB


@pytest.mark.nightly
@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.row("E13")
def test_looking_up_missing_names_is_bounded(jail, run_brig, token, nothing_left):
    program = "import os\nfor n in range(300000):\n  try: os.stat(f'/usr/lib/{n}-{\"x\" * 200}')\n  except OSError: pass\nprint('done')"
    before = host.mem_available()
    run = run_brig("--memory", "64M", "--timeout", "50", program=program, args=[token])
    assert run.reason in ("exited", "oom", "timeout_wall", "timeout_cpu"), str(run)
    assert run.record["memory_peak_bytes"] <= 66 * MIB, str(run)
    assert host.poll(lambda: host.mem_available() > before - 200 * MIB), f"the host lost memory\n{run}"


@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.control("E13")
def test_control_names_looked_up_stay_in_the_hosts_memory_without_a_jail(needs_root):
    """The kernel keeps what is missing, too, for nobody's account; on a file system that has a disk below it."""
    folder = next((d for d in ("/usr/lib", "/var/lib", "/") if kind_of(d) != "tmpfs"), None)
    if folder is None:
        pytest.skip("needs a directory that is not in memory")
    before = names_in_memory()
    program = f"import os\nfor n in range(50000):\n  try: os.stat(f'{folder}/brig-{{n}}-{{os.getpid()}}')\n  except OSError: pass"
    subprocess.run([host.PYTHON, "-c", program], check=True)
    assert names_in_memory() > before + 25000


def names_in_memory():
    """The kernel's own count: what a slab has free does not count as free for every processor."""
    return int(host.read("/proc/sys/fs/dentry-state").split()[0])


def kind_of(path):
    """The file system's name."""
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True).stdout.strip()


THRASH = "import mmap\nm = mmap.mmap(-1, 50 << 20)\nwhile True:\n  for n in range(50 << 8): m[n << 12] = 1"


@pytest.mark.row("E21")
def test_a_working_set_as_large_as_the_limit_ends_at_the_wall_time(jail, run_brig, token, nothing_left):
    run = run_brig("--memory", "64M", "--timeout", "2", program=THRASH, args=[token])
    assert run.reason in ("timeout_wall", "oom"), str(run)


# --- what outlives a run, or never becomes memory --------------------------------------------------------

@pytest.mark.row("E3")
def test_memory_of_jails_that_ended_comes_back(jail, run_brig, nothing_left):
    """Ten jails one after the other leave fifty megabytes each in /dev/shm, open and mapped."""
    program = "import mmap, os\nf = open('/dev/shm/f', 'w+b', 0)\nos.posix_fallocate(f.fileno(), 0, 50 << 20)\n" \
              "m = mmap.mmap(f.fileno(), 50 << 20)\nos._exit(0)"
    before = host.meminfo("Shmem")
    for _ in range(10):
        assert run_brig("--memory", "64M", program=program).status == 0
    assert host.poll(lambda: host.meminfo("Shmem") < before + 100 * MIB), f"{(host.meminfo('Shmem') - before) // MIB} MiB stay"


WRITES = """
import os, sys, time
for place in sys.argv[2:]:
    f = os.open(place + "/f", os.O_CREAT | os.O_WRONLY)
    for n in range(20): os.write(f, b"x" * (1 << 20)); os.fsync(f)
    os.sync()
    os.unlink(place + "/f")
print("ready", flush=True)
time.sleep(600)
"""


def written_to_disk(pid):
    """Bytes, or None where the kernel does not count them."""
    for line in host.read(f"/proc/{pid}/io").splitlines():
        if line.startswith("write_bytes"):
            return int(line.split()[1])
    return None


@pytest.mark.row("E12")
@pytest.mark.requirement("B24")
def test_what_a_program_writes_never_reaches_a_disk(jail, start_brig, token):
    """There is no share of a disk to divide: every writable place is memory, and sync does nothing."""
    child = start_brig("--timeout", "300", program=WRITES, args=[f"{token}-jail", "/workspace", "/tmp", "/dev/shm"], json_record=False)
    assert child.line() == "ready", child.wait(1)
    program = next(pid for pid, uid in host.with_token(token) if uid >= 65536)
    assert written_to_disk(program) in (0, None), written_to_disk(program)


@pytest.mark.control("E12")
def test_control_what_a_program_writes_reaches_a_disk_without_a_jail(token):
    folder = next((d for d in (str(host.build_dir()), "/var/tmp", "/var/lib") if kind_of(d) != "tmpfs" and os.access(d, os.W_OK)), None)
    if folder is None or written_to_disk("self") is None:
        pytest.skip("needs a directory on a disk, and the kernel's counters of I/O")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        child = subprocess.Popen([host.PYTHON, "-c", WRITES, token, place], stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == "ready\n" and written_to_disk(child.pid) >= 20 * MIB
        finally:
            child.kill()
            child.communicate()


@pytest.mark.nightly
@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.row("E15")
def test_network_namespaces_are_gone_after_their_runs(jail, tmp_path, nothing_left):
    if host.slab("net_namespace") is None:
        pytest.skip("needs root, and the kernel's counts of its objects: /proc/slabinfo, /sys/kernel/slab")
    before = host.slab("net_namespace")
    program = "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); c.send(b'x')"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: brig.run(program=program, folder=tmp_path), range(80)))
    assert {run.status for run in runs} == {0}
    assert host.poll(lambda: host.slab("net_namespace") < before + 8), f"{host.slab('net_namespace')} are there, {before} were"


@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.control("E14")
@pytest.mark.control("E15")
def test_control_namespaces_that_stay_are_counted(needs_root):
    if host.slab("net_namespace") is None:
        pytest.skip("needs root, and the kernel's counts of its objects: /proc/slabinfo, /sys/kernel/slab")
    before = host.slab("net_namespace")
    text = "import ctypes, time\nlibc = ctypes.CDLL(None); keep = []\nfor n in range(150):\n  assert libc.unshare(0x40000000) == 0\n" \
           "  keep.append(open('/proc/self/ns/net'))\nprint('ready', flush=True); time.sleep(600)"
    child = subprocess.Popen([host.PYTHON, "-c", text], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n" and host.slab("net_namespace") >= before + 100 # those of the rows before may be on their way out
    finally:
        child.kill()
        child.communicate()


DEEP = """
import os, sys
os.chdir(sys.argv[1])
for n in range(int(sys.argv[2])):
    os.mkdir("d"); os.chdir("d")
print("deep", flush=True)
"""


@pytest.mark.row("B14")
def test_a_chain_of_directories_goes_away_with_the_run(jail, run_brig, token, nothing_left):
    run = run_brig(program=DEEP, args=["/workspace", 3000, token]) # each step costs more: Landlock walks up the path
    assert (run.out, run.status) == ("deep\n", 0), str(run)
    after = run.seconds - (run.record["wall_ms"] + run.record["setup_ms"]) / 1000
    assert after < 2 * run.record["wall_ms"] / 1000, f"cleaning up took {after:.1f} s\n{run}" # than to make it


@pytest.mark.control("B14")
def test_control_a_chain_of_directories_breaks_a_recursive_cleanup(tmp_path):
    subprocess.run([host.PYTHON, "-c", DEEP, tmp_path, "1200"], check=True, stdout=subprocess.DEVNULL)
    try:
        with pytest.raises((RecursionError, OSError)):
            shutil.rmtree(tmp_path / "d")
    finally:
        subprocess.run(["rm", "-r", tmp_path / "d"], check=True)


# --- processes ------------------------------------------------------------------------------------------

BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n"


@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.row("E4")
def test_a_fork_bomb_is_held_and_the_host_stays_responsive(jail, start_brig, bystander, token, nothing_left):
    child = start_brig("--timeout", f"{2 * host.SLOWER:g}", "--memory", "1G", program=BOMB, args=[token]) # each of them takes some
    beside, alone = costs_beside(child)
    run = child.wait()
    assert run.reason in ("timeout_wall", "timeout_cpu") and run.status == 124, str(run)
    assert run.record["pids_peak"] is None or run.record["pids_peak"] <= 64, str(run)
    assert host.lacks("cgroup:cpu") or run.record["cpu_ms"] < 1.1 * run.record["wall_ms"] + 200, str(run) # of the one CPU that it may have
    assert any(hit["name"] == "pids" and hit["times"] > 0 for hit in run.record["limits_hit"]), str(run)
    assert beside < 5 * alone, f"the host spent {beside:.1f} ms on a start, and {alone:.1f} ms without it\n{run}"


@pytest.mark.row("E4")
def test_a_fork_is_refused_with_eagain_at_the_limit(jail, run_brig, token, nothing_left):
    program = """
import os, signal, errno
children = []
try:
    while len(children) < 500:
        pid = os.fork()
        if pid == 0: signal.pause()
        children.append(pid)
except OSError as e:
    print(errno.errorcode[e.errno], len(children), flush=True)
"""
    run = run_brig("--pids", "20", program=program, args=[token])
    word, count = run.out.split()
    assert word == "EAGAIN" and 10 <= int(count) <= 19, str(run)
    hit = [hit for hit in run.record["limits_hit"] if hit["name"] == "pids"]
    assert hit and hit[0]["value"] == 20 and hit[0]["times"] >= 1, str(run)


@pytest.mark.control("E4")
def test_control_five_hundred_forks_succeed_without_a_jail(free_python):
    text = "import os, signal\nfor n in range(500):\n  if os.fork() == 0: signal.pause()\nprint('all', flush=True)\nos._exit(0)"
    assert free_python(text).stdout == "all\n"


STORM = """
import signal, sys, time
count = 0
def tick(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(count, flush=True)
"""


@pytest.mark.nightly
@pytest.mark.alone("looks at the memory, the kernel objects or the speed of the whole machine")
@pytest.mark.row("E20")
def test_a_storm_of_timers_stays_within_the_cpu_share(jail, start_brig, needs_cgroup, token, nothing_left):
    needs_cgroup("cpu")
    program = f"import os\nfor n in range(8):\n  if os.fork() == 0: break\n{STORM}"
    child = start_brig("--cpus", "0.5", "--timeout", "2", program=program, args=["1", token])
    beside, alone = costs_beside(child)
    run = child.wait()
    assert run.record["cpu_ms"] < 0.6 * run.record["wall_ms"] + 100, str(run)
    assert beside < 5 * alone, f"the host spent {beside:.1f} ms on a start, and {alone:.1f} ms without it\n{run}"


@pytest.mark.control("E20")
def test_control_a_storm_of_timers_takes_a_cpu_without_a_jail():
    """It may take so much that the program itself never gets to its end."""
    child = subprocess.Popen([host.PYTHON, "-c", STORM, "0.5"], stdout=subprocess.DEVNULL)
    used = host.poll(lambda: cpu_seconds(child.pid) > 0.3)
    child.kill()
    child.wait()
    assert used


def cpu_seconds(pid):
    fields = host.read(f"/proc/{pid}/stat", ") 0" + " 0" * 15).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- output ----------------------------------------------------------------------------------------------

FLOODS = {
    "stdout": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "stderr": "import os\nwhile True: os.write(2, b'y' * 65536)",
    "both, in single binary bytes of lines": "import os\nwhile True: os.write(1, b'\\xff\\n' * 5000); os.write(2, b'\\x00\\n' * 5000)",
    "stdout, from forty children": "import os\nfor n in range(40):\n  if os.fork() == 0:\n    while True: os.write(1, b'z' * 65536)\nos.wait()",
}


@pytest.mark.row("E8")
@pytest.mark.parametrize("program", FLOODS.values(), ids=[f"a flood of {what} is cut and ended" for what in FLOODS])
@pytest.mark.requirement("A62")
def test_output_flood(jail, start_brig, program, token, nothing_left):
    run, peak = watch_rss(start_brig("--output", "64K", "--timeout", "50", program=program, args=[token]))
    assert (run.reason, run.status) == ("output_limit", 153), str(run)
    assert run.record["truncated"] is True, str(run)
    assert max(run.record["stdout_bytes"], run.record["stderr_bytes"]) >= 8 * 64 * 1024, str(run)
    kept = max(len(run.record["stdout"]), len(run.record["stderr"]))
    assert 0 < kept <= 64 * 1024, f"kept {kept}\n{run.record['exit_reason']}"
    assert peak < idle_rss() + 2048, f"brig grew to {peak} kB, idle it has {idle_rss()} kB\n{run}"


def watch_rss(child):
    """Waits for the end; the run, and the most memory in kB that brig itself was seen with."""
    peak = 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ending = pool.submit(child.wait) # reads all the while: brig may wait for its reader
        while not ending.done():
            for line in host.read(f"/proc/{child.pid}/status").splitlines():
                if line.startswith("VmRSS"):
                    peak = max(peak, int(line.split()[1]))
            time.sleep(0.002)
        return ending.result(), peak


@functools.lru_cache(maxsize=None)
def idle_rss():
    """kB of a brig whose program prints one line."""
    return watch_rss(brig.start("--timeout", "5", program="import time; print(1, flush=True); time.sleep(0.3)"))[1]


@pytest.mark.row("E8")
def test_output_just_below_the_end_is_cut_but_the_run_goes_on(jail, run_brig):
    run = run_brig("--output", "64K", program="print('x' * 200000)\nraise SystemExit(3)")
    assert (run.reason, run.status) == ("exited", 3), str(run)
    assert run.record["truncated"] is True and run.record["stdout_bytes"] == 200001 and len(run.record["stdout"]) <= 65536, run.reason


@pytest.mark.control("E8")
def test_control_a_flood_does_not_end_without_a_jail():
    child = subprocess.Popen([host.PYTHON, "-c", FLOODS["stdout"]], stdout=subprocess.PIPE)
    try:
        assert len(child.stdout.read(4 * MIB)) == 4 * MIB and child.poll() is None
    finally:
        child.kill()
        child.stdout.close()
        child.wait()


# --- the rest ---------------------------------------------------------------------------------------------

ENDLESS = {
    "E9": ("a program whose reader never reads waits for ever", "while True: print('x' * 1000)"),
    "E19": ("a pattern that backtracks goes on and on", "import re; re.match('(a+)+$', 'a' * 40 + 'b')"),
    "E21": ("a large working set goes on and on", THRASH),
}


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r} {ENDLESS[r][0]}", marks=pytest.mark.control(r)) for r in ENDLESS])
def test_control_nothing_ends_it_without_a_jail(row):
    child = subprocess.Popen([host.PYTHON, "-c", ENDLESS[row][1]], stdout=subprocess.PIPE)
    try:
        assert host.poll(lambda: host.rests(child.pid) or cpu_seconds(child.pid) > 0.5) and child.poll() is None
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.row("E10")
def test_input_is_at_its_end(jail, run_brig):
    run = run_brig("--timeout", "50", program="input()")
    assert "EOFError" in run.record["stderr"] and (run.reason, run.status) == ("exited", 1), str(run)


@pytest.mark.row("E10")
def test_input_is_at_its_end_though_brigs_own_is_open(jail, start_brig):
    child = start_brig("--timeout", "50", program="input()", popen={"stdin": subprocess.PIPE})
    try:
        run = child.wait() # communicate() closes the pipe only at the end
    finally:
        child.kill()
    assert "EOFError" in run.record["stderr"], str(run)


@pytest.mark.control("E10")
def test_control_input_hangs_without_a_jail():
    child = subprocess.Popen([host.PYTHON, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert host.poll(lambda: host.rests(child.pid)) and child.poll() is None
    finally:
        child.kill()
        child.communicate()


@pytest.mark.row("E17")
def test_a_crash_leaves_no_core(jail, run_brig, token, nothing_left):
    run = run_brig(program="import ctypes; ctypes.string_at(0)", args=[token])
    assert (run.reason, run.record["signal"], run.status) == ("signaled", "SIGSEGV", 139), str(run)


THOUGHTS = {
    "a power that fills the memory": "print(len(str(10 ** 10 ** 8)))",
    "a number of ten million digits": "import sys; sys.set_int_max_str_digits(0); int('9' * 10 ** 7)",
    "a pattern that backtracks": "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
    "a gigabyte of compressed zeros": "import zlib\nd = zlib.compress(bytes(1 << 20), 9)\nkeep = []\nwhile True: keep.append(zlib.decompress(d))",
    "a source of a million minus signs": "compile('-' * 1000000 + '1', 'x', 'eval')",
}


@pytest.mark.row("E19")
@pytest.mark.parametrize("what", tiers.few(THOUGHTS, "a power that fills the memory", "a pattern that backtracks"), ids="{} ends at a limit".format)
def test_thought_bombs(jail, run_brig, what, token, nothing_left):
    run = run_brig("--memory", "64M", "--cpu-time", "1", "--timeout", "3", program=THOUGHTS[what], args=[token])
    assert run.reason in ("timeout_cpu", "timeout_wall", "oom", "exited", "signaled"), str(run)
    assert run.status != 0, str(run)
