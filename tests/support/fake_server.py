"""A brigd that says what a test wants: what brig makes of it is looked at without a jail."""
import array
import contextlib
import json
import os
import pathlib
import socket
import tempfile
import threading

from support import host

FDS_MAX = 17
STARTED = {"event": "started", "run": "6f0c0d5e-0000-4000-8000-000000000001", "streams": ["stdout", "stderr"], "output_bytes": 1024}
HELLO = {"reply": "hello", "version": 1, "brig": "0.1.0", "features": [], "profiles": [], "quota": {"runs": None, "memory_bytes": None, "runs_per_minute": None, "sessions": None, "contexts": 16}}
RECORD = {
    "run_id": STARTED["run"], "profile": "basic", "rootfs": "basic@sha256:00", "exit_reason": "exited", "exit_code": 0, "signal": None, "limits_hit": [], "refused": [],
    "wall_ms": 1.5, "cpu_ms": 1.0, "memory_peak_bytes": 1 << 20, "pids_peak": 1, "io_read_bytes": None, "io_write_bytes": None, "stdout_bytes": None,
    "stderr_bytes": None, "truncated": None, "started_at": "2026-01-01T00:00:00.000000Z", "setup_ms": 2.0, "warm": False, "isolation": [],
    "result": None, "result_repr": None, "error": None, "variables": None, "security_event": None, "security_warnings": None, "files": None, "tool_calls": None,
}


def ended(exec_error=None, lost=(), left=None, **record):
    return {"event": "ended", "run": STARTED["run"], "record": {**RECORD, **record}, "exec_error": exec_error, "lost": list(lost), "left": left}


def refusal(code, message, field=None, **more):
    return {"error": {"code": code, "message": message, "field": field, **more}}


class Connection:
    """The server's end of one client."""

    def __init__(self, sock):
        self.sock = sock
        self.fds = []
        self.pipes = {}

    def receive(self):
        """The next request, or None when the client is gone; its descriptors are in fds. A hello with a version, which asks for newer keys, is answered here."""
        while (request := self.receive_any()) and request["op"] == "hello" and "version" in request:
            self.send({**HELLO, **({"tag": request["tag"]} if "tag" in request else {})})
        return request

    def receive_any(self):
        try:
            data, control, _, _ = self.sock.recvmsg(1 << 16, socket.CMSG_SPACE(FDS_MAX * 4))
        except ConnectionResetError: # it has gone without reading its last answer
            return None
        self.fds = [fd for _, _, raw in control for fd in array.array("i", raw[:len(raw) // 4 * 4])]
        return json.loads(data) if data else None

    def send(self, answer, fds=()):
        data = answer if isinstance(answer, bytes) else json.dumps(answer, separators=(",", ":")).encode() # as brigd writes it: brig knows the plain ones by sight
        socket.send_fds(self.sock, [data], list(fds)) if fds else self.sock.send(data)

    def start(self, *more, **keys):
        """The event started, with pipes: what is written into pipes["stdout"] brig reads."""
        theirs = []
        for name in ("stdout", "stderr", *more):
            reading, writing = (one.detach() for one in socket.socketpair()) if name == "tools" else os.pipe()
            self.pipes[name], end = (reading, writing) if name == "stdin" else (writing, reading)
            theirs.append(end)
        self.send({**STARTED, "streams": ["stdout", "stderr", *more], **keys}, theirs)
        for fd in theirs:
            os.close(fd)

    def close(self):
        for fd in [*self.fds, *self.pipes.values()]:
            with contextlib.suppress(OSError):
                os.close(fd)
        self.sock.close()


@contextlib.contextmanager
def server(script):
    """Serves one connection by script(connection); yields the environment with which brig finds it. What script raises is raised at the end."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        path = pathlib.Path(folder) / "brig.sock"
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(host.HANG)
        raised = []

        def serve():
            try:
                sock, _ = listening.accept()
                sock.settimeout(host.HANG)
                connection = Connection(sock)
                try:
                    script(connection)
                finally:
                    connection.close()
            except BaseException as e: # pylint: disable=broad-except
                raised.append(e)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield {"BRIG_SOCKET": str(path)}
        thread.join(host.HANG)
    if raised:
        raise raised[0]
