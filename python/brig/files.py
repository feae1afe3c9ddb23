"""Files into /workspace and out of it: the stream of brig-protocol(7), FILES."""
from __future__ import annotations

import os
import socket
import stat
import struct
import threading
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import ProtocolError

Content = Union[str, bytes, "os.PathLike[str]"]
_ENTRY = struct.Struct("=IIQ")
_END, _FILE, _EXECUTABLE, _GET, _LEFT = range(5)
_WHY = ["link", "special", "size", "unreadable", "deep"]
NAME_MAX, CHUNK = 1024, 1 << 16


class Mover(threading.Thread):
    """Sends the files and receives what matches, in a thread beside the run, as each side may wait for the other."""

    def __init__(self, files: Optional[Mapping[str, Content]], get: Sequence[str]) -> None:
        super().__init__(name="brig-files", daemon=True)
        if isinstance(get, (str, bytes)):
            raise TypeError("get: expected a list of patterns, like [\"out/*.csv\"]")
        self.patterns = [os.fsencode(pattern) for pattern in get]
        self.sources: List[Tuple[bytes, Union[bytes, int]]] = []
        self.taken: Dict[str, bytes] = {}
        self.left_out: Dict[str, str] = {}
        self.is_whole = False
        self.error: Optional[BaseException] = None
        try:
            for name, content in (files or {}).items():
                self.sources.append((os.fsencode(name), self._open(name, content)))
            self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except BaseException:
            self._close_sources()
            raise

    @staticmethod
    def _open(name: str, content: Content) -> Union[bytes, int]:
        if isinstance(content, (str, bytes)):
            return content.encode() if isinstance(content, str) else content
        fd = os.open(content, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ValueError(f"files: {name}: {os.fspath(content)} is not a regular file")
        return fd

    def _close_sources(self) -> None:
        for _, content in self.sources:
            if isinstance(content, int):
                os.close(content)
        self.sources = []

    def end(self) -> None:
        """The run has ended, or never began."""
        self.theirs.close()
        if self.ident is None:
            self.ours.close()
            self._close_sources()
            return
        self.join()
        self.ours.close()

    # --- the thread ---

    def run(self) -> None:
        try:
            self._give()
            self._take()
        except (BrokenPipeError, ConnectionResetError):
            pass # it was refused, or has ended: the run's own end says why
        except BaseException as error: # noqa: B902 raised in the thread that waits for this one
            self.error = error
        finally:
            self._close_sources()
            self.ours.shutdown(socket.SHUT_RDWR)

    def _put(self, kind: int, name: bytes, size: int) -> None:
        self.ours.sendall(_ENTRY.pack(kind, len(name), size) + name)

    def _give(self) -> None:
        for name, content in self.sources:
            if isinstance(content, bytes):
                self._put(_FILE, name, len(content))
                self.ours.sendall(content)
            else:
                self._give_file(name, content)
        self._put(_END, b"", 0)
        for pattern in self.patterns:
            self._put(_GET, pattern, 0)
        self._put(_END, b"", 0)

    def _give_file(self, name: bytes, fd: int) -> None:
        status = os.fstat(fd)
        self._put(_EXECUTABLE if status.st_mode & 0o111 else _FILE, name, status.st_size)
        left = status.st_size
        while left:
            chunk = os.read(fd, min(left, CHUNK))
            if not chunk:
                raise OSError(f"files: {os.fsdecode(name)} became shorter while it was read")
            self.ours.sendall(chunk)
            left -= len(chunk)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.ours.recv(min(size - len(data), CHUNK))
            if not chunk:
                raise BrokenPipeError
            data += chunk
        return bytes(data)

    def _take(self) -> None:
        while True:
            kind, name_len, size = _ENTRY.unpack(self._read(_ENTRY.size))
            if kind == _END:
                self.is_whole = True
                return
            if kind not in (_FILE, _EXECUTABLE, _LEFT) or name_len > NAME_MAX:
                raise ProtocolError("brigd has broken the protocol: a malformed header in the stream of files")
            name = os.fsdecode(self._read(name_len))
            if kind == _LEFT:
                self.left_out[name] = _WHY[size] if size < len(_WHY) else "unknown"
            else:
                self.taken[name] = self._read(size)
