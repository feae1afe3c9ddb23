"""A context of the guest runner outside of a jail: a process of the host's Python, and the session server's end of its socket."""
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time

from support.host import HANG

PYTHON = "/usr/bin/python3"
# What the session server does: the runner's parts in a namespace, as a zygote makes them, then a fork that lives as a context.
SERVER = """
import marshal, sys
names = {"ahead": True, "__builtins__": __builtins__}
with open(sys.argv[1], "rb") as file:
    exec(marshal.loads(file.read()[16:]), names)
sys.path[:0] = sys.argv[3:]
names["need"]("context")
del marshal, file
names["live_as_context"](int(sys.argv[2]))
"""


class Lost(Exception):
    """The interpreter is gone; status: as of subprocess."""

    def __init__(self, status):
        super().__init__(f"the context has ended: {status}")
        self.status = status


class Done:
    """What one call has printed, reported and answered."""

    def __init__(self, out, err, text, exit_code):
        self.out, self.err, self.text, self.exit_code = out, err, text, exit_code

    @property
    def report(self):
        return json.loads(self.text)

    @property
    def value(self):
        assert self.report["error"] is None, self.report["error"]["traceback"]
        return self.report["result"]

    @property
    def error(self):
        """As Python prints it, or None."""
        error = self.report["error"]
        return error and (f"{error['type']}: {error['message']}" if error["message"] else error["type"])


class Call:
    """One that may be under way."""

    def __init__(self, live, code, tools=None):
        self.live, self.text, self.answer = live, {}, None
        live.number += 1
        self.number = live.number
        with tempfile.TemporaryFile() as file, contextlib.ExitStack() as ours:
            file.write(code if isinstance(code, bytes) else code.encode())
            file.flush()
            fds = [file.fileno()]
            for _ in "stdout", "stderr", "result":
                reading, writing = os.pipe()
                self.text[reading] = b""
                fds.append(writing)
                ours.callback(os.close, writing)
            order = json.dumps({"call": self.number, "tools": tools is not None, "written": True}).encode()
            socket.send_fds(live.socket, [order], fds + ([] if tools is None else [tools]))
        self.streams, self.open = list(self.text), set(self.text)

    def step(self, timeout):
        """Reads what is there."""
        ready = select.select([*self.open, *([] if self.answer else [self.live.socket])], [], [], timeout)[0]
        for each in ready:
            if each is self.live.socket:
                self.take_answer()
            elif piece := os.read(each, 1 << 16):
                self.text[each] += piece
            else:
                self.open.discard(each)
        return bool(ready)

    def take_answer(self):
        text = self.live.socket.recv(4096)
        if not text:
            raise Lost(self.live.process.wait(HANG))
        self.answer = json.loads(text)
        assert self.answer["call"] == self.number and set(self.answer) == {"call", "exit_code"}, self.answer

    def until(self, text, stream=0):
        """Waits until the program has printed this."""
        end = time.monotonic() + HANG
        while text.encode() not in self.text[self.streams[stream]]:
            assert self.answer is None and time.monotonic() < end, self.text
            self.step(1)
        return self

    def interrupt(self):
        os.kill(self.live.process.pid, signal.SIGINT)
        return self

    def done(self):
        """Waits for the answer, and reads what is in the pipes then; children may hold them open."""
        end = time.monotonic() + HANG
        try:
            while self.answer is None:
                assert time.monotonic() < end, "no answer"
                self.step(1)
            while self.open and self.step(0):
                pass
        finally:
            self.close()
        out, err, text = (self.text[stream] for stream in self.streams)
        return Done(out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), text, self.answer["exit_code"])

    def close(self):
        for stream in self.streams:
            os.close(stream)


class Live:
    def __init__(self, pyc, folder, path=(), env=None):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.number = 0
        with theirs:
            self.process = subprocess.Popen(
                [PYTHON, "-I", "-c", SERVER, pyc, str(theirs.fileno()), *path], cwd=folder, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **(env or {})})

    def begin(self, code, **more):
        return Call(self, code, **more)

    def __call__(self, code, **more):
        return self.begin(code, **more).done()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        try:
            self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.said = self.process.stdout.read()
            self.process.stdout.close()
        assert self.said == b"", self.said
