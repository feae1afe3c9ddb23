"""The internet of these tests, and where brig runs in it (support/internet.py)."""
import contextlib
import os
import sys

import pytest

from support import host
from support import internet as internets
from support import proxy as proxies

sys.path.insert(0, os.path.dirname(__file__)) # for what the tests of this folder share

from attack import Profiles


@pytest.fixture(scope="session")
def internet():
    lack = internets.lacks()
    if lack:
        pytest.skip(lack)
    made = internets.Internet()
    yield made
    made.close()


@pytest.fixture(scope="session")
def net(internet, jail):
    """The internet, with what a jail needs, and a rootfs that has clients of HTTP."""
    lack = host.lacks("rootfs:network")
    if lack:
        pytest.skip(lack)
    internet.store("network")
    return internet


@pytest.fixture
def profiles(tmp_path):
    """profiles.make(name, network) -> what `attack` needs to use it."""
    return Profiles(tmp_path)


@pytest.fixture(scope="module")
def cell(internet):
    """The sockets of a cell, for a brig-proxy that is started by hand."""
    return proxies.Cell(internet)


@pytest.fixture(name="start")
def start_(internet):
    """start(allow=[rules], ...): a brig-proxy by itself, until the test ends."""
    with contextlib.ExitStack() as stack:
        def start(**kw):
            proxy = proxies.Proxy(internet, **kw)
            stack.callback(proxy.close)
            return proxy
        yield start
