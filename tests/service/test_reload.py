"""Configuration and profiles are read again: no run ends, all of it takes effect or none, and only the reader sends profiles to the monitor."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from rules import ANN, LONG, SLEEP, begin, end, sleeping
from support import brig, client, host, tiers, warm_load
from support import daemon as daemons

ECHO = "import sys; print('up', flush=True); print(sys.stdin.read())"
LIMIT = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
TIMER = "import ctypes, os; print(ctypes.CDLL(None).sysinfo(b'x' * 256))"
MANY_RUNS = {"runs": 64, "runs_per_minute": 1000000}


def rows(*names, **ann):
    """Root may use everything, Ann what the arguments name."""
    profiles = list(names) or ["basic", "odd"]
    return {"runs": 128, "access": [{"uid": 0, **MANY_RUNS}, *([{"uid": ANN, "profiles": profiles, **ann}] if ann.pop("is_there", True) else [])]}


class Service:
    """A daemon with two profiles, basic (warm on demand) and odd (never), whose files are this test's."""

    def __init__(self, start_daemon, folder, **env):
        self.profiles = folder / "profiles"
        self.profiles.mkdir()
        for path in (host.REPO / "profiles").glob("*.policy"):
            shutil.copy(path, self.profiles)
        self.shipped = json.loads((host.REPO / "profiles" / "basic.json").read_text())
        self.profile("basic", warm="demand")
        self.profile("odd", warm="never")
        folder.chmod(0o755)
        self.daemon = start_daemon(rows(runs=2), env={"BRIG_PRESETS": str(self.profiles), **env})
        self.daemon.path.chmod(0o666)
        self.talk = self.daemon.connect()

    def profile(self, name, **keys):
        (self.profiles / f"{name}.json").write_text(json.dumps({**self.shipped, "warm": "never", **keys}))

    def remove(self, name):
        (self.profiles / f"{name}.json").unlink()

    def reload(self, config=None):
        if config is not None:
            self.daemon.configure(config)
        return self.talk.ask("reload")

    def refused(self, config=None):
        """The message of a reload that is refused."""
        with pytest.raises(client.Refused) as refused:
            self.reload(config)
        assert refused.value.code == "unavailable"
        return refused.value.error["message"]

    def hello(self):
        return {key: value for key, value in self.talk.ask("hello").items() if key != "tag"}

    def zygotes(self):
        return sorted(self.daemon.of_kind("zygote"))

    def supervisors(self):
        return len(self.daemon.roles()["supervisor"])

    def wait_warm(self):
        assert host.poll(lambda: self.talk.run("pass").record["warm"]), self.daemon.words()

    def close(self):
        self.talk.close()


@pytest.fixture
def service(nothing_left, start_daemon, tmp_path):
    made = Service(start_daemon, tmp_path)
    yield made
    made.close()
    assert made.daemon.stop() == 0, made.daemon.words()


@pytest.fixture
def ann(service):
    with service.daemon.connect_as(ANN) as made:
        yield made


def refusal(talk, tag):
    return talk.until(lambda body: body.get("tag") == tag and "error" in body).body["error"]


# --- quotas and access ---

def test_a_quota_holds_from_the_next_run_on_and_none_ends(service, ann):
    runs = [sleeping(ann), sleeping(ann)]
    with pytest.raises(client.Refused, match="2 runs at once"):
        ann.run("print(1)")
    assert service.reload(rows(runs=3))["changed"] == []
    runs.append(sleeping(ann))
    service.reload(rows(runs=1))
    with pytest.raises(client.Refused, match="1 runs at once"):
        ann.run("print(1)")
    for run in runs:
        end(ann, run)
    assert ann.run("print(1)").stdout == "1\n"


def test_a_run_that_waits_for_a_place_has_it_when_the_quota_grows(service, ann):
    runs = [sleeping(ann), sleeping(ann)]
    tag, said = begin(ann)
    assert said["event"] == "waiting"
    service.reload(rows(runs=3))
    assert ann.started(tag).finish().stdout == "1\n"
    for run in runs:
        end(ann, run)


def test_the_hosts_own_quota_is_read_again(service, ann):
    service.reload({**rows(runs=2), "runs": 1})
    run = sleeping(ann)
    with pytest.raises(client.Refused, match="1 runs at once: the quota of this host"):
        ann.run("print(1)")
    service.reload(rows(runs=2))
    assert ann.run("print(2)").stdout == "2\n"
    end(ann, run)


def test_whose_access_is_withdrawn_keeps_the_runs_and_gets_no_other(service, ann):
    runs = [sleeping(ann), ann.start(ECHO, stdin=True, limits=LONG)]
    tag, _ = begin(ann)
    service.reload(rows(is_there=False))
    assert refusal(ann, tag) == {"code": "denied", "message": f"user {ANN} may no longer use this service", "field": None}
    for op in ("hello", "stats", "list", "explain"):
        with pytest.raises(client.Refused, match="no longer"):
            ann.ask(op)
    with pytest.raises(client.Refused, match="no longer"):
        ann.run("print(1)")
    with service.daemon.connect_as(ANN) as other, pytest.raises((client.Refused, client.Closed)):
        other.ask("hello")
    assert service.talk.ask("stats")["running"] == 2
    runs[1].feed(b"to its end")
    assert runs[1].finish().stdout == "up\nto its end\n"
    end(ann, runs[0])
    service.reload(rows(runs=2))
    assert ann.run("print(1)").stdout == "1\n", "given again, to the connection that was there"


def test_profiles_of_a_row_are_read_again(service, ann):
    service.reload(rows("basic"))
    with pytest.raises(client.Refused, match='you may not use a profile'):
        ann.run("print(1)", profile="odd")
    service.reload(rows("odd"))
    assert ann.run("print(1)", profile="odd").stdout == "1\n"
    assert [row["name"] for row in ann.ask("hello")["profiles"]] == ["odd"]


# --- profiles ---

def test_a_profile_has_other_limits_and_those_of_before_hold_for_runs_under_way(service):
    run = service.talk.start(ECHO, profile="odd", stdin=True, limits={"wall_ms": 20000})
    service.profile("odd", limits={"files": 77, "wall_ms": 5000}, ceilings={"wall_ms": 10000})
    assert service.reload()["changed"] == ["odd"]
    assert service.talk.run(LIMIT, profile="odd").stdout == "77\n"
    with pytest.raises(client.Refused, match="above the ceiling"):
        service.talk.run("print(1)", profile="odd", limits={"wall_ms": 20000})
    run.feed(b"as before")
    assert run.finish().stdout == "up\nas before\n"
    assert host.poll(lambda: service.supervisors() == 2), service.daemon.tree()


@pytest.mark.parametrize("how", tiers.few(["cold", "warm"], "warm"))
def test_a_run_under_way_meets_the_limit_that_it_began_with(service, how):
    """What begins later meets the new one, of a second: with the one before it would outlive the test."""
    service.profile("basic", warm="demand", limits=LONG)
    service.reload()
    service.wait_warm()
    run = service.talk.start(SLEEP, cold=how == "cold", limits={"wall_ms": 3000})
    assert run.line() == "up"
    service.profile("basic", warm="demand", limits={"wall_ms": 1000}, ceilings={"wall_ms": 1000})
    assert service.reload()["changed"] == ["basic"]
    record = run.wait()
    run.close()
    assert record["exit_reason"] == "timeout_wall" and record["wall_ms"] >= 3000 and record["warm"] is (how == "warm"), record
    late = service.talk.run(SLEEP).record
    assert late["exit_reason"] == "timeout_wall" and late["wall_ms"] >= 1000, late


def test_a_policy_is_compiled_again(service):
    before = service.talk.ask("explain", profile="odd")["filter_sha256"]
    assert service.talk.run(TIMER, profile="odd").stdout == "0\n"
    service.profile("odd", policy="mine")
    (service.profiles / "mine.policy").write_text("include python\ndeny sysinfo\n")
    service.reload()
    assert service.talk.run(TIMER, profile="odd").stdout != "0\n"
    assert service.talk.ask("explain", profile="odd")["filter_sha256"] != before
    assert service.talk.run(TIMER).stdout == "0\n", "another profile's"
    (service.profiles / "mine.policy").write_text("include python\n")
    assert service.reload()["changed"] == ["odd"]
    assert service.talk.run(TIMER, profile="odd").stdout == "0\n"


def test_what_only_describes_a_profile_is_read_again_and_its_cells_stay(service):
    service.wait_warm()
    zygotes = service.zygotes()
    service.profile("basic", warm="demand", description="says something else")
    assert service.reload()["changed"] == ["basic"]
    assert [row["description"] for row in service.hello()["profiles"]][0] == "says something else"
    assert service.zygotes() == zygotes and service.talk.run("print(1)").record["warm"]


def test_a_profile_is_added_and_removed(service, ann):
    service.profile("new", limits={"files": 55})
    answer = service.reload(rows("new", "odd", runs=2))
    assert (answer["changed"], answer["removed"], answer["profiles"], answer["restart"]) == (["new"], [], 3, None)
    assert ann.run(LIMIT, profile="new").stdout == "55\n"
    runs = [ann.start(ECHO, profile="new", stdin=True, limits=LONG), ann.start(SLEEP, profile="odd", limits=LONG)]
    tag, said = begin(ann, profile="new")
    assert said["event"] == "waiting"
    service.remove("new")
    assert service.reload()["removed"] == ["new"]
    assert refusal(ann, tag)["message"].startswith('profile "new" does not exist here; there are: basic, odd; ')
    with pytest.raises(client.Refused, match="does not exist here"):
        service.talk.run("print(1)", profile="new")
    assert service.supervisors() == 3, "it stays for its run"
    runs[0].feed(b"to its end")
    assert runs[0].finish().stdout == "up\nto its end\n"
    assert host.poll(lambda: service.supervisors() == 2), service.daemon.tree()
    end(ann, runs[1])


def test_what_did_not_change_keeps_its_zygote_and_what_did_gets_another(service):
    service.profile("odd", warm="demand")
    service.reload()
    service.wait_warm()
    assert host.poll(lambda: service.talk.run("pass", profile="odd").record["warm"]), service.daemon.words()
    before = set(service.zygotes())
    service.profile("odd", warm="demand", limits={"files": 66})
    assert service.reload()["changed"] == ["odd"]
    assert service.talk.run("print(1)").record["warm"], "it was not interrupted"
    assert host.poll(lambda: service.talk.run(LIMIT, profile="odd").record["warm"])
    assert host.poll(lambda: len(service.zygotes()) == 2 and len(before & set(service.zygotes())) == 1), service.daemon.tree()
    assert service.talk.run(LIMIT, profile="odd").stdout == "66\n"
    generation = {row["name"]: row["zygote"]["generation"] for row in service.talk.ask("stats")["profiles"]}
    assert generation["basic"] == 1


def test_more_profiles_than_there_are_shares_of_ids_are_refused_as_a_whole(nothing_left, start_daemon, tmp_path):
    """Of 384 ids there are as many shares as profiles at the start."""
    service = Service(start_daemon, tmp_path)
    ids = {"ids": {"base": 1500000000, "count": 384}}
    service.daemon.configure({**rows(runs=2), **ids})
    service.close()
    service.daemon.restart()
    with service.daemon.connect() as service.talk:
        service.profile("new")
        assert "profile new: all 2 shares of the host ids are in use; a restart divides them anew" in service.refused()
        service.remove("new")
        service.profile("odd", limits={"files": 99})
        assert service.reload()["changed"] == ["odd"]
        assert service.talk.run(LIMIT, profile="odd").stdout == "99\n"
        service.remove("odd")
        service.reload()
        assert host.poll(lambda: service.supervisors() == 1), service.daemon.tree()
        service.profile("new", limits={"files": 98})
        service.reload()
        assert service.talk.run(LIMIT, profile="new").stdout == "98\n", "a share that is not in use goes to the next profile"


def test_a_run_that_began_a_moment_ago_without_the_monitor_goes_on(service):
    """By lease, into a fork that stood ready: the monitor hears of it from its supervisor, which is slow here."""
    service.profile("basic", warm="ready")
    service.reload()
    service.wait_warm()
    service.daemon.settle()
    supervisors = service.daemon.roles()["supervisor"]
    for pid in supervisors:
        daemons.kill(pid, signal.SIGSTOP)
    run = service.talk.start(ECHO, stdin=True, limits=LONG)
    assert run.line() == "up"
    service.profile("basic", warm="ready", limits={"files": 88})
    service.reload()
    for pid in supervisors:
        daemons.kill(pid, signal.SIGCONT)
    run.feed(b"to its end")
    ended = run.finish()
    assert (ended.reason, ended.stdout) == ("exited", "to its end\n"), ended


# --- what cannot be used ---

WRONG = {
    # the file, its text, the error
    "configuration: no JSON": ("brig.json", "{", "brig.json: line 1"),
    "configuration: a key that is unknown": ("brig.json", '{"reday":1}', "brig.json: reday: no such setting"),
    "configuration: out of bounds": ("brig.json", '{"runs":513}', "brig.json: runs: 513 is outside 1..512"),
    "configuration: a user that is none": ("brig.json", '{"access":[{"user":"no-such-user"}]}', 'access[0]: there is no user "no-such-user" on this host'),
    "configuration: is gone": ("brig.json", None, "brig.json: No such file or directory"),
    "profile: no JSON": ("profiles/odd.json", "{", "profile odd: "),
    "profile: a key that is unknown": ("profiles/odd.json", '{"rootfs":"basic","policy":"python","pdis":1}', "profile odd: "),
    "profile: out of bounds": ("profiles/odd.json", '{"rootfs":"basic","policy":"python","limits":{"pids":0}}', "limits: pids: 0 is outside"),
    "profile: above its ceiling": ("profiles/odd.json", '{"rootfs":"basic","policy":"python","limits":{"pids":20},"ceilings":{"pids":10}}', "profile odd: "),
    "profile: a policy that is none": ("profiles/odd.json", '{"rootfs":"basic","policy":"nowhere"}', "nowhere"),
    "policy: an unknown call": ("profiles/python.policy", "allow no_such_call\n", 'python.policy:1: "no_such_call" is not a known system call'),
    "a new profile that is wrong": ("profiles/third.json", "[]", "profile third: "),
}


@pytest.mark.parametrize("what", tiers.few(WRONG, "configuration: no JSON", "configuration: out of bounds", "profile: no JSON", "profile: above its ceiling", "a new profile that is wrong"))
def test_what_cannot_be_used_is_named_and_changes_nothing(service, ann, what):
    name, text, said = WRONG[what]
    service.wait_warm()
    run = sleeping(ann)
    before, roles, zygotes = service.hello(), service.daemon.roles(), service.zygotes()
    service.profile("basic", warm="demand", limits={"files": 33}) # what is right beside it does not hold either
    path = service.daemon.folder / name if name == "brig.json" else service.profiles.parent / name
    kept = path.read_text() if path.exists() else None
    path.write_text(text) if text is not None else path.unlink()
    message = service.refused()
    assert said in message and "/view/" not in message, message
    assert service.hello() == before and service.daemon.roles() == roles and service.zygotes() == zygotes
    ended = service.talk.run(LIMIT)
    assert ended.stdout != "33\n" and ended.record["warm"], ended
    if kept is None:
        path.unlink()
    else:
        path.write_text(kept)
    assert service.reload()["changed"] == ["basic"]
    assert service.talk.run(LIMIT).stdout == "33\n"
    end(ann, run)
    service.daemon.stop()
    assert "could not be read again, those of before hold: " in service.daemon.words()


def test_a_reload_is_refused_when_all_profiles_are_gone(service):
    shutil.move(service.profiles, service.profiles.with_name("elsewhere"))
    assert service.refused() == f"there is no profile in {service.profiles}"
    assert service.talk.run("print(1)").stdout == "1\n"


UNREADABLE = {
    "too large": (lambda path: path.write_text(" " * 65537), "65537 bytes, at most 65536 are allowed"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "a directory": (lambda path: path.mkdir(), "not a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
}


@pytest.fixture
def replacing(nothing_left, start_daemon, tmp_path):
    """A daemon whose profile odd is one that the administrator has put in the place of the preset."""
    mine = tmp_path / "mine"
    mine.mkdir()
    made = Service(start_daemon, tmp_path, BRIG_PROFILES=str(mine))
    made.mine = mine
    (mine / "odd.json").write_text(json.dumps({**made.shipped, "warm": "never", "limits": {"files": 44}}))
    assert made.reload()["changed"] == ["odd"] and made.talk.run(LIMIT, profile="odd").stdout == "44\n"
    yield made
    made.close()
    made.daemon.stop()


@pytest.mark.parametrize("how", UNREADABLE)
def test_the_preset_is_not_served_in_the_place_of_a_profile_that_cannot_be_read(replacing, how):
    make, said = UNREADABLE[how]
    (replacing.mine / "odd.json").unlink()
    make(replacing.mine / "odd.json")
    message = replacing.refused()
    assert f"{replacing.mine}" in message and "odd.json: " in message and said in message and "/view/" not in message, message
    assert replacing.talk.run(LIMIT, profile="odd").stdout == "44\n"


def test_a_service_that_starts_leaves_out_a_profile_that_cannot_be_read_and_serves_the_others(replacing):
    (replacing.mine / "odd.json").write_text(" " * 65537)
    replacing.close()
    replacing.daemon.restart()
    replacing.talk = replacing.daemon.connect()
    with pytest.raises(client.Refused, match="does not exist here; there are: basic; "):
        replacing.talk.run(LIMIT, profile="odd")
    assert f"profile odd is left out: {replacing.mine}/odd.json: 65537 bytes, at most 65536 are allowed\n" in replacing.daemon.words()
    assert replacing.talk.run("print(1)").stdout == "1\n"


def test_profiles_of_a_folder_that_can_no_longer_be_read_are_not_gone(replacing):
    replacing.mine.rename(replacing.mine.with_name("elsewhere"))
    replacing.mine.write_text("no folder")
    assert f"{replacing.mine}: Not a directory" in replacing.refused()
    assert replacing.talk.run(LIMIT, profile="odd").stdout == "44\n"


def test_a_file_that_anybody_may_write_to_is_refused(service):
    (service.profiles / "odd.json").chmod(0o646)
    assert "all users may write to it" in service.refused()
    (service.profiles / "odd.json").chmod(0o664)
    assert "its group may write to it" in service.refused()
    service.daemon.config.chmod(0o646)
    (service.profiles / "odd.json").chmod(0o644)
    assert "all users may write to it" in service.refused()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of somebody else")
def test_rules_of_another_user_are_refused(service):
    for path, said in ((service.profiles / "odd.json", "not a regular file of root"), (service.profiles, f"belongs to uid {host.own_id(0)}; it must be root's")):
        os.chown(path, host.own_id(0), -1)
        assert f"{path}: {said}" in service.refused()
        os.chown(path, 0, -1)
    assert service.reload()["reply"] == "reload"


@pytest.mark.parametrize("key, config", [("ids", {"ids": {"base": 1500000000, "count": 4096}}), ("audit", {"audit": {"keep": 7}}),
                                         ("ids, audit", {"ids": {"base": 1500000000, "count": 4096}, "audit": {"max_bytes": "1M"}})])
def test_what_takes_a_restart_is_named_and_the_rest_holds(service, key, config):
    for _ in range(2): # and again: it is compared with the start
        answer = service.reload({**rows(runs=2), "runs": 1, **config})
        assert answer["restart"] == key
    run = sleeping(service.talk)
    with pytest.raises(client.Refused, match="1 runs at once"):
        service.talk.run("print(1)")
    assert service.reload(rows(runs=2))["restart"] is None
    end(service.talk, run)
    service.daemon.stop()
    assert f"changes of {key} in the configuration take effect at the next start" in service.daemon.words()


# --- requests and signals ---

def test_a_signal_has_them_read_and_the_log_says_so(service, ann):
    service.daemon.configure(rows(runs=1))
    service.profile("new")
    service.remove("odd")
    os.kill(service.daemon.pid, signal.SIGHUP)
    assert host.poll(lambda: "were read again: 2 profiles; changed: new; gone: odd\n" in service.daemon.words()), service.daemon.words()
    assert ann.ask("hello")["quota"]["runs"] == 1
    assert service.talk.ask("stats")["rules_age_ms"] <= service.talk.ask("stats")["uptime_ms"]


def test_two_signals_and_two_requests_at_once_are_all_answered(service):
    with service.daemon.connect() as other:
        service.profile("odd", limits={"files": 44})
        service.talk.send({"op": "reload", "tag": 1001})
        os.kill(service.daemon.pid, signal.SIGHUP)
        other.send({"op": "reload", "tag": 1002})
        os.kill(service.daemon.pid, signal.SIGHUP)
        answers = [talk.until(lambda body, tag=tag: body.get("tag") == tag).body for talk, tag in ((service.talk, 1001), (other, 1002))]
        assert [answer.get("reply") for answer in answers] == ["reload"] * 2, answers
    assert service.talk.run(LIMIT, profile="odd").stdout == "44\n"


def test_a_connection_waits_for_one_answer_at_a_time(service):
    os.kill(service.daemon.one("reader"), signal.SIGSTOP)
    service.talk.send({"op": "reload", "tag": 1001})
    with pytest.raises(client.Refused) as refused:
        service.talk.ask("reload")
    os.kill(service.daemon.one("reader"), signal.SIGCONT)
    assert refused.value.code == "busy"
    assert service.talk.until(lambda body: body.get("tag") == 1001).body["reply"] == "reload"


def test_only_root_may_ask(service, ann):
    with pytest.raises(client.Refused) as refused:
        ann.ask("reload")
    assert refused.value.code == "denied" and "only root" in refused.value.error["message"]


def test_a_private_brigd_has_nothing_to_read_again(built):
    with daemons.Private() as one, pytest.raises(client.Refused) as refused:
        one.connect().ask("reload")
    assert refused.value.code == "unavailable"


def ask_cli(service, *words):
    env = brig.environment({"BRIG_SOCKET": str(service.daemon.path), "LANG": "C.UTF-8"})
    return subprocess.run([daemons.binary("brig"), *words], capture_output=True, text=True, env=env, timeout=host.HANG)


def test_brig_reload_says_what_came_of_it(service):
    service.profile("new")
    service.remove("odd")
    done = ask_cli(service, "reload")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 profiles; changed: new; gone: odd\n", "")
    service.daemon.configure({**rows(), "audit": {"keep": 9}})
    done = ask_cli(service, "reload", "--json")
    assert json.loads(done.stdout) == {"profiles": 2, "changed": [], "removed": [], "restart": "audit"} and done.returncode == 0, done
    assert "changes of audit in the configuration take effect at the next start" in ask_cli(service, "reload").stderr
    service.daemon.configure("{")
    done = ask_cli(service, "reload")
    assert done.returncode == 1 and done.stdout == "" and re.match(r"brig reload: .*brig\.json: line 1", done.stderr), done
    assert re.search(r"^config +read \d+ s ago$", ask_cli(service, "stats").stdout, re.M)


# --- privileges ---

def test_the_reader_has_no_socket_to_a_client_and_is_not_traceable(service):
    reader, server = service.daemon.one("reader"), service.daemon.pid
    status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{reader}/status").splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == (1 << 2 | 1 << 6 | 1 << 7), "to read, and to change to an account that may not" # CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID
    assert status["NoNewPrivs"].strip() == "1" and os.stat(f"/proc/{reader}/mem").st_uid == 0
    sockets = {pid: {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")} for pid in (reader, server, service.daemon.one("monitor"))}
    assert len([link for link in sockets[reader] if link.startswith("socket:")]) == 2
    assert not sockets[reader] & sockets[server] - {"/dev/null"} - {link for link in sockets[server] if link.startswith("pipe:")}


def test_when_the_reader_is_gone_runs_go_on_and_a_reading_is_refused(service, ann):
    run, reader = sleeping(ann), service.daemon.one("reader")
    os.kill(reader, signal.SIGSTOP)
    service.talk.send({"op": "reload", "tag": 900})
    daemons.kill(reader)
    assert "has ended; restart brigd" in service.talk.until(lambda body: body.get("tag") == 900).body["error"]["message"]
    assert "has ended; restart brigd" in service.refused()
    os.kill(service.daemon.pid, signal.SIGHUP)
    assert "has ended; restart brigd" in service.refused()
    assert service.talk.run("print(1)").stdout == "1\n"
    end(ann, run)


def reading_of(reader):
    """The process that reads, if it is there: the reader has no other child. A look at all processes would take longer than a reading."""
    return [int(pid) for pid in host.read(f"/proc/{reader}/task/{reader}/children").split()]


def killed_reading(service, reader, tag, dice, longest):
    """Whether it was killed before the server had its profiles: at a random moment, and within as long as a reading takes."""
    service.talk.send({"op": "reload", "tag": tag})
    time.sleep(dice.uniform(0, longest)) # the random moment
    for pid in reading_of(reader):
        daemons.kill(pid)
    body = service.talk.until(lambda body: body.get("tag") == tag).body
    assert "error" not in body or "the process that read them died" in body["error"]["message"], body
    return "error" in body


def time_of(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.mark.parametrize("times", tiers.amounts(4, 200))
def test_a_reading_that_is_killed_holds_or_does_not_and_the_next_one_does(service, times):
    """At random moments: before the monitor has the profiles, before the server has them, or after both. Where the kill came too late, it is tried again."""
    reader, dice = service.daemon.one("reader"), random.Random(times)
    longest, died, n = time_of(service.reload), 0, 0
    while died < times and n < 20 * times:
        service.profile("odd", limits={"files": 100 + n})
        died += killed_reading(service, reader, 5000 + n, dice, longest)
        assert service.talk.run(LIMIT, profile="odd").stdout in (f"{100 + n}\n", f"{99 + n}\n", "256\n")
        longest = time_of(service.reload)
        assert service.talk.run(LIMIT, profile="odd").stdout == f"{100 + n}\n"
        assert service.talk.run("print(1)").stdout == "1\n"
        n += 1
    assert died == times, f"of {n} readings {died} were killed"
    assert host.poll(lambda: service.supervisors() == 2), service.daemon.tree()


# --- many times ---

class Client(warm_load.Load):
    """Its runs must not end by a reload."""

    def __init__(self, daemon, name, stop):
        super().__init__(daemon, name, stop=stop)
        self.may_end = set()


@pytest.mark.parametrize("times", tiers.amounts(5, 100))
def test_many_readings_cost_no_run_and_leave_nothing(service, ann, times):
    service.wait_warm()
    sleeper, stop = sleeping(ann), threading.Event()
    pids = service.daemon.rest()
    held = {pid: daemons.lasting_descriptors(pid) for pid in pids}
    load = [Client(service.daemon, f"client{n}", stop) for n in range(3)]
    for one in load:
        one.start()
    for n in range(times):
        service.profile("odd", limits={"files": 100 + n})
        service.profile("basic", warm="demand", limits={"files": 200 + n // 5}) # a new zygote each fifth time
        service.reload()
        assert service.talk.run(LIMIT, profile="odd").stdout == f"{100 + n}\n"
        if n % 3 == 0:
            os.kill(service.daemon.pid, signal.SIGHUP)
    stop.set()
    ends, wrong = warm_load.together(load, 2 * host.HANG)
    assert not wrong, wrong
    assert sum(ends.values()) >= 3 and all(how.startswith("exited") for how in ends), ends
    service.profile("odd", warm="never")
    service.profile("basic", warm="demand")
    service.reload()
    service.wait_warm()
    assert host.poll(lambda: service.supervisors() == 3), service.daemon.tree()
    end(ann, sleeper)
    assert host.poll(lambda: service.supervisors() == 2 and len(service.zygotes()) == 1), service.daemon.tree()
    service.daemon.rest()
    for pid in (service.daemon.pid, service.daemon.one("monitor")):
        assert daemons.lasting_descriptors(pid) <= held[pid], (service.daemon.tree(), held)
    assert len(service.daemon.of_kind("reader")) == 1
