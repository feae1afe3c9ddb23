"""A daemon that most tests share, and daemons of their own for those that spoil one."""
import os
import resource
import secrets
import sys

import pytest

from support import daemon as daemons
from support import host, warm_load

sys.path.insert(0, os.path.dirname(__file__)) # for what the tests of this folder share

from rules import ANN, BOB, MANY


@pytest.fixture(scope="session")
def built(jail):
    """What a daemon needs of this host."""
    lack = daemons.lacks_binaries("brigd", "monitor")
    if lack:
        pytest.fail(lack)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20000)), hard))


class Stock:
    """One daemon that is kept from test to test: a host has ids for four services, and others may run theirs beside these tests."""

    def __init__(self):
        self.daemon, self.config = None, None

    def get(self, config=None):
        """The one that is there if it has this configuration, else another."""
        if self.daemon is None or self.config != config or not self.daemon.alive():
            self.close()
            self.daemon, self.config = daemons.Daemon(config), config
            self.daemon.settle()
        return self.daemon

    def close(self):
        if self.daemon:
            self.daemon.close()
        self.daemon = None


@pytest.fixture(scope="session")
def stock(built):
    made = Stock()
    yield made
    made.close()


@pytest.fixture(scope="module")
def no_stock(stock):
    """For a file that keeps a daemon of its own."""
    stock.close()


@pytest.fixture
def shared(stock):
    """A daemon without a configuration; nobody may end it."""
    return stock.get()


@pytest.fixture
def daemon(shared):
    """The shared one, which must be alive afterwards, the very same processes."""
    before = shared.roles()
    yield shared
    assert shared.alive(), f"the daemon ended with status {shared.process.returncode}:\n{shared.words()}"
    assert shared.roles() == before, f"one of its processes is another now:\n{shared.words()}"


@pytest.fixture
def start_daemon(stock):
    """start_daemon(config, ...): one of one's own, ended with the test."""
    stock.close()
    started = []

    def start(*args, **kw):
        started.append(daemons.Daemon(*args, **kw))
        return started[-1]
    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module", params=[pytest.param("demand", marks=pytest.mark.nightly), "ready"])
def only_basic(request, built):
    """A folder of profiles of which none but basic is warm: one zygote."""
    scratch, profiles = warm_load.only_basic(request.param)
    yield profiles
    scratch.cleanup()


@pytest.fixture
def ann(open_server):
    """A connection of Ann's to the server that the test file opens to her and Bob."""
    with open_server.connect_as(ANN) as made:
        yield made


@pytest.fixture
def bob(open_server):
    with open_server.connect_as(BOB) as made:
        yield made


@pytest.fixture
def talk(daemon):
    """A connection to the shared daemon."""
    with daemon.connect() as made:
        yield made


@pytest.fixture
def many(stock):
    """A daemon that root may ask for as much as it likes."""
    return stock.get(MANY)


@pytest.fixture
def nothing_left(built):
    """No cell's process, group, mount or file is there that was not before; daemons must have ended by then."""
    before = host.Snapshot()
    yield
    left = before.left_since()
    assert not left, f"left behind: {left}"


@pytest.fixture
def token():
    """Names a program among all processes of the host."""
    return f"token-{secrets.token_hex(6)}"
