"""One run over one connection: the request, the streams, the record. What brig(1) does, for programs in Python."""
from __future__ import annotations

import array
import asyncio
import atexit
import collections
import contextlib
import fcntl
import functools
import json
import os
import select
import socket
import time
from typing import Any, Callable, Deque, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import exact, report
from . import server as servers
from .bridge import LONG, Bridge
from .errors import Busy, ProtocolError, Refused, ServiceLost, SetupFailed
from .result import ProgramError, Result, status_of

Text = Union[str, bytes]
Shown = Union[Mapping[str, Any], Iterable[Any]]
Sink = Callable[[bytes], None]

MESSAGE_MAX = 64 * 1024
FDS_MAX = 5             # stdout, stderr, stdin, result, tools
CALLS_MAX = 64          # calls of tools in one message
NOTE_TAG = 0            # of messages that only report something: their replies are ignored
FRESH = 0.02           # seconds before the streams of a run are watched
QUIET = 0.2             # seconds without a call of a tool: then the next one wakes us
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
        self.is_whole = False

    def read(self) -> None:
        """Once, of one that is readable."""
        chunk = os.read(self.fd, CHUNK)
        kept = chunk[:max(0, self.keep - self.seen)]
        self.seen += len(chunk)
        self.data += kept
        self.is_whole = not chunk
        if kept and self.sink:
            self.sink(kept)

    @property
    def is_flood(self) -> bool:
        return self.seen > self.keep * FLOOD


def _drain(streams: Iterable[_Stream]) -> None:
    """What is there. The program is dead, but its end of a pipe may be held by a process that it has sent it to."""
    left, poll = {stream.fd: stream for stream in streams if not stream.is_whole}, select.poll()
    for fd in left:
        poll.register(fd, select.POLLIN)
    while left:
        ready = poll.poll(0)
        for fd, events in ready:
            while events & select.POLLIN and not left[fd].is_whole and not left[fd].is_flood:
                left[fd].read()
                if not events & select.POLLHUP: # it may be empty now
                    break
            if left[fd].is_whole or left[fd].is_flood or not events & select.POLLIN:
                poll.unregister(fd)
                del left[fd]
        if not ready:
            break


class Connection:
    """To a service, or to a brigd of its own. Its run ends when it is closed."""

    def __init__(self, server: str = "any", path: Optional[str] = None) -> None:
        self._sock, self._process = servers.connect(server, path)
        self.is_closed, self._tag, self._buffer = False, NOTE_TAG, memoryview(bytearray(MESSAGE_MAX + 1))
        self.loop: Optional[asyncio.AbstractEventLoop] = None   # of the caller, for coroutines among the tools of its runs

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

    def is_quiet(self) -> bool:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return not poll.poll(0)

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
            length, beside, flags, _ = self._sock.recvmsg_into([self._buffer], socket.CMSG_SPACE(FDS_MAX * 4), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            length, beside, flags = 0, [], 0
        data = bytes(self._buffer[:length])
        fds = array.array("i")
        for level, kind, numbers in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(numbers[:len(numbers) - len(numbers) % fds.itemsize])
        try:
            if not data:
                raise ServiceLost("brigd was killed, or could not tell how the run ended")
            body = json.loads(data)
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not isinstance(body, dict):
                raise ValueError("not a whole JSON object")
        except BaseException as error:
            _close_all(fds)
            if isinstance(error, (ValueError, RecursionError)):
                raise ProtocolError(f"brigd has broken the protocol: {error}") from None
            raise
        return body, list(fds)

    def ask(self, op: str, **keys: Any) -> Dict[str, Any]:
        """The reply to hello, list, stats, explain and their like (brig-protocol(7))."""
        self._send({"op": op, **keys})
        body: Dict[str, Any] = {"tag": NOTE_TAG}
        while body.get("tag") == NOTE_TAG:
            body, fds = self._receive()
            _close_all(fds)
        _check(body)
        return body

    def next_tag(self) -> int:
        self._tag += 1
        return self._tag

    def carry_out(self, request: Dict[str, Any], fds: List[int], stdin: Optional[Text], on_stdout: Optional[Sink], on_stderr: Optional[Sink],
                  bridge: Optional[Bridge] = None) -> Result:
        """One run. Takes the descriptors over."""
        with Loop(self) as loop:
            run = loop.begin(request, fds, stdin, on_stdout, on_stderr, bridge)
            while not run.is_over:
                loop.step()
        return run.outcome()


# --- connections to a service that are used again ---

Key = Tuple[int, int, str, str]
_kept: Dict[Key, List[Connection]] = {}
KEPT_MAX = 8


def _key(server: str, path: Optional[str]) -> Key:
    """A fork has none, and neither has another user."""
    return os.getpid(), os.geteuid(), server, path or os.environ.get("BRIG_SOCKET") or ""


def lease(server: str, path: Optional[str]) -> Connection:
    """One that has nothing to say, which one that was closed has; else a new one."""
    kept = _kept.get(_key(server, path), [])
    while server != "private" and kept:
        with contextlib.suppress(IndexError): # another thread has taken it
            connection = kept.pop()
            if connection.is_quiet():
                return connection
            connection.close()
    return Connection(server, path)


def keep(connection: Connection, server: str, path: Optional[str]) -> None:
    """After a run that has ended well. A brigd of our own ends with its run."""
    kept = _kept.setdefault(_key(server, path), [])
    if connection._process or connection.is_closed or len(kept) >= KEPT_MAX:
        connection.close()
    else:
        kept.append(connection)


@atexit.register
def _let_go() -> None:
    for kept in _kept.values():
        for connection in kept:
            connection.close()
    _kept.clear()


def _check(body: Dict[str, Any]) -> None:
    error = body.get("error")
    if not isinstance(error, dict):
        return
    later = error.get("retry_after_ms")
    kind = Busy if error.get("code") == "busy" else Refused
    raise kind(str(error.get("code")), str(error.get("message")), error.get("field"), later / 1000 if isinstance(later, int) else None)


class Run:
    """From the request to the end."""

    def __init__(self, loop: "Loop", tag: int, stdin: Optional[bytes], sinks: Dict[str, Optional[Sink]], bridge: Optional[Bridge], is_check: bool) -> None:
        self.loop, self.tag, self.sinks, self.pending, self.bridge, self.is_check = loop, tag, sinks, memoryview(stdin or b""), bridge, is_check
        self.streams: Dict[str, _Stream] = {}
        self.stdin, self.id, self.is_cancelled = -1, "", False
        self.is_watching, self.is_waiting, self.calls, self.quiet_since = False, False, 0, 0.0
        self.started_at = 0.0
        self.result: Optional[Result] = None
        self.error: Optional[BaseException] = None

    @property
    def is_over(self) -> bool:
        return self.result is not None or self.error is not None

    def outcome(self) -> Result:
        if self.error:
            raise self.error
        assert self.result
        return self.result

    def close(self) -> None:
        self.close_stdin()
        for stream in self.streams.values():
            if not stream.is_whole:
                self.loop.forget(stream.fd)
            os.close(stream.fd)
        self.streams = {}
        if self.bridge:
            self.loop.forget(self.bridge.wake_fd)
            self.bridge.close()

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            self.loop.forget(self.stdin)
            os.close(self.stdin)
        self.stdin = -1

    # --- events ---

    def hear(self, body: Dict[str, Any], fds: List[int]) -> None:
        """Of the service."""
        if body.get("event") == "started":
            return self.start(body, fds)
        _close_all(fds)
        if body.get("event") == "ended":
            self.end(body)
        elif "error" in body and not self.id:
            _check(body)

    def start(self, body: Dict[str, Any], fds: List[int]) -> None:
        names, keep = body.get("streams"), body.get("output_bytes")
        if self.id or not isinstance(names, list) or len(names) != len(fds) or not isinstance(keep, int):
            _close_all(fds)
            raise ProtocolError("brigd has broken the protocol: a start without its streams, or a second start")
        self.id = str(body.get("run"))
        for name, fd in zip(names, fds):
            if name == "stdin":
                self.stdin = fd
                os.set_blocking(fd, False)
                self.loop.watch(fd, select.EPOLLOUT, self.write)
            elif name == "tools" and self.bridge:
                self.bridge.open(fd)
                self.loop.watch(self.bridge.wake_fd, select.EPOLLIN, self.wake)
            else:
                self.streams[name] = _Stream(fd, report.REPORT_MAX if name == "result" else keep, self.sinks.get(name))
        if any(self.sinks.values()):
            self.watch_streams()
        else:
            self.started_at = time.monotonic()
            self.loop.fresh.append(self)

    def watch_streams(self) -> None:
        for stream in self.streams.values():
            self.loop.watch(stream.fd, select.EPOLLIN, functools.partial(self.read, stream))

    def write(self) -> None:
        try:
            self.pending = self.pending[os.write(self.stdin, self.pending[:CHUNK]):] if self.pending else self.pending
        except BlockingIOError:
            return
        except BrokenPipeError: # the program has closed it, or is gone
            self.pending = memoryview(b"")
        if not self.pending:
            self.close_stdin()

    def read(self, stream: _Stream) -> None:
        stream.read()
        if stream.is_whole:
            self.loop.forget(stream.fd)
        elif stream.is_flood and not self.is_cancelled:
            self.is_cancelled = True
            self.loop.note({"op": "cancel", "run": self.id, "reason": "output_limit"})

    # --- tools ---

    def wake(self) -> None:
        """A call has begun."""
        if self.bridge:
            self.bridge.watch()
            self.is_watching, self.quiet_since = True, time.monotonic()
            self.loop.watching.add(self)

    def tell_calls(self, bridge: Bridge) -> None:
        """For the audit log."""
        calls = bridge.told(CALLS_MAX)
        while calls:
            self.loop.note({"op": "tools", "run": self.id, "waiting": self.is_waiting, "calls": calls})
            calls = bridge.told(CALLS_MAX)

    def watch_calls(self) -> None:
        """While one takes long, the wall clock of the program stands still; of short ones nothing is said."""
        if not self.bridge:
            return
        self.bridge.relieve()
        now, oldest = time.monotonic(), self.bridge.oldest()
        is_waiting = oldest is not None and now - oldest >= LONG
        if is_waiting != self.is_waiting:
            self.is_waiting = is_waiting
            self.loop.note({"op": "tools", "run": self.id, "waiting": is_waiting})
        self.tell_calls(self.bridge)
        if oldest is not None or self.bridge.calls != self.calls:
            self.calls, self.quiet_since = self.bridge.calls, now
        elif now - self.quiet_since > QUIET and self.bridge.rest(self.calls):
            self.is_watching = False
            self.loop.watching.discard(self)

    # --- the end ---

    def end(self, body: Dict[str, Any]) -> None:
        record, exec_error = body.get("record"), body.get("exec_error")
        if not isinstance(record, dict) or not isinstance(record.get("exit_reason"), str):
            raise ProtocolError("brigd has broken the protocol: an end without a record")
        if record["exit_reason"] == "setup_failed" and not exec_error:
            self.error = SetupFailed(str((record.get("error") or {}).get("message")), record)
            return
        _drain(self.streams.values())
        if self.bridge:
            self.loop.forget(self.bridge.wake_fd)
            self.bridge.close()
            self.is_waiting = False
            self.tell_calls(self.bridge)
            record["tool_calls"] = self.bridge.figures()
        self.result = self.made_result(record, exec_error, body.get("lost") or [])

    def made_result(self, record: Dict[str, Any], exec_error: Optional[str], lost: List[Dict[str, Any]]) -> Result:
        out, err, said = (self.streams.get(name) for name in ("stdout", "stderr", "result"))
        for name, stream in (("stdout", out), ("stderr", err)):
            record[f"{name}_bytes"] = stream.seen if stream else None
        truncated = any(stream and stream.seen > stream.keep for stream in (out, err))
        told: Dict[str, Any] = {}
        if said and said.seen:
            try:
                data = bytes(said.data) if said.seen <= said.keep else b"x" * (said.keep + 1)
                told = {"value": report.read(data, report.CHECK)} if self.is_check else _told(report.read(data, report.RUN))
            except exact.Unusable as error:
                told = {"report_error": str(error)}
        return Result(record=record, verdict=record["exit_reason"], status=status_of(record, exec_error), truncated=truncated, exec_error=exec_error,
                      lost=lost, stdout_raw=bytes(out.data) if out else b"", stderr_raw=bytes(err.data) if err else b"", **told)


class Loop:
    """The runs that go on over one connection. When it is closed before they have ended, it closes the connection, which ends them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.runs: Dict[int, Run] = {}
        self.fresh: Deque[Run] = collections.deque() # most end before their streams need to be watched
        self.watching: Set[Run] = set()     # those whose programs call tools
        self.epoll = select.epoll(1, select.EPOLL_CLOEXEC)
        self.handlers: Dict[int, Callable[[], None]] = {}
        self.over: List[Run] = []
        self.watch(connection._sock.fileno(), select.EPOLLIN, self.hear)

    def __enter__(self) -> "Loop":
        return self

    def __exit__(self, *_: Any) -> None:
        self.epoll.close()
        self.handlers = {}
        for run in self.runs.values():
            run.close()
        if self.runs:
            self.connection.close()
        self.runs = {}

    def watch(self, fd: int, events: int, handler: Callable[[], None]) -> None:
        self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def forget(self, fd: int) -> None:
        if self.handlers.pop(fd, None):
            self.epoll.unregister(fd)

    def begin(self, request: Dict[str, Any], fds: List[int], stdin: Optional[Text], on_stdout: Optional[Sink], on_stderr: Optional[Sink],
              bridge: Optional[Bridge] = None) -> Run:
        """Takes the descriptors over."""
        tag = self.connection.next_tag()
        try:
            self.connection._send({**request, "tag": tag, **({} if stdin is None else {"stdin": True}), **({"tools": True} if bridge else {})}, fds)
        finally:
            _close_all(fds)
        run = Run(self, tag, stdin.encode() if isinstance(stdin, str) else stdin, {"stdout": on_stdout, "stderr": on_stderr}, bridge,
                  request.get("mode") == "check")
        self.runs[tag] = run
        return run

    def note(self, message: Mapping[str, Any]) -> None:
        """About a run that goes on; the reply is not waited for."""
        self.connection._send({**message, "tag": NOTE_TAG})

    def hear(self) -> None:
        body, fds = self.connection._receive()
        tag = body.get("tag")
        run = self.runs.get(tag) if isinstance(tag, int) else None
        if run:
            try:
                run.hear(body, fds)
            except (Refused, SetupFailed) as error:
                run.error = error
            if run.is_over:
                self.over.append(run)
            return
        _close_all(fds)
        if tag is None: # of a connection that is turned away
            _check(body)

    def step(self) -> List[Run]:
        """Waits for something, and does it. Those that are over with it."""
        for run in list(self.watching):
            run.watch_calls()
        self.age()
        for fd, _ in self.epoll.poll(LONG if self.watching else FRESH if self.fresh else -1):
            handler = self.handlers.get(fd)
            if handler: # else it was forgotten just before
                handler()
        over, self.over = self.over, []
        for run in over:
            del self.runs[run.tag]
            self.watching.discard(run)
            run.close()
        return over

    def age(self) -> None:
        """What goes on for longer may fill its pipes."""
        before = time.monotonic() - FRESH
        while self.fresh and (self.fresh[0].started_at < before or self.fresh[0].is_over):
            run = self.fresh.popleft()
            if not run.is_over:
                run.watch_streams()


def _told(said: Dict[str, Any]) -> Dict[str, Any]:
    error = said["error"]
    return {"value": said["result"], "value_repr": said["result_repr"], "error": ProgramError(**error) if error else None,
            "variables": said["variables"], "warnings": said["security_warnings"], "security_event": said["security_event"],
            "displays": said.get("displays", []), "bundle": said.get("bundle", {}), "shortened": said.get("left_out", [])}


# --- requests ---

def limits(timeout: Optional[float], cpu_time: Optional[float], memory: Union[int, str, None], pids: Optional[int], cpus: Optional[float],
           output: Union[int, str, None], tool_wait: Optional[float] = None) -> Dict[str, Any]:
    said = {"wall_ms": None if timeout is None else round(timeout * 1000), "cpu_ms": None if cpu_time is None else round(cpu_time * 1000),
            "memory_bytes": memory, "pids": pids, "cpus": cpus, "output_bytes": output, "tool_wait_ms": None if tool_wait is None else round(tool_wait * 1000)}
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
