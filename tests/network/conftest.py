"""The internet of these tests, and where brig runs in it (support/internet.py)."""
import os
import sys

import pytest

from support import host
from support import internet as internets

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
