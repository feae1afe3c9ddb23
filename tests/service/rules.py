"""The users of a daemon, their requests, and what it allows them."""
import os

from support import client, daemon, host

ANN, BOB, EVE = host.own_id(5), host.own_id(6), host.own_id(7)
SLEEP = "import time; print('up', flush=True); time.sleep(600)"
LONG = {"wall_ms": 300000} # as much as profiles allow: a program that sleeps with it outlives every wait of a test
WAIT = 600_000 # ms: longer than every wait of a test
MANY = {
    # for tests that are not about quotas
    "runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000}],
}


audit_log = daemon.audit_log


def rest(service):
    """Until nothing of an earlier test runs or waits."""
    with service.connect() as root:
        assert host.poll(lambda: not root.ask("list")["runs"] and not root.ask("stats")["waiting"]), service.tree()


def sleeping(talk, **limits):
    run = talk.start(SLEEP, limits={**LONG, **limits})
    assert run.line() == "up"
    return run


def begin(talk, program="print(1)", **keys):
    """(its tag, the event waiting)"""
    fd = client.sealed(program)
    tag = talk.begin("run", [fd], **{"wait_ms": WAIT, **keys})
    os.close(fd)
    return tag, talk.until(lambda body: body.get("tag") == tag).body


def end(talk, run):
    talk.ask("cancel", run=run.id, reason="cancelled")
    assert run.wait()["exit_reason"] == "cancelled"
    run.close()
