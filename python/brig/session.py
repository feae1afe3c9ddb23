"""Sessions: a jail that stays, with interpreters, commands and files, until it is closed (brig-protocol(7), SESSIONS)."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from .client import Awaited, Connection, Hosts, Reply, Shown, Sink, Text, Time, _check, _close_all, _sealed, entries_of, limits, milliseconds, open_shown, put_cell, shown, words_of
from .errors import BrigError, ProtocolError, Refused, ServiceLost, ServiceUnavailable, SessionLost, SetupFailed
from .files import BYTES_MAX, SECONDS_MAX, Content, Entry, Files, Found, Transfer, made, path_of, removed, renamed
from .line import AsyncLine, Done, Line
from .order import Order
from .result import Result
from .tools import Ask, Patterns, toolbox

T = TypeVar("T")
Size = Union[int, str, None]


class _Do:
    """A step that blocks: Session calls it directly, AsyncSession in a thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function


Step = Union[_Do, Done] # a function to call, or a condition to wait for
Steps = Generator[Step, Any, T]


class Opening(Awaited):
    """The request that opens a session, until the session ends."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Optional[Dict[str, Any]] = None
        self.record: Optional[Dict[str, Any]] = None

    @property
    def is_over(self) -> bool:
        return self.record is not None or self.error is not None

    @property
    def is_answered(self) -> bool:
        return self.opened is not None or self.is_over

    def hear(self, body: Dict[str, Any], fds: List[int]) -> None:
        _close_all(fds)
        if body.get("event") == "opened":
            if not isinstance(body.get("session"), str):
                raise ProtocolError("brigd has broken the protocol: a session without an id")
            self.opened = body
        elif body.get("event") == "ended":
            record = body.get("record")
            if not isinstance(record, dict):
                raise ProtocolError("brigd has broken the protocol: an end without a record")
            self.record = record
            if not self.opened:
                raise SetupFailed(str((record.get("error") or {}).get("message")), record)
        elif not self.opened:
            _check(body)


class _Core:
    """What both kinds of session do, as generators of steps. _drive() of a subclass carries the steps out, waits in its own way, and throws into
    the generator the exception that ends a wait."""

    _line_type: Union[Type[Line], Type[AsyncLine]]

    def __init__(self, server: str, path: Optional[str]) -> None:
        self._server, self._path, self._pid = server, path, os.getpid()
        self._line: Union[Line, AsyncLine, None] = None
        self._opening: Optional[Opening] = None
        self._lasts = self._is_closed = False
        self._reconnecting = threading.Lock()
        self.id, self.name, self.idle, self.lifetime = "", None, None, None # type: str, Optional[str], Optional[float], Optional[float]

    @property
    def record(self) -> Optional[Dict[str, Any]]:
        """The record of the whole session, after it has ended. None if another connection has opened it."""
        return self._opening.record if self._opening else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or self.id or 'that is not open'}>"

    # --- its connection ---

    def _connect(self) -> Steps[Union[Line, AsyncLine]]:
        connection = yield _Do(functools.partial(Connection, self._server, self._path))
        return self._line_type(connection)

    def _reach(self) -> Steps[Union[Line, AsyncLine]]:
        """The connection. If the service has closed it, and the session outlives its connection, a new one."""
        if self._line is None or self._is_closed:
            raise SessionLost("not_found", "the session was closed" if self._is_closed else "the session is not open", "session")
        if os.getpid() != self._pid:
            raise BrigError("a fork cannot use the session of the process that it was; attach to it by its name, Session.attach(...)")
        line = self._line
        if not line.connection.is_gone():
            return line
        yield lambda: line.loop.is_closed # messages from before the end are read first
        if not self._lasts:
            raise self._lost()
        line = yield from self._connect()
        with self._reconnecting:
            if self._line.loop.is_closed:
                self._line = line
                return line
        line.drop() # another thread was faster
        return self._line

    def _lost(self) -> SessionLost:
        record = self.record
        how = " with its connection" if not record else f": {record['session_end']}" if record.get("session_end") else f" ({record.get('exit_reason')})"
        return SessionLost("not_found", f"the session has ended{how}", "session")

    def _ask(self, op: str, **keys: Any) -> Steps[Reply]:
        line, reply = (yield from self._reach()), Reply()
        line.loop.send(reply, {"op": op, **keys})
        try:
            yield lambda: reply.is_over
            reply.outcome()
        except BaseException as error:
            reply.drop()
            if isinstance(error, ServiceLost) and not self._lasts:
                raise self._lost() from None
            raise
        return reply

    # --- its life ---

    def _open(self, request: Dict[str, Any], fds: List[int]) -> Steps[None]:
        opening = Opening()
        try:
            self._line = line = yield from self._connect()
            line.loop.send(opening, request, fds)
        finally:
            _close_all(fds)
        try:
            yield lambda: opening.is_answered
            if opening.error:
                raise opening.error
        except BaseException:
            yield from self._hang_up()
            raise
        said = opening.opened or {}
        self._opening, self.id, self.name = opening, said["session"], said.get("name")
        self.idle, self.lifetime = (said.get("idle_ms") or 0) / 1000, (said.get("lifetime_ms") or 0) / 1000

    def _attach(self, wanted: str) -> Steps[None]:
        self._lasts = True
        self._line = yield from self._connect()
        try:
            rows = ((yield from self._ask("list")).body or {}).get("sessions") or []
            row = next((row for row in rows if row.get("mine") and wanted in (row.get("session"), row.get("name"))), None)
            if row is None: # the error of the service may say why
                reply = yield from self._ask("files", session=wanted)
                reply.drop()
                row = {"session": (reply.body or {}).get("session")}
        except BaseException:
            yield from self._hang_up()
            raise
        self.id, self.name = str(row.get("session")), row.get("name")

    def _renew(self, lifetime: Time) -> Steps[None]:
        said = (yield from self._ask("renew", session=self.id, lifetime_ms=milliseconds(lifetime))).body or {}
        self.lifetime = (said.get("lifetime_ms") or 0) / 1000

    def _close(self) -> Steps[None]:
        if not self._is_open:
            return
        with contextlib.suppress(SessionLost, ServiceUnavailable): # it has ended already
            yield from self._ask("close", session=self.id)
        opening = self._opening
        if opening:
            yield functools.partial(_is_over, opening)
        yield from self._hang_up()

    def _leave(self) -> Steps[None]:
        if self._is_open:
            yield from self._hang_up()

    @property
    def _is_open(self) -> bool:
        """False in a fork, which must not close its parent's session."""
        return self._line is not None and not self._is_closed and os.getpid() == self._pid

    def _hang_up(self) -> Steps[None]:
        line, self._is_closed = self._line, True
        if line is not None:
            loop = line.loop
            line.connection.end()
            yield lambda: loop.is_closed
            yield _Do(line.connection.close)

    # --- calls ---

    def _call(self, order: Order) -> Steps[Result]:
        try:
            line = yield from self._reach()
            run = order.begin(line.loop)
        finally:
            order.done()
        try:
            yield lambda: run.is_over
        except BaseException as error: # the wait was interrupted
            run.stop()
            if not isinstance(error, GeneratorExit): # waits again, until the call has ended
                yield lambda: run.is_over
            raise
        try:
            return run.outcome()
        except ServiceLost:
            if run.id or self._lasts:
                raise
            raise self._lost() from None

    def _run_order(self, code: Text, context: str = "main", **options: Any) -> Order:
        return call_order(self.id, code, context, **options)

    def _exec_order(self, argv: Sequence[str], *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, stdin: Optional[Text] = None,
                    detach: bool = False, timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, output: Size = None,
                    on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None) -> Order:
        if isinstance(argv, (str, bytes)):
            raise TypeError("argv: expected a list of words, like [\"ls\", \"-l\"]")
        request = {"op": "exec", "session": self.id, "argv": words_of(argv, "argv"), "limits": limits(timeout, cpu_time, None, None, None, output)} # type: Dict[str, Any]
        put_surroundings(request, cwd, env)
        if detach:
            request["detach"] = True
        return Order(request, [], stdin, (on_stdout, on_stderr), None, None)

    def _interrupt(self, context: Optional[str]) -> Steps[None]:
        if context is not None and self._line:
            for run in self._line.loop.calls(context):
                run.interrupt()
            return
        for row in ((yield from self._ask("list")).body or {}).get("sessions") or []:
            for run_id in row.get("running") or [] if row.get("session") == self.id else []:
                yield from self._tell(run_id)

    def _tell(self, run_id: str) -> Steps[None]:
        with contextlib.suppress(Refused): # it has just ended
            yield from self._ask("interrupt", run=run_id)

    # --- files ---

    def _move(self, transfer: Transfer) -> Steps[Transfer]:
        try:
            reply = yield from self._ask("files", session=self.id)
            transfer.open(reply.fds.pop())
            reply.drop()
            yield _Do(transfer.carry_out)
        finally:
            transfer.release()
        return transfer

    def _put(self, files: Mapping[str, Content], timeout: Time) -> Steps[None]:
        (yield from self._move(Transfer(files, timeout=milliseconds(timeout) / 1000))).check_put()

    def _get(self, patterns: Sequence[str], most: int, timeout: Time) -> Steps[Files]:
        return (yield from self._move(Transfer(get=patterns, most=most, timeout=milliseconds(timeout) / 1000))).taken.files

    def _files(self, patterns: Sequence[str], timeout: Time) -> Steps[Found[int]]:
        return (yield from self._move(Transfer(listed=patterns or ["*"], timeout=milliseconds(timeout) / 1000))).taken.sizes


    def _change(self, done: str, *changes: Tuple[int, bytes, int, bytes]) -> Steps[None]:
        (yield from self._move(Transfer(changes=changes))).check_changes(done)

    def _describe(self, path: str, depth: int) -> Steps[List[Entry]]:
        transfer = yield from self._move(Transfer(described=[(path_of(path, True), depth)]))
        if not transfer.taken.entries:
            transfer.check_changes("found")
        return transfer.taken.entries


def _is_over(awaited: Awaited) -> bool:
    return awaited.is_over


def put_surroundings(request: Dict[str, Any], cwd: Optional[str], env: Optional[Mapping[str, str]]) -> None:
    if cwd is not None:
        request["cwd"] = cwd
    if env:
        request["env"] = entries_of(env)


def call_order(session: str, code: Text, context: str = "main", *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, output: Size = None,
               tools: Any = None, allow: Patterns = None, deny: Patterns = None, ask: Optional[Ask] = None, tool_wait: Optional[Time] = None,
               on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None) -> Order:
    """Code for a context of this session."""
    box = toolbox(tools, allow, deny, ask)
    request = {"op": "run", "session": session, "context": context, "limits": limits(timeout, cpu_time, None, None, None, output, tool_wait)} # type: Dict[str, Any]
    put_surroundings(request, cwd, env)
    return Order(request, [_sealed(code)], None, (on_stdout, on_stderr), None, box)


def open_request(profile: str, *, name: Optional[str] = None, stays: bool = False, idle: Optional[Time] = None, lifetime: Optional[Time] = None,
                 timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, memory: Size = None, pids: Optional[int] = None,
                  cpus: Optional[float] = None, output: Size = None, workspace: Size = None, tool_wait: Optional[Time] = None,
                  env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None, network: Hosts = None, allow_missing: Sequence[str] = (), cold: bool = False,
                  wait: Time = 60) -> Tuple[Dict[str, Any], List[int]]:
    times = {key: milliseconds(seconds) for key, seconds in (("idle_ms", idle), ("lifetime_ms", lifetime)) if seconds is not None}
    said = {**limits(timeout, cpu_time, memory, pids, cpus, output, tool_wait), **times, **({} if workspace is None else {"workspace_bytes": workspace})}
    pairs, fds = shown(ro), [] # type: List[Tuple[str, str]], List[int]
    request: Dict[str, Any] = {"op": "open", "profile": profile, "limits": said, "env": [f"{key}={value}" for key, value in (env or {}).items()],
                               "ro": [each for each, _ in pairs], "wait_ms": milliseconds(wait)}
    if name is not None:
        request["name"] = name
    if stays:
        request["stays"] = True
    if cold:
        request["cold"] = True
    put_cell(request, network, allow_missing)
    try:
        open_shown(pairs, fds)
    except BaseException:
        _close_all(fds)
        raise
    return request, fds


def _server_of(server: str, stays: bool) -> str:
    """Refuses a session that stays in a private brigd, which ends with its connection."""
    if stays and server == "private":
        raise ValueError("stays: a private brigd ends with its connection; start a service, and use server=\"service\"")
    return "service" if stays else server


class Session(_Core):
    """A jail that stays: interpreters that keep their variables, commands, and files in /workspace.

        with brig.Session() as session:
            session.run("x = 6")
            session.run("x * 7").value      # 42

    profile, memory, pids, cpus, workspace (the size of /workspace), env, ro, network, cold are for the session as a whole, as in brig.run(). timeout,
    cpu_time, output, tool_wait: defaults of its calls. idle: seconds without a call after which it is closed; lifetime: seconds after which it is
    closed in any case. Without stays, the session ends with this object; with stays, it goes on, and attach() finds it by its name or id.

    Several threads may use it at once, each with its own context.
    """

    _line_type = Line

    def __init__(self, profile: str = "basic", *, name: Optional[str] = None, stays: bool = False, idle: Optional[Time] = None,
                 lifetime: Optional[Time] = None, timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, memory: Size = None,
                 pids: Optional[int] = None, cpus: Optional[float] = None, output: Size = None, workspace: Size = None, tool_wait: Optional[Time] = None,
                 env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None, network: Hosts = None, allow_missing: Sequence[str] = (), cold: bool = False, wait: Time = 60, server: str = "any",
                 path: Optional[str] = None) -> None:
        super().__init__(_server_of(server, stays), path)
        self._lasts = stays
        request = open_request(profile, name=name, stays=stays, idle=idle, lifetime=lifetime, timeout=timeout, cpu_time=cpu_time, memory=memory, pids=pids,
                                cpus=cpus, output=output, workspace=workspace, tool_wait=tool_wait, env=env, ro=ro, network=network, allow_missing=allow_missing, cold=cold, wait=wait)
        self._drive(self._open(*request))

    @classmethod
    def attach(cls, session: str, *, server: str = "service", path: Optional[str] = None) -> "Session":
        """Finds an open session of this user by its name or its id."""
        self = cls.__new__(cls)
        _Core.__init__(self, _server_of(server, True), path)
        self._drive(self._attach(session))
        return self

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.leave() if self._lasts else self.close()

    def run(self, code: Text, context: str = "main", *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, output: Size = None,
            tools: Any = None, allow: Patterns = None, deny: Patterns = None, ask: Optional[Ask] = None, tool_wait: Optional[Time] = None,
            on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None) -> Result:
        """Runs code in a context: an interpreter that keeps its variables, and is made when it is used first.

        The result's session has the state of the context: new, kept, reset (it was lost or restarted before) or lost. cwd and env hold for this
        call: after it, the working directory and these variables are as before. The other keywords are those of brig.run(). When the time is over, the code is interrupted, and two seconds later the interpreter is ended. Ctrl-C in this
        process interrupts the code as well. brig.Busy: the context is in use.
        """
        return self._drive(self._call(self._run_order(code, context, cwd=cwd, env=env, timeout=timeout, cpu_time=cpu_time, output=output, tools=tools,
                                                      allow=allow, deny=deny, ask=ask, tool_wait=tool_wait, on_stdout=on_stdout, on_stderr=on_stderr)))

    def exec(self, argv: Sequence[str], *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, stdin: Optional[Text] = None,
             detach: bool = False, timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, output: Size = None,
             on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None) -> Result:
        """Runs a command. Processes that it started end with it, unless detach is true."""
        return self._drive(self._call(self._exec_order(argv, cwd=cwd, env=env, stdin=stdin, detach=detach, timeout=timeout, cpu_time=cpu_time, output=output,
                                                       on_stdout=on_stdout, on_stderr=on_stderr)))

    def put(self, files: Mapping[str, Content], *, timeout: Time = SECONDS_MAX) -> None:
        """Copies files into /workspace: {name: text, bytes or path}; the path of a directory means all regular files in it. An existing file is
        replaced. brig.FilesFailed says which files could not be copied."""
        self._drive(self._put(files, timeout))

    def get(self, *patterns: str, most: int = BYTES_MAX, timeout: Time = SECONDS_MAX) -> Files:
        """Copies files out of /workspace: those that match, and all files below directories that match. Returns {name: bytes}, with left_out and
        save(). most: the most bytes in all."""
        return self._drive(self._get(patterns, most, timeout))

    def files(self, *patterns: str, timeout: Time = SECONDS_MAX) -> Found[int]:
        """The files in /workspace, {name: size}: all, or those that match."""
        return self._drive(self._files(patterns, timeout))

    def stat(self, path: str) -> Entry:
        """Describes a file or directory in /workspace. brig.FilesFailed: there is none."""
        return self._drive(self._describe(path, 0))[0]

    def entries(self, path: str = ".", depth: int = 1) -> List[Entry]:
        """Describes what is in a directory, and with a depth of 2 or more in those in it."""
        return self._drive(self._describe(path, depth))[1:]

    def mkdir(self, path: str) -> None:
        """Makes a directory, and those above it that are missing. It may exist."""
        self._drive(self._change("made", made(path)))

    def rename(self, path: str, to: str) -> None:
        """Renames a file or directory; a file that is called so is replaced."""
        self._drive(self._change("renamed", renamed(path, to)))

    def remove(self, path: str, tree: bool = False) -> None:
        """Removes a file or an empty directory; with tree, a directory and all that is in it."""
        self._drive(self._change("removed", removed(path, tree)))

    def interrupt(self, context: Optional[str] = None) -> None:
        """Called from another thread: raises KeyboardInterrupt in the call of a context, or, without a name, in every call (SIGINT for commands)."""
        self._drive(self._interrupt(context))

    def restart(self, context: str = "main") -> None:
        """Ends the interpreter of a context and the processes that it started. The next call gets a new interpreter."""
        self._drive(self._ask("restart", session=self.id, context=context))

    def renew(self, lifetime: Time) -> None:
        """The session ends after so many seconds from now on, in place of when it would have. brig.Refused: it would be older than its profile allows."""
        self._drive(self._renew(lifetime))

    def leave(self) -> None:
        """Closes the connection. A session that stays goes on."""
        self._drive(self._leave())

    def close(self) -> None:
        """Ends the session, and everything in it. May be called twice."""
        self._drive(self._close())

    def _drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    done: Any = None
                    if isinstance(step, _Do):
                        done = step.function()
                    else:
                        self._wait(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(done)
        except StopIteration as end:
            result: T = end.value
            return result

    def _wait(self, done: Done) -> None:
        assert isinstance(self._line, Line)
        self._line.wait(done)


class AsyncSession(_Core):
    """Session for asyncio: `async with brig.AsyncSession() as session: await session.run("1 + 1")`. The keywords are those of Session.

    Several tasks may make calls at once, each in its own context. on_stdout and on_stderr are called in the event loop; coroutines among the tools
    run in it. When a task is cancelled, its call is interrupted, and the task ends when the call has ended.
    """

    _line_type = AsyncLine

    def __init__(self, profile: str = "basic", *, stays: bool = False, server: str = "any", path: Optional[str] = None, **options: Any) -> None:
        super().__init__(_server_of(server, stays), path)
        self._lasts = stays
        self._begin: Callable[[], Steps[None]] = lambda: self._open(*open_request(profile, stays=stays, **options))

    @classmethod
    def attach(cls, session: str, *, server: str = "service", path: Optional[str] = None) -> "AsyncSession":
        """Like Session.attach(), but the result must still be opened: `async with brig.AsyncSession.attach("work") as session`."""
        self = cls(server=_server_of(server, True), path=path)
        self._begin = lambda: self._attach(session)
        return self

    async def open(self) -> "AsyncSession":
        """Opens the session, as `async with` does. Close it with close()."""
        if self._line is None:
            await self._drive(self._begin())
        return self

    async def __aenter__(self) -> "AsyncSession":
        return await self.open()

    async def __aexit__(self, *_: Any) -> None:
        await (self.leave() if self._lasts else self.close())

    async def run(self, code: Text, context: str = "main", **options: Any) -> Result:
        return await self._drive(self._call(self._run_order(code, context, **options)))

    async def exec(self, argv: Sequence[str], **options: Any) -> Result:
        return await self._drive(self._call(self._exec_order(argv, **options)))

    async def put(self, files: Mapping[str, Content], *, timeout: Time = SECONDS_MAX) -> None:
        await self._drive(self._put(files, timeout))

    async def get(self, *patterns: str, most: int = BYTES_MAX, timeout: Time = SECONDS_MAX) -> Files:
        return await self._drive(self._get(patterns, most, timeout))

    async def files(self, *patterns: str, timeout: Time = SECONDS_MAX) -> Found[int]:
        return await self._drive(self._files(patterns, timeout))

    async def stat(self, path: str) -> Entry:
        return (await self._drive(self._describe(path, 0)))[0]

    async def entries(self, path: str = ".", depth: int = 1) -> List[Entry]:
        return (await self._drive(self._describe(path, depth)))[1:]

    async def mkdir(self, path: str) -> None:
        await self._drive(self._change("made", made(path)))

    async def rename(self, path: str, to: str) -> None:
        await self._drive(self._change("renamed", renamed(path, to)))

    async def remove(self, path: str, tree: bool = False) -> None:
        await self._drive(self._change("removed", removed(path, tree)))

    async def interrupt(self, context: Optional[str] = None) -> None:
        await self._drive(self._interrupt(context))

    async def restart(self, context: str = "main") -> None:
        await self._drive(self._ask("restart", session=self.id, context=context))

    async def renew(self, lifetime: Time) -> None:
        await self._drive(self._renew(lifetime))

    async def leave(self) -> None:
        await self._drive(self._leave())

    async def close(self) -> None:
        await self._drive(self._close())

    async def _drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    done = await (asyncio.get_running_loop().run_in_executor(None, step.function) if isinstance(step, _Do) else self._wait(step))
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(done)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _wait(self, done: Done) -> None:
        assert isinstance(self._line, AsyncLine)
        await self._line.wait(done)
