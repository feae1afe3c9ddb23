"""Runs over a connection: the request, the streams, the record. Does for programs in Python what brig(1) does."""
from __future__ import annotations

import array
import asyncio
import atexit
import collections
import contextlib
import fcntl
import functools
import itertools
import json
import os
import re
import select
import socket
import time
from typing import Any, Callable, Deque, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import exact, report
from . import server as servers
from .bridge import LONG, Bridge
from .errors import Busy, ProtocolError, Refused, ServiceLost, SessionLost, SetupFailed
from .result import ProgramError, Result, status_of

Text = Union[str, bytes]
Time = Union[float, str] # seconds, or "90s", "5m", "1h", "1d"
Shown = Union[Mapping[str, Any], Iterable[Any]]
Sink = Callable[[bytes], None]
Hosts = Optional[Iterable[str]] # None: the hosts of the profile

MESSAGE_MAX = 64 * 1024
FDS_MAX = 5             # stdout, stderr, stdin, result, tools
CALLS_MAX = 64          # calls of tools in one message
NOTES_MAX = 16          # messages without a reply yet, while calls are told: a service ends the connection of a client that does not read
NOTE_TAG = 0            # of messages that only report something: their replies are ignored
FRESH = 0.02           # seconds before the streams of a run are watched
QUIET = 0.2             # seconds without a call of a tool after which the loop watches wake_fd again, instead of polling
DEAF = 0.5              # seconds: the longest wait. A signal just before a wait does not end it, and Python handles it only afterwards
FLOOD = 8               # times the bytes that are kept: more output ends the run
GRACE = 2.0             # seconds that an interrupted call of a session gets before it is ended
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
CHUNK = 64 * 1024


def encoded(text: Text, what: str) -> bytes:
    """ValueError: half of a character, as of a text that was cut inside an emoji."""
    if not isinstance(text, str):
        return bytes(text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what}: {text[error.start]!r} at {error.start} is half a character; cut the text elsewhere, or give bytes") from None


def words_of(words: Sequence[str], what: str) -> List[str]:
    made = list(words)
    for each in made:
        if isinstance(each, str) and b"\0" in encoded(each, what):
            raise ValueError(f"{what}: {each[:80]!r} has a NUL in it")
    return made


def entries_of(env: Optional[Mapping[str, str]]) -> List[str]:
    for name in env or {}:
        if not name or "=" in name:
            raise ValueError(f"env: {name!r} cannot be the name of a variable: it is empty, or has = in it")
    return words_of([f"{name}={value}" for name, value in (env or {}).items()], "env")


def _sealed(text: Text) -> int:
    """The program in a sealed memory file, so that it cannot change after the service has checked it. The descriptor is the caller's."""
    program = encoded(text, "code")
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    data = memoryview(program)
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
    """A stream of a program: the first bytes are kept, the others counted."""

    def __init__(self, fd: int, keep: int, sink: Optional[Sink] = None) -> None:
        self.fd, self.keep, self.sink, self.seen, self.data = fd, keep, sink, 0, bytearray()
        self.is_whole = False

    def read(self) -> bool:
        """Reads once. False: there was nothing to read. The program can open its end of a pipe again, and take bytes that poll has seen."""
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return False
        kept = chunk[:max(0, self.keep - self.seen)]
        self.seen += len(chunk)
        self.data += kept
        self.is_whole = not chunk
        if kept and self.sink:
            self.sink(kept)
        return True

    @property
    def is_flood(self) -> bool:
        return self.seen > self.keep * FLOOD


def _drain(streams: Iterable[_Stream]) -> None:
    """Reads what is in the pipes, without waiting for end of file: a program can send its end of a pipe to a process outside of the jail."""
    left, poll = {stream.fd: stream for stream in streams if not stream.is_whole}, select.poll()
    for fd in left:
        poll.register(fd, select.POLLIN)
    while left:
        ready = poll.poll(0)
        for fd, events in ready:
            is_read = bool(events & select.POLLIN)
            while is_read and not left[fd].is_whole and not left[fd].is_flood:
                is_read = left[fd].read()
                if not events & select.POLLHUP: # it may be empty now
                    break
            if left[fd].is_whole or left[fd].is_flood or not is_read:
                poll.unregister(fd)
                del left[fd]
        if not ready:
            break


class Connection:
    """A connection to a service or to a private brigd. Its runs end when it is closed."""

    def __init__(self, server: str = "any", path: Optional[str] = None) -> None:
        self._sock, self._process = servers.connect(server, path)
        self.is_closed, self.is_ended = False, False
        self._tags, self._buffer = itertools.count(NOTE_TAG + 1), memoryview(bytearray(MESSAGE_MAX + 1))
        self.notes: Deque[None] = collections.deque() # one for each message with NOTE_TAG whose reply was not read yet; another thread may add one
        self.loop: Optional[asyncio.AbstractEventLoop] = None   # the caller's event loop, for coroutines among the tools of its runs

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def hang_up(self) -> None:
        """Closes the connection, without waiting for a private brigd to end."""
        self.is_closed = True
        self._sock.close()

    def close(self) -> None:
        self.hang_up()
        if self._process:
            self._process.wait()
            self._process = None

    def is_quiet(self) -> bool:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return not poll.poll(0)

    def is_gone(self) -> bool:
        """Has either side closed the connection?"""
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLRDHUP)
        except ValueError: # closed, perhaps by another thread just now
            return True
        return bool(poll.poll(0))

    def end(self) -> None:
        """Ends the run, from another thread than the one that waits for it. The waiting thread notices, and closes the connection."""
        self.is_ended = True
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
            pass # a service that refuses the connection has sent the reason, which is read next

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
                raise ServiceLost("the connection was closed" if self.is_ended else "brigd was killed, or could not tell how the run ended")
            body = json.loads(data)
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not isinstance(body, dict):
                raise ValueError("not a whole JSON object")
        except BaseException as error:
            _close_all(fds)
            if isinstance(error, (ValueError, RecursionError)):
                raise ProtocolError(f"brigd has broken the protocol: {error}") from None
            raise
        if body.get("tag") == NOTE_TAG and self.notes:
            self.notes.pop()
        return body, list(fds)

    def ask(self, op: str, **keys: Any) -> Dict[str, Any]:
        """Sends a request such as hello, list, stats or explain, and returns the reply (brig-protocol(7))."""
        self._send({"op": op, **keys})
        body: Dict[str, Any] = {"tag": NOTE_TAG}
        while body.get("tag") == NOTE_TAG:
            body, fds = self._receive()
            _close_all(fds)
        _check(body)
        return body

    def next_tag(self) -> int:
        return next(self._tags)

    def carry_out(self, request: Dict[str, Any], fds: List[int], stdin: Optional[Text], on_stdout: Optional[Sink], on_stderr: Optional[Sink],
                  bridge: Optional[Bridge] = None) -> Result:
        """One run. Takes ownership of fds."""
        with Loop(self) as loop:
            run = loop.begin(request, fds, stdin, on_stdout, on_stderr, bridge)
            while not run.is_over:
                loop.step()
        return run.outcome()


# --- connections that are reused ---

Key = Tuple[int, int, str, str]
_kept: Dict[Key, List[Connection]] = {}
KEPT_MAX = 8


def _key(server: str, path: Optional[str]) -> Key:
    """The key of a kept connection. After a fork or a change of the user there is no connection for the new key."""
    return os.getpid(), os.geteuid(), server, path or os.environ.get("BRIG_SOCKET") or ""


def lease(server: str, path: Optional[str]) -> Connection:
    """A kept connection without unread messages, or a new one. On a connection that the service has closed, end of file counts as unread."""
    kept = _kept.get(_key(server, path), [])
    while server != "private" and kept:
        with contextlib.suppress(IndexError): # another thread has taken it
            connection = kept.pop()
            if connection.is_quiet():
                return connection
            connection.close()
    return Connection(server, path)


def keep(connection: Connection, server: str, path: Optional[str]) -> None:
    """Keeps a connection after a run that has ended well. A private brigd is closed, because it ends with its run."""
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
    code, field = error.get("code"), error.get("field")
    kind = Busy if code == "busy" else SessionLost if (code, field) == ("not_found", "session") else Refused
    raise kind(str(code), str(error.get("message")), field, later / 1000 if isinstance(later, int) else None)


class Awaited:
    """A request that was sent, until it is over."""

    def __init__(self) -> None:
        self.tag = NOTE_TAG
        self.error: Optional[BaseException] = None

    @property
    def is_over(self) -> bool:
        return self.error is not None

    def hear(self, body: Dict[str, Any], fds: List[int]) -> None:
        """Handles an answer with the request's tag. Takes ownership of fds."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the request is over, or no more answers will be read."""


class Reply(Awaited):
    """The reply to a request such as list or close."""

    def __init__(self) -> None:
        super().__init__()
        self.body: Optional[Dict[str, Any]] = None
        self.fds: List[int] = []
        self.is_wanted = True

    @property
    def is_over(self) -> bool:
        return self.body is not None or self.error is not None

    def hear(self, body: Dict[str, Any], fds: List[int]) -> None:
        if "error" in body or not self.is_wanted:
            _close_all(fds)
            fds = []
        _check(body)
        self.body, self.fds = body, fds

    def drop(self) -> None:
        """The caller has stopped waiting: closes the reply's descriptors, also those that are still to come."""
        self.is_wanted = False
        _close_all(self.fds)
        self.fds = []

    def outcome(self) -> Dict[str, Any]:
        if self.error:
            raise self.error
        assert self.body is not None
        return self.body


class Run(Awaited):
    """One run, from the request to the end."""

    def __init__(self, loop: "Loop", stdin: Optional[bytes], sinks: Dict[str, Optional[Sink]], bridge: Optional[Bridge], request: Mapping[str, Any]) -> None:
        super().__init__()
        self.loop, self.sinks, self.pending, self.bridge = loop, sinks, memoryview(stdin or b""), bridge
        self.is_check, self.is_call, self.context = request.get("mode") == "check", "session" in request, request.get("context")
        self.streams: Dict[str, _Stream] = {}
        self.stdin, self.id, self.is_cancelled, self.is_interrupted = -1, "", False, False
        self.is_watching, self.is_waiting, self.calls, self.quiet_since = False, False, 0, 0.0
        self.started_at = 0.0
        self.failure: Optional[BaseException] = None # raised by on_stdout or on_stderr
        self.result: Optional[Result] = None

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
        """Handles an event of the service."""
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
        if self.is_interrupted: # interrupt() was called before the run had an id
            self.interrupt()
        for name, fd in zip(names, fds):
            os.set_blocking(fd, name == "tools") # the bridge has a thread of its own for that socket
            if name == "stdin":
                self.stdin = fd
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
        except BrokenPipeError: # the program has closed stdin, or has ended
            self.pending = memoryview(b"")
        if not self.pending:
            self.close_stdin()

    def read(self, stream: _Stream) -> None:
        try:
            stream.read()
        except Exception as error: # from the caller's function: raised again when the run has ended
            self.failure, self.sinks = error, {}
            for each in self.streams.values():
                each.sink = None
            self.stop()
        if stream.is_whole:
            self.loop.forget(stream.fd)
        elif stream.is_flood:
            self.cancel("output_limit")

    # --- ended early ---

    def cancel(self, reason: str = "cancelled") -> None:
        if not self.is_cancelled:
            self.is_cancelled = True
            self.loop.note({"op": "cancel", "run": self.id, "reason": reason})

    def interrupt(self) -> None:
        """Interrupts a call of a session: KeyboardInterrupt in Python, SIGINT to a command."""
        self.is_interrupted = True
        if self.id:
            self.loop.note({"op": "interrupt", "run": self.id})

    def stop(self) -> None:
        """Ends a run whose result is not wanted. A call of a session is interrupted first, to keep the interpreter, and ended if it goes on."""
        if not self.is_call:
            self.cancel()
        elif self not in self.loop.stopping:
            self.interrupt()
            self.loop.stopping[self] = time.monotonic() + GRACE

    # --- tools ---

    def wake(self) -> None:
        """wake_fd was readable: a call of a tool has begun."""
        if self.bridge:
            self.bridge.watch()
            self.is_watching, self.quiet_since = True, time.monotonic()
            self.loop.watching.add(self)

    def tell_calls(self, bridge: Bridge) -> None:
        """Reports ended calls of tools to the service, for the audit log."""
        calls = bridge.told(CALLS_MAX)
        while calls:
            self.loop.note({"op": "tools", "run": self.id, "waiting": self.is_waiting, "calls": calls})
            while len(self.loop.connection.notes) >= NOTES_MAX:
                self.loop.hear()
            calls = bridge.told(CALLS_MAX)

    def watch_calls(self) -> None:
        """Tells the service when a call of a tool takes long, so that the program's wall clock stands still. Short calls are not reported."""
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
        try:
            _drain(self.streams.values())
        except Exception as error: # from the caller's function
            self.failure = error
        if self.bridge:
            self.loop.forget(self.bridge.wake_fd)
            self.bridge.close()
            self.is_waiting = False
            record["tool_calls"] = self.bridge.figures()
        if self.failure:
            self.error = self.failure
        else:
            self.result = self.made_result(record, exec_error, body.get("lost") or [])
        if self.bridge:
            try:
                self.tell_calls(self.bridge)
            except ServiceLost: # this run has its record
                pass

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
    """The event loop of one connection, with all requests under way. Leaving `with` before they are over closes the connection, which ends runs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.runs: Dict[int, Awaited] = {}
        self.fresh: Deque[Run] = collections.deque() # new runs: most end before their streams need to be watched
        self.watching: Set[Run] = set()     # runs whose programs call tools
        self.stopping: Dict[Run, float] = {} # interrupted calls, and when they will be ended (time.monotonic())
        self.epoll = select.epoll(2, select.EPOLL_CLOEXEC)
        self.handlers: Dict[int, Callable[[], None]] = {}
        self.over: List[Awaited] = []
        self.is_closed = False
        self.watch(connection._sock.fileno(), select.EPOLLIN, self.hear)

    def __enter__(self) -> "Loop":
        return self

    def __exit__(self, *_: Any) -> None:
        had_runs = bool(self.runs)
        self.close()
        if had_runs:
            self.connection.close()

    def close(self, error: Optional[BaseException] = None) -> None:
        """error: set in all requests under way."""
        self.is_closed, self.handlers, self.stopping = True, {}, {}
        self.epoll.close()
        for run in list(self.runs.values()):
            run.error = run.error or error
            run.close()
        self.runs = {}

    def watch(self, fd: int, events: int, handler: Callable[[], None]) -> None:
        self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def forget(self, fd: int) -> None:
        if self.handlers.pop(fd, None):
            self.epoll.unregister(fd)

    def send(self, awaited: Awaited, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """May be called from any thread. Another thread may handle the answer before this returns."""
        awaited.tag = self.connection.next_tag()
        self.runs[awaited.tag] = awaited
        try:
            self.connection._send({**message, "tag": awaited.tag}, fds)
        except BaseException as error:
            self.runs.pop(awaited.tag, None)
            if not isinstance(error, OSError) or not self.is_closed:
                raise
        if self.is_closed and not awaited.is_over: # another thread has just closed it
            awaited.error = ServiceLost("the connection was closed")

    def begin(self, request: Dict[str, Any], fds: List[int], stdin: Optional[Text], on_stdout: Optional[Sink], on_stderr: Optional[Sink],
              bridge: Optional[Bridge] = None) -> Run:
        """Sends the request of a run. Takes ownership of fds."""
        run = Run(self, stdin.encode() if isinstance(stdin, str) else stdin, {"stdout": on_stdout, "stderr": on_stderr}, bridge, request)
        try:
            self.send(run, {**request, **({} if stdin is None else {"stdin": True}), **({"tools": True} if bridge else {})}, fds)
        finally:
            _close_all(fds)
        return run

    def calls(self, context: str) -> List[Run]:
        """The calls under way in a context of a session."""
        return [run for run in list(self.runs.values()) if isinstance(run, Run) and run.context == context and not run.is_over]

    def note(self, message: Mapping[str, Any]) -> None:
        """Sends a message about a run that goes on, without waiting for the reply."""
        self.connection.notes.append(None)
        self.connection._send({**message, "tag": NOTE_TAG})

    def hear(self) -> None:
        try:
            self.take(*self.connection._receive())
        except Exception:
            raise
        except BaseException: # an interrupt, perhaps in the middle of a message, which would then be lost
            self.connection.end()
            raise

    def take(self, body: Dict[str, Any], fds: List[int]) -> None:
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
        if tag is None: # the service refuses the connection
            _check(body)

    def pause(self) -> float:
        """For how long step() may wait for an event; -1: for ever."""
        if self.watching:
            return LONG
        if self.fresh:
            return FRESH
        late = list(self.stopping.values())
        return max(0.0, min(late) - time.monotonic()) if late else -1

    def step(self, pause: Optional[float] = None) -> List[Awaited]:
        """Waits for an event, and handles it. Returns the requests that are over."""
        for run in list(self.watching):
            run.watch_calls()
        self.age()
        if pause is None:
            pause = self.pause()
            pause = DEAF if pause < 0 else pause
        for fd, _ in self.epoll.poll(pause):
            handler = self.handlers.get(fd)
            if handler: # it may have been forgotten just before
                handler()
        over, self.over = self.over, []
        for each in over:
            self.runs.pop(each.tag, None)
            if isinstance(each, Run):
                self.watching.discard(each)
                self.stopping.pop(each, None)
            each.close()
        return over

    def age(self) -> None:
        """Starts to watch the streams of runs older than FRESH, whose pipes may fill up, and ends calls whose GRACE is over."""
        now = time.monotonic()
        while self.fresh and (self.fresh[0].started_at < now - FRESH or self.fresh[0].is_over):
            run = self.fresh.popleft()
            if not run.is_over:
                run.watch_streams()
        for run, at in list(self.stopping.items()):
            if at <= now and run.id:
                del self.stopping[run]
                run.cancel()


def _told(said: Dict[str, Any]) -> Dict[str, Any]:
    error = said["error"]
    return {"value": said["result"], "value_repr": said["result_repr"], "error": ProgramError(**error) if error else None,
            "variables": said["variables"], "warnings": said["security_warnings"], "security_event": said["security_event"],
            "displays": said.get("displays", []), "bundle": said.get("bundle", {}), "shortened": said.get("left_out", [])}


# --- requests ---

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(said: Time) -> int:
    """Of seconds, or of a text as the command line takes it: "250ms", "90s", "5m", "1h", "1d"."""
    if not isinstance(said, str):
        return round(said * 1000)
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)", said)
    if not parts:
        raise ValueError(f"{said!r} is not a time, like 30, '90s', '5m', '1h' or '1d'")
    return round(float(parts[1]) * _UNITS[parts[2] or "s"])


def limits(timeout: Optional[Time], cpu_time: Optional[Time], memory: Union[int, str, None], pids: Optional[int], cpus: Optional[float],
           output: Union[int, str, None], tool_wait: Optional[Time] = None) -> Dict[str, Any]:
    said = {"wall_ms": None if timeout is None else milliseconds(timeout), "cpu_ms": None if cpu_time is None else milliseconds(cpu_time),
            "memory_bytes": memory, "pids": pids, "cpus": cpus, "output_bytes": output, "tool_wait_ms": None if tool_wait is None else milliseconds(tool_wait)}
    return {name: value for name, value in said.items() if value is not None}


def shown(ro: Optional[Shown]) -> List[Tuple[str, str]]:
    """(name, path) of each; the name of a path alone is its last component."""
    if ro is None:
        return []
    if isinstance(ro, (str, bytes, os.PathLike)):
        ro = [ro]
    if isinstance(ro, Mapping):
        return [(str(name), os.fspath(path)) for name, path in ro.items()]
    return [(os.path.basename(os.path.realpath(path)), os.fspath(path)) for path in ro]


def put_cell(request: Dict[str, Any], network: Hosts, allow_missing: Sequence[str]) -> None:
    if isinstance(allow_missing, (str, bytes)):
        raise TypeError("allow_missing: expected a list of limits, like [\"memory\", \"cpus\"]")
    if allow_missing:
        request["allow_missing"] = list(allow_missing)
    if isinstance(network, (str, bytes)):
        raise TypeError("network: expected a list of hosts, like [\"pypi.org\"]")
    if network is not None:
        request["network"] = list(network)


def open_shown(pairs: Sequence[Tuple[str, str]], fds: List[int]) -> None:
    for _, path in pairs:
        fds.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
