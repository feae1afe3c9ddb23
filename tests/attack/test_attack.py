"""Attacks found by reading the code with bad intentions: each of them worked once."""
import os
import shutil
import socket
import subprocess

import pytest

from support import host

NOBODY = 65534


# --- from inside ------------------------------------------------------------------------------------------

@pytest.mark.row("E17")
@pytest.mark.parametrize("profile", ["basic", "strict"])
def test_a_program_cannot_lower_its_core_limit_and_so_call_the_hosts_handler(jail, run_brig, profile):
    """With a limit of 0 the kernel starts the handler of core_pattern, as root, for a crash; with 1 it does not."""
    program = """
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
for limits in ((0, 0), (0, 1), (1, 1)):
    try: print("lowered", resource.setrlimit(resource.RLIMIT_CORE, limits))
    except (OSError, ValueError): pass
zero = (ctypes.c_ulong * 2)(0, 0)
for number, args in ((160, (4,)), (302, (0, 4)), (164, (4,)), (261, (0, 4))): # setrlimit, prlimit64; x86_64, aarch64
    if libc.syscall(number, *args, zero, None) == 0: print("lowered by", number)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print(next(l for l in open('/proc/self/limits') if l.startswith('Max core')).split()[4:6])
"""
    run = run_brig("-p", profile, program=program)
    assert "lowered" not in run.out and run.status == 0, str(run)
    assert run.out in ("['1', '1']\n", "['0', '0']\n"), str(run) # 0: the caller's own, on a host without a handler


TCP = """
import socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(200)
keep, total = [], 0
for n in range(100):
    try:
        a = socket.socket()
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        a.connect(listening.getsockname())
        keep += [a, listening.accept()[0]]
        a.setblocking(False)
        while True: total += a.send(b"x" * 65536)
    except OSError:
        pass
print(total >> 20)
"""


@pytest.mark.row("E2")
def test_the_buffers_of_tcp_are_bounded_by_the_memory_limit(jail, run_brig, token, nothing_left):
    run = run_brig("--memory", "64M", "--timeout", "50", program=TCP, args=[token])
    assert run.reason == "oom" or int(run.out) <= 66, str(run)


@pytest.mark.control("E2")
def test_control_a_hundred_connections_hold_more_without_a_jail():
    assert int(subprocess.run([host.PYTHON, "-c", TCP], capture_output=True, text=True).stdout) > 200


def test_a_program_that_reads_its_own_output_holds_up_nobody(jail, run_brig, token, nothing_left):
    """It opens its pipe again and takes what poll has promised to the client."""
    program = """
import os, sys
again = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
if os.fork() == 0:
    while True:
        try: os.read(again, 65536)
        except BlockingIOError: pass
for n in range(20000): os.write(1, b"x")
print("told", file=sys.stderr, flush=True)
"""
    run = run_brig("--timeout", "50", "--cpus", "2", program=program, args=[token])
    assert run.reason == "exited" and run.record["stderr"] == "told\n", str(run)


@pytest.fixture
def shown(tmp_path):
    """A directory for --ro in which everybody may use everything: a socket that listens, a fifo that is read, a file."""
    folder = tmp_path / "shown"
    folder.mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    listening.listen()
    os.mkfifo(folder / "fifo")
    (folder / "file").write_text("to be read")
    for entry in folder.iterdir():
        entry.chmod(0o777)
    folder.chmod(0o755)
    reading = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    yield folder
    os.close(reading)
    listening.close()


REACH = """
import errno, os, socket, sys
folder = sys.argv[1]
def attempt(what, *args):
    try: what(*args); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
print(attempt(socket.socket(socket.AF_UNIX).connect, folder + "/socket"), attempt(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect, folder + "/socket"),
      attempt(os.open, folder + "/fifo", os.O_WRONLY | os.O_NONBLOCK), attempt(os.open, folder + "/file", os.O_RDWR), open(folder + "/file").read())
"""


def test_sockets_and_fifos_of_a_shown_directory_are_out_of_reach(jail, run_brig, shown, nothing_left):
    run = run_brig("--ro", shown, program=REACH, args=["/workspace/shown"])
    if "missing:inert-ro" in run.record["isolation"]:
        pytest.skip("the file system of the test's folder has no id-mapped mounts")
    assert run.out in ("EACCES EACCES EACCES EACCES to be read\n", "EACCES EACCES EACCES EROFS to be read\n"), str(run)


def test_control_sockets_and_fifos_of_a_directory_can_be_reached_without_a_jail(shown):
    text = subprocess.run([host.PYTHON, "-c", REACH, str(shown)], capture_output=True, text=True).stdout
    assert text == "ok EPROTOTYPE ok ok to be read\n"


def test_an_end_of_the_output_that_is_given_away_does_not_hold_the_client(jail, run_brig, tmp_path, token, nothing_left):
    """Through a socket below --ro: somebody outside then has the writing end of the client's pipe."""
    folder = tmp_path / "shown"
    folder.mkdir()
    folder.chmod(0o755)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "s"))
    os.chmod(folder / "s", 0o777)
    listening.listen()
    program = """
import socket
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect("/workspace/shown/s")
    socket.send_fds(s, [b"x"], [1])
except OSError as e: print(e)
print("done", flush=True)
"""
    run = run_brig("--ro", folder, program=program, args=[token]) # what was sent waits here meanwhile, and holds the pipe open
    listening.close()
    assert run.reason == "exited" and run.out.endswith("done\n"), str(run)


# --- another user of the host -----------------------------------------------------------------------------

def lock_as_nobody(path):
    """A process of another user that tries to lock a file; its first line says whether it could open it."""
    text = f"import fcntl, os, time\nos.setgroups([]); os.setresgid({NOBODY}, {NOBODY}, {NOBODY}); os.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n" \
           f"try: fcntl.flock(os.open({str(path)!r}, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB); print('locked', flush=True)\n" \
           "except PermissionError: print('refused', flush=True)\nexcept BlockingIOError: print('opened', flush=True)\ntime.sleep(600)"
    child = subprocess.Popen([host.PYTHON, "-c", text], stdout=subprocess.PIPE, text=True)
    return child, child.stdout.readline().strip()


def test_another_user_cannot_lock_the_groups_of_a_cell(jail, start_brig, token):
    child = start_brig("--timeout", "300", program="print('ready', flush=True)\nimport time; time.sleep(600)", args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    program = next(pid for pid, uid in host.with_token(token) if uid >= 65536)
    groups = [line.split(":", 2)[1:] for line in host.read(f"/proc/{program}/cgroup").splitlines() if "/cell-" in line]
    leaves = [top + path for names, path in groups for top in host.mounts_of(names) if os.path.isdir(top + path)]
    assert leaves
    for leaf in leaves:
        other, word = lock_as_nobody(leaf)
        other.kill()
        other.communicate()
        assert word == "refused", leaf


# --- the launcher's privilege -----------------------------------------------------------------------------

@pytest.mark.row("I6")
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_no_program_runs_while_privilege_is_still_to_be_dropped(jail, brig, tmp_path, token):
    """The drop, the launcher's third capset, fails after half a second: a cell that was told to go on before would be seen."""
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(600)")
    inject = "inject=capset:error=EPERM:delay_enter=500000:when=3"
    child = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=capset", "-e", inject, str(brig), "run", program, token],
                             stderr=subprocess.PIPE, text=True)
    seen = host.poll(lambda: child.poll() is not None or [pid for pid, uid in host.with_token(token) if uid >= 65536])
    _, stderr = child.communicate(timeout=host.HANG)
    assert seen is True and child.returncode == 125 and "drop-privilege" in stderr, (seen, child.returncode, stderr)


@pytest.mark.row("H1")
@pytest.mark.private("the launcher is looked for below a brigd of one's own")
def test_the_launcher_of_a_running_program_can_do_nothing_but_kill(jail, start_brig):
    child = start_brig("--timeout", "20", program="print('ready', flush=True)\nimport time; time.sleep(20)", json_record=False)
    assert child.line() == "ready", child.wait(1)
    launcher = host.jail_below(child.pid)["launcher"]
    status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{launcher}/status").splitlines() if ":\t" in line)
    assert status["Name"] == "brig-launcher", status
    kill, none = f"{1 << 5:016x}", f"{0:016x}"
    assert [status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "NoNewPrivs")] == [kill, kill, none, none, "1"], status


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_the_cell_is_cloned_with_capabilities_and_by_its_own_user(jail, brig, tmp_path, token):
    """Hosts that keep unprivileged users from user namespaces (Debian's sysctl, Ubuntu's AppArmor) look at both."""
    program = tmp_path / "program.py"
    program.write_text("pass")
    child = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=clone3", "-e", "inject=clone3:delay_enter=500000",
                              str(brig), "run", program, token], stderr=subprocess.PIPE, text=True)

    def launcher_held_in_clone3():
        pid = host.jail_below(child.pid).get("launcher")
        before, status, after = (host.read(f"/proc/{pid}/{name}") for name in ("syscall", "status", "syscall"))
        return status if before == after and before.startswith("435 ") else None
    status = host.poll(launcher_held_in_clone3)
    _, stderr = child.communicate(timeout=host.HANG)
    assert status and child.returncode == 0, (status, stderr)
    assert int(status.split("\nUid:")[1].split()[1]) >= 65536, "the cell is cloned by root, not by its own user"
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1], 16)
    assert effective & 1 << 21, f"CAP_SYS_ADMIN is not effective: {effective:x}"


# --- the kernel's own limits ------------------------------------------------------------------------------

@pytest.mark.row("A5")
@pytest.mark.skipif(not os.path.exists("/proc/sys/user"), reason="this kernel counts no namespaces")
def test_the_kernel_itself_gives_a_cell_no_user_namespace_and_few_watches(jail, start_brig, token):
    """The second guard behind the filter. Who enters the cell's user namespace, with the host's /proc, sees what is kept there."""
    child = start_brig("--timeout", "20", program="print('ready', flush=True)\nimport time; time.sleep(20)", args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    program = next(pid for pid, uid in host.with_token(token) if uid >= 65536)
    names = [f"/proc/sys/user/max_{name}" for name in ("user_namespaces", "inotify_instances", "inotify_watches")]
    seen = subprocess.run(["nsenter", f"--user=/proc/{program}/ns/user", "--preserve-credentials", "cat", *names], capture_output=True, text=True)
    assert seen.stdout.split() == ["0", "4", "8192"], seen
