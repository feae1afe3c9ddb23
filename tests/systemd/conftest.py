"""An installed brigd under systemd, shared by tests that do not spoil it; others begin with a socket that listens and nothing else."""
import json
import os
import pathlib
import secrets

import pytest

from support import host, service

CONFIG = pathlib.Path("/etc/brig/brig.json")


@pytest.fixture(scope="session", autouse=True)
def installed():
    lack = service.lacks()
    if lack:
        pytest.skip(lack)


@pytest.fixture
def anew(installed):
    service.begin_anew()
    yield
    service.systemctl("stop", service.UNIT)
    assert host.poll(lambda: not service.left(), 5), f"left behind: {service.left()}"
    assert not service.GROUP.exists() or not list(service.GROUP.rglob("*/cgroup.procs")), "a control group is left behind"


@pytest.fixture
def config(anew):
    """config(text): /etc/brig/brig.json for this test; the socket listens."""
    before = CONFIG.read_bytes() if CONFIG.exists() else None

    def write(text, mode=0o644):
        CONFIG.parent.mkdir(exist_ok=True)
        CONFIG.write_text(text)
        CONFIG.chmod(mode)
    yield write
    CONFIG.unlink(missing_ok=True)
    if before is not None:
        CONFIG.write_bytes(before)
    service.begin_anew()


def use():
    record = service.run(service.MEMBER, "pass")
    assert record["exit_reason"] == "exited", f"{record}\n{service.journal('-u', service.UNIT, lines=30)}"


@pytest.fixture
def running(installed):
    """The service runs, for tests that do not spoil it: afterwards it is the same, and nobody's program is left."""
    if service.show("ActiveState") != "active":
        service.begin_anew()
    use()
    before = service.server()
    yield
    assert service.server() == before, "the service is another one now"
    assert host.poll(lambda: not service.programs(), 5), f"left behind: {service.programs()}"


@pytest.fixture
def spoiled(anew):
    """A service of one's own that runs, and may be ended."""
    use()


@pytest.fixture
def start():
    """start(user): a program that stays, ended with the test."""
    started = []

    def begin(*args, **kw):
        started.append(service.Running(*args, **kw))
        return started[-1]
    yield begin
    for one in started:
        one.close()


@pytest.fixture
def token():
    return f"token-{secrets.token_hex(6)}"


@pytest.fixture(scope="session")
def tell():
    """tell(text): on the terminal of who asked for the tests, beside the results."""
    def say(text):
        channel = os.environ.get("BRIG_VM_CHANNEL")
        if channel:
            with open(channel, "w") as out:
                out.write(json.dumps({"tell": text}) + "\n")
        else:
            print(text)
    return say
