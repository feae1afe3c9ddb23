"""A host whose controllers are of cgroup version 1: the service says what it needs there, and with that it serves."""
import os

import pytest

from support import host, service

AS_ROOT = "User=root\nGroup=root\nAmbientCapabilities=\nCapabilityBoundingSet=~" # brigd(8), HOSTS WITH CGROUP V1


@pytest.fixture(autouse=True)
def v1():
    if not os.path.isdir("/sys/fs/cgroup/memory"):
        pytest.skip("needs the controllers of cgroup v1, as a host that was booted with systemd.unified_cgroup_hierarchy=0 has them")


@pytest.fixture
def as_root(anew):
    service.reload(v1=AS_ROOT)
    yield
    service.systemctl("stop", service.UNIT)
    service.reload(v1="")


def test_as_it_is_installed_it_does_not_start_and_says_why(anew):
    assert service.systemctl("start", service.UNIT).returncode != 0
    said = " ".join(service.journal("-u", service.UNIT, "-o", "cat", "-b").split())
    assert "plain users get no control groups with cgroup v1" in said and "HOSTS WITH CGROUP V1" in said, said


def test_with_the_drop_in_a_plain_user_has_every_layer(as_root):
    record = service.run(service.MEMBER, "print(6)")
    assert (record["exit_reason"], record["stdout"]) == ("exited", "6\n"), record
    assert [entry for entry in record["isolation"] if entry.startswith("missing:") and entry != "missing:io-figures"] == []
    assert "memory-limit" in record["isolation"]


READER = 1 << 2 | 1 << 6 | 1 << 7 # CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID: it reads the files of root again, and becomes the server to judge them


def test_with_the_drop_in_only_what_reads_the_rules_stays_root(as_root, start):
    start()
    accounts = {service.ids(name)[0] for name in ("_brig-door", "_brig-keeper")}
    found = [service.status(pid) for pid in service.below()]
    readers = [has for has in found if has["Uid"].split()[0] == "0"]
    assert [int(has["CapPrm"], 16) for has in readers] == [READER] and all(int(has[kind], 16) in (0, READER) for has in readers for kind in ("CapEff", "CapInh", "CapBnd"))
    assert len(found) > len(readers)
    for has in found:
        if has in readers:
            continue
        uids = set(map(int, has["Uid"].split()))
        assert uids <= accounts or all(uid >= service.FIRST_OF_JAILS for uid in uids), has
    assert service.status(service.monitor())["CapPrm"] == f"{1 << 6 | 1 << 7:016x}"


def test_with_the_drop_in_stop_leaves_nothing(as_root, start):
    one = start()
    service.systemctl("stop", service.UNIT, check=True)
    assert one.ends()[0] in (125, 143)
    assert host.poll(lambda: not service.left(), 5), service.left()
