"""What a client shows with --ro is looked at without a word to whoever serves its file system."""
import concurrent.futures
import ctypes
import os
import signal
import struct
import tempfile
import threading

import pytest

from rules import ANN, MANY
from support import brig as tool
from support import client, host, swap, tiers
from support import daemon as daemons

FUSE_INIT = 26
LIBC = ctypes.CDLL(None, use_errno=True)


class Silent:
    """A file system of a user that everybody may look at (user_allow_other), and that answers nobody."""

    def __init__(self, uid):
        self.folder, self.asked = tempfile.mkdtemp(prefix="brig-test-"), []
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id={uid},group_id={uid},allow_other"
        if LIBC.mount(b"brig-test", self.folder.encode(), b"fuse", 0, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.server = threading.Thread(target=self.serve)
        self.server.start()

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 17)
            except OSError: # ENODEV: it is unmounted
                return
            operation, unique, pid = struct.unpack_from("<4xIQ8x8xI", request)
            self.asked.append(daemons.kind_of(pid))
            if operation == FUSE_INIT:
                body = struct.pack("<4I2H2I2H7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 7)
                os.write(self.device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)

    def close(self):
        LIBC.umount2(self.folder.encode(), 1) # by force: who waits is let go
        LIBC.umount2(self.folder.encode(), 2)
        self.server.join(host.HANG)
        os.close(self.device)
        os.rmdir(self.folder)


@pytest.mark.row("I4")
def test_a_file_system_that_does_not_answer_stops_neither_server_nor_monitor(start_daemon):
    if host.lacks("file:/dev/fuse"):
        pytest.skip(host.lacks("file:/dev/fuse"))
    daemon, served = start_daemon(MANY), Silent(ANN)
    try:
        fd = os.open(served.folder, os.O_PATH | os.O_DIRECTORY)
        with daemon.connect() as talk:
            talk.begin("exec", [fd], argv=["true"], ro=["x"])
            assert host.poll(lambda: "supervisor" in served.asked), f"it was not shown: {served.asked}"
            assert daemon.run("print('others are served')").stdout == "others are served\n"
        os.close(fd)
        assert not {"server", "monitor"} & set(served.asked), served.asked
    finally:
        served.close()


@pytest.mark.row("I4")
@pytest.mark.parametrize("path", tiers.few(["/proc", "/proc/self", "/proc/self/fd", "/sys", "/sys/fs/cgroup/memory"], "/proc/self", "/sys"))
def test_what_the_kernel_tells_of_the_host_is_not_shown(daemon, talk, path):
    if not os.path.isdir(path):
        pytest.skip(f"there is no {path}")
    with pytest.raises(client.Refused) as refused:
        talk.start("pass", ro=[("x", path)])
    assert (refused.value.code, refused.value.field) == ("denied", "ro[0]"), refused.value


@pytest.mark.row("I4")
def test_a_procfs_that_the_server_has_never_seen_is_not_shown_and_each_run_is_told_why(daemon):
    """Of another mount namespace: the server does not know it, and the supervisor does not find it."""
    holder = os.pipe()
    pid = os.fork()
    if pid == 0:
        ok = LIBC.unshare(0x00020000) == 0 and LIBC.mount(None, b"/", None, 0x44000, None) == 0 and LIBC.mount(b"proc", b"/mnt", b"proc", 0, b"subset=pid") == 0
        os.write(holder[1], b"y" if ok else b"n")
        signal.pause()
    try:
        assert os.read(holder[0], 1) == b"y"
        fd = os.open(f"/proc/{pid}/root/mnt", os.O_PATH | os.O_DIRECTORY)

        def reasons(_):
            """The cell may be refused before the order has come, or after it: with other limits than the profile's that takes longer."""
            with daemon.connect() as talk:
                for _ in range(20):
                    talk.begin("exec", [fd], argv=["ls", "/workspace/x"], ro=["x"], limits={"pids": 33, "cpus": 0.5})
                    record = talk.next().body["record"]
                    yield record["exit_reason"], record["error"]["message"]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            said = {reason for some in pool.map(lambda n: list(reasons(n)), range(6)) for reason in some}
        assert said == {("setup_failed", "set-up step open-trees: --ro: /mnt is another one by now")}
        os.close(fd)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        for fd in holder:
            os.close(fd)


EITHER = {"runs": 64, "access": [{"uid": uid, "profiles": ["basic"], "runs": 64, "runs_per_minute": 1000000} for uid in (0, ANN)]}


@pytest.mark.diagonal("uid")
@pytest.mark.row("B6")
@pytest.mark.parametrize("uid", [0, ANN], ids=["root", "a user"])
@pytest.mark.parametrize("to", tiers.few(["secret", "/proc"], "secret"))
def test_a_directory_above_that_is_exchanged_between_look_and_mount_leads_nowhere(stock, uid, to):
    """The server has checked the directory; the supervisor opens it anew by its path, which another user has changed meanwhile."""
    daemon = stock.get(EITHER)
    daemon.path.chmod(0o666)
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder, daemon.connect_as(uid) as talk:
        parent = swap.Parent(folder, ANN, to)
        with swap.exchanging(folder, ANN):
            said = parent.show(talk, 20)
        assert not parent.is_wrong(said), said


@pytest.mark.control("B6")
def test_control_the_exchange_leads_elsewhere_by_path(needs_root):
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder:
        parent = swap.Parent(folder, ANN, "secret")
        with swap.exchanging(folder, ANN):
            assert host.poll(lambda: host.read(f"{folder}/place/sys/file") == "secret", every=0)
            assert host.poll(lambda: host.read(f"{folder}/place/sys/file") == "inside", every=0)
        assert parent.inode != os.stat(f"{folder}/secret/sys").st_ino


def test_a_directory_below_one_that_is_closed_is_refused_with_what_to_type(start_daemon, tmp_path):
    daemon, closed = start_daemon(MANY), tmp_path / "closed"
    (closed / "shown").mkdir(parents=True)
    closed.chmod(0o700)
    done = tool.run("--ro", closed / "shown", "-c", "print('ran')", env={"BRIG_SOCKET": str(daemon.path)}, json_record=False)
    assert (done.status, done.stdout) == (125, "") and "is closed to the service; namei -l shows which, --private does without" in done.stderr, done
    assert "doctor" not in done.stderr and str(closed / "shown") in done.stderr
    assert tool.run("--private", "--ro", closed / "shown", "-c", "print('ran')", json_record=False).stdout == "ran\n"
