"""A plain user's own daemon: his server, his monitor, his jails; nobody else's, root's included."""
import os
import shutil
import subprocess

import pytest

from rules import LONG, SLEEP
from support import audit_log, client, host, swap, tiers, warm
from support import daemon as daemons
from support.users import OTHER


@pytest.fixture
def own(built, world, user):
    """(the daemon of a plain user of each kind, the user)."""
    folder = world.path(f"home/{user.name}")
    made = UsersDaemon(world, user, folder)
    yield made, user
    made.close()


class UsersDaemon(daemons.Daemon):
    """Runs in the users' namespace; its socket is reached from outside of it."""

    def __init__(self, world, user, folder, before=(), settings=()):
        self.world, self.user, self.before, self.settings = world, user, before, settings
        super().__init__(folder=folder)

    def command(self):
        inside = self.world.root / "home" / self.user.name
        argv = [self.world.root / "build" / "bin" / "brigd", "--foreground", "--socket", inside / "brig.sock"]
        return [*self.before] + [str(word) for word in self.world.as_user(self.user, f"NOTIFY_SOCKET={inside / 'notify'}", *self.settings, *argv)]

    def connect_as(self, uid=None, **kw):
        return super().connect_as(self.user.uid if uid is None else uid, **kw)


def test_a_plain_users_daemon_runs_his_programs(own):
    daemon, user = own
    with daemon.connect_as() as talk:
        ended = talk.run("import os; print(os.getuid())")
        assert (ended.stdout, ended.reason, ended.left) == ("1000\n", "exited", None), ended
        assert talk.ask("list")["runs"] == [] and talk.ask("stats")["runs"]["started"] == 1


@pytest.fixture
def forking(built, world, user, request):
    """A plain user's daemon whose zygote forks on demand. Its parameter: the words before its own."""
    profile = world.root / "profiles" / "basic.json"
    world.change(f"""sed -i.shipped 's/"warm": "ready"/"warm": "demand"/' {profile}""")
    daemon = UsersDaemon(world, user, world.path(f"home/{user.name}"), getattr(request, "param", ()))
    yield daemon
    daemon.close()
    world.change(f"mv {profile}.shipped {profile}")


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
@pytest.mark.parametrize("forking", [("chrt", "--fifo", "1")], indirect=True, ids=["chrt"])
def test_a_zygote_with_real_time_priority_forks_programs_without(forking):
    """RLIMIT_RTTIME is 0 for programs, and would end a process with such a priority at once."""
    with forking.connect_as() as talk:
        warm.wait(talk)
        ended = talk.run("import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)")
        assert (ended.stdout, ended.record["warm"]) == ("True\n", True), ended


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
def test_a_zygote_of_a_plain_users_daemon_forks_his_programs(forking):
    with forking.connect_as() as talk:
        warm.wait(talk)
        for _ in range(3):
            ended = talk.run("import os; print(os.getuid(), os.getpid(), open('/proc/self/comm').read())")
            assert (ended.stdout, ended.reason, ended.left) == ("1000 2 python3\n\n", "exited", None), ended
            assert ended.record["warm"], forking.words()


# Process 1 has the program's id here: only Landlock refuses the signal.
SIGNALS_TO_1 = """
import os
for _ in range(100):
    try: os.kill(1, 0)
    except PermissionError: print("refused")
"""


@pytest.mark.alone("reads the kernel's audit, which is one for the whole machine")
@pytest.mark.parametrize("user", ["single"], indirect=True)
def test_what_landlock_refuses_a_warm_program_is_no_record_of_the_audit(forking):
    """It would be one for each call, thousands a second: the kernel records refusals of a process that restricted itself and has executed nothing since, as a fork has not."""
    log = audit_log.AuditLog(audit_log.LANDLOCK)
    try:
        if not log.is_on():
            pytest.skip("needs auditing that is switched on: auditctl -e 1")
        with forking.connect_as() as talk:
            warm.wait(talk)
            run = talk.run(SIGNALS_TO_1)
        assert run.record["warm"] and run.stdout == 100 * "refused\n", run
        assert [record for record in log.records() if "scope.signal" in record] == [] # the server's Landlock rules make other records
    finally:
        log.close()


@pytest.mark.parametrize("user", ["range"], indirect=True)
def test_a_daemon_whose_caller_ignores_ended_children_has_the_users_range_of_ids(built, world, user):
    """The status of newuidmap and newgidmap must not be lost."""
    with UsersDaemon(world, user, world.path(f"home/{user.name}"), before=["env", "--ignore-signal=CHLD"]) as daemon, daemon.connect_as() as talk:
        ended = talk.run("print(1)")
        assert "own-ids" in ended.record["isolation"] and "missing:own-ids" not in ended.record["isolation"], (ended, daemon.words())


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "range"), indirect=True)
def test_profiles_are_read_again_at_the_users_word(own):
    daemon, _ = own
    profile = daemon.world.root / "profiles" / "basic.json"
    files = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    with daemon.connect_as() as talk:
        run = talk.start("import sys; print(sys.stdin.read())", stdin=True)
        daemon.world.change(f"""sed -i.shipped '1s/{{/{{"limits":{{"files":77}},/' {profile}""")
        try:
            assert talk.ask("reload")["changed"] == ["basic"], daemon.words()
            assert talk.run(files).stdout == "77\n"
            run.feed(b"to its end")
            assert run.finish().stdout == "to its end\n"
        finally:
            daemon.world.change(f"mv {profile}.shipped {profile}")
        assert talk.ask("reload")["changed"] == ["basic"]
        assert talk.run(files).stdout != "77\n"


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
def test_profiles_of_a_folder_that_the_user_can_no_longer_list_are_not_gone(built, world, user):
    home = world.path(f"home/{user.name}")
    folder = home / ".config/brig/profiles"
    folder.mkdir(parents=True)
    shutil.copy(host.REPO / "profiles" / "basic.json", folder / "small.json")
    for path in (folder.parent.parent, folder.parent, folder, folder / "small.json"):
        os.chown(path, user.uid, user.uid)
    try:
        with UsersDaemon(world, user, home, settings=["BRIG_PRESETS="]) as daemon, daemon.connect_as() as talk:
            assert "small" in [row["name"] for row in talk.ask("hello")["profiles"]], daemon.words()
            folder.chmod(0o311)
            with pytest.raises(client.Refused, match="profiles: Permission denied"):
                talk.ask("reload")
            assert "small" in [row["name"] for row in talk.ask("hello")["profiles"]]
    finally:
        shutil.rmtree(home / ".config")


@pytest.mark.diagonal("user")
@pytest.mark.row("B6")
@pytest.mark.parametrize("to", tiers.few(["secret", "/proc"], "secret"))
def test_a_directory_above_that_is_exchanged_between_look_and_mount_leads_nowhere(own, to):
    """As in test_shown_directories.py; here the supervisor opens it anew in the namespace of the user."""
    daemon, user = own
    folder = daemon.world.path(f"home/{user.name}") / "exchanged"
    folder.mkdir()
    try:
        parent = swap.Parent(folder, user.uid, to)
        with daemon.connect_as() as talk, swap.exchanging(folder, user.uid):
            said = parent.show(talk, 20)
        assert not parent.is_wrong(said), said
    finally:
        shutil.rmtree(folder)


# To free this takes seconds beside busy processes; the time is charged to no run.
LARGE = """
import ctypes, mmap, time
m = mmap.mmap(-1, {size}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.madvise(mmap.MADV_NOHUGEPAGE)
ctypes.CDLL(None).memset(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), 1, ctypes.c_size_t({size}))
print('up', flush=True)
time.sleep(600)
"""


@pytest.mark.nightly
@pytest.mark.alone("takes a third of the memory")
@pytest.mark.parametrize("user", ["range"], indirect=True)
def test_a_run_that_is_slow_to_die_costs_nobody_his_zygote(forking):
    size = 6 << 30
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 2 * size:
        pytest.skip("needs 12 GiB of free memory")
    with forking.connect_as() as talk:
        warm.wait(talk)
        beside = talk.start("import sys; print('up', flush=True); print(sys.stdin.read())", stdin=True, limits={"wall_ms": 300000})
        large = talk.start(LARGE.format(size=size), limits={"wall_ms": 300000, "cpu_ms": 300000}, allow_missing=["memory"])
        assert (beside.line(), large.line()) == ("up", "up")
        busy = [subprocess.Popen(["setsid", "sh", "-c", "while :; do :; done"]) for _ in range(8 * os.cpu_count())]
        try:
            talk.ask("cancel", run=large.id)
            assert large.wait()["exit_reason"] == "cancelled", large.ended
        finally:
            for one in busy:
                one.kill()
                one.wait()
        large.close()
        beside.feed(b"to the end")
        run = beside.finish()
        assert run.record["exit_reason"] == "exited" and "to the end" in run.stdout, run.record


@pytest.mark.diagonal("user")
@pytest.mark.parametrize("uid", [OTHER.uid, 0], ids=["another user", "root"])
def test_nobody_else_is_served(own, uid):
    daemon, _ = own
    try:
        talk = daemon.connect_as(uid)
    except PermissionError:
        return
    with talk:
        talk.send({"op": "exec", "argv": ["true"]})
        try:
            assert talk.next().body["error"]["code"] == "denied"
        except client.Closed:
            pass


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "range"), indirect=True)
def test_nothing_is_left_when_it_ends(own, token):
    daemon, user = own
    with daemon.connect_as() as talk:
        run = talk.start(SLEEP, args=[token], limits=LONG)
        assert run.line() == "up" and host.with_token(token)
        processes = {daemon.pid, *daemon.below()}
        assert daemon.stop() == 0, daemon.words()
        run.close()
    assert host.poll(lambda: not host.with_token(token)), host.with_token(token)
    theirs = lambda: {pid for pid, _, uids in host.processes() if uids[0] == user.uid or user.range and user.range[0] <= uids[0] < sum(user.range)}
    assert host.poll(lambda: not theirs() & processes), theirs() & processes


TRACE = """
import ctypes, os, sys
for pid in map(int, sys.argv[1:]):
    for name in ("mem", "environ", "fd", "maps", "cwd"):
        path = f"/proc/{pid}/{name}"
        try:
            os.listdir(path) if name == "fd" else os.readlink(path) if name == "cwd" else open(path).close()
            print(path, "open")
        except OSError as e:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, 0, 0) == 0: # PTRACE_SEIZE: nobody is stopped, and all is over with us
        print(pid, "traced")
print("tried", len(sys.argv) - 1)
"""


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
@pytest.mark.row("I11")
def test_his_other_programs_cannot_trace_his_server_and_monitor(own):
    """They have his id; still no memory, descriptor or call of the two is theirs. What is in his user namespaces is his: the kernel's rule."""
    daemon, user = own
    daemon.settle()
    pids = [daemon.one("server"), daemon.one("monitor")]
    done = subprocess.run(daemon.world.as_user(user, host.PYTHON, "-c", TRACE, *pids), capture_output=True, text=True, timeout=host.HANG)
    assert done.stdout == "tried 2\n", f"{done.stdout}{done.stderr}\n{daemon.tree()}"


@pytest.mark.control("I11")
def test_control_a_process_of_his_that_hides_nothing_is_traced(world, user):
    script = f"sleep 600 >/dev/null & {host.PYTHON} -c \"$0\" $!; kill -9 $!"
    done = subprocess.run(world.as_user(user, "sh", "-c", script, TRACE), capture_output=True, text=True, timeout=host.HANG)
    assert "mem open" in done.stdout, f"{done.stdout}{done.stderr}"
