"""
The outer end of the bridge between a program and its tools (brig-protocol(7), TOOLS). All that comes from the program is hostile.

One thread, the leader, reads a line and carries out the call itself. If the function took long the last time, the leader first wakes another
thread, which becomes the leader. Otherwise it reads on afterwards, so that no thread is woken between two short calls. Threads are started as
they are needed. When the run ends, a thread that hangs in a function is left alone.
"""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import datetime
import enum
import hashlib
import inspect
import json
import logging
import os
import pathlib
import socket
import threading
import time
import traceback
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any, Deque, Dict, List, Mapping, Optional, Set

from . import exact, schema
from .tools import Call, Toolbox, ToolError, _Known

LINE_MAX = 1 << 20
RESULT_MAX = LINE_MAX - 64
DEPTH_MAX = 64
CHUNK = 64 << 10
TEXT_MAX = 16 << 10     # characters of an error
LISTED_MAX = 200        # calls that a record names
TOLD_MAX = 10_000       # ended calls that wait to be reported to the audit log
QUICK = 0.001           # seconds: while a function that took less the last time runs, no other thread reads
LONG = 0.02             # seconds: a call that takes longer stops the wall clock
IDS_MAX = 1 << 53
_KEYS: Dict[str, Set[str]] = {"call": {"name", "args"}, "cancel": set(), "find": {"words", "max"}, "describe": {"name"}, "names": {"under"}}
_TYPES = {"name": str, "args": dict, "words": str, "max": int, "under": str}
_log = logging.getLogger("brig")


class _Broken(Exception):
    """The program has broken the protocol, and the bridge ends."""


# --- JSON ---

def _plain(value: Any) -> Any:
    """A simpler value for an object that JSON does not have."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (Decimal, Fraction, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    for name in "model_dump", "tolist", "_asdict":
        if callable(getattr(type(value), name, None)):
            return getattr(value, name)()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _result_text(value: Any) -> str:
    """What a function has returned, as JSON text. ValueError or TypeError says what is wrong with it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    data = text.encode("utf-8")
    if text[0] in "[{" or len(data) > 18: # finds keys with the same text, numbers beyond 64 bits, and too much depth
        exact.read(data, RESULT_MAX, DEPTH_MAX - 1)
    return text


def _error_text(kind: str, message: str) -> str:
    message = message.encode("utf-8", "replace").decode("utf-8")
    return f'"error": {{"kind": "{kind}", "message": {json.dumps(message[:TEXT_MAX], ensure_ascii=False)}}}'


def _digest(args: Dict[str, Any]) -> str:
    """The SHA-256 of the arguments as JSON: keys sorted, no blanks, UTF-8."""
    return hashlib.sha256(json.dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")).hexdigest()


def _request_of(line: bytes) -> Dict[str, Any]:
    try:
        body = exact.read(line, LINE_MAX, DEPTH_MAX)
    except exact.Unusable as error:
        raise _Broken(str(error)) from None
    op = body.get("op") if isinstance(body, dict) else None
    keys = _KEYS.get(op) if isinstance(op, str) else None
    if keys is None or body.keys() - keys - {"id", "op"} or (keys - {"max"}) - body.keys():
        raise _Broken("an unknown op, or missing or unknown keys")
    if any(type(body[name]) is not _TYPES[name] for name in keys & body.keys()):
        raise _Broken("a key of the wrong type")
    if type(body.get("id")) is not int or not 0 < body["id"] < IDS_MAX:
        raise _Broken("an id out of range")
    return dict(body)


# --- one call ---

class _Job:
    def __init__(self, number: int, name: str, args: Dict[str, Any]) -> None:
        self.number, self.name, self.args, self.started = number, name, args, time.monotonic()
        self.is_over = False # the call was answered
        self.task: Optional["concurrent.futures.Future[Any]"] = None


class _Failure(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class Bridge:
    """The bridge of one run. loop: the caller's event loop, in which coroutines run; without one the bridge makes a loop."""

    def __init__(self, box: Toolbox, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        self.box, self.limits = box, box.limits
        self._loop, self._own_loop = loop, False
        self._sock: Optional[socket.socket] = None
        self._wake_read, self._wake_write = -1, -1
        self._lines: Deque[bytes] = collections.deque()
        self._pieces: List[bytes] = []
        self._length = 0
        self._writing, self._state, self._asking, self._wanted = threading.Lock(), threading.Lock(), threading.Lock(), threading.Semaphore(0)
        self._idle = self._threads = self._running = 0
        self._is_led = False
        self._jobs: Dict[int, _Job] = {}    # calls without an answer
        self._begun: Dict[int, _Job] = {}   # those that have begun. Only they stop the clock: one that waits its turn may wait for the program
        self._held: Deque[_Job] = collections.deque()
        self.ended = ""                     # why the bridge has ended; "": it has not
        self._is_watched = False            # wake_fd was written to, and its reader polls oldest()
        # The record.
        self._n = self._failed = self._denied = self._received = self._sent = self._questions = 0
        self._listed: List[Dict[str, Any]] = []
        self._told: Deque[Dict[str, Any]] = collections.deque(maxlen=TOLD_MAX)
        self._waited, self._waits_since = 0.0, 0.0
        self._tokens, self._tokens_at = self.limits.per_second or 0.0, time.monotonic()

    # --- its life ---

    def open(self, fd: int) -> None:
        """Takes ownership of the socket."""
        self._sock = socket.socket(fileno=fd)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._add_thread()

    def close(self) -> None:
        """Called when the run has ended. Does not wait for functions that still run; their results are dropped. May be called twice."""
        self._end("the run has ended")
        with self._state:
            jobs, stops, self._own_loop = list(self._jobs.values()), self._own_loop, False
        for job in jobs:
            self._finish(job, "lost", None)
            if job.task:
                job.task.cancel()
        if stops and self._loop:
            self._loop.call_soon_threadsafe(self._loop.stop)
        with self._state:
            for fd in self._wake_read, self._wake_write:
                if fd >= 0:
                    os.close(fd)
            self._wake_read = self._wake_write = -1

    def _end(self, why: str) -> None:
        if not self.ended:
            self.ended = why
        if self._sock:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        with self._state:
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._wanted.release()

    def _add_thread(self) -> None:
        with self._state:
            self._threads += 1
        threading.Thread(target=self._work, name="brig-tools", daemon=True).start()

    # --- the wall clock ---

    @property
    def wake_fd(self) -> int:
        """Readable when a call begins. From then on the caller must poll oldest() every LONG seconds, until rest() returns True."""
        return self._wake_read

    def oldest(self) -> Optional[float]:
        """When the oldest call under way began (time.monotonic()), or None."""
        with self._state:
            return next(iter(self._begun.values())).started if self._begun else None

    def watch(self) -> None:
        """To be called when wake_fd is readable: empties it."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 64)

    def relieve(self) -> None:
        """To be called as often as oldest(): if the leader hangs in a function that used to be quick, another thread must read."""
        with self._state:
            has_hung = bool(self._begun) and not self._is_led
        if has_hung:
            self._call_leader()

    def rest(self, seen: int) -> bool:
        """True when no call has come since `calls` was `seen`, and none is under way: then wake_fd reports the next one."""
        with self._state:
            if self._n != seen or self._jobs:
                return False
            self._is_watched = False
            return True

    @property
    def calls(self) -> int:
        return self._n

    # --- the record ---

    def figures(self) -> Dict[str, Any]:
        with self._state:
            return {"n": self._n, "failed": self._failed, "denied": self._denied, "wait_ms": round(self._waited * 1000, 3),
                    "bytes": self._received + self._sent, "calls": self._listed[:]}

    def told(self, most: int) -> List[Dict[str, Any]]:
        """At most `most` ended calls that were not returned before, for the audit log."""
        with self._state:
            return [self._told.popleft() for _ in range(min(most, len(self._told)))]

    def _note(self, job: _Job, verdict: str) -> None:
        """The caller holds _state."""
        self._n += 1
        self._denied += verdict == "denied"
        self._failed += verdict not in ("ok", "denied")
        if len(self._listed) < LISTED_MAX:
            self._listed.append({"name": job.name[:128], "ms": round((time.monotonic() - job.started) * 1000, 3), "verdict": verdict})
        self._told.append({"name": job.name[:128].replace("\0", "\ufffd"), "verdict": "tool" if verdict == "failed" else verdict, "args_sha256": _digest(job.args)})

    # --- lines ---

    def _line(self) -> Optional[bytes]:
        """The next line; None at end of file. Called only by the leader."""
        while not self._lines:
            chunk = self._receive()
            if not chunk:
                return None
            lines = chunk.split(b"\n")
            if len(lines) > 1:
                lines[0] = b"".join([*self._pieces, lines[0]])
                self._pieces, self._length = [], 0
            self._length += len(lines[-1])
            self._pieces.append(lines.pop())
            if self._length > LINE_MAX:
                raise _Broken(f"a line of more than {LINE_MAX} bytes")
            self._lines.extend(lines)
        return self._lines.popleft()

    def _receive(self) -> bytes:
        assert self._sock
        try:
            chunk = self._sock.recv(CHUNK) # no room for control data, so the kernel discards descriptors that a program sends
        except OSError:
            return b""
        self._received += len(chunk)
        if self._received > self.limits.bytes:
            raise _Broken(f"more than {self.limits.bytes} bytes")
        return chunk

    def _send(self, number: int, text: str) -> None:
        line = f'{{"id": {number}, {text}}}\n'.encode("utf-8", "replace")
        with self._writing:
            if self.ended or not self._sock:
                return
            self._sent += len(line)
            if self._sent > self.limits.bytes:
                return self._end(f"more than {self.limits.bytes} bytes of answers")
            try:
                self._sock.sendall(line)
            except OSError:
                self._end("the program is gone")

    # --- threads ---

    def _work(self) -> None:
        try:
            while not self.ended:
                job = self._next_held() or self._lead()
                if job:
                    self._carry_out(job)
                    with self._state:
                        self._running -= 1
        except _Broken as error:
            self._end(f"the program has broken the protocol: {error}")
        except Exception: # an error of this file
            _log.exception("tools")
            self._end("broken")
        finally:
            with self._state:
                self._threads -= 1
                is_last = not self._threads
            if is_last and self._sock:
                self._sock.close() # by the last thread: another one could still read from this number after it was reused

    def _call_leader(self) -> None:
        with self._state:
            is_there = self._idle > 0
            self._idle -= is_there
        if is_there:
            self._wanted.release()
        elif not self.ended:
            self._add_thread()

    def _next_held(self) -> Optional[_Job]:
        with self._state:
            if self.ended or not self._held or self._running >= self.limits.at_once:
                return None
            job = self._held.popleft()
            self._begin(job)
            return job

    def _begin(self, job: _Job) -> None:
        """The caller holds _state."""
        self._running += 1
        if job.is_over: # cancelled while it was held
            return
        job.started = time.monotonic()
        if not self._begun:
            self._waits_since = job.started
        self._begun[job.number] = job

    def _lead(self) -> Optional[_Job]:
        """As the leader, reads until there is a call for this thread. If another thread leads, waits until that one hands over."""
        with self._state:
            leads = not self._is_led
            if leads:
                self._is_led = True
            elif not self.ended:
                self._idle += 1
            else:
                return None
        if not leads:
            self._wanted.acquire()
            return None
        try:
            job = self._read_call()
        finally:
            with self._state:
                self._is_led = False
        if job and not self._is_quick(job):
            self._call_leader()
        return job

    def _is_quick(self, job: _Job) -> bool:
        known = self.box.get(job.name)
        return known is None or (known.seconds < QUICK and self.box.verdict(job.name) is not None)

    def _read_call(self) -> Optional[_Job]:
        while not self.ended:
            line = self._line()
            if line is None:
                self._end("the program has closed it")
                break
            job = self._take(_request_of(line))
            if job:
                return job
        return None

    def _take(self, body: Dict[str, Any]) -> Optional[_Job]:
        number, op = body["id"], body["op"]
        if op == "cancel":
            self._cancel(number)
        elif number in self._jobs:
            raise _Broken("an id that is in use")
        elif op == "call":
            return self._admit(_Job(number, body["name"], body["args"]))
        else:
            self._questions += 1
            may = self._questions <= self.limits.calls
            self._send(number, self._answer(op, body) if may else _error_text("limit", f"a run may ask about tools {self.limits.calls} times"))
        return None

    def _answer(self, op: str, body: Dict[str, Any]) -> str:
        if op == "names":
            text = f'"names": {json.dumps(self.box.names(body["under"]), ensure_ascii=False)}'
        elif op == "find":
            text = f'"tools": {json.dumps(self.box.find(body["words"], min(max(body.get("max", 20), 1), 100)), ensure_ascii=False)}'
        else:
            told = self.box.describe(body["name"])
            text = f'"tool": {json.dumps(told, ensure_ascii=False, default=str)}' if told else _error_text("not_found", "no such tool")
        return text if len(text.encode("utf-8", "replace")) < LINE_MAX - 100 else _error_text("limit", "the answer is larger than 1 MiB; ask for less")

    def _admit(self, job: _Job) -> Optional[_Job]:
        refusal = self._over_limit()
        if refusal:
            with self._state:
                self._note(job, "limit")
            self._send(job.number, _error_text("limit", refusal))
            return None
        with self._state:
            self._jobs[job.number] = job
            wakes, self._is_watched = not self._is_watched, True
            is_turn = self._running < self.limits.at_once
            if is_turn:
                self._begin(job)
            else:
                self._held.append(job)
            if wakes and self._wake_write >= 0:
                os.write(self._wake_write, b"w")
        return job if is_turn else None

    def _over_limit(self) -> str:
        """Why a call is refused."""
        if self._n + len(self._jobs) >= self.limits.calls:
            return f"a run may call tools {self.limits.calls} times"
        most = self.limits.per_second
        if most:
            now = time.monotonic()
            self._tokens, self._tokens_at = min(most, self._tokens + (now - self._tokens_at) * most), now
            if self._tokens < 1:
                return f"at most {most:g} calls a second"
            self._tokens -= 1
        return ""

    def _cancel(self, number: int) -> None:
        job = self._jobs.get(number)
        if job:
            self._finish(job, "cancelled", _error_text("cancelled", "the program has cancelled the call"))
            if job.task:
                job.task.cancel()

    def _finish(self, job: _Job, verdict: str, text: Optional[str]) -> None:
        """Ends a call with one answer, at the first of all attempts to do so."""
        with self._state:
            if job.is_over:
                return
            job.is_over = True
            self._jobs.pop(job.number, None)
            if self._begun.get(job.number) is job:
                del self._begun[job.number]
                if not self._begun:
                    self._waited += time.monotonic() - self._waits_since
            self._note(job, verdict)
        if text is not None:
            self._send(job.number, text)

    # --- a call ---

    def _carry_out(self, job: _Job) -> None:
        try:
            known = self._judged(job)
            verdict, text = "ok", f'"result": {self._result(known, job)}'
        except _Failure as failure:
            verdict, text = failure.kind, _error_text(failure.kind, failure.message)
        self._finish(job, "failed" if verdict == "tool" else verdict, text)

    def _judged(self, job: _Job) -> _Known:
        known = self.box.get(job.name)
        if known is None:
            raise _Failure("not_found", "no such tool")
        may = self.box.verdict(job.name)
        if may is None:
            may = self._asked(known, job)
            if not may:
                raise _Failure("denied", "declined")
        if not may:
            raise _Failure("denied", self.box.why_denied(job.name))
        try:
            schema.check(known.input, job.args)
        except schema.Mismatch as mismatch:
            raise _Failure("bad_arguments", str(mismatch)) from None
        return known

    def _asked(self, known: _Known, job: _Job) -> bool:
        """Asks about one call at a time: there is one person to ask."""
        assert self.box.ask
        with self._asking:
            if self.ended or job.is_over:
                return False
            try:
                return bool(self._awaited(self.box.ask(Call(job.name, job.args, known.description)), job))
            except Exception:
                _log.exception("ask, about %s", job.name)
                raise _Failure("denied", "the question could not be asked") from None

    def _result(self, known: _Known, job: _Job) -> str:
        if job.is_over:
            raise _Failure("cancelled", "")
        try:
            began = time.perf_counter()
            value = self._awaited(known.call(dict(job.args)), job)
            known.seconds = time.perf_counter() - began
        except _Failure:
            raise
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            raise _Failure("cancelled", "the call was cancelled") from None
        except ToolError as error:
            raise _Failure("tool", str(error)) from None
        except BaseException as error: # even SystemExit from the function must not end this thread
            _log.debug("tool %s", known.name, exc_info=True)
            raise _Failure("tool", self._told_of(error)) from None
        try:
            return _result_text(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise _Failure("tool", f"what it returned cannot be sent: {error}") from None

    def _told_of(self, error: BaseException) -> str:
        if self.box.tracebacks:
            return "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

    # --- coroutines ---

    def _awaited(self, value: Any, job: _Job) -> Any:
        if not inspect.isawaitable(value):
            return value
        try:
            loop = self._the_loop()
        except _Failure:
            if inspect.iscoroutine(value):
                value.close()
            raise
        job.task = asyncio.run_coroutine_threadsafe(_until(value, self.limits.seconds), loop)
        if job.is_over: # cancelled before job.task was set
            job.task.cancel()
        return job.task.result()

    def _the_loop(self) -> asyncio.AbstractEventLoop:
        with self._state:
            if self.ended:
                raise _Failure("lost", self.ended)
            if self._loop is None:
                self._loop, self._own_loop = asyncio.new_event_loop(), True
                threading.Thread(target=_run_loop, args=(self._loop,), name="brig-tools-loop", daemon=True).start()
            return self._loop


async def _until(value: Any, seconds: Optional[float]) -> Any:
    began = time.monotonic()
    try:
        return await asyncio.wait_for(value, seconds)
    except asyncio.TimeoutError:
        if seconds is None or time.monotonic() - began < seconds: # raised by the function itself
            raise
        raise _Failure("timeout", f"no answer within {seconds:g} s") from None


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the loop until the bridge stops it, and cancels the tasks that are left."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=5))
    finally:
        loop.close()
