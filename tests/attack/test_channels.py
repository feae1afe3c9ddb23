"""Sections B (what needs two runs or a prepared start), F and H2: between jails, and between one run and the next."""
import ctypes
import json
import os
import subprocess

import pytest

from support import host

HOLD = "print('ready', flush=True)\nimport time; time.sleep(600)\n"


def two(start, run, holder, seeker, token):
    """Starts the holder, waits until it says ready, and runs the seeker beside it; what the seeker printed."""
    held = start("--timeout", "300", program=holder + HOLD, args=[token], json_record=False)
    assert held.line() == "ready", f"the first jail did not start: {held.wait(1)}"
    return run(program=seeker, args=[token])


def two_free(tmp_path, holder, seeker, token):
    """The same two programs without jails."""
    held = subprocess.Popen([host.PYTHON, "-c", holder + HOLD, token], stdout=subprocess.PIPE, text=True)
    try:
        assert held.stdout.readline() == "ready\n"
        return subprocess.run([host.PYTHON, "-c", seeker, token], capture_output=True, text=True).stdout.strip()
    finally:
        held.kill()
        held.communicate()


TRY = """
import errno, os, sys
def attempt(what, *args):
    try: what(*args); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
"""
PAIRS = {
    # row: (sentence, holder, seeker, with jails, without)
    "F1": ("an abstract socket of one jail is not there in another",
           "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]); s.listen()\n",
           TRY + "import socket; print(attempt(socket.socket(socket.AF_UNIX).connect, '\\0' + sys.argv[1]))", ("ECONNREFUSED",), ("ok",)),
    "F4": ("/dev/shm of one jail is empty in another",
           "import sys; open('/dev/shm/' + sys.argv[1], 'w')\n",
           "import os, sys; print(sys.argv[1] in os.listdir('/dev/shm')); os.path.exists('/dev/shm/' + sys.argv[1]) and os.unlink('/dev/shm/' + sys.argv[1])",
           ("False",), ("True",)),
    "F5": ("a lock on a file of the rootfs tells another jail one bit",
           "import fcntl, os; f = open(os.__file__); fcntl.flock(f, fcntl.LOCK_EX)\n",
           TRY + "import fcntl; print(attempt(fcntl.flock, open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB))", ("EAGAIN", "EPERM", "ok"), ("EAGAIN",)),
}


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r} {PAIRS[r][0]}", marks=pytest.mark.row(r)) for r in PAIRS])
def test_two_jails(row, jail, start_brig, run_brig, token):
    _, holder, seeker, wanted, _ = PAIRS[row]
    run = two(start_brig, run_brig, holder, seeker, token)
    assert run.out.strip() in wanted, str(run)


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r} {PAIRS[r][0]}", marks=pytest.mark.control(r)) for r in PAIRS])
def test_control_two_programs(row, tmp_path, token):
    _, holder, seeker, _, wanted = PAIRS[row]
    assert two_free(tmp_path, holder, seeker, token) in wanted


# --- users -------------------------------------------------------------------------------------------------

def host_uids(token):
    """Host users of the programs with this token; brig's own processes are of our user."""
    return {uid for _, uid in host.with_token(token) if uid != os.geteuid()}


FUTEX = """
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
file = os.open(os.__file__, os.O_RDONLY)
page = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
def futex(what, value, seconds):
    args = ctypes.c_void_p(page), ctypes.c_long(what), ctypes.c_long(value), (ctypes.c_long * 2)(seconds, 0)
    return libc.syscall(ctypes.c_long(202), *args, None, 0)
"""
WAIT = FUTEX + "print('ready', flush=True)\nprint(futex(0, ctypes.c_uint32.from_address(page).value, 300), flush=True)"
WAKE = FUTEX + "print(max(futex(1, 10, 0) or time.sleep(0.02) or 0 for _ in range(20)))"


@pytest.mark.row("F13")
def test_a_futex_on_a_page_of_the_rootfs_wakes_at_most_a_neighbour_who_waits_there(jail, start_brig, run_brig, token):
    """The documented limit: private futexes alone would break multiprocessing. Nobody but who waits for it is reached."""
    waiter = start_brig("--timeout", "300", program=WAIT, args=[token], json_record=False)
    assert waiter.line() == "ready", waiter.wait()
    pid = next(pid for pid, uid in host.with_token(token) if uid >= 65536)
    assert host.poll(lambda: host.rests(pid))
    woken = run_brig(program=WAKE, args=[token]).out
    assert waiter.line() == "0" if woken == "1\n" else woken == "0\n" and host.rests(pid)


@pytest.mark.control("F13")
def test_control_a_futex_on_a_page_of_a_file_wakes_another_program(tmp_path):
    waiter = subprocess.Popen([host.PYTHON, "-c", WAIT], stdout=subprocess.PIPE, text=True)
    assert waiter.stdout.readline() == "ready\n" and host.poll(lambda: host.rests(waiter.pid))
    assert int(subprocess.run([host.PYTHON, "-c", WAKE], capture_output=True, text=True).stdout) >= 1
    assert waiter.communicate()[0] == "0\n"


WATCH = TRY + """
import ctypes, json, select, time
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if fd < 0: print("ready\\nrefused", flush=True); raise SystemExit
assert libc.inotify_add_watch(fd, os.path.dirname(json.__file__).encode(), 0x20) >= 0 # IN_OPEN
print("ready", flush=True)
print("seen" if select.select([fd], [], [], float(sys.argv[2]))[0] else "nothing", flush=True)
"""
OPEN = "import json; open(json.__file__).close()"


def watch(start, run, token, profile):
    """What a watcher in one jail learns of a program that opens a file in another."""
    watcher = start("-p", profile, "--timeout", "300", program=WATCH, args=[token, "1"], json_record=False)
    assert watcher.line() == "ready", watcher.wait(1)
    assert run("-p", profile, program=OPEN).status == 0
    return watcher.line()


@pytest.mark.row("F6")
def test_watching_the_rootfs_is_refused_in_strict(jail, start_brig, run_brig, token):
    assert watch(start_brig, run_brig, token, "strict") == "refused"


@pytest.mark.row("F6")
def test_watching_the_rootfs_in_basic_tells_at_most_that_a_file_was_opened(jail, start_brig, run_brig, token):
    """The documented limit: manual and table say so."""
    assert watch(start_brig, run_brig, token, "basic") in ("seen", "nothing")


@pytest.mark.control("F6")
def test_control_a_watcher_sees_what_is_opened_without_a_jail():
    watcher = subprocess.Popen([host.PYTHON, "-c", WATCH, "x", str(host.HANG)], stdout=subprocess.PIPE, text=True)
    assert watcher.stdout.readline() == "ready\n"
    subprocess.run([host.PYTHON, "-c", OPEN], check=True)
    assert watcher.communicate()[0] == "seen\n"


@pytest.mark.row("H2")
@pytest.mark.row("F10")
def test_two_jails_have_two_host_users_that_nobody_else_has(jail, start_brig, token):
    known = {int(line.split(":")[2]) for line in host.read("/etc/passwd").splitlines()}
    uids = []
    for n in range(2):
        child = start_brig("--timeout", "300", program=HOLD, args=[f"{token}-{n}"], json_record=False)
        assert child.line() == "ready", child.wait(1)
        uids.append(host_uids(f"{token}-{n}"))
    assert all(len(u) == 1 for u in uids) and uids[0] != uids[1], f"host users {uids}"
    assert not (uids[0] | uids[1]) & known and min(uids[0] | uids[1]) >= 65536, f"host users {uids}"


@pytest.mark.control("F10")
@pytest.mark.control("H2")
def test_control_a_program_has_our_user_without_a_jail(token):
    child = subprocess.Popen([host.PYTHON, "-c", HOLD, token], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert host_uids(token) == set() and host.with_token(token)
    finally:
        child.kill()
        child.communicate()


# --- what is given along ----------------------------------------------------------------------------------

HIGH = """
import json, os, stat
found = {}
for fd in range(3, 4096):
    try: found[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError: pass
try: canary = os.pread(2048, 100, 0).decode()
except OSError as e: canary = e.errno
dirs = []
for fd in range(0, 4096):
    try: os.fchdir(fd); dirs.append(fd)
    except OSError: pass
print(json.dumps({"found": found, "canary": canary, "dirs": dirs, "cwd": os.getcwd(), "link": os.readlink("/proc/self/cwd")}))
"""


@pytest.fixture
def high_descriptors(tmp_path):
    """2048 is open on a file of the host, 2049 on a directory."""
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    canary = tmp_path / "canary"
    canary.write_text("secret of the host")
    opened = [os.open(canary, os.O_RDWR), os.open(tmp_path, os.O_RDONLY)]
    os.dup2(opened[0], 2048)
    os.dup2(opened[1], 2049)
    yield {"pass_fds": (2048, 2049)}
    for fd in (*opened, 2048, 2049):
        os.close(fd)
    assert canary.read_text() == "secret of the host"


@pytest.mark.row("B3")
@pytest.mark.row("B4")
@pytest.mark.parametrize("reports, own", [(False, {}), (True, {"5": 0o010000})], ids=["of the interpreter alone", "of the runner, which has a pipe"])
def test_inherited_descriptors_do_not_reach_the_program(jail, run_brig, high_descriptors, reports, own):
    run = run_brig(program=HIGH, popen=high_descriptors, json_record=reports)
    found = json.loads(run.out)
    assert found["found"] == own and found["canary"] == 9 and found["dirs"] == [], str(run)
    assert found["cwd"] == found["link"] == "/workspace", str(run)


@pytest.mark.control("B3")
@pytest.mark.control("B4")
def test_control_inherited_descriptors_reach_a_program_without_a_jail(high_descriptors):
    done = subprocess.run([host.PYTHON, "-c", HIGH], capture_output=True, text=True, cwd="/", **high_descriptors)
    found = json.loads(done.stdout)
    assert found["canary"] == "secret of the host" and 2049 in found["dirs"]


PLANT = """
import os, shutil, sys
target, made = sys.argv[1], []
places = ["/workspace", "/tmp", "/dev/shm"] if os.path.isdir("/workspace") else [os.getcwd()]
for place in places:
    for name in os.listdir(place):
        path = os.path.join(place, name)
        try: shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        except OSError: pass
    for name, to in (("out", target), ("main.py", target), ("up", "/proc/self/root"), ("fd", "/proc/self/fd/2048"), ("null", "/proc/1/mem")):
        try: os.symlink(to, os.path.join(place, name)); made.append(name)
        except OSError: pass
print("planted", len(made))
"""
FOLLOW = """
import os, sys
done = []
for place in (["/workspace", "/tmp", "/dev/shm"] if os.path.isdir("/workspace") else [os.getcwd()]):
    for name in ("out", "main.py", "null"):
        try:
            with open(os.path.join(place, name), "a") as f: f.write("changed")
            done.append(os.path.realpath(os.path.join(place, name)))
        except OSError: pass
print(done)
"""


@pytest.mark.row("B5")
def test_links_planted_by_one_run_are_not_followed_by_the_next(jail, run_brig, tmp_path, token, nothing_left):
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    first = run_brig(program=PLANT, args=[canary, token])
    assert "planted" in first.out and first.status == 0, first
    second = run_brig(program=FOLLOW, args=[token])
    assert second.status == 0 and str(canary) not in second.out, second
    assert canary.read_text() == "untouched"


@pytest.mark.row("B5")
def test_links_in_a_shown_directory_lead_nowhere_outside(jail, run_brig, tmp_path):
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    shown = tmp_path / "shown"
    shown.mkdir()
    for name, to in (("absolute", canary), ("up", "../canary"), ("far", "../" * 30 + str(canary)), ("proc", "/proc/1/root" + str(canary))):
        (shown / name).symlink_to(to)
    program = "import os\nfor n in sorted(os.listdir('shown')):\n  print(n, os.path.exists('shown/' + n))"
    run = run_brig("--ro", shown, program=program)
    assert run.out.split() == ["absolute", "False", "far", "False", "proc", "False", "up", "False"], str(run)


@pytest.mark.row("B15")
def test_a_file_of_a_shown_directory_gets_no_second_name(jail, run_brig, tmp_path):
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("one name")
    program = TRY + "print([attempt(os.link, 'shown/file', to) for to in ('/workspace/x', '/tmp/x', 'shown/x')])"
    run = run_brig("--ro", shown, program=program)
    assert set(eval(run.out)) <= {"EXDEV", "EROFS", "EPERM"} and (shown / "file").stat().st_nlink == 1, str(run)


@pytest.mark.control("B5")
def test_control_links_are_followed_in_a_folder_that_two_programs_share(tmp_path):
    canary, folder = tmp_path / "canary", tmp_path / "shared"
    canary.write_text("untouched")
    folder.mkdir()
    for text in (PLANT, FOLLOW):
        subprocess.run([host.PYTHON, "-c", text, canary], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    assert canary.read_text() != "untouched"


LOOK = """
import json, os, socket, time
print(json.dumps({"files": {p: sorted(os.listdir(p)) for p in ("/workspace", "/tmp", "/dev/shm")}, "env": dict(os.environ), "cwd": os.getcwd(),
                  "umask": os.umask(0o22), "host": socket.gethostname(), "zone": time.tzname, "nice": os.nice(0)}))
"""
DIRTY = """
import os, resource, time
for place in ("/workspace", "/tmp", "/dev/shm"):
    for n in range(20): open(f"{place}/left-{n}", "w").write("left")
os.environ["LEFT"] = "1"; os.umask(0); os.nice(5); os.environ["TZ"] = "Asia/Tokyo"; time.tzset()
os.chdir("/tmp"); resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
if os.fork() == 0:
    os.setsid(); time.sleep(600)
"""


@pytest.mark.row("F8")
@pytest.mark.requirement("A107", "B25", "B39")
def test_a_run_finds_nothing_of_the_one_before(jail, run_brig, token, nothing_left):
    (first, _, second) = [run_brig(program=text) for text in (LOOK, DIRTY, LOOK)]
    assert json.loads(first.out) == json.loads(second.out), second


@pytest.mark.control("F8")
def test_control_a_program_without_a_jail_leaves_its_files(tmp_path):
    subprocess.run([host.PYTHON, "-c", DIRTY.replace('("/workspace", "/tmp", "/dev/shm")', f"({str(tmp_path)!r},)")
                    .replace("time.sleep(600)", "pass")], check=True)
    assert len(os.listdir(tmp_path)) == 20


TAKE = """
import ctypes, errno, fcntl, json, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
found, keep = {}, []
while (fd := libc.inotify_init1(0)) >= 0: keep.append(fd)
found["inotify"] = len(keep)
for fd in keep[20:]: os.close(fd)
pipes = [os.pipe() for n in range(20)]
found["pipe pages"] = sum(fcntl.fcntl(w, 1031, 1 << 20) for r, w in pipes)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
sent = 0
while sent < 100000 and libc.sigqueue(os.getpid(), 40, None) == 0: sent += 1
found["signals"] = sent
"""


@pytest.mark.row("E6")
@pytest.mark.row("E7")
def test_what_one_jail_takes_of_per_user_limits_is_not_missing_in_another(jail, start_brig, run_brig, token):
    seek = TAKE + "print(json.dumps(found))"
    alone = json.loads(run_brig("--memory", "128M", program=seek).out)
    beside = two(start_brig, run_brig, TAKE, seek, token)
    assert json.loads(beside.out) == alone, str(beside)
    assert alone["signals"] > 0 and alone["inotify"] > 0, alone


HOARD = """
import ctypes
libc, n = ctypes.CDLL(None), 0
while n < 100000 and libc.inotify_init1(0) >= 0: n += 1
"""


def host_has_inotify():
    fd = ctypes.CDLL(None).inotify_init1(0)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


@pytest.mark.row("E7")
def test_a_jail_cannot_use_up_what_the_hosts_root_needs(jail, start_brig, token):
    """Limits per user are also charged to the user who made the user namespace: that must not be root."""
    child = start_brig("--timeout", "300", program=HOARD + HOLD, args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    assert host_has_inotify(), "one jail took every inotify instance of the host's root"


@pytest.mark.control("E7")
def test_control_a_user_namespace_made_by_root_uses_up_what_root_needs(needs_root):
    argv = ["unshare", "--user", "--map-user=1000", host.PYTHON, "-c", HOARD + HOLD]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        assert not host_has_inotify()
    finally:
        child.kill()
        child.communicate()


# --- the rootfs -------------------------------------------------------------------------------------------

FILES = """
import json, os, sys
found = {os.path.realpath(line.split()[5]) for line in open("/proc/self/maps") if len(line.split()) == 6 and line.split()[5].startswith("/")}
found -= {"/workspace/zygote.so"} # of a warm run, from a tmpfs of the zygote's that no cell can see
print(json.dumps([[st.st_dev, st.st_ino, st.st_nlink] for st in map(os.stat, sorted(found))]))
"""


def mapped_by_the_host():
    """(device, inode) of every file that a process of the host's own users has mapped."""
    found = set()
    for pid, _, uids in host.processes():
        if uids[0] < 65536:
            for line in host.read(f"/proc/{pid}/maps").splitlines():
                _, _, _, device, inode, *_ = line.split()
                major, minor = (int(part, 16) for part in device.split(":"))
                if inode != "0": # anonymous memory has none
                    found.add((os.makedev(major, minor), int(inode)))
    return found


VANDAL = """
import os, sys
def attempt(what, *args):
    try: what(*args); return True
    except OSError: return False
def each(path):
    yield attempt(os.chmod, path, 0o777)
    yield attempt(os.utime, path)
    yield attempt(os.chown, path, 1000, 1000)
    yield attempt(os.truncate, path, 1)
    yield attempt(lambda: os.close(os.open(path, os.O_RDWR | os.O_APPEND)))
    yield attempt(os.setxattr, path, "user.brig", b"x")
    yield attempt(os.link, path, path + "-link")
    yield attempt(os.rename, path, path + "-moved")
    yield attempt(os.unlink, path)
done = tried = 0
for folder, folders, files in os.walk(sys.argv[1], topdown=False):
    for name in files + folders:
        answers = list(each(os.path.join(folder, name)))
        tried, done = tried + len(answers), done + sum(answers)
print(tried > 50, done)
"""


@pytest.mark.row("B17")
@pytest.mark.requirement("A58", "B10", "B17", "B18")
def test_the_rootfs_survives_a_vandal(jail, brig, run_brig):
    """Everything of the rootfs, as root's own tool hashes it; and not even a time of a file is another one."""
    def times():
        return {path: (st.st_mtime_ns, st.st_ctime_ns, st.st_mode, st.st_nlink) for path in host.files_below(host.store_dir() / "trees")
                for st in (os.lstat(path),)}
    before = times()
    run = run_brig("--timeout", "60", "--cpu-time", "60", program=VANDAL, args=["/usr"])
    assert run.out == "True 0\n", str(run)
    assert times() == before
    done = subprocess.run([brig.parent / "brig-rootfs", "verify", "basic"], capture_output=True, text=True)
    assert done.returncode == 0, done


@pytest.mark.control("B17")
def test_control_a_vandal_changes_files_without_a_jail(tmp_path):
    for n in range(10):
        (tmp_path / f"file-{n}").write_text("content")
    done = subprocess.run([host.PYTHON, "-c", VANDAL, tmp_path], capture_output=True, text=True)
    assert int(done.stdout.split()[1]) > 50, done


@pytest.mark.row("B18")
def test_no_page_of_the_rootfs_is_shared_with_a_process_of_the_host(jail, run_brig):
    run = run_brig(program=FILES)
    files = json.loads(run.out)
    assert files and not {(dev, inode) for dev, inode, _ in files} & mapped_by_the_host(), str(run)
    assert {links for _, _, links in files} == {1}, f"a file of the rootfs has another name\n{run}"


@pytest.mark.control("B18")
def test_control_a_program_without_a_jail_shares_the_hosts_pages():
    files = json.loads(subprocess.run([host.PYTHON, "-c", FILES], capture_output=True, text=True).stdout)
    assert {(dev, inode) for dev, inode, _ in files} & mapped_by_the_host()
