"""Many sessions whose processes are killed at random: no call is silent, none has another's answer, and afterwards nothing holds more than before.

BRIG_SESSION_SEED repeats a sequence, BRIG_SESSIONS changes its length.
"""
import collections
import os
import random
import subprocess
import threading
import time

import pytest

import left
from rules import MANY
from support import brig as tool
from support import client, host, tiers, warm_load
from support import daemon as daemons
from support.sessions import LIST, open_session

CLIENTS = 4
KINDS = "server", "context", "command", "beside", "files helper", "supervisor", "zygote", "forker", "init", "client"
RESET = "brig: context main has a new interpreter: the variables of earlier calls are lost\n"
MAY_END = {"signaled", "cancelled", "setup_failed"} # a call whose process, or session, was killed: no limit's name
MAY_REFUSE = {"not_found", "busy", "unavailable", "internal"}


# --- what can be killed -------------------------------------------------------------------------------------------------

def is_leader(pid):
    """Of a session of its own: an interpreter is, what else the session server has forked is not."""
    stat = host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(stat) and int(stat[3]) == pid


def kinds_below(daemon):
    """{kind: pids} of what sessions are made of; a ready fork is a session server that nothing was asked of yet."""
    found, family = collections.defaultdict(list), host.families()
    for kind in ("supervisor", "zygote", "forker", "init"):
        found[kind] = daemon.of_kind(kind)
    for supervisor in found["supervisor"]:
        for server in family.get(supervisor, []):
            if host.number_inside(server) in (None, 1):
                continue
            found["server"].append(server)
            for child in family.get(server, []):
                below = family.get(child, [])
                found["context" if is_leader(child) else "beside" if below else "files helper"].append(child)
                found["command"] += [] if is_leader(child) else below
    return found


class Killer(threading.Thread):
    """Kills one of each kind in turn, at random moments, until `stop`."""

    def __init__(self, daemon, clients, seed, stop):
        super().__init__(daemon=True)
        self.service, self.clients, self.dice, self.stop_, self.hit, self.wrong = daemon, clients, random.Random(seed), stop, collections.Counter(), []

    def those(self, kind):
        return [pid for one in self.clients for pid in one.programs()] if kind == "client" else kinds_below(self.service)[kind]

    def run(self):
        try:
            while not self.stop_.is_set():
                for kind in KINDS:
                    if self.stop_.wait(self.dice.uniform(0, 0.1)): # the random moment
                        return
                    if found := host.poll(lambda kind=kind: self.stop_.is_set() or self.those(kind), seconds=1) or []:
                        self.hit[kind] += found is not True and daemons.kill(self.dice.choice(found))
        except BaseException as e:
            self.wrong.append(f"the killer: {e!r}")


# --- what is asked of them ----------------------------------------------------------------------------------------------

class Asker(threading.Thread):
    """Opens one session after the other, and asks this and that of each."""

    def __init__(self, daemon, name, count, seed):
        super().__init__(daemon=True)
        self.service, self.name_, self.count, self.dice = daemon, name, count, random.Random(seed)
        self.ends, self.wrong, self.n, self.program = collections.Counter(), [], 0, None

    def programs(self):
        one = self.program
        return [one.pid] if one and one.poll() is None else []

    def note(self, what, said, is_right, answer=""):
        self.ends[f"{what}: {said}"] += 1
        self.wrong += [] if is_right else [f"{self.name_}-{self.n}: {what}: {said} {answer}"]

    def told(self, what, asked):
        """A call ends in its answer, in a record that says it was killed, or in an error that says why."""
        try:
            asked()
        except client.Refused as e:
            self.note(what, f"refused, {e.code}", e.code in MAY_REFUSE and e.error["message"])
        except client.NotStarted as e:
            self.note(what, "not started", e.record["exit_reason"] in MAY_END and (e.record["error"] or e.record["signal"] or e.record["exit_reason"] == "cancelled"), e)

    def judge(self, what, answer, printed):
        record = answer.record
        if record["exit_reason"] == "exited":
            return self.note(what, "exited", (answer.stdout, answer.stderr, record["exit_code"]) == (printed, "", 0) or (what, record["session"]["state"]) == ("call", "lost"), answer)
        return self.note(what, record["exit_reason"], record["exit_reason"] in MAY_END and answer.stdout in ("", printed), answer)

    def call(self, session):
        own = f"{self.name_}-{self.n}-{self.dice.random()}"
        code = f"import time\nprint({own!r}, flush=True)\ntime.sleep({self.dice.uniform(0, 0.03)})"
        self.judge("call", session.start(code, context=self.dice.choice(["main", "other"])).finish(), own + "\n")

    def command(self, session):
        own = f"{self.name_}-{self.n}"
        self.judge("command", session.start_command("sh", "-c", f"echo {own}; sleep {self.dice.uniform(0, 0.03)}").finish(), own + "\n")

    def files(self, session):
        try:
            with session.files() as moved:
                time.sleep(self.dice.uniform(0, 0.03)) # a moment in which its helper can be killed
                found, kept_out = moved.exchange({"f": b"1"}, [(LIST, "f")])
            self.note("files", "moved", (found, kept_out) == ({b"f": 1}, {}))
        except (client.Closed, ConnectionError, BrokenPipeError):
            self.note("files", "closed", True)

    def by_program(self, session):
        """brig, which may be killed, and takes its call along, and nothing else."""
        words = [tool.binary(), "session", "run", session.id, "-c", "import time; time.sleep(0.03); 7"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tool.environment({"BRIG_SOCKET": str(self.service.path)})) as one:
            self.program = one
            out, err = one.communicate(timeout=host.HANG)
        self.program = None
        status = one.returncode
        self.note("program", "killed" if status == -9 else f"status {status}", status == -9 or ((status, out) == (0, "7\n") and err in ("", RESET)) or (status != 0 and err), (out, err))

    def one(self):
        with self.service.connect() as talk:
            stays = self.dice.random() < 0.5
            session = open_session(talk, stays=stays)
            for work in self.dice.choices([self.call, self.command, self.files, self.by_program], [4, 2, 2, 1], k=4):
                self.told(work.__name__, lambda work=work: work(session))
            if stays or self.dice.random() < 0.5: # else it ends with its connection
                talk.ask("close", session=session.id)
                self.note("session", session.ended()["exit_reason"], True)

    def one_told(self):
        self.n += 1
        self.told("session", self.one)

    def run(self):
        try:
            for _ in range(self.count):
                self.one_told()
        except BaseException as e: # silence: a wait that is over, or a connection that the server has closed
            self.wrong.append(f"{self.name_}-{self.n}: {e!r}")


def ask_for(daemon, sessions, seed, kills):
    """(how all ended, what was hit, what is wrong)"""
    stop, askers = threading.Event(), [Asker(daemon, f"client{n}", sessions // CLIENTS, seed * 1000 + n) for n in range(CLIENTS)]
    killer = Killer(daemon, askers, seed, stop)
    for one in [*askers, *([killer] if kills else [])]:
        one.start()
    ends, wrong = warm_load.together(askers, 800)
    stop.set()
    if kills:
        killer.join(host.HANG)
    return ends, killer.hit, wrong + killer.wrong


@pytest.fixture
def service(only_basic, start_daemon):
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(only_basic)})
    daemon.settle()
    assert warm_load.is_warm_again(daemon), daemon.words()
    return daemon


@pytest.mark.row("J10")
@pytest.mark.diagonal("only_basic")
@pytest.mark.parametrize("sessions", tiers.amounts(20, 1000, "BRIG_SESSIONS", "long"))
def test_sessions_whose_processes_are_killed_at_random_leave_nothing_and_no_call_is_silent(service, sessions):
    seed = int(os.environ.get("BRIG_SESSION_SEED", time.time_ns() % 1000000))
    roles = service.roles()
    _, _, wrong = ask_for(service, min(sessions, 100), seed, kills=False) # what is done for the first time
    assert not wrong, wrong
    service.rest()
    before = warm_load.held(service)
    ends, hit, wrong = ask_for(service, sessions, seed, kills=True)
    said = f"seed {seed}: {dict(hit)}\n" + "\n".join(f"{number:6} {end}" for end, number in sorted(ends.items()))
    print(said)
    assert not wrong, said + "\n" + "\n".join(wrong[:20])
    assert service.alive() and service.roles()["server"] == roles["server"] and service.roles()["monitor"] == roles["monitor"], service.words()
    with service.connect() as talk:
        assert host.poll(lambda: not talk.ask("list")["sessions"]), talk.ask("list")
        assert host.poll(lambda: talk.ask("stats")["running"] == 0)
    assert warm_load.is_warm_again(service), service.words()
    more = warm_load.grown_since(service, before)
    assert not more, f"{more}\n{said}"


@pytest.mark.control("J10")
@pytest.mark.diagonal("only_basic")
def test_control_sessions_that_stay_open_are_seen(service):
    """By what looks for leaks."""
    service.rest()
    before = warm_load.held(service)
    with service.connect() as talk:
        opened = [open_session(talk) for _ in range(16)]
        assert any("processes" in what for what in warm_load.grown(before, warm_load.held(service)))
        for session in opened:
            session.close()
    assert not warm_load.grown_since(service, before)
