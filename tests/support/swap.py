"""Two names in a folder that change places all the time, by the hand of another user."""
import contextlib
import os
import pathlib
import subprocess
import tempfile

from support import client, host

SWAP = """
import ctypes, itertools, os, sys, time
user = int(sys.argv[2])
os.chdir(sys.argv[1])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
libc = ctypes.CDLL(None)
for n in itertools.count(1):
    for _ in range(100): assert libc.renameat2(-100, b"place", -100, b"trap", 2) == 0 # RENAME_EXCHANGE
    os.pwrite(1, b"%020d" % (100 * n), 0) # a pipe that nobody reads would stop it
    time.sleep(0.0002) # others have something to do as well
"""


@contextlib.contextmanager
def exchanging(folder, uid):
    """folder/place and folder/trap, from before the beginning until after the end."""
    with tempfile.TemporaryFile() as told, subprocess.Popen([host.PYTHON, "-c", SWAP, folder, str(uid)], stdout=told) as child:
        def times():
            return int(os.pread(told.fileno(), 20, 0) or 0)
        try:
            assert host.poll(lambda: times() >= 1000 or child.poll() is not None) and child.poll() is None
            before = times()
            yield
            assert host.poll(lambda: times() > before or child.poll() is not None) and child.poll() is None, "it has stopped: the race was none"
        finally:
            child.kill()


class Parent:
    """place/sys, which is shown, in a folder of a user's who makes place another directory all the time: one with a sys in it as well, that must not be seen."""

    READ = "import os\nprint(sorted(os.listdir('x'))[:3], open('x/file').read())"
    INSIDE = "['file'] inside\n"

    def __init__(self, folder, uid, to):
        self.folder, self.uid = pathlib.Path(folder), uid
        shown, secret = self.folder / "place" / "sys", self.folder / "secret" / "sys"
        for path, text in ((shown, "inside"), (secret, "secret")):
            path.mkdir(parents=True)
            (path / "file").write_text(text)
        (self.folder / "trap").symlink_to(secret.parent if to == "secret" else to)
        self.inode = shown.stat().st_ino
        for path in (self.folder, *self.folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755)
            os.chown(path, uid, uid, follow_symlinks=False)

    def open(self):
        """The directory itself: what is looked at later may be another one."""
        while True:
            with contextlib.suppress(OSError):
                fd = os.open(self.folder / "place" / "sys", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                if os.fstat(fd).st_ino == self.inode:
                    return fd
                os.close(fd)

    def show(self, talk, times):
        """What so many runs said of it: their output, or why there was none."""
        said = set()
        for _ in range(times):
            fds = [client.sealed(self.READ), self.open()]
            tag = talk.begin("run", fds, ro=["x"])
            client.close_all(fds)
            try:
                said.add(talk.started(tag).finish().stdout)
            except client.NotStarted as e:
                said.add(e.record["error"]["message"])
        return said

    def is_wrong(self, said):
        """Nothing but what was meant may have been seen, at least once, or the run was refused for this reason."""
        refused = ("is another one by now", "No such file or directory", "Not a directory", "namei -l shows which, --private does without")
        return self.INSIDE not in said or [one for one in said if one != self.INSIDE and not one.endswith(refused)]
