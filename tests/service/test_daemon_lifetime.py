"""Row I14 and the ends of things: runs die with their clients, jails with their daemon, and a new start finds what an old one left."""
import json
import os
import signal
import subprocess

import pytest

import left
from rules import LONG, MANY, SLEEP, audit_log
from support import brig, client, host, sessions, tiers
from support import daemon as daemons

FAMILY = "import os, time\nfor n in range(5):\n  if os.fork() == 0: os.setsid(); time.sleep(600)\nprint('up', flush=True); time.sleep(600)"


def sleeping(talk, token, program=SLEEP):
    run = talk.start(program, args=[token], limits=LONG)
    assert run.line() == "up"
    return run


@pytest.mark.parametrize("program", tiers.few([SLEEP, FAMILY], FAMILY), ids=["one process", "a family that left its session"])
def test_a_run_dies_with_its_connection(daemon, token, program):
    before = left.Snapshot()
    with daemon.connect() as talk:
        run = sleeping(talk, token, program)
        run.close()
    assert not left.wrong(before, token), left.wrong(before, token)
    assert daemon.run("print('next')").stdout == "next\n"


def test_every_run_of_a_connection_dies_with_it_and_no_other(many, token):
    with many.connect() as other:
        lasting = sleeping(other, token + "-lasts")
        with many.connect() as talk:
            for n in range(6):
                sleeping(talk, f"{token}-{n}").close()
        assert host.poll(lambda: not any(host.with_token(f"{token}-{n}") for n in range(6)))
        assert host.with_token(token + "-lasts") and lasting.ended is None
        other.ask("cancel", run=lasting.id, reason="cancelled")
        assert lasting.wait()["exit_reason"] == "cancelled"
        lasting.close()


@pytest.mark.nightly
def test_a_connection_that_closes_while_its_run_is_built_leaves_none(daemon, token):
    before = left.Snapshot()
    for _ in range(30):
        with daemon.connect() as talk:
            code = client.sealed(SLEEP)
            talk.begin("run", [code], args=[token], limits=LONG)
            os.close(code)
    assert not left.wrong(before, token), left.wrong(before, token)
    with daemon.connect() as talk:
        assert host.poll(lambda: not talk.ask("list")["runs"]), talk.ask("list")


def test_a_copy_of_the_connection_keeps_it_open(daemon, token):
    """The run's life is the connection's, not one descriptor's."""
    with daemon.connect() as talk:
        copy = talk.sock.dup()
        run = sleeping(talk, token)
        talk.sock.close()
        talk.sock = copy
        assert talk.ask("list")["runs"][0]["run"] == run.id
        talk.ask("cancel", run=run.id, reason="cancelled")
        assert run.wait()["exit_reason"] == "cancelled"
        run.close()


@pytest.mark.row("I14")
@pytest.mark.parametrize("number", tiers.few([signal.SIGTERM, signal.SIGINT], signal.SIGTERM), ids=["SIGTERM", "SIGINT"])
def test_a_daemon_that_is_stopped_takes_every_run_along(start_daemon, token, number):
    before = left.Snapshot()
    daemon = start_daemon()
    with daemon.connect() as talk:
        runs = [sleeping(talk, f"{token}-{n}", FAMILY) for n in range(3)]
        assert daemon.stop(number) == 0, daemon.words()
        assert not left.wrong(before, token), left.wrong(before, token)
        for run in runs:
            run.close()
    assert not daemon.path.exists() or not can_connect(daemon), "nobody listens, but the socket says so"


@pytest.mark.row("I14")
def test_clients_hear_of_the_stop(start_daemon, token):
    """Either the run's end, or the connection's; never silence, and never an error for a run that ran."""
    daemon = start_daemon()
    with daemon.connect() as talk:
        run = sleeping(talk, token)
        daemon.stop()
        try:
            assert run.wait()["exit_reason"] in ("cancelled", "client_gone")
        except client.Closed:
            pass
        run.close()


@pytest.mark.row("I14")
def test_each_run_that_a_restart_ends_has_one_line_in_the_audit_and_none_is_there_afterwards(start_daemon, token):
    with audit_log() as file:
        daemon = start_daemon({**MANY, "audit": {"file": str(file)}})
        with daemon.connect() as one, daemon.connect() as two:
            runs = [sleeping(one, f"{token}-1"), sleeping(two, f"{token}-2", FAMILY), two.start_command("sleep", "600", limits=LONG)]
            ids = {run.id for run in runs}
            ended = one.run("pass")
            daemon.restart()
            for run in runs:
                run.close()
        entries = [json.loads(line) for line in file.read_text().splitlines() if line]
        assert sorted(entry["run_id"] for entry in entries) == sorted([*ids, ended.id]), entries
        assert {entry["exit_reason"] for entry in entries if entry["run_id"] in ids} <= {"cancelled", "client_gone"}, entries
        with daemon.connect() as talk:
            assert talk.ask("list")["runs"] == [] and talk.ask("stats")["running"] == 0
            with pytest.raises(client.Refused) as refused:
                talk.ask("cancel", run=runs[0].id)
            assert refused.value.code == "not_found" and talk.run("print('anew')").stdout == "anew\n"


@pytest.mark.row("I14")
def test_a_run_that_is_not_over_when_the_service_ends_has_its_line_in_the_audit_too(start_daemon, token):
    """Its supervisor is stopped: nobody ends it before the service has waited long enough."""
    with audit_log() as file:
        daemon = start_daemon({**MANY, "audit": {"file": str(file)}})
        with daemon.connect() as talk:
            run, session = sleeping(talk, token), sessions.open_session(talk)
            call = session.start(SLEEP)
            assert call.line() == "up"
            stopped = daemon.roles()["supervisor"]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                assert daemon.stop() == 0, daemon.words()
            finally:
                for pid in stopped:
                    daemons.kill(pid, signal.SIGCONT)
            record = run.wait()
            run.close()
        entries = {entry["run_id"]: entry for entry in map(json.loads, file.read_text().splitlines())}
        assert {run.id, session.id, call.id} <= entries.keys(), entries
    for told in (record, entries[run.id], entries[session.id]):
        assert (told["exit_reason"], told["exit_code"], told["wall_ms"], told["memory_peak_bytes"]) == ("cancelled", None, None, None), told
    assert entries[run.id]["profile"] == "basic" and entries[run.id]["code_bytes"] > 0 and entries[call.id]["exit_reason"] == "cancelled"
    assert host.poll(lambda: not host.with_token(token)), "it is ended all the same"


@pytest.mark.nightly
@pytest.mark.row("I14")
def test_runs_that_are_asked_for_while_the_service_ends_are_each_answered_or_cut_off(start_daemon, token):
    """Some run, some are built, some wait in the socket: no answer is a fault of the service's, and nothing of any of them stays."""
    before = left.Snapshot()
    daemon = start_daemon(MANY)
    talks = [daemon.connect() for _ in range(4)]
    try:
        for n in range(6):
            for talk in talks:
                code = client.sealed(SLEEP)
                talk.begin("run", [code], args=[token], limits={"pids": 20 + n, **LONG}) # cells of their own: those that stand ready are of the profile's
                os.close(code)
        assert host.poll(lambda: host.with_token(token)), daemon.words()
        assert daemon.stop() == 0, daemon.words()
        said = [told(body) for talk in talks for body in bodies(talk)]
    finally:
        for talk in talks:
            talk.close()
    assert said and set(said) <= {"started", "cancelled", "client_gone", "unavailable", "busy"}, said
    assert not left.wrong(before, token), left.wrong(before, token)


def bodies(talk):
    """All that is said until the other end is gone."""
    while True:
        try:
            said = talk.next()
        except client.Closed:
            return
        client.close_all(said.fds)
        yield said.body


def told(body):
    return body["error"]["code"] if "error" in body else "started" if body["event"] == "started" else body["record"]["exit_reason"]


@pytest.mark.row("I14")
def test_brig_run_is_told_of_a_restart_and_the_next_one_is_served(start_daemon, token, tmp_path):
    daemon = start_daemon()
    environment = {"BRIG_SOCKET": str(daemon.path)}
    under_way = brig.start("--timeout", "300", program=SLEEP, args=[token], folder=tmp_path, env=environment, json_record=False)
    assert under_way.line() == "up"
    daemon.restart()
    ended = under_way.wait()
    assert ended.status == 143 and ended.stderr.startswith("brig: cancelled") and ended.stderr.count("\n") == 1 and not host.with_token(token), str(ended)
    assert brig.run(program="print('next')", folder=tmp_path, env=environment).out == "next\n"


def can_connect(daemon):
    try:
        daemon.connect().close()
        return True
    except OSError:
        return False


@pytest.mark.row("I14")
def test_a_daemon_that_was_killed_with_all_it_started_finds_what_is_left(start_daemon, token):
    before = left.Snapshot()
    daemon = start_daemon()
    with daemon.connect() as talk:
        for n in range(3):
            sleeping(talk, f"{token}-{n}", FAMILY).close()
        daemon.kill_all()
    daemon.start()
    assert daemon.run("print('next')").stdout == "next\n"
    assert not left.wrong(before, token), left.wrong(before, token)
    assert daemon.stop() == 0
    assert not left.wrong(before, token), left.wrong(before, token)


@pytest.mark.control("I14")
def test_control_what_is_killed_without_a_new_start_stays(start_daemon, token):
    """Groups at least: the kernel removes none by itself. Else the test above proves nothing."""
    before = host.abandoned_groups()
    daemon = start_daemon()
    with daemon.connect() as talk:
        for n in range(3):
            sleeping(talk, f"{token}-{n}").close()
        daemon.kill_all()
    stays = host.poll(lambda: host.abandoned_groups() - before)
    daemon.start() # the sweep
    daemon.stop()
    assert stays


@pytest.mark.row("I14")
def test_a_restart_waits_for_no_run_and_keeps_the_address(start_daemon, token):
    daemon = start_daemon()
    for n in range(3):
        with daemon.connect() as talk:
            sleeping(talk, token).close()
            daemon.restart()
        assert daemon.run(f"print({n})").stdout == f"{n}\n"


def test_a_second_daemon_does_not_take_the_address_of_a_living_one(start_daemon, tmp_path):
    first = start_daemon()
    second = subprocess.run(first.command(), env=brig.environment(), capture_output=True, text=True, timeout=host.HANG)
    assert second.returncode != 0 and str(first.path) in second.stderr, second
    assert first.run("print('first')").stdout == "first\n"


def test_two_daemons_share_no_host_id(start_daemon, token):
    one, two = start_daemon(), start_daemon()
    with one.connect() as first, two.connect() as second:
        runs = [sleeping(talk, token) for talk in (first, second, first, second)]
        uids = [uid for _, uid in host.with_token(token)]
        assert len(uids) == len(set(uids)) == 4, uids
        for run in runs:
            run.close()


@pytest.mark.row("I8")
def test_every_place_of_the_daemon_belongs_to_it_alone(daemon):
    """Nobody else may make, or exchange, what is in them."""
    places = [host.runtime_dir(), *(path for path in host.runtime_dir().iterdir() if path.is_dir()), host.store_dir()]
    for place in places:
        status = place.stat()
        assert status.st_uid in (0, uid_of(daemon.one("monitor"))) and not status.st_mode & 0o022, place
    zygotes = ("zygote", "python3") # each stands in a /workspace that nobody else has, as in a cell
    for pid in (pid for pid in [daemon.pid, *daemon.below()] if daemons.kind_of(pid) not in zygotes):
        cwd = os.stat(f"/proc/{pid}/cwd") if os.path.exists(f"/proc/{pid}/cwd") else None
        assert cwd is None or not cwd.st_mode & 0o002, f"{daemons.kind_of(pid)} stands in a place that everybody may write to"


def uid_of(pid):
    return int(next(line for line in host.read(f"/proc/{pid}/status").splitlines() if line.startswith("Uid:")).split()[2])


# --- how it is started ----------------------------------------------------------------------------------------------

def refused(*words, folder, config=None):
    """What it says; it must not become ready, and nobody must listen."""
    argv = [daemons.binary(), "--foreground", "--socket", folder / "brig.sock", *words]
    if config is not None:
        (folder / "brig.json").write_text(config)
        argv += ["--config", folder / "brig.json"]
    def ask():
        done = subprocess.run(argv, env=brig.environment(), capture_output=True, text=True, timeout=host.HANG)
        return done if daemons.NO_IDS not in done.stderr else None
    done = host.poll(ask, every=0.1)
    assert done and done.returncode != 0, done
    with pytest.raises(OSError): # it may have been made before the rules were read, by somebody who could not remove it then
        client.Client.at(folder / "brig.sock")
    return done.stderr


CONFIGS = {
    # what is wrong: the file, what must be named
    "no JSON": ('{"runs":', "brig.json"), "a list": ("[]", "object"), "an unknown key": ('{"run": 1}', '"run"|run'), "a key twice": ('{"runs":1,"runs":2}', "(?i)duplicate"),
    "a number as text": ('{"runs":"many"}', "runs"), "a negative number": ('{"runs":-1}', "runs"), "an unknown size": ('{"memory_bytes":"8X"}', "memory_bytes"),
    "a row for nobody": ('{"access":[{"profiles":["basic"]}]}', "access"), "a row for two": ('{"access":[{"uid":1,"user":"root"}]}', "access"),
    "an unknown user": ('{"access":[{"user":"no-such-user"}]}', "no-such-user"), "an unknown group": ('{"access":[{"group":"no-such-group"}]}', "no-such-group"),
    "an unknown key in a row": ('{"access":[{"uid":0,"root":true}]}', "root"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_configuration_that_makes_no_sense_is_refused_by_name(built, tmp_path, what):
    import re
    text, named = CONFIGS[what]
    said = refused(folder=tmp_path, config=text)
    assert re.search(named, said) and str(tmp_path / "brig.json") in said and len(said.splitlines()) == 1, said


@pytest.mark.control("I8")
def test_a_configuration_that_others_may_write_is_refused(built, tmp_path):
    (tmp_path / "brig.json").write_text("{}")
    (tmp_path / "brig.json").chmod(0o666)
    assert "brig.json" in refused("--config", tmp_path / "brig.json", folder=tmp_path)


def test_a_configuration_that_is_named_and_missing_is_refused(built, tmp_path):
    assert "other.json" in refused("--config", tmp_path / "other.json", folder=tmp_path)


@pytest.mark.parametrize("name", ["brigd", "monitor"])
def test_started_by_hand_with_nothing_it_ends_with_a_sentence(built, name):
    """Row I9's spirit: an empty name, a hostile environment, no descriptor where one is expected."""
    env = {"LD_PRELOAD": "/x", "BRIG_STORE": "relative", "NOTIFY_SOCKET": "@x", "LISTEN_FDS": "99999", "LISTEN_PID": "1"}
    done = subprocess.run(["/bin/bash", "-c", 'exec -a "" "$0" <&- >&- 2>&-', daemons.binary(name)], env=env, timeout=host.HANG)
    assert done.returncode in (1, 2, 78), done
