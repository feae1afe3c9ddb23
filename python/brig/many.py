"""The programs of map(): each in a jail of its own, or in turns in sessions that they share."""
from __future__ import annotations

import collections
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional

from .client import DEAF, Loop, Run, Text, _close_all, milliseconds
from .errors import BrigError, Busy, SessionLost, SetupFailed
from .order import Order
from .result import Result
from .session import Opening, call_order, open_request

OF_SESSION = "profile", "memory", "pids", "cpus", "env", "ro", "network", "allow_missing", "cold", "wait"
OF_CALL = "cwd", "timeout", "cpu_time", "output", "tools", "allow", "deny", "ask", "tool_wait", "on_stdout", "on_stderr"
OF_RUN = "args", "stdin", "files", "get" # a program in a session cannot have them
PROGRAMS_MAX = 1000     # of one session: an interpreter keeps the source of each
TRIES_MAX = 3           # of a program that did not begin, because its session had ended
CLEAR_S = 10
# Executed in an interpreter of its own: what programs did to theirs does not matter. Anything but True: the session
# cannot be used any more. A mount, of ro, stays. The one other process is that of the programs, a session's own are
# not visible; from any more files could come back.
CLEAR, CLEAR_AGAIN = """
import os
def empty(top):
    device, folders, kept = os.stat(top).st_dev, [top], {top}
    for folder in folders:
        if folder != top:
            os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_dev != device:
                    while folder not in kept:
                        kept.add(folder)
                        folder = os.path.dirname(folder)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.unlink(entry.path)
    for folder in reversed(folders):
        if folder not in kept:
            os.rmdir(folder)
def clear():
    others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    if len(others) != 1 or os.readlink(f"/proc/{others[0]}/cwd") != "/workspace":
        return False
    empty("/workspace")
    empty("/tmp")
    return True
clear()
""", "clear()"

Options = Dict[str, Any]


def check_shared(options: Mapping[str, Any]) -> None:
    """Refuses options that a program in a shared session cannot have."""
    if refused := [name for name in OF_RUN if name in options]:
        raise ValueError(f"{', '.join(refused)}: not with reuse=True, only a run of its own has {', '.join(OF_RUN)}; "
                         "leave it out, or use map() without reuse")
    if unknown := [name for name in options if name not in OF_SESSION + OF_CALL]:
        raise TypeError(f"map() got an unexpected keyword argument {unknown[0]!r}")


class Task:
    """One program, from its place in the row to its result."""

    def __init__(self, program: Text) -> None:
        self.program, self.tries, self.since = program, 0, time.monotonic()
        self.order: Optional[Order] = None
        self.run: Optional[Run] = None
        self.error: Optional[BaseException] = None # it cannot begin

    def begin(self, order: Order, loop: Loop) -> None:
        self.order = order
        try:
            self.run = order.begin(loop)
        except BaseException:
            order.done()
            raise

    @property
    def is_over(self) -> bool:
        return self.error is not None or (self.run is not None and self.run.is_over)

    def done(self) -> None:
        if self.order:
            self.order.done()

    def result(self) -> Result:
        if self.error:
            raise self.error
        assert self.order and self.run
        return self.order.result(self.run)


class Alone:
    """Each program in a jail of its own."""

    def __init__(self, loop: Loop, most: int, order: Callable[[Text], Order]) -> None:
        self.loop, self.most, self.order = loop, most, order

    @property
    def is_busy(self) -> bool:
        return bool(self.loop.runs)

    @property
    def has_room(self) -> bool:
        return len(self.loop.runs) < self.most

    def add(self, program: Text) -> Task:
        task = Task(program)
        task.begin(self.order(program), self.loop)
        return task

    def step(self) -> None:
        self.loop.step()

    def end(self) -> None:
        """Called when all tasks are over."""


class _Session:
    """A session, the task that has it now, and the call that clears its files for this task."""

    def __init__(self, loop: Loop, options: Options) -> None:
        self.opening, self.opened_at, self.programs = Opening(), time.monotonic(), 0
        self.task: Optional[Task] = None
        self.clearing: Optional[Task] = None
        self.was_cleared = False
        request, fds = open_request(**{"profile": "basic", **options})
        try:
            loop.send(self.opening, request, fds)
        finally:
            _close_all(fds)

    @property
    def id(self) -> str:
        return str((self.opening.opened or {}).get("session"))

    @property
    def is_free(self) -> bool:
        return self.opening.opened is not None and not self.opening.is_over and self.task is None

    @property
    def is_old(self) -> bool:
        """A program that begins now might live longer than the session."""
        lifetime = ((self.opening.opened or {}).get("lifetime_ms") or 0) / 1000
        return self.programs >= PROGRAMS_MAX or time.monotonic() - self.opened_at > lifetime / 2


class Shared:
    """Programs in turns in sessions, which are opened when a program waits.

    One whose interpreter is lost, or that has ended, is replaced.
    """

    def __init__(self, loop: Loop, most: int, fresh_files: bool, options: Options) -> None:
        self.loop, self.most, self.fresh_files = loop, most, fresh_files
        self.of_session = {name: options[name] for name in OF_SESSION if name in options}
        self.of_call = {name: options[name] for name in OF_CALL if name in options}
        self.wait = milliseconds(options.get("wait", 60)) / 1000
        self.sessions: List[_Session] = []
        self.row: Deque[Task] = collections.deque() # tasks that wait for a session
        self.not_before = 0.0                       # time.monotonic() of the next try: a quota of calls is used up

    @property
    def count(self) -> int:
        return len(self.row) + sum(session.task is not None for session in self.sessions)

    @property
    def is_busy(self) -> bool:
        return self.count > 0

    @property
    def has_room(self) -> bool:
        return self.count < self.most

    def add(self, program: Text) -> Task:
        task = Task(program)
        self.row.append(task)
        self.assign()
        return task

    def step(self) -> None:
        pause, late = self.loop.pause(), self.not_before - time.monotonic()
        self.loop.step(min(pause if pause >= 0 else DEAF, late if late > 0 else DEAF))
        for session in self.sessions[:]:
            self.settle(session)
        self.assign()

    # --- sessions ---

    def assign(self) -> None:
        """Gives free sessions to tasks, and opens one for each task that still waits."""
        if time.monotonic() < self.not_before:
            return
        for session in self.sessions[:]:
            if self.row and session.is_free:
                if session.is_old:
                    self.drop(session)
                else:
                    self.take(session, self.row.popleft())
        awaited = sum(session.opening.opened is None for session in self.sessions)
        while len(self.row) > awaited and len(self.sessions) < self.most:
            self.sessions.append(_Session(self.loop, self.of_session))
            awaited += 1

    def take(self, session: _Session, task: Task) -> None:
        session.task = task
        if self.fresh_files and session.programs:
            session.clearing = Task(CLEAR_AGAIN if session.was_cleared else CLEAR)
            session.clearing.begin(call_order(session.id, session.clearing.program, "clear", timeout=CLEAR_S), self.loop)
        else:
            self.begin(session, task)

    def begin(self, session: _Session, task: Task) -> None:
        session.programs += 1
        task.begin(call_order(session.id, task.program, **self.of_call), self.loop)

    def drop(self, session: _Session) -> None:
        self.sessions.remove(session)
        if session.opening.opened and not session.opening.is_over:
            self.loop.note({"op": "close", "session": session.id})

    def settle(self, session: _Session) -> None:
        """Looks what has ended."""
        task, clearing, opening = session.task, session.clearing, session.opening
        if clearing and clearing.is_over:
            self.cleared(session, clearing)
        elif not clearing and task and task.is_over:
            session.task = None
            self.ended(session, task)
        elif not task and opening.is_over:
            self.sessions.remove(session)
            if opening.error:
                self.refuse(opening.error)

    def refuse(self, error: BaseException) -> None:
        """A session could not be opened. If there are others, it goes on with these."""
        others = sum(session.opening.opened is not None for session in self.sessions)
        if isinstance(error, Busy) and others:
            self.most = others
        elif self.row:
            self.row.popleft().error = error

    def cleared(self, session: _Session, clearing: Task) -> None:
        task, session.clearing = session.task, None
        assert task
        try:
            is_clear = clearing.result().value is True
        except Busy as busy:
            session.task = None
            return self.wait_for(task, busy)
        except (SessionLost, SetupFailed):
            is_clear = False
        except BrigError as error: # a quota allows one interpreter, say
            session.task, task.error = None, error
            return None
        session.was_cleared = is_clear
        if is_clear:
            return self.begin(session, task)
        self.drop(session)
        self.row.appendleft(task)

    def ended(self, session: _Session, task: Task) -> None:
        assert task.run
        error, result = task.run.error, task.run.result
        if isinstance(error, Busy):
            self.wait_for(task, error)
        elif not (result and result.verdict == "exited" and result.session and result.session.state != "lost"):
            self.drop(session)
            if isinstance(error, (SessionLost, SetupFailed)) and task.tries < TRIES_MAX: # it did not begin
                self.again(task)

    def again(self, task: Task) -> None:
        task.run, task.tries = None, task.tries + 1
        self.row.appendleft(task)

    def wait_for(self, task: Task, busy: Busy) -> None:
        """A quota of calls is used up: tries again later, or leaves the error to the task."""
        now = time.monotonic()
        if now - task.since > self.wait:
            task.error = busy
            return
        task.run, self.not_before = None, now + (busy.retry_after or 0.1)
        self.row.appendleft(task)

    def end(self) -> None:
        """Called when all tasks are over. Waits for the end of the sessions: until then they count in the user's quota."""
        opened = [session.opening for session in self.sessions if session.opening.opened]
        for session in self.sessions[:]:
            self.drop(session)
        while not all(opening.is_over for opening in opened):
            self.loop.step()
