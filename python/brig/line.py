"""A connection that several threads, or tasks of an event loop, wait on at once. With threads, it is read only while one waits."""
from __future__ import annotations

import asyncio
import threading
from typing import Callable, List, Optional, Tuple

from .client import DEAF, Connection, Loop
from .errors import ServiceLost

Done = Callable[[], bool]


class Line:
    """For threads. One of the waiting threads, the leader, reads for all; when its own wait is over, another one becomes the leader."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.loop = connection, Loop(connection)
        self._changed, self._leader = threading.Condition(), None # type: threading.Condition, Optional[int]

    def wait(self, done: Done) -> None:
        """Waits until done(). A failure of the connection sets the error of every request under way, so done() becomes true then too."""
        me = threading.get_ident()
        if self._leader == me:
            raise RuntimeError("on_stdout and on_stderr cannot use the session that calls them; let them put what they get into a queue")
        try:
            while not done():
                with self._changed:
                    while self._leader is not None and not done():
                        self._changed.wait(DEAF)
                    if done():
                        return
                    self._leader = me
                self._lead(done)
        finally:
            if self._leader == me:
                with self._changed:
                    self._leader = None
                    self._changed.notify_all()

    def _lead(self, done: Done) -> None:
        while not done():
            if self.loop.is_closed:
                raise ServiceLost("the connection was closed")
            try:
                has_news = bool(self.loop.step())
            except Exception as error:
                self.connection.hang_up()
                self.loop.close(error)
                has_news = True
            if has_news:
                with self._changed:
                    self._changed.notify_all()


    def drop(self) -> None:
        """Closes a line that was never used."""
        self.loop.close()
        self.connection.close()


class AsyncLine:
    """The same for tasks of one event loop, which watches the connection. Only that loop's thread may use it."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.loop = connection, Loop(connection)
        self._asyncio = asyncio.get_running_loop()
        self._waiting: List[Tuple[Done, "asyncio.Future[None]"]] = []
        self._timer: Optional[asyncio.TimerHandle] = None
        connection.loop = self._asyncio # for coroutines among the tools
        self._asyncio.add_reader(self.loop.epoll.fileno(), self._step)

    async def wait(self, done: Done) -> None:
        self._step() # the caller's last change may need a timer
        if done():
            return
        if self.loop.is_closed:
            raise ServiceLost("the connection was closed")
        mine = done, self._asyncio.create_future()
        self._waiting.append(mine)
        try:
            await mine[1]
        finally:
            self._waiting.remove(mine)

    def _step(self) -> None:
        if self.loop.is_closed:
            return
        try:
            self.loop.step(0)
        except Exception as error:
            self._end(error)
        for done, future in self._waiting:
            if done() and not future.done():
                future.set_result(None)
        if self._timer:
            self._timer.cancel()
        pause = -1.0 if self.loop.is_closed else self.loop.pause()
        self._timer = self._asyncio.call_later(pause, self._step) if pause >= 0 else None

    def _end(self, error: Optional[BaseException] = None) -> None:
        self._asyncio.remove_reader(self.loop.epoll.fileno())
        self.connection.hang_up()
        self.loop.close(error)

    def drop(self) -> None:
        """Closes a line that was never used."""
        self._end()
        self.connection.close()
