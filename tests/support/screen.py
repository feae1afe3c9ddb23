"""A terminal of ours, with a person before it: what is typed, what is seen, and the modes that it has."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from support import host

PROMPT = "~$ "
CONTROL = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]") # of a shell that edits its line


def size_bytes(rows, columns):
    return struct.pack("HHHH", rows, columns, 0, 0)


class Screen:
    """What comes from a descriptor, as text; each wait begins behind what the last one found."""

    def __init__(self, fd):
        self.fd, self.text, self.at = fd, "", 0

    def read(self, timeout):
        """False: nothing came, or nothing will."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError: # a master whose other end is closed
            return False
        self.text += CONTROL.sub("", data.decode(errors="replace"))
        return bool(data)

    def until(self, wanted):
        """All that came up to the end of these words."""
        end = time.monotonic() + host.HANG
        while wanted not in self.text[self.at:]:
            left = end - time.monotonic()
            assert left > 0 and self.read(left), f"{wanted!r} does not come behind\n{self.text}"
        at = self.text.index(wanted, self.at) + len(wanted)
        seen, self.at = self.text[self.at:at], at
        return seen

    def rest(self):
        while self.read(0):
            pass
        seen, self.at = self.text[self.at:], len(self.text)
        return seen


class Terminal(Screen):
    """A program has it as its controlling terminal, and as its three streams."""

    def __init__(self, argv, env, rows=24, columns=80, cwd=None):
        self.master, self.slave = pty.openpty()
        super().__init__(self.master)
        self.resize(rows, columns)
        self.modes, self.wrote = self.now(), None
        self.process = subprocess.Popen(list(map(str, argv)), stdin=self.slave, stdout=self.slave, stderr=self.slave, env=env, cwd=cwd, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) # noqa: PLW1509

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def now(self):
        return termios.tcgetattr(self.slave)

    def is_raw(self):
        return not self.now()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size_bytes(rows, columns))

    def type(self, text):
        os.write(self.master, text.encode())

    def flood(self, text):
        """As much as the terminal takes; what it shows meanwhile is read."""
        data = text.encode()
        while data and self.process.poll() is None:
            readable, writable, _ = select.select([self.master], [self.master], [], host.HANG)
            assert readable or writable, f"the terminal takes no more keys; it showed\n{self.text[-200:]}"
            if readable:
                self.read(0)
            if writable:
                data = data[os.write(self.master, data[:256]):]

    def fill(self):
        """Writes until the terminal accepts nothing."""
        fd = os.open(os.ttyname(self.slave), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(fd, "wb", 0) as slave:
            while slave.write(b"x" * 256) or select.select([], [slave], [], 0.1)[1]: # the kernel moves what was written, and has room again
                pass

    def send(self, number):
        self.process.send_signal(number)

    def is_full(self):
        """Nothing more is shown since the last look: the kernel may say that there is room where the program waits for some."""
        before, self.wrote = self.wrote, re.search(r"wchar: (\d+)", host.read(f"/proc/{self.process.pid}/io"))[1]
        return before == self.wrote

    def is_stopped(self):
        return host.read(f"/proc/{self.process.pid}/stat").rpartition(")")[2].split()[0] == "T"

    def run(self, line):
        """At a shell's prompt: what it prints, without the line itself."""
        self.type(line + "\n")
        self.until("\n")
        return self.until(PROMPT)[:-len(PROMPT)].rpartition("\n")[0].replace("\r", "")

    def ends(self):
        """Its status, and the last words."""
        status = self.process.wait(host.HANG)
        return status, self.rest()

    def ends_while_it_shows(self):
        """Its status, where the terminal must be read for it to come to its end."""
        end = time.monotonic() + host.HANG
        while self.process.poll() is None:
            assert time.monotonic() < end, f"goes on, and shows\n{self.text[-200:]}"
            self.read(0.05)
        return self.process.returncode

    def hang_up(self):
        """As when its window is closed."""
        self.send(signal.SIGHUP)
        return self.process.wait(host.HANG)
