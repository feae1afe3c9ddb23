"""What one user may have of sessions, as brig.json says it: how many, of how many contexts, and calls at a rate."""
import json
import os

import pytest

from rules import ANN, BOB, audit_log
from support import client, host
from support import daemon as daemons
from support.sessions import open_session

LARGEST = 8 << 20 # bytes of a program


def rules(**quota):
    return {"access": [{"uid": ANN, "profiles": ["basic"], **quota}, {"uid": BOB, "profiles": ["basic"]}, {"uid": 0, "profiles": ["basic"]}]}


@pytest.fixture(scope="module")
def service(built, no_stock):
    """Quotas of Ann's alone; a rate that a test sets is another configuration, and a reload."""
    with daemons.Daemon(rules(sessions=2, contexts=2)) as made:
        made.path.chmod(0o666)
        yield made


@pytest.fixture
def ann(service):
    with service.connect() as root:
        host.poll(lambda: not root.ask("list")["runs"]) # those of another test end with its connection, but not at once
    with service.connect_as(ANN) as made:
        yield made


def why_not(asked):
    with pytest.raises(client.Refused) as refused:
        asked()
    return refused.value


def test_a_session_too_many_is_busy_and_says_whose_quota_it_is(service, ann):
    first, second = open_session(ann), open_session(ann)
    no = why_not(lambda: open_session(ann))
    assert no.code == "busy" and no.error["retry_after_ms"] > 0, no
    assert no.error["message"].startswith("2 sessions at once: your quota is used up"), no
    assert ann.command("true").reason == "exited", "a run is no session"
    with service.connect_as(BOB) as bob:
        assert open_session(bob).value("1") == 1, "another user has a quota of their own"
    first.close()
    assert open_session(ann).value("2") == 2 and second.value("3") == 3


def test_a_session_that_may_wait_opens_when_another_one_is_closed(ann):
    first, _ = open_session(ann), open_session(ann)
    tag = ann.begin("open", profile="basic", wait_ms=60000)
    assert "2 sessions at once" in ann.until(lambda body: body.get("tag") == tag).body["why"]
    first.close()
    assert ann.until(lambda body: body.get("tag") == tag and body.get("event") != "waiting").body["event"] == "opened"


def test_a_context_too_many_is_denied_until_one_of_them_has_gone(ann):
    session = open_session(ann)
    assert session.value("1", context="a") == 1 and session.value("2", context="b") == 2
    no = why_not(lambda: session.run("3", context="c"))
    assert (no.code, no.field) == ("denied", "context") and "at most 2 contexts" in no.error["message"], no
    session.run("import os; os._exit(0)", context="a")
    assert session.value("3", context="c") == 3
    assert why_not(lambda: session.run("1", context="a")).code == "denied"
    assert session.value("2", context="b") == 2
    session.close()


def test_hello_tells_the_quota_of_sessions(ann):
    quota = ann.ask("hello")["quota"]
    assert (quota["sessions"], quota["contexts"]) == (2, 2)


def test_a_context_that_is_busy_refuses_a_large_program_before_it_is_read(service, ann):
    """It would be refused for what it is: not sealed. To read eight million bytes takes the server from all others."""
    session = open_session(ann)
    running = session.start("while True: pass")
    fd = os.memfd_create("code", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, LARGEST + 1)
        ask = lambda: ann.ask("run", [fd], session=session.id) # noqa: E731
        no = why_not(ask)
        assert (no.code, no.field) == ("busy", "context") and running.id in no.error["message"], no
        ann.ask("cancel", run=running.id)
        assert running.finish().reason == "cancelled"
        assert why_not(ask).code in ("bad_descriptors", "bad_field")
    finally:
        os.close(fd)
    session.close()


def test_calls_in_a_session_are_counted_with_the_runs_of_a_minute(service):
    """The last one of this service: what is used up is so for a while, whatever a reload says."""
    service.configure(rules(runs_per_minute=5))
    with service.connect() as root:
        root.ask("reload")
    with service.connect_as(ANN) as ann:
        session = open_session(ann)
        assert [session.value("1"), session.command("true").status, session.value("2")] == [1, 0, 2]
        assert ann.command("true").reason == "exited"
        for asked in lambda: session.run("3"), lambda: session.command("true"), lambda: ann.command("true"):
            no = why_not(asked)
            assert no.code == "busy" and 0 < no.error["retry_after_ms"] <= 60001 and "5 runs and calls a minute" in no.error["message"], no
        assert session.row()["calls"] == 3
        session.close()


def test_a_call_that_is_refused_for_the_rate_is_in_the_audit(built):
    access = [{"uid": 0, "profiles": ["basic"], "runs_per_minute": 2}]
    with audit_log() as file, daemons.Daemon({"access": access, "audit": {"file": str(file)}}) as daemon, daemon.connect() as talk:
        session = open_session(talk)
        assert session.value("1") == 1 and why_not(lambda: session.run("2")).code == "busy"
        session.close()
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["op"], line["exit_reason"]) for line in lines] == [("run", "exited"), ("run", "busy"), ("open", "exited")], lines


def test_where_the_host_has_little_memory_the_session_that_is_idle_for_longest_ends_first_and_says_why(built):
    """Little: less than any host has, so that all are closed that are idle."""
    with daemons.Daemon({}) as daemon, daemon.connect() as talk:
        used, longest, busy = open_session(talk, name="used"), open_session(talk, name="longest"), open_session(talk, name="busy")
        call = busy.start_command("cat", stdin=True)
        assert used.value("1") == 1
        daemon.configure({"spare_memory_bytes": "1024G"})
        talk.ask("reload")
        ended = talk.until(lambda body: body.get("event") == "ended").body
        assert ended["run"] == longest.id, ended
        assert used.ended()["exit_reason"] == "exited"
        no = why_not(lambda: longest.run("1"))
        assert no.code == "not_found" and "the host had less than 1T of memory available, and it was idle for longest" in no.error["message"], no
        assert busy.row(), "a call is under way"
        assert call.finish().status == 0 and busy.ended()["exit_reason"] == "exited"
