"""brig: Python that nobody trusts yet, in a jail of its own.

    import brig
    result = brig.run("6 * 7")
    result.value            # 42
    result.ok, result.verdict, result.stdout, result.record

It speaks brig-protocol(7) to the service of this host, or starts a brigd of its own. Standard library only.
"""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import os
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from .client import Connection, Shown, Sink, Text, _close_all, _sealed, limits, open_shown, shown
from .errors import BrigError, Busy, ProtocolError, Refused, ServiceLost, ServiceUnavailable, SetupFailed
from .files import Content, Mover
from .result import ProgramError, Result

__all__ = ["run", "command", "map", "arun", "acommand", "Connection", "Result", "ProgramError", "BrigError", "ServiceUnavailable", "ServiceLost",
           "Refused", "Busy", "SetupFailed", "ProtocolError"]
MAP_MAX = 64


def run(code: Text, *, args: Sequence[str] = (), stdin: Optional[Text] = None, env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None,
        profile: str = "basic", timeout: Optional[float] = None, cpu_time: Optional[float] = None, memory: Union[int, str, None] = None,
        pids: Optional[int] = None, cpus: Optional[float] = None, output: Union[int, str, None] = None, cwd: Optional[str] = None, cold: bool = False,
        wait: float = 60, files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), on_stdout: Optional[Sink] = None,
        on_stderr: Optional[Sink] = None, server: str = "any", path: Optional[str] = None, connection: Optional[Connection] = None) -> Result:
    """Runs a program in a jail and returns how it ended, whatever it did.

    timeout, cpu_time: seconds; memory, output: bytes, or text like "64M"; ro: paths, or {name: path}, shown read-only in /workspace;
    files: {name: content or path}, copied into /workspace; get: patterns of what comes back from there in the result's files.
    wait: seconds for a place, when a quota is used up. on_stdout, on_stderr get output as it is written. server: "any", "service", "private".
    """
    request = {"op": "run", "mode": "report", "args": list(args)}
    said = limits(timeout, cpu_time, memory, pids, cpus, output)
    return _carry_out(request, [_sealed(code)], said, stdin, env, ro, profile, cwd, cold, wait, files, get, on_stdout, on_stderr, server, path, connection)


def command(argv: Sequence[str], *, stdin: Optional[Text] = None, env: Optional[Mapping[str, str]] = None, ro: Optional[Shown] = None, profile: str = "basic",
            timeout: Optional[float] = None, cpu_time: Optional[float] = None, memory: Union[int, str, None] = None, pids: Optional[int] = None,
            cpus: Optional[float] = None, output: Union[int, str, None] = None, cwd: Optional[str] = None, cold: bool = False, wait: float = 60,
            files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), on_stdout: Optional[Sink] = None, on_stderr: Optional[Sink] = None, server: str = "any", path: Optional[str] = None,
            connection: Optional[Connection] = None) -> Result:
    """Runs a command of the rootfs in a jail, as `brig exec` does; the keywords are those of run()."""
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv: expected a list of words, like [\"ls\", \"-l\"]")
    said = limits(timeout, cpu_time, memory, pids, cpus, output)
    return _carry_out({"op": "exec", "argv": list(argv)}, [], said, stdin, env, ro, profile, cwd, cold, wait, files, get, on_stdout, on_stderr, server, path,
                      connection)


def _carry_out(request: Dict[str, Any], fds: List[int], said: Dict[str, Any], stdin: Optional[Text], env: Optional[Mapping[str, str]], ro: Optional[Shown],
               profile: str, cwd: Optional[str], cold: bool, wait: float, files: Optional[Mapping[str, Content]], get: Sequence[str],
               on_stdout: Optional[Sink], on_stderr: Optional[Sink], server: str, path: Optional[str], connection: Optional[Connection]) -> Result:
    mover = None
    try:
        pairs = shown(ro)
        open_shown(pairs, fds)
        if files or get:
            mover = Mover(files, get)
            fds.append(mover.theirs.detach())
            request["files"] = True
            mover.start()
        request.update(profile=profile, limits=said, env=[f"{name}={value}" for name, value in (env or {}).items()], ro=[name for name, _ in pairs],
                       wait_ms=round(wait * 1000))
        if cwd is not None:
            request["cwd"] = cwd
        if cold:
            request["cold"] = True
        if connection:
            result = connection.carry_out(request, _taken(fds), stdin, on_stdout, on_stderr)
        else:
            with Connection(server, path) as own:
                result = own.carry_out(request, _taken(fds), stdin, on_stdout, on_stderr)
    finally:
        _close_all(fds)
        if mover:
            mover.end()
    return _with_files(result, mover) if mover else result


def _with_files(result: Result, mover: Mover) -> Result:
    if mover.error:
        raise mover.error
    left_out = mover.left_out if mover.is_whole else {**mover.left_out, "": "cut"}
    return dataclasses.replace(result, files=mover.taken, left_out=left_out)


def _taken(fds: List[int]) -> List[int]:
    taken = fds[:]
    fds.clear()
    return taken


def map(programs: Iterable[Text], *, workers: Optional[int] = None, server: str = "any", path: Optional[str] = None, **options: Any) -> Iterator[Result]: # noqa: A001
    """Runs many programs, as many at once as the user's quota has places (at most workers), and yields their results in their order."""
    if workers is None:
        with Connection(server, path) as asked:
            places = asked.ask("hello").get("quota", {}).get("runs")
        workers = min(places if isinstance(places, int) and places > 0 else 4 * (os.cpu_count() or 1), MAP_MAX)
    waiting: Deque["concurrent.futures.Future[Result]"] = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(workers, "brig")
    try:
        for program in programs:
            waiting.append(pool.submit(run, program, server=server, path=path, **options))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        pool.shutdown(wait=True)


async def _in_thread(function: Callable[..., Result], server: str, path: Optional[str], words: Any, options: Dict[str, Any]) -> Result:
    """A task that is cancelled closes the connection, and the service ends its run."""
    loop = asyncio.get_running_loop()
    connection = await loop.run_in_executor(None, Connection, server, path)
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
    """run(), awaited. When its task is cancelled, the run is ended."""
    return await _in_thread(run, server, path, code, options)


async def acommand(argv: Sequence[str], *, server: str = "any", path: Optional[str] = None, **options: Any) -> Result:
    """command(), awaited."""
    return await _in_thread(command, server, path, argv, options)
