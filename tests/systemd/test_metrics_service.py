"""brig-metrics where brigd is a service: figures for Prometheus, from a service without any privilege."""
import http.client

import pytest

from support import host, service

UNIT, PORT = "brig-metrics.service", 9464


def get(path="/metrics"):
    """(status, text); (None, why) when nothing listens."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60 * host.SLOWER)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as e:
        return None, str(e)


@pytest.fixture
def served(running):
    service.systemctl("reset-failed", UNIT)
    started = service.systemctl("start", UNIT)
    decided = host.poll(lambda: get()[0] == 200 or service.show("ActiveState", UNIT) == "failed", 20)
    assert started.returncode == 0 and decided and get()[0] == 200, f"{get()}\n{service.journal('-u', UNIT, lines=30)}"
    yield int(service.show("MainPID", UNIT))
    service.systemctl("stop", UNIT)


def ended():
    return [line for line in get()[1].splitlines() if line.startswith('brig_runs_total{profile="basic",reason="exited"')]


def test_the_figures_of_the_service_are_at_the_port(served):
    before = ended()
    assert len(before) == 2, get()
    service.run(service.MEMBER, "pass")
    assert host.poll(lambda: ended() != before), "a run that ended is not counted"
    assert get("/")[0] == 404


def test_it_has_a_dynamic_user_and_no_capability(served):
    service.check_unprivileged(served)


def test_no_figures_are_served_until_root_starts_the_unit(running):
    assert get()[0] is None and service.show("UnitFileState", UNIT) == "disabled"
