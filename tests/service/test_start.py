"""What a service says that does not start, or starts with less: with the names that whoever wrote the files knows."""
import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import pytest

from rules import MANY
from support import client, host, tiers
from support import daemon as daemons

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only his service sees the host through a view")

UNUSABLE = [
    # brig.json, what is said of it
    ("{", "line 1"),
    ('{"reday":1}', "reday: no such setting"),
    ('{"runs":513}', "runs: 513 is outside 1..512"),
    ('{"ids":{"base":5000,"count":1000}}', "ids: base: 5000 is outside 65536..2147483647"),
    ('{"ids":{"base":100000,"count":100}}', "ids: count: 100 is outside 384.."),
    ('{"ids":{"base":3000000000,"count":1000}}', "ids: base: 3000000000 is outside"),
    ('{"access":[{"user":"no-such-user"}]}', 'access[0]: there is no user "no-such-user" on this host'),
    ('{"audit":{"file":"log"}}', 'audit: file: "log" is no absolute path'),
]


@pytest.fixture
def start(built, tmp_path):
    """start(text of brig.json): the file, the status and what was said."""
    def run(text, owner=None):
        config = tmp_path / "brig.json"
        config.write_text(text)
        if owner is not None:
            os.chown(config, owner, owner)
        argv = [daemons.binary(), "--foreground", "--socket", tmp_path / "brig.sock", "--config", config]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=host.HANG)
        return config, done.returncode, done.stderr
    return run


@pytest.mark.parametrize("text, said", UNUSABLE)
def test_a_configuration_that_cannot_be_used_is_named(start, text, said):
    config, status, words = start(text)
    assert status == 78 and f"{config}: {said}" in words, words


def test_a_folder_that_somebody_mistyped_is_not_made(built, tmp_path):
    path = tmp_path / "no" / "brig.sock"
    done = subprocess.run([daemons.binary(), "--foreground", "--socket", path], capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode not in (0, -9) and f"{path.parent}: No such file or directory" in done.stderr, done
    assert not path.parent.exists()


@ROOT_ONLY
def test_ids_that_roots_own_runs_take_are_refused(start):
    base, count = host.id_range()
    config, status, words = start(f'{{"ids":{{"base":{base},"count":{count}}}}}')
    assert status == 78 and f"{config}: ids: " in words and "brig run of root" in words, words


@ROOT_ONLY
def test_a_configuration_of_somebody_else_is_refused(start):
    config, status, words = start("{}", owner=12345)
    assert status != 0 and f"{config}: belongs to uid 12345; it must be root's" in words, words


@pytest.fixture
def profiles(tmp_path):
    """A folder like ./profiles with nothing but basic; write(name, text) adds one."""
    shipped = host.build_dir() / "profiles"
    for path in [*shipped.glob("*.policy"), shipped / "basic.json"]:
        shutil.copy(path, tmp_path)
    return tmp_path


LEFT_OUT = [
    # profile, its mode, what is said
    ('{"rootfs":"basic","policy":"python","limits":{"pids":0}}', 0o644, "limits: pids: 0 is outside"),
    ('{"rootfs":"basic","policy":"python"}', 0o646, "all users may write to it; type: chmod go-w"),
]


@pytest.mark.parametrize("text, mode, said", LEFT_OUT)
def test_a_profile_that_cannot_be_used_is_named_and_the_others_serve(start_daemon, profiles, text, mode, said):
    path = profiles / "odd.json"
    path.write_text(text)
    path.chmod(mode)
    one = start_daemon(env={"BRIG_PRESETS": str(profiles)})
    with one.connect() as talk:
        assert talk.run("print(1)").reason == "exited"
    one.stop()
    assert f"profile odd is left out: {path}: {said}" in one.words()


def test_a_policy_that_cannot_be_compiled_costs_its_profile_alone(start_daemon, profiles):
    (profiles / "odd.policy").write_text("allow no_such_call\n")
    (profiles / "odd.json").write_text('{"rootfs":"basic","policy":"odd"}')
    one = start_daemon(env={"BRIG_PRESETS": str(profiles)})
    with one.connect() as talk:
        assert talk.run("print(1)").reason == "exited"
    one.stop()
    assert 'profile odd is left out: odd.policy:1: "no_such_call" is not a known system call' in one.words()


def test_a_missing_rootfs_is_named_with_its_store_and_the_line_that_builds_it(start_daemon, profiles):
    (profiles / "odd.json").write_text('{"rootfs":"no-such","policy":"python"}')
    one = start_daemon(env={"BRIG_PRESETS": str(profiles)})
    with one.connect() as talk, pytest.raises(client.NotStarted) as refused:
        talk.run("print(1)", profile="odd")
    message = str(refused.value)
    assert "is not in the store /" in message and "brig rootfs build no-such" in message and "/view/" not in message, message


@ROOT_ONLY
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_service_of_root_leaves_no_control_group_however_it_ends(built, number):
    """In groups that root may write to without a capability, as systemd makes them: the top of a hierarchy is closed to the sweeper."""
    above = [pathlib.Path(folder) / f"brig-test-start-{os.getpid()}" for folder in host.groups_of("self", "pids") if "/pids" in folder]
    if not above:
        pytest.skip("needs the controller pids of control groups v1")
    above[0].mkdir()
    try:
        enter = ["sh", "-ec", f'echo 0 > {above[0]}/cgroup.procs; exec "$@"', "sh"]
        with daemons.Daemon(through=[*daemons.with_accounts(), *enter]) as one:
            made = above[0] / f"brigd-{one.pid}"
            assert made.exists(), "the control: it has made one"
            one.process.send_signal(number)
            one.process.wait(host.HANG)
            assert host.poll(lambda: not made.exists(), host.HANG), made
    finally:
        host.poll(lambda: not above[0].joinpath("cgroup.procs").read_text())
        above[0].rmdir()


@pytest.mark.nightly
@ROOT_ONLY
def test_services_that_start_at_once_all_start(built):
    """Each takes empty groups of services for leftovers: the one that the other has just made, too."""
    daemons.with_accounts() # made once, by one of us
    for _ in range(4):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            starts = [pool.submit(daemons.Daemon) for _ in range(3)]
        for one in starts:
            if not one.exception():
                one.result().close()
        assert not [one.exception() for one in starts if one.exception()]


class Apart(daemons.Daemon):
    """In a pid namespace of its own, where its pid is that of every other one of these."""

    def __init__(self, config=None):
        super().__init__(config, through=[*daemons.with_accounts(), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])

    def close(self):
        for pid in host.children(self.process.pid) if self.alive() else []: # unshare(1) itself does not hear SIGTERM
            os.kill(pid, signal.SIGTERM)
        super().close()


def ends_of_runs(daemon, until):
    ends = []
    with daemon.connect() as talk:
        while not until.is_set():
            ends.append(talk.run("print(1)", cold=True).record["exit_reason"])
    return ends


@ROOT_ONLY
@pytest.mark.parametrize("first", tiers.few([daemons.Daemon, Apart], Apart), ids=["a pid that the other does not see", "the same pid"])
def test_a_service_that_starts_in_another_pid_namespace_leaves_the_cells_of_this_one_alone(built, first):
    """A pid says nothing there: a service lives as long as it holds the lock of its control groups."""
    one, enough = first(MANY), threading.Event()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            under_way = [pool.submit(ends_of_runs, one, enough) for _ in range(4)]
            try:
                for _ in range(3):
                    Apart().close()
            finally:
                enough.set()
        assert {end for runs in under_way for end in runs.result()} == {"exited"}
    finally:
        one.close()
