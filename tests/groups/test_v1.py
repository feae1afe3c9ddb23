"""cgroup v1: a hierarchy of which only a part can be seen."""
import os
import pathlib
import secrets
import signal
import subprocess

import pytest

from support import host
from support.groups import start

ABOVE = "a control group above the run was full"
pytestmark = pytest.mark.private("cells below the groups that their caller is in")


@pytest.fixture
def new_memory_group(needs_root):
    """(mount, a group of this test below our own) of the memory hierarchy; gone afterwards."""
    own = next((top for top in host.own_groups() if os.path.exists(f"{top}/memory.limit_in_bytes")), None)
    if own is None:
        pytest.skip("needs the memory controller on cgroup v1")
    mount = next(line.split()[1] for line in host.read("/proc/mounts").splitlines()
                 if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(","))
    path = pathlib.Path(own) / f"brig-test-{secrets.token_hex(4)}"
    path.mkdir()
    yield mount, path
    left = [folder for folder, _, _ in os.walk(path, topdown=False)]
    for folder in left:
        os.rmdir(folder)
    assert left == [str(path)], f"left behind: {left}"


def test_a_part_of_a_hierarchy_is_enough(jail, new_memory_group, tmp_path):
    """A container with the host's cgroup namespace: /proc/self/cgroup names more than can be seen."""
    mount, group = new_memory_group
    line = f"echo 0 >{group}/tasks && mount --bind {group} {mount} && exec \"$@\""
    run = start("print('ran')", through=["unshare", "-m", "sh", "-c", line, "sh"], folder=tmp_path).wait()
    assert run.reason == "exited" and "memory-limit" in run.record["isolation"] and run.record["memory_peak_bytes"], str(run)


def test_a_container_that_has_no_memory_ends_the_largest_run_and_no_other(jail, new_memory_group, tmp_path):
    """The kernel tells of it in every group below: each run would take it for its own."""
    _, group = new_memory_group
    (group / "memory.limit_in_bytes").write_text(str(300 << 20))
    through = ["sh", "-c", f"echo 0 >{group}/tasks && exec \"$@\"", "sh"]
    small = start("print('up', flush=True)\nimport time\ntime.sleep(600)", through=through, folder=tmp_path)
    assert host.poll(lambda: len([folder for folder, _, _ in os.walk(group) if "/cell-" in folder]) == 1)
    large = start("b = bytearray(600 << 20)", "--memory", "1G", through=through, folder=tmp_path).wait()
    assert large.reason == "oom" and ABOVE in large.record["error"]["message"] and "--memory" not in large.stderr, str(large)
    small.signal(signal.SIGINT)
    assert small.wait().reason == "cancelled"


FILL = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN) # those that are killed are gone at once
ready, done = os.pipe()
for _ in range(2000):
    if os.fork() == 0:
        with open(sys.argv[1] + '/cgroup.procs', 'w') as members:
            members.write('0')
        os.write(done, b'.')
        while True:
            signal.pause()
count = 0
while count < 2000:
    count += len(os.read(ready, 1000))
print('full', flush=True)
try:
    os.wait() # until no child is left
except ChildProcessError:
    pass
"""


@pytest.mark.nightly
def test_a_group_that_a_crash_left_with_two_thousand_processes_is_emptied(jail, new_memory_group, tmp_path):
    """More than one read lists. Half a pid at the end of a part of the list would be that of a process elsewhere."""
    _, group = new_memory_group
    through = ["sh", "-c", f"echo 0 >{group}/tasks && exec \"$@\"", "sh"]
    before = start("import time\nprint('up', flush=True)\ntime.sleep(600)", through=through, folder=tmp_path)
    cell = host.poll(lambda: [folder for folder, _, _ in os.walk(group) if "/cell-" in folder])[0]
    before.signal(signal.SIGINT)
    before.wait()
    os.makedirs(cell, exist_ok=True)
    with subprocess.Popen(["/usr/bin/python3", "-c", FILL, cell], stdout=subprocess.PIPE, text=True) as fill:
        assert fill.stdout.readline() == "full\n"
        members = host.read(f"{cell}/cgroup.procs")
        run = start("print('ran')", through=through, folder=tmp_path).wait()
        left = [pid for pid in members.split() if os.path.exists(f"/proc/{pid}")]
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
    assert len(members) > 4096 and not left, f"{len(left)} of {len(members.split())} processes are left"
    assert run.reason == "exited" and "memory-limit" in run.record["isolation"], str(run)
