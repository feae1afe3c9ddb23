"""Races: somebody exchanges what a launch looks at (B6), or numbers of processes come again at once (D8)."""
import os
import signal
import subprocess
import time

import pytest

from support import brig as tool
from support import host, swap

NOBODY = 65534
OWN_SWAPS = """
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("place"); os.symlink("/proc/self/root/etc", "trap")
print("ready", flush=True)
while True: libc.renameat2(-100, b"place", -100, b"trap", 2)
"""
READ = """
import os, sys, time
seen, end = set(), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for path in ("place/file", "place/../place/file", "place/new"):
        try: seen.add(open(os.path.join(sys.argv[1], path)).read())
        except OSError: pass
    try: os.close(os.open(os.path.join(sys.argv[1], "place/made"), os.O_CREAT | os.O_WRONLY)); seen.add("made")
    except OSError: pass
print(sorted(seen))
"""
LAUNCHES = 30


@pytest.fixture
def swapped(tmp_path):
    """A folder of another user in which a directory and a link to a secret of root's change places all the time."""
    tmp_path.chmod(0o755)
    folder, secret = tmp_path / "shown", tmp_path / "secret"
    for path in (folder, folder / "place", secret, folder / "place" / "below", secret / "below"):
        path.mkdir()
    (folder / "place" / "file").write_text("inside")
    (folder / "place" / "below" / "inside").touch()
    (secret / "file").write_text("secret")
    secret.chmod(0o700)
    (folder / "trap").symlink_to(secret)
    for path in (folder, *folder.rglob("*")): # all in it is another user's; the path to it is root's
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    with swap.exchanging(folder, NOBODY):
        yield folder, secret
    assert [p for p in folder.rglob("*") if p.lstat().st_uid == 0 and p.name != "made"] == [], "a file of root's in another user's folder"


@pytest.mark.nightly
@pytest.mark.row("B6")
def test_what_is_exchanged_during_launches_leads_nowhere(jail, brig, swapped, start_brig, run_brig, token, nothing_left):
    """Thirty jails start on a folder that changes under them, beside one that exchanges what is its own."""
    folder, secret = swapped
    beside = start_brig("--timeout", "300", program=OWN_SWAPS, args=[token], json_record=False)
    assert beside.line() == "ready"
    seen = set()
    for _ in range(LAUNCHES):
        run = run_brig("--ro", folder, program=READ, args=["/workspace/shown", "0.02", token])
        assert run.status == 0, str(run)
        seen.add(run.out)
    assert seen <= {"['inside']\n", "[]\n"} and "['inside']\n" in seen, seen
    assert sorted(os.listdir(secret)) == ["below", "file"] and not os.path.exists(folder / "place" / "made")
    beside.signal(signal.SIGINT)
    assert beside.wait().status == 130


@pytest.mark.row("B6")
def test_a_launch_on_a_name_that_is_exchanged_shows_no_secret_or_ends_cleanly(jail, swapped, run_brig, token, nothing_left):
    """The very name that --ro is given is in another user's hands. brig is root and follows it; the program is nobody."""
    folder, _ = swapped
    program = """
import os
for name in set(os.listdir()) - {"main.py"}:
    try: print(open(name + "/file").read())
    except PermissionError: print("refused")
"""
    for _ in range(LAUNCHES // 2):
        run = run_brig("--ro", folder / "place", program=program, args=[token])
        refused = run.status == 125 and run.stderr.startswith(("brig: --ro ", "brig: --ro: ", "brig: set-up step open-trees: --ro: "))
        assert refused or (run.status, run.out) in ((0, "inside\n"), (0, "refused\n")), str(run)


@pytest.mark.row("B6")
def test_a_launch_below_a_directory_that_is_exchanged_shows_no_secret_or_ends_cleanly(jail, swapped, run_brig, token, nothing_left):
    """A directory above the one that --ro is given is in another user's hands: either is shown, whole, and nothing is made in either."""
    folder, secret = swapped
    (secret / "below").chmod(0o700)
    program = "import os\ntry: print(os.listdir('below'))\nexcept PermissionError: print('refused')"
    for _ in range(LAUNCHES // 2):
        run = run_brig("--ro", folder / "place" / "below", program=program, args=[token])
        refused = run.status == 125 and run.stderr.startswith(("brig: --ro ", "brig: --ro: ", "brig: set-up step open-trees: --ro: "))
        assert refused or (run.status, run.out) in ((0, "['inside']\n"), (0, "refused\n")), str(run)
    assert sorted(os.listdir(secret)) == ["below", "file"] and os.listdir(secret / "below") == []


@pytest.mark.control("B6")
def test_control_the_exchange_leads_out_without_a_jail(needs_root, swapped):
    folder, secret = swapped
    seen = []

    def led_out():
        seen.append(subprocess.run([host.PYTHON, "-c", READ, folder, "0.5"], capture_output=True, text=True).stdout)
        return "secret" in str(seen) and "inside" in str(seen) and "made" in os.listdir(secret)
    assert host.poll(led_out), seen


TAMPER = """
import os, sys
user = int(sys.argv[1])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
done = []
for place in sys.argv[2:]:
    for word, what in (("link", lambda: os.symlink("/etc", place + "/planted")), ("folder", lambda: os.mkdir(place + "/planted")),
                       ("away", lambda: os.rename(place, place + ".old"))):
        try: what(); done.append((place, word))
        except OSError: pass
print(done)
"""


@pytest.mark.row("B6")
def test_another_user_can_exchange_nothing_that_a_launch_relies_on(jail, run_brig):
    """The runtime directory, the store and all that is in them, one level deep."""
    assert run_brig(program="pass").status == 0
    places = [p for top in (host.runtime_dir(), host.store_dir()) for p in (top, *top.iterdir()) if p.is_dir()]
    done = subprocess.run([host.PYTHON, "-c", TAMPER, str(NOBODY), *places], capture_output=True, text=True)
    assert done.stdout == "[]\n", done


# --- numbers of processes ---------------------------------------------------------------------------------

REUSE = """
import os, random, signal, subprocess, sys, time
argv, runs, dice, died = sys.argv[3:], int(sys.argv[1]), random.Random(int(sys.argv[2])), 0
def rewind():
    with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write("100")
crowd = set()
def renew(): # processes that come and go, on the numbers that have just become free
    global died
    rewind()
    while len(crowd) < 20:
        pid = os.fork()
        if pid == 0:
            time.sleep(0.01)
            os._exit(0)
        crowd.add(pid)
    for pid in list(crowd):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            crowd.remove(pid)
            died += status != 0
for n in range(runs):
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    late, sent = time.monotonic() + dice.uniform(0, 0.03), False
    while child.poll() is None:
        renew()
        if not sent and time.monotonic() > late:
            child.send_signal(dice.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
            sent = True
for pid in crowd:
    died += os.waitpid(pid, 0)[1] != 0
try:
    while True: os.wait() # a brigd whose brig was killed still cleans up, and would be killed when the first process ends
except ChildProcessError: pass
print("killed", died)
"""
WRONG = """
import os, signal
first = os.fork()
if first == 0: os._exit(0)
os.waitpid(first, 0)
with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write(str(first - 1))
second = os.fork()
if second == 0: signal.pause()
os.kill(first, 9) # whoever kept the number
print(first == second, os.waitpid(second, 0)[1])
"""


def in_own_numbers(text, *args):
    """A program as the first of a process namespace, with a /proc of its own."""
    if host.lacks("file:/proc/sys/kernel/ns_last_pid"):
        pytest.skip(host.lacks("file:/proc/sys/kernel/ns_last_pid"))
    return subprocess.run(["unshare", "--pid", "--mount-proc", "--fork", "--kill-child", host.PYTHON, "-c", text, *map(str, args)],
                          capture_output=True, text=True, timeout=host.HANG, env=tool.environment())


@pytest.mark.nightly
@pytest.mark.row("D8")
def test_no_run_kills_a_process_that_took_a_freed_number(jail, brig, tmp_path, nothing_left):
    seed = int(os.environ.get("BRIG_LEAK_SEED", time.time_ns() % 1000000))
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(0.02)")
    done = in_own_numbers(REUSE, 60, seed, brig, "run", program)
    assert done.stdout == "killed 0\n", f"seed {seed}: {done}"


@pytest.mark.control("D8")
def test_control_a_number_that_is_kept_kills_another_process(needs_root):
    done = in_own_numbers(WRONG)
    assert done.stdout == "True 9\n", done
