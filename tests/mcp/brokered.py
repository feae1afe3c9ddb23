"""brig-mcp with servers, and programs whose part the test plays: before a server that is none, so that no jail is needed.

    with Brokered({"t": own_server()}) as b:
        with b.run() as program:                       # a call of execute_code, and the program's end of its bridge
            program.call("t.echo", text="x")           # {"id": 1, "result": "x"}
        program.reply                                  # the object that execute_code has answered with
"""
import contextlib
import itertools
import json
import os
import pathlib
import queue
import socket
import tempfile

from support import fake_server, host
from support import mcp as mcp_client
from test_mcp_tools_brigd import EXPLAINED

SERVER = pathlib.Path(__file__).with_name("tool_server.py")
FORM = {"elicitation": {}}


def own_server(*args, **entry):
    """The entry of tool_server.py in a file of servers."""
    return {"command": "/usr/bin/python3", "args": ["-S", str(SERVER), *map(str, args)], **entry}


def wait_until(ask, what):
    """What another process does is seen soon after it was done."""
    found = host.poll(ask)
    assert found, f"{what}: not in {host.HANG:g} s"
    return found


class Program:
    """What the jail's side has: a socket. And how its run ends."""

    def __init__(self, connection, request):
        self.connection, self.request, self.ids = connection, request, itertools.count(1)
        connection.start("result", *(["tools"] if request.get("tools") else []), tag=request["tag"])
        self.pipes = dict(connection.pipes)
        connection.pipes.clear()
        self.sock = socket.socket(fileno=self.pipes.pop("tools")) if "tools" in self.pipes else None
        if self.sock:
            self.sock.settimeout(host.HANG)
        self.buffer, self.asked, self.reply, self.heard = b"", None, None, []

    def send(self, *messages):
        self.write(b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages))

    def write(self, data):
        self.sock.sendall(data)

    def hear(self):
        """The next line; None: the bridge has ended."""
        while b"\n" not in self.buffer:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        assert len(line) < 1 << 20
        return json.loads(line)

    def answer(self, number):
        """The one that ends the id; what else came is in heard."""
        for i, said in enumerate(self.heard):
            if said["id"] == number and "progress" not in said:
                return self.heard.pop(i)
        while True:
            said = self.hear()
            assert said is not None, "the bridge has ended"
            if said["id"] == number and "progress" not in said:
                return said
            self.heard.append(said)

    def begin(self, name, /, **args):
        number = next(self.ids)
        self.send({"id": number, "op": "call", "name": name, "args": args})
        return number

    def call(self, name, /, **args):
        return self.answer(self.begin(name, **args))

    def result(self, name, /, **args):
        said = self.call(name, **args)
        assert "result" in said, said
        return said["result"]

    def error(self, name, /, **args):
        """(kind, message)"""
        said = self.call(name, **args)
        assert "error" in said, said
        return said["error"]["kind"], said["error"]["message"]

    def ask(self, op, **keys):
        number = next(self.ids)
        self.send({"id": number, "op": op, **keys})
        return self.answer(number)

    def end(self, **record):
        """The run ends, as brigd tells it."""
        if self.sock:
            self.sock.close()
        for fd in self.pipes.values():
            os.close(fd)
        self.connection.send({**fake_server.ended(**record), "tag": self.request["tag"]})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
            self.reply = mcp_client.data_of(self.asked.result())


class Brokered:
    def __init__(self, servers, *args, env=None, file=None, cwd=None, **keys):
        self.servers, self.args, self.env, self.cwd, self.keys = servers, args, env or {}, cwd, keys
        self.was_asked, self.told = False, []
        self.file, self.runs, self.cancels, self.stack = file, queue.Queue(), queue.Queue(), contextlib.ExitStack()

    def serve(self, connection):
        """A server that has gone has gone: what it was last told, it need not hear."""
        self.was_asked = True
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.answer_requests(connection)

    def answer_requests(self, connection):
        while True:
            request = connection.receive()
            if request is None:
                return
            if request["op"] == "explain":
                connection.send({**EXPLAINED, "tag": request["tag"]})
            elif request["op"] == "run":
                self.runs.put(Program(connection, request))
            elif request["op"] == "tools":
                self.told.append({key: value for key, value in request.items() if key != "tag"})
                connection.send({"reply": "tools", "run": request["run"], "tag": request["tag"]})
            else:
                self.cancels.put(request)

    def __enter__(self):
        folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="brig-test-")))
        self.file = self.file or folder / "servers.json"
        if not self.file.exists():
            self.file.write_text(json.dumps({"mcpServers": self.servers}))
        env = self.stack.enter_context(fake_server.server(self.serve))
        self.server = env["BRIG_SOCKET"]
        self.mcp = mcp_client.McpStdio("--servers", str(self.file), *self.args, env={**env, **self.env}, cwd=self.cwd, **self.keys)
        self.stack.push(self.mcp)
        return self

    def __exit__(self, *error):
        if not self.was_asked: # so that the server does not wait for anybody
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
                sock.connect(self.server)
        return self.stack.__exit__(*error)

    @property
    def log(self):
        return self.mcp.stderr.decode(errors="replace")

    def audit(self):
        """The entries on stderr; complete only when the server has ended."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith('{"time"')]

    def begin(self, client=None, **kw):
        """A call of execute_code that is not waited for, and the program."""
        asked = (client or self.mcp).begin_call("execute_code", {"code": "1", "detail": True}, **kw)
        program = self.runs.get(timeout=host.HANG)
        program.asked = asked
        return program

    def run(self, **kw):
        return self.begin(**kw)
