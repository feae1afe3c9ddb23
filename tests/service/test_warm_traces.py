"""What a fork of a zygote can find of others: of the zygote, of the run before, of the run beside it."""
import os
import pathlib
import re
import subprocess

import pytest

from rules import LONG, SLEEP
from support import brig as tool
from support import daemon as daemons
from support import host, tiers
from warm_runs import folder, kept, talk # noqa: F401

POISON = """
import atexit, builtins, codecs, copyreg, gc, io, json, linecache, locale, os, re, signal, sys, threading, warnings
mark = 'poison'
for m in list(sys.modules.values()):
    try: m.poison = mark
    except Exception: pass
builtins.print, p = None, print
sys.modules['poison'] = sys
sys.path.append('/poison'); sys.meta_path.append(None); sys.path_hooks.clear(); sys.argv.append('poison')
os.environ['POISON'] = '1'; os.putenv('POISON2', '1')
gc.callbacks.append(lambda *a: None); gc.set_threshold(1, 1, 1); gc.disable()
warnings.simplefilter('error'); warnings.onceregistry['poison'] = 1
codecs.register(lambda name: None); copyreg.pickle(complex, lambda c: (complex, (0,)))
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
threading.stack_size(1 << 20); sys.setrecursionlimit(50000); sys.setswitchinterval(1); sys.settrace(lambda *a: None)
os.umask(0); os.chdir('/tmp'); atexit.register(p, 'poison')
for folder in '/tmp', '/workspace', '/dev/shm': open(folder + '/poison', 'w').write('poison')
sys.excepthook = sys.displayhook = sys.unraisablehook = None
type('Poison', (), {}); sys.intern('poison' * 3)
p('poisoned')
"""
LOOK = """
import builtins, codecs, copyreg, gc, os, signal, sys, threading, warnings
print([n for n, m in sys.modules.items() if hasattr(m, 'poison') or n == 'poison'], sys.argv, sys.path, len(sys.meta_path), len(sys.path_hooks))
print({k: v for k, v in os.environ.items() if 'POISON' in k}, gc.callbacks, gc.get_threshold(), gc.isenabled())
print(warnings.filters, warnings.onceregistry, complex in copyreg.dispatch_table and copyreg.dispatch_table[complex].__module__)
print(signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(0, []), threading.stack_size(), sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace())
print(oct(os.umask(0)), os.getcwd(), [os.listdir(f) for f in ('/tmp', '/workspace', '/dev/shm')], sys.excepthook, sys.displayhook, sys.unraisablehook)
print([c for c in object.__subclasses__() if c.__name__ == 'Poison'])
"""
# Every byte of the process that a zygote could have written to: the stack, the heap, what libraries hold, what was mapped by us. What is
# mapped of the rootfs's own files to be read is left out: anything looks like a number in a table of symbols.
MEMORY = """
import re
def memory():
    with open('/proc/self/mem', 'rb', 0) as mem:
        for line in open('/proc/self/maps'):
            begin, end, rights = re.match('(\\\\w+)-(\\\\w+) (\\\\S+)', line).groups()
            if rights[0] != 'r' or '[v' in line: continue
            if rights[1] != 'w' and ' /' in line and '(deleted)' not in line: continue
            mem.seek(int(begin, 16))
            try: yield line, mem.read(int(end, 16) - int(begin, 16))
            except OSError: pass
"""


def test_nothing_of_a_run_is_seen_by_the_next(talk):
    expected = talk.run(LOOK, cold=True).stdout
    first, second = talk.run(POISON), talk.run(LOOK)
    assert first.record["warm"] and "poisoned" in first.stdout, first
    assert second.record["warm"] and second.stdout == expected, second


HOG = """
import os, threading, time
kept = bytearray(96 << 20)
for folder in '/tmp', '/workspace', '/dev/shm': open(folder + '/left', 'wb').write(bytes(4 << 20))
go = threading.Event()
for _ in range(20): threading.Thread(target=go.wait).start()
end = time.process_time() + min(0.3, SECONDS)
while time.process_time() < end: pass
time.sleep(SECONDS)
go.set()
print(os.readlink('/proc/self/ns/user'))
"""
AFTER = """
import os
print(os.readlink('/proc/self/ns/user'), [os.listdir(folder) for folder in ('/tmp', '/dev/shm')], os.path.exists('/workspace/left'))
print([line for line in open('/proc/self/mountinfo') if 'left' in line], len(os.listdir('/proc/self/task')))
"""


@pytest.mark.parametrize("seconds", tiers.few([0.03, 3], 0.03))
def test_nothing_of_a_long_run_is_left_in_its_place_for_the_next(talk, seconds):
    """Its ids, user namespace and control groups are used again: files, memory, processes, CPU time and their peaks are not."""
    hog = talk.run(HOG.replace("SECONDS", str(seconds)), limits={"memory_bytes": 256 << 20, "pids": 64})
    assert hog.status == 0 and hog.record["memory_peak_bytes"] > 96 << 20 and (hog.record["pids_peak"] or 21) > 20, hog.record # not every kernel counts both
    place, seen = hog.stdout.strip(), []
    def comes_back():
        run = talk.run(AFTER)
        assert run.record["warm"] and run.status == 0, run.record
        seen.append(run)
        return run.stdout.startswith(place)
    assert host.poll(comes_back), {run.stdout for run in seen}
    run = seen[-1]
    assert run.stdout == f"{place} [[], []] False\n[] 1\n", run.stdout
    record = run.record
    assert record["memory_peak_bytes"] < 48 << 20 and (record["pids_peak"] or 0) <= 2 and record["cpu_ms"] < 200 and record["limits_hit"] == [], record


def test_a_run_with_files_begins_in_a_place_where_others_have_run(talk, kept, tmp_path):
    """Its files are charged to the group before its program is there: the group is not unusable for that."""
    (tmp_path / "large").write_bytes(os.urandom(4 << 20))
    (tmp_path / "main.py").write_text("import os; print(os.stat('large').st_size)")
    for _ in range(3):
        for _ in range(3):
            assert talk.run("import time; time.sleep(0.03); print(1)").status == 0 # longer than 15 ms: its place rests
        done = subprocess.run([tool.binary(), "run", "--put", "large", "main.py"], cwd=tmp_path, env={**os.environ, "BRIG_SOCKET": str(kept.path)}, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"{4 << 20}\n"), done.stderr


def test_the_words_and_the_text_of_a_run_are_in_no_memory_of_the_next(talk):
    """Those of a run that has ended, and of one that goes on."""
    secret = "s3cr3t" + "-of-a-run"
    beside = talk.start(f"import time; x = '{secret}'; print('on', flush=True); time.sleep(600)", env=[f"SECRET={secret}"], args=[secret], limits=LONG)
    assert beside.line() == "on"
    assert talk.run(f"x = '{secret}' * 2; print(x)", env=[f"SECRET={secret}"], args=[secret]).status == 0
    run = talk.run(MEMORY + "print([line for line, data in memory() if re.search(b'[s]3cr3t-of-a-run', data)])\n")
    talk.ask("cancel", run=beside.id)
    beside.wait()
    beside.close()
    assert run.record["warm"] and run.stdout == "[]\n", run


def test_no_memory_names_a_place_of_the_host(talk, kept):
    """The zygote has been a process of the monitor's: its socket, its folder, its environment."""
    names = [f"[{name[0]}]{name[1:]}".encode() for name in (str(kept.folder), "BRIG_PRESETS", "NOTIFY_SOCKET")] # so that it does not find itself
    run = talk.run(MEMORY + f"print([(n, line) for line, data in memory() for n in {names} if re.search(n, data)])\n")
    assert run.record["warm"] and run.stdout == "[]\n", run


NUMBERS = pathlib.Path("/proc/sys/kernel/ns_last_pid")


def forks(kept, first):
    """Forks whose process id is above first."""
    return [pid for supervisor in kept.roles()["supervisor"] for pid in host.children(supervisor) if pid > first and is_fork(pid)]


def is_fork(pid):
    """It is in the pid namespace of a cell, and not its process 1."""
    numbers = host.read(f"/proc/{pid}/status").partition("\nNSpid:\t")[2].partition("\n")[0].split()
    return len(numbers) == 2 and numbers[1] != "1"


def stop(talk, run):
    talk.ask("cancel", run=run.id)
    run.wait()
    run.close()


def start_with_large_numbers(talk, kept):
    """(a run that goes on, the numbers of all forks of its zygote): large ones. Those that stood ready before have others."""
    first = int(host.read(NUMBERS.with_name("pid_max"))) // 2 # enough are left above it
    try:
        NUMBERS.write_text(str(first))
    except OSError as e:
        pytest.skip(f"needs to write to {NUMBERS}: {e.strerror}")
    for _ in range(50):
        run = talk.start(SLEEP, limits=LONG)
        assert run.line() == "up"
        pids = forks(kept, first)
        if pids:
            return run, pids
        stop(talk, run)
    raise AssertionError(f"no fork has a number above {first}")


def test_no_memory_has_the_numbers_of_other_programs(talk, kept):
    """The zygote lives among the host's processes, and knows each of its forks by that number. Small ones are found in any memory."""
    beside, pids = start_with_large_numbers(talk, kept)
    zygotes = kept.of_kind("zygote")
    last = max(int(name) for zygote in zygotes for name in os.listdir(f"/proc/{zygote}/fd")) # no descriptor of an entry is beyond
    run = talk.run(MEMORY + f"""
def entries(data, number): # struct zygote_cell, aligned like a pointer: the number, a descriptor, and no request
    pattern = re.escape((number - 1).to_bytes(4, 'little')) + b'[\\x05-\\x{last:02x}]\\0\\0\\0\\0{{8}}'
    return [found.start() for found in re.finditer(pattern, data) if found.start() % 8 == 0]
print([line for line, data in memory() for number in {[pid + 1 for pid in pids]} if entries(data, number)])
""")
    stop(talk, beside)
    assert run.record["warm"] and run.stdout == "[]\n", (pids, run)


def test_descriptors_of_a_fork_are_the_three(talk):
    run = talk.run("import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))\n")
    assert run.record["warm"] and run.stdout == "[0, 1, 2]\n", run


def test_no_memory_is_shared_with_anybody(talk):
    """A mapping that is shared and can be written to would be a way from cell to cell."""
    run = talk.run("print([l for l in open('/proc/self/maps') if l.split()[1][3] == 's'])")
    assert run.record["warm"] and run.stdout == "[]\n", run


def test_a_ready_fork_can_only_read_what_tells_it_of_other_runs(talk, kept):
    """It looks there whether runs are under way; a program does not find it (the row above)."""
    kept.settle() # a zygote that begins has the descriptor
    forks = [pid for pid in kept.below() if "run-activity" in host.read(f"/proc/{pid}/maps") and daemons.kind_of(pid) != "supervisor"]
    assert forks
    for pid in forks:
        pages = [line for line in host.read(f"/proc/{pid}/maps").splitlines() if "run-activity" in line] # none: it has got its program meanwhile
        assert {page.split()[1] for page in pages} <= {"r--s"} and not any("run-activity" in path for path in daemons.open_files(pid)), pages


def test_the_zygote_is_nobody_that_a_fork_could_reach(talk):
    run = talk.run("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args): return libc.syscall(number, *args), ctypes.get_errno()
print(os.getppid(), sorted(n for n in os.listdir('/proc') if n.isdigit()))
for pid in 0, 2, 3, 4, 1000:
    if pid == os.getpid(): continue
    for name in 'mem', 'maps', 'environ', 'fd', 'root':
        try: print(pid, name, os.stat(f'/proc/{pid}/{name}') and 'there')
        except OSError as e: pass
print([call(101, 16, pid, 0, 0)[0] for pid in (0, 1, 3, 1000)]) # ptrace
print([call(310, pid, 0, 0, 0, 0, 0)[0] for pid in (1, 3, 1000)]) # process_vm_readv
print([call(434, pid, 0)[1] for pid in (3, 1000)]) # pidfd_open
""")
    assert run.record["warm"] and run.status == 0, run
    lines = run.stdout.split("\n")
    assert lines[:3] == ["0 ['2']", "[-1, -1, -1, -1]", "[-1, -1, -1]"] and not re.search(r"\b0\b", lines[3]), run


def test_a_signal_to_the_parent_of_a_fork_reaches_nobody(talk):
    """It is outside of the cell, and is seen as 0: who signals that signals his own group."""
    run = talk.run("import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('mine'))\nos.kill(os.getppid(), signal.SIGUSR1)\n")
    assert run.record["warm"] and run.stdout == "mine\n", run
    assert talk.run("print(1)").record["warm"]


def test_a_fork_cannot_have_its_zygotes_answers(talk):
    """A run that breaks all it can reach of the extension spoils its own process."""
    run = talk.run("import gc, sys\nfor o in gc.get_objects():\n    if type(o) is dict:\n        try: o.clear()\n        except Exception: pass\n")
    assert run.record["warm"], run
    again = talk.run("print(1)")
    assert again.record["warm"] and again.stdout == "1\n", again
