"""A service that the tests of a file share, and where a run goes: to a brigd of one's own, or to that service."""
import pytest

from support import daemon as daemons


@pytest.fixture(scope="module")
def service():
    with daemons.Daemon() as running:
        yield running


@pytest.fixture(params=["private", pytest.param("service", marks=pytest.mark.nightly)])
def where(request, monkeypatch):
    """The keywords for a brigd of one's own, and in nightly for a service; five tests are fast for both."""
    monkeypatch.delenv("BRIG_SOCKET", raising=False)
    if request.param == "private":
        return {"server": "private"}
    return {"server": "service", "path": str(request.getfixturevalue("service").path)}
