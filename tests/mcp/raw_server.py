"""brig-mcp with descriptors of the test's choice at its ends, and a client that reads when it is told to."""
import json
import os
import select
import socket
import subprocess
import time

from support import brig, host, mcp, mcp_schema

MODERN = {mcp.META + "protocolVersion": mcp.MODERN, mcp.META + "clientCapabilities": {}}


def request(number, method, **params):
    """One line: a modern request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": MODERN}}).encode() + b"\n"


def execute(number, code, **arguments):
    return request(number, "tools/call", name="execute_code", arguments={"code": code, **arguments})


class Raw:
    """The server, and this end of what it reads and writes: `to` and `from_` are descriptors of ours."""

    def __init__(self, theirs, ours, *args, env=None, program=None, **popen):
        self.to, self.from_ = ours
        self.buffer, self.methods, self.heard = bytearray(), {}, []
        self.process = subprocess.Popen([program or mcp.binary(), *args], stdin=theirs[0], stdout=theirs[1], stderr=subprocess.PIPE,
                                        env=brig.environment(env), **popen)
        for fd in set(theirs):
            if fd not in ours:
                os.close(fd)

    def say(self, data):
        for line in data.splitlines():
            message = json.loads(line)
            if "id" in message:
                self.methods[json.dumps(message["id"])] = message["method"]
        view = memoryview(data)
        while view:
            view = view[os.write(self.to, view):]

    def hear(self):
        """The next message, which is valid; None: the end."""
        end = time.monotonic() + host.HANG
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.from_], [], [], left)[0]:
                raise mcp.Silent(f"nothing came in {host.HANG:g} s")
            data = self.read()
            if not data:
                assert not self.buffer, f"it ended inside of a line: {bytes(self.buffer[:200])!r}"
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        message = mcp_schema.parse(bytes(line))
        if "method" in message:
            mcp_schema.check_notification(message, mcp.MODERN)
        else:
            mcp_schema.check_response(message, mcp.MODERN, self.methods.get(json.dumps(message.get("id"))))
        return message

    def read(self):
        try:
            return os.read(self.from_, 1 << 16)
        except ConnectionResetError:
            return b""

    def ask(self, number, method, **params):
        self.say(request(number, method, **params))
        return self.hear()

    def wait(self):
        return self.process.wait(host.HANG)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for fd in {self.to, self.from_} - {-1}:
            os.close(fd)
        self.to = self.from_ = -1

    def shut(self):
        """The end of its input."""
        os.close(self.to)
        self.to = -1

    def deafen(self):
        """Nobody reads what it writes any more."""
        os.close(self.from_)
        self.from_ = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def with_pipes(*args, **kw):
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    return Raw((read_in, write_out), (write_in, read_out), *args, **kw)


def with_sockets(*args, **kw):
    """As Node does it: two pairs, of which each end could do both."""
    (a, b), (c, d) = socket.socketpair(), socket.socketpair()
    return Raw((b.detach(), d.detach()), (a.detach(), c.detach()), *args, **kw)


def with_one_socket(*args, **kw):
    """Both ends are the same open file."""
    ours, theirs = socket.socketpair()
    fd, own = theirs.detach(), ours.detach()
    return Raw((fd, fd), (own, os.dup(own)), *args, **kw)


WAYS = {"pipes": with_pipes, "two socket pairs": with_sockets, "one socket pair": with_one_socket}
