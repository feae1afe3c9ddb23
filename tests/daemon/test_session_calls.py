"""Sessions by the protocol: what a client hears of its calls, whatever becomes of what executes them."""
import os
import signal

import pytest

from rules import ANN, BOB, SLEEP
from support import client, host, warm, warm_load
from support import daemon as daemons
from support.sessions import open_session

WAYS = ["ready", "demand", "private"]
USERS = {"runs": 64, "access": [{"uid": uid, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000} for uid in (0, ANN, BOB)]}
KILLED = "import os; os.kill(os.getpid(), 9)"


class Door:
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
def door(way):
    made = Door(way)
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
def talk(door):
    return door.connect()


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


# --- calls that end early -------------------------------------------------------------------------------------------------

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
