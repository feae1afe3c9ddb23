"""brig: runs untrusted Python programs, each in its own jail.

    import brig
    result = brig.run("6 * 7")
    result.value            # 42
    result.ok, result.verdict, result.stdout, result.record

    brig.run("tools.add(a=1, b=2)", tools={"add": lambda a, b: a + b})

    with brig.Session() as session:
        session.run("x = 6")
        session.run("x * 7").value  # 42

It speaks brig-protocol(7) to the service of this host, or starts a private brigd. It needs only the standard library.
"""
from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .client import Connection, Hosts, Loop, Shown, Sink, Text, Time, keep, lease, limits, words_of
from .errors import BrigError, Busy, FilesFailed, ProtocolError, Refused, ServiceLost, ServiceUnavailable, SessionLost, SetupFailed
from .executor import ExecutionResult, SandboxExecutor
from .files import Content, Files
from .many import Alone, Shared, Task, check_shared
from .order import Order, order_of
from .result import CallState, Check, ProgramError, Result
from .session import AsyncSession, Session
from .tools import Ask, Call, Patterns, Tool, Toolbox, ToolError, ToolLimits, toolbox

__all__ = ["run", "command", "map", "arun", "acommand", "Session", "AsyncSession", "CallState", "Files", "Connection", "Result", "ProgramError", "BrigError",
           "ServiceUnavailable", "ServiceLost", "SessionLost", "Refused", "Busy", "check", "Check", "SetupFailed", "FilesFailed", "ProtocolError", "Toolbox", "Tool",
           "ToolLimits", "ToolError", "Call", "SandboxExecutor", "ExecutionResult"]
PLACES = 64 # how many runs at once if brigd names no quota


def _carry_out(order: Order, server: str, path: Optional[str], connection: Optional[Connection]) -> Result:
    try:
        with Loop(connection or lease(server, path)) as loop:
            try:
                run = order.begin(loop)
                while not run.is_over:
                    loop.step()
            except BaseException:
                if connection is None:
                    loop.connection.close()
                raise
        if connection is None:
            keep(loop.connection, server, path)
    finally:
        order.done()
    return order.result(run)


def _run_order(code: Text, *, args: Sequence[str] = (), stdin: Optional[Text] = None, env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None,
               profile: str = "basic", timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, memory: Union[int, str, None] = None,
               pids: Optional[int] = None, cpus: Optional[float] = None, output: Union[int, str, None] = None, cwd: Optional[str] = None, network: Hosts = None, allow_missing: Sequence[str] = (), cold: bool = False,
               wait: Time = 60, files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), tools: Any = None, allow: Patterns = None,
               deny: Patterns = None, ask: Optional[Ask] = None, tool_wait: Optional[Time] = None, on_stdout: Optional[Sink] = None,
               on_stderr: Optional[Sink] = None) -> Order:
    said = limits(timeout, cpu_time, memory, pids, cpus, output, tool_wait)
    request = {"op": "run", "mode": "report", "args": words_of(args, "args"), "profile": profile, "limits": said}
    return order_of(request, code, toolbox(tools, allow, deny, ask), stdin, env, ro, cwd, network, allow_missing, cold, wait, files, get, on_stdout, on_stderr)


def run(code: Text, *, args: Sequence[str] = (), stdin: Optional[Text] = None, env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None,
        profile: str = "basic", timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, memory: Union[int, str, None] = None,
        pids: Optional[int] = None, cpus: Optional[float] = None, output: Union[int, str, None] = None, cwd: Optional[str] = None, network: Hosts = None, allow_missing: Sequence[str] = (), cold: bool = False,
        wait: Time = 60, files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), tools: Any = None, allow: Patterns = None,
        deny: Patterns = None, ask: Optional[Ask] = None, tool_wait: Optional[Time] = None, on_stdout: Optional[Sink] = None,
        on_stderr: Optional[Sink] = None, server: str = "any", path: Optional[str] = None, connection: Optional[Connection] = None) -> Result:
    """Runs a program in a jail and returns how it ended, whatever it did.

    timeout, cpu_time: seconds, or text like "5m"; memory, output: bytes, or text like "64M"; ro: paths, or {name: path}, shown read-only in /workspace;
    network: hosts that the program may reach, like ["pypi.org", "*.example.org"], instead of those that the profile allows; []: none;
    allow_missing: limits that this host need not enforce, of "memory" and "cpus"; otherwise a run that asks for them is refused there;
    files: {name: content or path}, copied into /workspace; get: patterns of files that come back from there, in the result's files.
    tools: {name: function}, or an object with methods, which the program may call: tools.name(argument=value); or a Toolbox, which has
    more settings. allow, deny: patterns of names of tools; ask: a function that decides about calls that no pattern matches. While a
    call takes long, the clock of timeout stands still, for tool_wait seconds at most.
    wait: seconds to wait when a quota is used up. on_stdout, on_stderr: functions that get output as it is written.
    server: "any" (a service if there is one, otherwise a private brigd), "service" or "private".
    """
    order = _run_order(code, args=args, stdin=stdin, env=env, ro=ro, profile=profile, timeout=timeout, cpu_time=cpu_time, memory=memory, pids=pids, cpus=cpus,
                       output=output, cwd=cwd, network=network, allow_missing=allow_missing, cold=cold, wait=wait, files=files, get=get, tools=tools, allow=allow, deny=deny, ask=ask,
                       tool_wait=tool_wait, on_stdout=on_stdout, on_stderr=on_stderr)
    return _carry_out(order, server, path, connection)


def command(argv: Sequence[str], *, stdin: Optional[Text] = None, env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None, profile: str = "basic",
            timeout: Optional[Time] = None, cpu_time: Optional[Time] = None, memory: Union[int, str, None] = None, pids: Optional[int] = None,
            cpus: Optional[float] = None, output: Union[int, str, None] = None, cwd: Optional[str] = None, network: Hosts = None, allow_missing: Sequence[str] = (), cold: bool = False, wait: Time = 60,
            files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None,
            server: str = "any", path: Optional[str] = None, connection: Optional[Connection] = None) -> Result:
    """Runs a command of the rootfs in a jail, as `brig exec` does; the keywords are those of run()."""
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv: expected a list of words, like [\"ls\", \"-l\"]")
    request = {"op": "exec", "argv": words_of(argv, "argv"), "profile": profile, "limits": limits(timeout, cpu_time, memory, pids, cpus, output)}
    return _carry_out(order_of(request, None, None, stdin, env, ro, cwd, network, allow_missing, cold, wait, files, get, on_stdout, on_stderr), server, path, connection)


def check(code: Text, *, imports: Optional[Sequence[str]] = None, profile: str = "basic", server: str = "any", path: Optional[str] = None,
          connection: Optional[Connection] = None) -> Check:
    """Checks a program in a jail without executing it. imports: the modules that it may import."""
    request = {"op": "run", "mode": "check", "profile": profile, "limits": {}, **({} if imports is None else {"imports": list(imports)})}
    done = _carry_out(order_of(request, code, None, None, None, None, None, None, (), False, 60, None, (), None, None), server, path, connection)
    if not isinstance(done.value, dict):
        raise BrigError(f"the program could not be read: {done.report_error or done.verdict}; try again with more memory or time")
    return Check(**done.value)


# --- many ---

def _places(connection: Connection, reuse: bool) -> int:
    quota = connection.ask("hello").get("quota", {})
    most = [quota.get("runs"), PLACES, *([quota.get("sessions"), os.cpu_count()] if reuse else [])]
    return min(number for number in most if isinstance(number, int) and number > 0)


def map(programs: Iterable[Text], *, workers: Optional[int] = None, reuse: bool = False, fresh_files: bool = False, server: str = "any",  # noqa: A001
        path: Optional[str] = None, **options: Any) -> Iterator[Result]:
    """Runs many programs, as many at once as the user's quota allows (at most workers), and yields the results in order. Other keywords: those of run().

    reuse: does not make a jail for each program. The programs run in turns in sessions (at most workers, or as many as this host has processors), which costs
    about a seventh of the CPU time. PROGRAMS IN THE SAME SESSION SHARE ITS INTERPRETER, PROCESSES, FILES AND MEMORY: one sees variables, imports and
    patched functions of those before it, and a thread that one leaves goes on and can disturb, change or end a later one. Which programs share a session
    is not defined. Use it only for programs that may see and change each other. The jail around them all is the same as without reuse.

    Each program has its own result, record and limits of time and output; memory, pids and cpus are those of the session. A program that runs for too
    long is interrupted first (KeyboardInterrupt), and ended two seconds later. After a program that did not end by itself, or that ended its interpreter, the
    next one gets a new session. args, stdin, cwd, files and get are refused.

    fresh_files: /workspace and /tmp are empty when a program begins; that costs a second call. Variables are shared nevertheless.
    """
    if reuse:
        check_shared(options)
    elif fresh_files:
        raise ValueError("fresh_files: without reuse=True each program has files of its own; leave it out")
    return _mapped(programs, workers, reuse, fresh_files, server, path, options)


def _mapped(programs: Iterable[Text], workers: Optional[int], reuse: bool, fresh_files: bool, server: str, path: Optional[str],
            options: Dict[str, Any]) -> Iterator[Result]:
    with Connection(server, path) as connection, Loop(connection) as loop:
        most = workers or _places(connection, reuse)
        many = Shared(loop, most, fresh_files, options) if reuse else Alone(loop, most, lambda program: _run_order(program, **options)) # type: Union[Shared, Alone]
        waiting, ahead, source = {}, 0, enumerate(programs)         # type: Dict[int, Task], int, Iterator[Tuple[int, Text]]
        try:
            while True:
                while many.has_room and len(waiting) < 4 * most:
                    number, program = next(source, (-1, ""))
                    if number < 0:
                        break
                    waiting[number] = many.add(program)
                if not waiting:
                    return many.end()
                while ahead in waiting and waiting[ahead].is_over:
                    task = waiting.pop(ahead)
                    ahead += 1
                    task.done()
                    yield task.result()
                if many.is_busy:
                    many.step()
        finally:
            connection.end()
            for task in waiting.values():
                task.done()


# --- async ---

async def _in_thread(function: Callable[..., Result], server: str, path: Optional[str], words: Any, options: Dict[str, Any]) -> Result:
    """Calls run() or command() in a thread. Cancelling the task closes the connection, and the service ends the run."""
    loop = asyncio.get_running_loop()
    connection = await loop.run_in_executor(None, Connection, server, path)
    connection.loop = loop
    try:
        result: Result = await loop.run_in_executor(None, lambda: function(words, connection=connection, **options))
    except asyncio.CancelledError:
        connection.end()
        raise
    except BaseException:
        connection.close()
        raise
    connection.close()
    return result


async def arun(code: Text, *, server: str = "any", path: Optional[str] = None, **options: Any) -> Result:
    """run() as a coroutine. Coroutines among its tools run in this event loop. Cancelling the task ends the run."""
    return await _in_thread(run, server, path, code, options)


async def acommand(argv: Sequence[str], *, server: str = "any", path: Optional[str] = None, **options: Any) -> Result:
    """command() as a coroutine. Cancelling the task ends the run."""
    return await _in_thread(command, server, path, argv, options)
