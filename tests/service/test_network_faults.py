"""brig-proxy that is missing, cannot be executed, or ends: nothing opens, one message says so, and nothing is left behind."""
import json
import os
import shutil
import signal

import pytest

from support import brig, client, host
from support import daemon as daemons
from support.ask_proxy import ASK
from support.sessions import open_session

pytestmark = pytest.mark.private("copies of brig beside which brig-proxy is broken, and services with profiles of their own")

TRY = ASK + "print(ask('a.example'))"
GONE = "brig: not reached: any host (proxy_gone); brig run --why lists all\n"
REFUSED = "HTTP/1.1 403"


def remove(path):
    path.unlink()


def forbid(path):
    path.chmod(0o644)


def garble(path):
    path.write_text("no program\n")


def end_at_once(path):
    path.unlink()
    shutil.copy("/bin/true", path)


@pytest.fixture(name="copied", scope="module")
def copied_(jail, tmp_path_factory):
    """copied(what is done to its brig-proxy) -> the folder of a build of its own."""
    def make(breaks):
        folder = tmp_path_factory.mktemp("build")
        shutil.copy(host.build_dir() / "brig.mark", folder)
        shutil.copytree(host.build_dir() / "bin", folder / "bin")
        for name in "profiles", "guest":
            (folder / name).symlink_to(host.build_dir() / name)
        host.open_way(folder)
        breaks(folder / "bin" / "proxy")
        return folder
    return make


@pytest.fixture(scope="module", autouse=True)
def nothing_left_at_the_end(jail):
    before = host.Snapshot()
    yield
    assert not before.left_since()


def run_of(folder, *options):
    argv = brig.command("--private", *options, program=TRY, json_record=False)
    argv[0] = str(folder / "bin" / "brig")
    return brig.Child(argv, env={"BRIG_STORE": str(host.store_dir())}).wait()


@pytest.mark.parametrize("breaks, says", [(remove, "No such file or directory"), (forbid, "cannot be executed: Permission denied")])
def test_a_run_whose_proxy_cannot_be_had_does_not_begin(copied, breaks, says):
    folder = copied(breaks)
    done = run_of(folder, "--net", "a.example")
    assert done.status == 125 and done.stdout == "" and done.stderr.count("\n") == 1, str(done)
    assert f"brig-proxy, which a network needs: {folder}/bin/proxy" in done.stderr and says in done.stderr, str(done)
    assert run_of(folder).stdout == "Network is unreachable\n" # needs none


@pytest.mark.parametrize("breaks", [garble, end_at_once])
def test_a_run_whose_proxy_ends_at_once_reaches_nothing_and_says_so_even_when_the_program_does_not(copied, breaks):
    done = run_of(copied(breaks), "--net", "a.example") # it is started for the first connection, which is there by then
    assert (done.status, done.stdout, done.stderr) == (0, "Connection reset by peer\n", GONE), str(done)


def test_control_a_run_of_such_a_copy_reaches_its_proxy(copied):
    done = run_of(copied(lambda path: None), "--net", "b.example")
    assert done.stdout == REFUSED + "\n", str(done)


# --- services ---

class Copied(daemons.Daemon):
    def __init__(self, build, **keys):
        self.build = build
        super().__init__(**keys)

    def command(self):
        return [str(self.build / "bin" / "brigd") if word == str(daemons.binary()) else word for word in super().command()]


def profile(folder, **network):
    folder.chmod(0o755)
    (folder / "netted.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": network, "ready": 1}))
    return {"BRIG_PROFILES": str(folder), "BRIG_STORE": str(host.store_dir())}


@pytest.mark.parametrize("breaks, says", [(remove, "bin/proxy: No such file or directory"), (forbid, "bin/proxy: cannot be executed: Permission denied")])
def test_a_service_whose_proxy_cannot_be_had_does_not_start(copied, tmp_path, breaks, says):
    with pytest.raises(RuntimeError) as ended:
        Copied(copied(breaks), env=profile(tmp_path, allow=["a.example"]))
    assert says in str(ended.value)


def test_a_service_whose_proxy_ends_at_once_waits_longer_each_time_and_tells_of_it_twice(copied, tmp_path):
    with Copied(copied(end_at_once), env=profile(tmp_path, allow=["a.example"])) as service:
        assert host.poll(lambda: "ended again at once" in service.words()), service.words()
        done = [service.run(TRY, profile="netted") for _ in range(3)]
        assert {one.stdout for one in done} <= {"Connection refused\n", "Connection reset by peer\n"}, done # reset: it was in the queue of a socket whose process ended
        assert {one.record["network"]["connections"][0]["reason"] for one in done} == {"proxy_gone"}, done
        assert service.words().count("brig-proxy of profile netted ended") == 2, service.words()


def kill_proxy(service):
    assert host.poll(lambda: len(service.of_kind("proxy")) == 1), service.tree() # it has its name when it has been executed
    (pid,) = service.of_kind("proxy")
    os.kill(pid, signal.SIGKILL)
    assert host.poll(lambda: service.of_kind("proxy") and pid not in service.of_kind("proxy")), service.words()


def test_a_proxy_that_is_killed_again_and_again_is_told_of_twice_and_is_back_each_time(jail, tmp_path):
    with daemons.Daemon(env=profile(tmp_path, allow=["a.example"])) as service:
        service.settle()
        before = daemons.lasting_descriptors(service.one("monitor"))
        for _ in range(4):
            kill_proxy(service)
        assert host.poll(lambda: service.run(ASK + "print(ask('b.example'))", profile="netted").stdout == REFUSED + "\n"), service.words()
        assert service.words().count("brig-proxy of profile netted ended") == 2, service.words()
        service.settle()
        assert host.poll(lambda: daemons.lasting_descriptors(service.one("monitor")) == before)


def test_a_reload_gives_new_runs_the_new_hosts_and_leaves_the_old_to_those_that_run(jail, tmp_path):
    env = profile(tmp_path, allow=["a.example"], ceiling=["b.example"])
    with daemons.Daemon(env=env) as service, service.connect() as talk:
        session = open_session(talk, profile="netted", network=["b.example"])
        assert session.value(ASK + "ask('a.example')") == REFUSED
        profile(tmp_path, allow=["c.example"])
        talk.ask("reload")
        told = session.run("ask('c.example')").record["network"]
        assert [(one["name"], one["reason"]) for one in told["connections"]] == [("c.example", "not_allowed")], told
        with pytest.raises(client.Refused) as refused:
            service.run(TRY, profile="netted", network=["b.example"])
        assert "b.example is not among the hosts" in str(refused.value)
        assert service.run(ASK + "print(ask('a.example'))", profile="netted").stdout == REFUSED + "\n"
        session.close()
        assert host.poll(lambda: len(service.of_kind("proxy")) == 1), service.tree() # that of the old profile ended with its last run
