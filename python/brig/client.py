"""One run over one connection: the request, the streams, the record. What brig(1) does, for programs in Python."""
from __future__ import annotations

import array
import fcntl
import json
import os
import selectors
import socket
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import report
from . import server as servers
from .errors import Busy, ProtocolError, Refused, ServiceLost, SetupFailed
from .result import ProgramError, Result, status_of

Text = Union[str, bytes]
Shown = Union[Mapping[str, Any], Iterable[Any]]
Sink = Callable[[bytes], None]

MESSAGE_MAX = 64 * 1024
FDS_MAX = 4             # stdout, stderr, stdin, result
FLOOD = 8               # times what is kept: then the run is ended
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
CHUNK = 64 * 1024


def _sealed(text: Text) -> int:
    """The program as the service wants it: what it looks at is what runs."""
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    data = memoryview(text.encode() if isinstance(text, str) else text)
    try:
        while data:
            data = data[os.write(fd, data):]
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


class _Stream:
    """What a program writes: the first bytes are kept, the others counted."""

    def __init__(self, fd: int, keep: int, sink: Optional[Sink] = None) -> None:
        self.fd, self.keep, self.sink, self.seen, self.data = fd, keep, sink, 0, bytearray()
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """False at its end."""
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return True
        kept = chunk[:max(0, self.keep - self.seen)]
        self.seen += len(chunk)
        self.data += kept
        if kept and self.sink:
            self.sink(kept)
        return bool(chunk)

    def drain(self) -> None:
        """What is there. The program is dead, but its end of the pipe may be held by a process that it has sent it to."""
        before = -1
        while before != self.seen and self.seen <= self.keep * FLOOD:
            before = self.seen
            self.read()


class Connection:
    """To a service, or to a brigd of its own. Its run ends when it is closed."""

    def __init__(self, server: str = "any", path: Optional[str] = None) -> None:
        self._sock, self._process = servers.connect(server, path)
        self.is_closed = False

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self.is_closed = True
        self._sock.close()
        if self._process:
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """From another thread than the one that waits for its run: the run is ended, and that thread hears of it and closes."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError: # it is closed
            pass

    # --- messages ---

    def _send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        data = json.dumps(message, ensure_ascii=False).encode("utf-8")
        if len(data) > MESSAGE_MAX:
            raise ValueError(f"arguments, env and ro: {len(data)} bytes, and a request has at most {MESSAGE_MAX}")
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._sock.sendmsg([data], beside, socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionResetError):
            pass # one that turns us away has said why, which is read next

    def _receive(self) -> Tuple[Dict[str, Any], List[int]]:
        try:
            data, beside, flags, _ = self._sock.recvmsg(MESSAGE_MAX + 1, socket.CMSG_SPACE(FDS_MAX * 4), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            data, beside, flags = b"", [], 0
        fds = array.array("i")
        for level, kind, numbers in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(numbers[:len(numbers) - len(numbers) % fds.itemsize])
        try:
            if not data:
                raise ServiceLost("brigd was killed, or could not tell how the run ended")
            body = json.loads(data)
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not isinstance(body, dict):
                raise ValueError("no whole object")
        except BaseException as error:
            _close_all(fds)
            if isinstance(error, (ValueError, RecursionError)):
                raise ProtocolError(f"brigd said what it may not: {error}") from None
            raise
        return body, list(fds)

    def ask(self, op: str, **keys: Any) -> Dict[str, Any]:
        """The reply to hello, list, stats, explain and their like (brig-protocol(7))."""
        self._send({"op": op, **keys})
        body, fds = self._receive()
        _close_all(fds)
        _check(body)
        return body

    # --- a run ---

    def carry_out(self, request: Dict[str, Any], fds: List[int], stdin: Optional[Text], on_stdout: Optional[Sink], on_stderr: Optional[Sink]) -> Result:
        """Takes the descriptors over."""
        if stdin is not None:
            request["stdin"] = True
        try:
            self._send(request, fds)
        finally:
            _close_all(fds)
        run = _Run(self, stdin.encode() if isinstance(stdin, str) else stdin, {"stdout": on_stdout, "stderr": on_stderr})
        try:
            return run.until_end()
        finally:
            run.close()


def _check(body: Dict[str, Any]) -> None:
    error = body.get("error")
    if not isinstance(error, dict):
        return
    later = error.get("retry_after_ms")
    kind = Busy if error.get("code") == "busy" else Refused
    raise kind(str(error.get("code")), str(error.get("message")), error.get("field"), later / 1000 if isinstance(later, int) else None)


class _Run:
    """From the request to the end."""

    def __init__(self, connection: Connection, stdin: Optional[bytes], sinks: Dict[str, Optional[Sink]]) -> None:
        self.connection, self.sinks, self.pending = connection, sinks, memoryview(stdin or b"")
        self.streams: Dict[str, _Stream] = {}
        self.stdin, self.id, self.cancelled, self.ended = -1, "", False, False
        self.waits = selectors.DefaultSelector()
        self.waits.register(connection._sock, selectors.EVENT_READ, None)

    def close(self) -> None:
        self.waits.close()
        self.close_stdin()
        _close_all(stream.fd for stream in self.streams.values())
        self.streams = {}
        if not self.ended:
            self.connection.close() # which ends the run, wherever it is

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
        self.stdin = -1

    def start(self, body: Dict[str, Any], fds: List[int]) -> None:
        names, keep = body.get("streams"), body.get("output_bytes")
        if self.id or not isinstance(names, list) or len(names) != len(fds) or not isinstance(keep, int):
            _close_all(fds)
            raise ProtocolError("brigd said what it may not: a start without its streams, or a second one")
        self.id = str(body.get("run"))
        for name, fd in zip(names, fds):
            if name == "stdin":
                self.stdin = fd
                os.set_blocking(fd, False)
                self.waits.register(fd, selectors.EVENT_WRITE, "stdin")
            else:
                self.streams[name] = stream = _Stream(fd, report.REPORT_MAX if name == "result" else keep, self.sinks.get(name))
                self.waits.register(fd, selectors.EVENT_READ, stream)

    def write(self) -> None:
        try:
            self.pending = self.pending[os.write(self.stdin, self.pending[:CHUNK]):] if self.pending else self.pending
        except BlockingIOError:
            return
        except BrokenPipeError: # the program has closed it, or is gone
            self.pending = memoryview(b"")
        if not self.pending:
            self.waits.unregister(self.stdin)
            self.close_stdin()

    def read(self, stream: _Stream) -> None:
        if not stream.read():
            self.waits.unregister(stream.fd)
        elif stream.seen > stream.keep * FLOOD and not self.cancelled:
            self.cancelled = True
            self.connection._send({"op": "cancel", "run": self.id, "reason": "output_limit"})

    def until_end(self) -> Result:
        while True:
            for key, _ in self.waits.select():
                if key.data == "stdin":
                    self.write()
                elif key.data is not None:
                    self.read(key.data)
                else:
                    body, fds = self.connection._receive()
                    if body.get("event") == "started":
                        self.start(body, fds)
                        continue
                    _close_all(fds)
                    if body.get("event") == "ended":
                        return self.end(body)
                    if not self.id:
                        self.ended = "error" in body
                        _check(body)

    def end(self, body: Dict[str, Any]) -> Result:
        self.ended = True
        record, exec_error = body.get("record"), body.get("exec_error")
        if not isinstance(record, dict) or not isinstance(record.get("exit_reason"), str):
            raise ProtocolError("brigd said what it may not: an end without a record")
        if record["exit_reason"] == "setup_failed" and not exec_error:
            raise SetupFailed(str((record.get("error") or {}).get("message")), record)
        for stream in self.streams.values():
            stream.drain()
        return self.result(record, exec_error, body.get("lost") or [])

    def result(self, record: Dict[str, Any], exec_error: Optional[str], lost: List[Dict[str, Any]]) -> Result:
        out, err, said = (self.streams.get(name) for name in ("stdout", "stderr", "result"))
        for name, stream in (("stdout", out), ("stderr", err)):
            record[f"{name}_bytes"] = stream.seen if stream else None
        truncated = any(stream and stream.seen > stream.keep for stream in (out, err))
        told: Dict[str, Any] = {}
        if said and said.seen:
            try:
                told = _told(report.read(bytes(said.data) if said.seen <= said.keep else b"x" * (said.keep + 1), report.RUN))
            except report.Unusable as error:
                told = {"report_error": str(error)}
        return Result(record=record, verdict=record["exit_reason"], status=status_of(record, exec_error), truncated=truncated, exec_error=exec_error,
                      lost=lost, stdout_raw=bytes(out.data) if out else b"", stderr_raw=bytes(err.data) if err else b"", **told)


def _told(said: Dict[str, Any]) -> Dict[str, Any]:
    error = said["error"]
    return {"value": said["result"], "value_repr": said["result_repr"], "error": ProgramError(**error) if error else None,
            "variables": said["variables"], "warnings": said["security_warnings"], "security_event": said["security_event"]}


# --- requests ---

def limits(timeout: Optional[float], cpu_time: Optional[float], memory: Union[int, str, None], pids: Optional[int], cpus: Optional[float],
           output: Union[int, str, None]) -> Dict[str, Any]:
    said = {"wall_ms": None if timeout is None else round(timeout * 1000), "cpu_ms": None if cpu_time is None else round(cpu_time * 1000),
            "memory_bytes": memory, "pids": pids, "cpus": cpus, "output_bytes": output}
    return {name: value for name, value in said.items() if value is not None}


def shown(ro: Optional[Shown]) -> List[Tuple[str, str]]:
    """(name, path): paths alone have their last name."""
    if ro is None:
        return []
    if isinstance(ro, (str, bytes, os.PathLike)):
        ro = [ro]
    if isinstance(ro, Mapping):
        return [(str(name), os.fspath(path)) for name, path in ro.items()]
    return [(os.path.basename(os.path.realpath(path)), os.fspath(path)) for path in ro]


def open_shown(pairs: Sequence[Tuple[str, str]], fds: List[int]) -> None:
    for _, path in pairs:
        fds.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
