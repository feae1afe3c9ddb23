"""Sessions by the protocol: what a client hears of its calls, whatever becomes of what executes them."""
import json
import os
import signal

import pytest

from rules import ANN, BOB, SLEEP
from support import client, first_clients, host, tiers, warm, warm_load
from support import daemon as daemons
from support.sessions import open_session

WAYS = tiers.few(["ready", "demand", "private"], "ready")
USERS = {"runs": 64, "access": [{"uid": uid, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000} for uid in (0, ANN, BOB)]}
KILLED = "import os; os.kill(os.getpid(), 9)"


class Server:
    """A service, or a private brigd for each connection."""

    def __init__(self, service):
        self.service, self.opened = service, []

    def connect(self):
        self.opened.append(self.service.connect() if self.service else daemons.Private())
        return self.opened[-1] if self.service else self.opened[-1].connect()

    def close(self):
        for one in self.opened:
            one.close()
        self.opened.clear()


@pytest.fixture(scope="module", params=WAYS)
def way(request, built, no_stock):
    """None for a private brigd."""
    if request.param == "private":
        yield None
        return
    scratch, profiles = warm_load.only_basic(request.param)
    with scratch, daemons.Daemon(USERS, env={"BRIG_PRESETS": str(profiles)}) as made:
        made.settle()
        with made.connect() as talk:
            warm.wait(talk)
        yield made


@pytest.fixture
def server(way):
    made = Server(way)
    yield made
    made.close()
    assert way is None or way.alive(), way.words()


@pytest.fixture
def service(way):
    """Where more than one connection is needed."""
    if way is None:
        pytest.skip("a private brigd has one connection")
    return way


@pytest.fixture
def talk(server):
    return server.connect()


@pytest.fixture
def session(talk):
    return open_session(talk)


def why_not(asked):
    """The error in the place of what was asked for."""
    with pytest.raises(client.Refused) as refused:
        asked()
    return refused.value


# --- life -----------------------------------------------------------------------------------------------------------------

def test_a_session_may_have_less_or_more_time_than_its_profile_says(talk):
    opened = open_session(talk, limits={"idle_ms": 12000, "lifetime_ms": 80000})
    assert (opened.opened["idle_ms"], opened.opened["lifetime_ms"]) == (12000, 80000)
    assert opened.value("1 + 1") == 2 and opened.close()["exit_reason"] == "exited"
    assert open_session(talk, limits={"idle_ms": 86400000, "lifetime_ms": 86400000}).value("1 + 1") == 2


def test_the_end_of_a_session_is_moved_to_a_later_and_to_an_earlier_time(talk, server):
    short = round(1500 * host.SLOWER)
    kept, ended = (open_session(talk, limits={"lifetime_ms": short}) for _ in range(2))
    said = kept.renew(600000)
    assert said["session"] == kept.id and 600000 <= said["lifetime_ms"] <= 600000 + host.HANG * 1000
    assert 590000 < kept.row()["lifetime_left_ms"] <= 600000
    call = kept.start("import time; time.sleep(600)", limits={"wall_ms": 300000})
    assert ended.ended()["session_end"] == f"its lifetime of {short / 1000:.3g} s was over" # and so was the first lifetime of the other one
    assert kept.value("1 + 1", context="other") == 2
    kept.renew(1000)
    assert call.wait()["exit_reason"] == "cancelled" and "its lifetime of" in kept.ended()["session_end"]
    call.close()
    assert why_not(lambda: kept.renew(1000)).code == "not_found"


def test_no_renewal_lets_a_session_live_for_longer_than_the_ceiling_of_its_profile(talk):
    """Nor one after the other: the ceiling counts from its opening."""
    session = open_session(talk)
    for asked in 86400001, 2592000000:
        error = why_not(lambda asked=asked: session.renew(asked))
        assert (error.code, error.field) == ("above_ceiling", "lifetime_ms") and "a session lives for at most 86400 s" in error.error["message"], error
    before = session.row()["lifetime_left_ms"]
    for asked in 999, 0, -1, -86400000, 2592000001, 2 ** 63 - 1, 1e300, 1000.5, "1000", None, [1000], True:
        error = why_not(lambda asked=asked: session.renew(asked))
        assert (error.code, error.field) == ("bad_field", "lifetime_ms"), (asked, error)
    for asked in 2 ** 63, 2 ** 64 + 1000: # no numbers of its JSON: the answer has no tag
        talk.send({"op": "renew", "session": session.id, "lifetime_ms": asked})
        assert talk.until(lambda body: "error" in body).body["error"]["code"] == "bad_message"
    assert why_not(lambda: talk.ask("renew", session=session.id)).field == "lifetime_ms"
    assert session.row()["lifetime_left_ms"] <= before and session.renew(80000000)["lifetime_ms"] >= 80000000
    error = why_not(lambda: session.renew(86400000))
    assert error.code == "above_ceiling" and session.renew(80000000)["lifetime_ms"] < 86400000, error


# --- clients of the first release -----------------------------------------------------------------------------------------

def test_a_client_without_a_version_gets_no_key_that_clients_of_the_first_release_refuse(service, monkeypatch):
    """Each answer of every test is compared with theirs; here each kind of answer comes, but for waiting, and the reports, which no other test compares."""
    heard, check = set(), first_clients.check
    monkeypatch.setattr(first_clients, "check", lambda answer: heard.add(check(answer)))
    with service.connect() as talk:
        session = open_session(talk, terminal=True)
        for told in (*(one.run(program, mode="report") for one in (talk, session) for program in ("open('made', 'w').write('x')", "open('missing')")),):
            first_clients.check_report("run", json.loads(told.result) if isinstance(told, client.Ended) else told.report)
        first_clients.check_report("check", json.loads(talk.run("import os", mode="check").result))
        assert talk.run("import time; time.sleep(60)", limits={"wall_ms": 100}).reason == "timeout_wall"
        shell = session.start_command("cat", terminal=True)
        for op in ("resize", "interrupt"):
            talk.ask(op, run=shell.id, **({"rows": 9, "columns": 9} if op == "resize" else {}))
        run = talk.start(SLEEP, mode="report", tools=True)
        for op, keys in (("tools", {"run": run.id}), *((op, {}) for op in ("hello", "list", "stats", "metrics", "explain", "reload")), ("cancel", {"run": run.id})):
            talk.ask(op, **keys)
        assert run.finish().reason == "cancelled" and session.put({"a": b"1"}) == {}
        session.restart()
        session.close()
        assert why_not(lambda: talk.ask("close", session=session.id)).code == "not_found"
    shapes = first_clients.shapes()
    assert heard == {*shapes["reply"], *shapes["event"], "error"} - {"waiting"}


# --- the surroundings of a call -------------------------------------------------------------------------------------------

SURROUNDINGS = "import os, subprocess; [os.getcwd(), os.environ.get('A'), os.environ.get('HOME'), subprocess.run(['sh', '-c', 'pwd; echo $A'], capture_output=True, text=True).stdout]"


def test_a_call_has_variables_and_a_directory_of_its_own_and_the_next_one_has_those_of_before(session):
    before = session.value(SURROUNDINGS)
    session.value("os.makedirs('below/deeper'); open('below/deeper/only_here.py', 'w').write('X = 7')")
    assert session.value(SURROUNDINGS, env=["A=1=2", "HOME=/tmp", "A=\u00e4"], cwd="below") == ["/workspace/below", "\u00e4", "/tmp", "/workspace/below\n\u00e4\n"]
    assert session.value("import only_here; only_here.X", cwd="/workspace/below/deeper") == 7
    session.value("os.mkdir('empty')")
    gone = session.run("os.environ.pop('A'); os.environ['HOME'] = 'x'; os.chdir('/tmp'); os.rmdir(os.environ['B']); raise SystemExit(3)",
                       env=["A=1", "HOME=y", "B=/workspace/empty"], cwd="/tmp")
    assert gone.status == 3, gone
    assert session.value(SURROUNDINGS) == before and session.value("'B' in os.environ") is False
    stopped = session.run("import time; time.sleep(600)", env=["A=1"], cwd="/tmp", limits={"wall_ms": 200})
    assert stopped.reason == "timeout_wall" and stopped.state == "kept" and session.value(SURROUNDINGS) == before, stopped


def test_a_directory_that_a_call_leaves_by_removing_it_is_no_trap(session):
    assert session.value("import os; os.mkdir('gone'); os.chdir('gone'); os.getcwd()") == "/workspace/gone"
    assert session.value("os.rmdir('/workspace/gone'); os.getcwd()", cwd="/tmp") == "/tmp"
    assert session.value("os.getcwd()") == "/workspace"


@pytest.mark.parametrize("cwd, why", [("none", "No such file or directory"), ("/etc/passwd", "Not a directory"), ("closed", "Permission denied"), ("x" * 300, "File name too long")])
def test_a_call_in_a_directory_that_cannot_be_entered_does_not_start_and_costs_nothing(session, cwd, why):
    session.value("import os; os.makedirs('closed', 0o600, exist_ok=True); kept = 1")
    with pytest.raises(client.NotStarted) as failed:
        session.run("open('/workspace/ran', 'w')", cwd=cwd)
    assert failed.value.record["error"]["message"] == f"the directory in which the call starts: {why}" and failed.value.exec_error is None, failed.value
    assert session.value("[kept, os.path.exists('ran'), os.getcwd()]") == [1, False, "/workspace"]


def test_variables_of_a_call_are_checked_and_may_take_a_whole_message(session):
    for env, field in (["A"], "env[0]"), (["A=1", "=2"], "env[1]"), (["A=\n"], "env[0]"):
        error = why_not(lambda env=env: session.run("1", env=env))
        assert (error.code, error.field) == ("bad_field", field), error
    assert session.value("import os; [len(os.environ['A']), os.environ['B']]", env=["A=" + "a" * 60000, "B=\"\\"]) == [60000, "\"\\"]
    assert session.value("'A' in os.environ") is False


# --- calls that end early -------------------------------------------------------------------------------------------------

def test_why_a_session_has_ended_is_in_its_record_and_in_the_denial_of_what_comes_later(session, talk):
    talk.ask("hello", version=1)
    talk.ask("close", session=session.id)
    closing = why_not(lambda: talk.ask("close", session=session.id))
    record = session.ended()
    gone = why_not(lambda: talk.ask("close", session=session.id))
    assert record["session_end"] == closing.error["reason"] == gone.error["reason"] == "its client closed it", (record, closing, gone)


def test_to_cancel_a_call_whose_end_is_still_looked_into_does_not_end_the_session(session, talk):
    """A process that was killed may have been killed for memory: its end is held back until that is known."""
    for _ in range(3):
        run = session.start(KILLED)
        host.poll(lambda: not session.row()["contexts"], seconds=0.02, every=0) # it is known that it has gone
        why = []
        try:
            talk.ask("cancel", run=run.id)
        except client.Refused as e:
            why = [e.code]
        assert run.finish().reason in ("signaled", "cancelled") and why in ([], ["not_found"])
    assert session.value("2 + 2") == 4, "two seconds later it would be gone"


def test_a_command_that_is_cancelled_as_soon_as_it_is_asked_for_ends_alone(session, talk):
    for _ in range(20):
        tag = talk.begin("exec", argv=["sleep", "600"], session=session.id)
        call = host.poll(lambda: session.row()["running"])[0]
        talk.ask("cancel", run=call)
        ended = talk.until(lambda body: body.get("tag") == tag and body.get("event") == "ended").body["record"]
        assert ended["exit_reason"] == "cancelled" and ended["session"]["state"] == ("new" if session.row()["calls"] == 1 else "kept"), ended
    assert session.shell("echo still here").out == "still here\n"


def test_who_asks_for_commands_and_is_gone_at_once_ends_them_and_not_the_session(service, token):
    with service.connect() as talk:
        opened = open_session(talk, stays=True)
        for _ in range(20):
            with service.connect() as other:
                opened.on(other).talk.begin("exec", argv=["sh", "-c", f"sleep 600; : {token}"], session=opened.id)
        assert host.poll(lambda: not opened.row()["running"]) and opened.row()["calls"] > 0
        assert host.poll(lambda: not host.with_token(token)), host.with_token(token)
        assert opened.value("3 + 3") == 6
        opened.close()


def test_a_policy_that_refuses_what_the_server_can_do_without_costs_nothing(built, no_stock):
    scratch, profiles = warm_load.only_basic("demand", policy_extend=["deny sched_yield"])
    with scratch, daemons.Daemon(USERS, env={"BRIG_PRESETS": str(profiles)}) as made:
        made.settle()
        with made.connect() as talk:
            warm.wait(talk)
            opened = open_session(talk)
            assert opened.value("import os\ntry:\n    os.sched_yield()\nexcept OSError as error:\n    found = error.errno\nfound") == 1
            for _ in range(3):
                assert opened.shell("echo here").out == "here\n" and opened.value("1 + 1") == 2
            assert opened.close()["exit_reason"] == "exited"


def test_the_signal_of_a_cpu_limit_alone_is_no_limit(session):
    """A program can send it to itself: the record says what the time says."""
    asked = "import os, signal; signal.signal(signal.SIGXCPU, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGXCPU)"
    assert session.run(asked).reason == "signaled"
    spent = session.run("import signal; signal.signal(signal.SIGXCPU, signal.SIG_DFL)\nwhile True: pass", limits={"cpu_ms": 1000, "wall_ms": 30000})
    assert spent.reason == "timeout_cpu"



# --- output ---------------------------------------------------------------------------------------------------------------

def test_what_c_code_prints_is_output_of_the_call_that_did_it(session):
    """The C library keeps it until its buffer is full."""
    answers = session.run("import ctypes\nC = ctypes.CDLL(None)\nprint('one'); C.printf(b'two\\n')"), session.run("C.puts(b'three'); 1 / 0"), session.run("print('four')")
    assert [answer.out for answer in answers] == ["one\ntwo\n", "three\n", "four\n"], answers


# --- contexts that end ----------------------------------------------------------------------------------------------------

def test_an_interpreter_that_was_started_ahead_and_is_killed_before_its_first_call_costs_nothing(session):
    """A command has the same rights as it. Process 1 is init, 2 the session server."""
    assert session.row()["contexts"] == [] and session.shell("kill -9 3 && while kill -0 3 2>/dev/null; do :; done").status == 0, "there was one"
    answer = session.run("x = 1\nx")
    assert (answer.state, answer.report["result"]) == ("new", 1), answer
    assert session.value("x + 1") == 2


def test_a_call_right_behind_a_restart_has_the_new_interpreter(session):
    for n in range(10):
        session.run("x = 1")
        session.restart()
        answer = session.run("'x' in globals()")
        assert (answer.state, answer.report["result"]) == ("reset", False), (n, answer)


def test_an_interpreter_that_ends_by_itself_between_two_calls_costs_at_most_the_next_one(session):
    """At every moment: also when the next call is on its way to it."""
    dying = "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(%d / 10000), os._exit(0))).start()"
    for n in range(60):
        answers = session.run(dying % (n % 20)), session.run("1")
        assert [answer.reason for answer in answers] == ["exited"] * 2, (n, answers)
    session.restart()
    assert session.value("5") == 5


LEAVES = "import os\npid = int(os.popen('sleep 600 > /dev/null 2>&1 & echo $!').read())"
IS_THERE = "any(line.startswith('State:') and 'Z' not in line for line in open(f'/proc/{pid}/status')) if os.path.exists(f'/proc/{pid}') else False"


@pytest.mark.parametrize("end", ["restart", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_what_an_interpreter_has_left_running_ends_with_it_and_not_with_another(session, end):
    """Its parent has ended: the session server is the parent of all of them."""
    for context in "one", "two":
        session.run(LEAVES, context=context)
    pid = session.value("pid", context="one")
    if end == "restart":
        session.restart("one")
    else:
        session.run(end, context="one")
    assert session.value(IS_THERE, context="two") is True
    assert session.value(f"import os; pid = {pid}; {IS_THERE}", context="one") is False
