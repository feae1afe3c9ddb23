"""Copies files into /workspace and out of it: the stream of brig-protocol(7), FILES. What comes out of the jail is hostile."""
from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import struct
import threading
import time
from typing import AbstractSet, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from .errors import FilesFailed, ProtocolError

Content = Union[str, bytes, "os.PathLike[str]"]
T = TypeVar("T")
_ENTRY = struct.Struct("=IIQ")
_END, _FILE, _EXECUTABLE, _GET, _LEFT, _LIST, _FOLDER, _STAT, _RENAME, _REMOVE = range(10)
_STATUS, _TARGET_MAX = struct.Struct("=IIQq"), 4096
_GET_FOLDERS = 1 # of a pattern: empty directories that match are wanted, too
_WHY = ["link", "special", "size", "unreadable", "deep", "room", "unwritable", "changed", "missing", "not_empty"]
_SENTENCES = {"room": "there is no room for it in /workspace; open the session with a larger one: workspace=", "unwritable": "it cannot be written there",
              "deep": "its name is too long, or has . or .. in it", "size": "it is larger than /workspace", "link": "a link is in its place",
              "special": "something that is no regular file is in its place", "missing": "there is no such file or directory",
              "not_empty": "it is a directory that is not empty"}
NAME_MAX, DEPTH_MAX, CHUNK, PATTERNS_MAX = 1024, 32, 1 << 16, 64
SMALL = 1 << 20             # bytes of a file that is read before its size is told
ENTRIES_MAX = 100_000       # the most names and, below, bytes that a program can make this process keep
BYTES_MAX = 256 << 20
SECONDS_MAX = 300.0


class _Malformed(Exception):
    """The other side has broken the protocol."""


class Entry:
    """What stat() has of a path in /workspace. type: file, directory, link or special; mode: its permissions; modified: seconds since 1970; target: of a link, which
    is not followed."""

    def __init__(self, name: str, mode: int, size: int, modified: float, target: Optional[str]) -> None:
        self.name, self.mode, self.size, self.modified, self.target = name, mode & 0o7777, size, modified, target
        self.type = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}.get(stat.S_IFMT(mode), "special")

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}, {self.size} bytes>"


class Found(Dict[str, T]):
    """{name below /workspace: ...}. left_out: {name: why} for files that matched and were left out: link, special, size, unreadable, deep, changed;
    for patterns that matched nothing: none; "": cut, the stream ended early."""

    def __init__(self, *content: Any) -> None:
        super().__init__(*content)
        self.left_out: Dict[str, str] = {}


class Files(Found[bytes]):
    """{name below /workspace: bytes}. The program chose names and bytes: save() is the safe way to write them."""
    _asked: Optional[_Wanted] = None

    def __init__(self, *content: Any) -> None:
        super().__init__(*content)
        self.folders: List[str] = [] # empty directories that matched; save() makes them

    def save(self, directory: Union[str, "os.PathLike[str]"], replace: bool = False, hidden: bool = False) -> List[str]:
        """Writes the files below a directory, which is made if it is missing, and returns their paths. Links below it are not followed. An existing
        file is an error (FileExistsError), unless replace is true. No file is made executable. A file whose name, or that of a directory above it,
        begins with a dot is left out (left_out says "hidden"), unless the pattern has the dot, too, or hidden is true: other programs obey such files,
        as .git and .envrc."""
        os.makedirs(directory, exist_ok=True)
        kept = [name for name in self if hidden or not self._hides(name)]
        self.left_out.update(dict.fromkeys(self.keys() - set(kept), "hidden"))
        for folder in self.folders:
            if hidden or not self._hides(folder):
                os.close(_enter(os.fspath(directory), _parts(folder)))
        return [_save(os.fspath(directory), name, self[name], replace) for name in kept]

    def _hides(self, name: str) -> bool:
        raw = os.fsencode(name)
        if _name_fault(raw) or not any(part.startswith(b".") for part in raw.split(b"/")):
            return False
        return self._asked is None or self._asked.hides(raw)


# --- sending ---

class _Sources:
    """The files to send: texts and bytes, open files, and files of directories, which are opened when their turn comes. Owns the open files."""

    def __init__(self, files: Optional[Mapping[str, Content]]) -> None:
        self.held: List[int] = []
        self.rows: List[Tuple[bytes, Union[bytes, int, str, None]]] = []
        try:
            for name, content in (files or {}).items():
                self.rows += self._of(name, content)
        except BaseException:
            self.close()
            raise

    def _of(self, name: str, content: Content) -> Iterator[Tuple[bytes, Union[bytes, int, str, None]]]:
        if isinstance(content, (str, bytes)):
            yield os.fsencode(name), content.encode() if isinstance(content, str) else content
        elif os.path.isdir(content):
            yield from _tree(os.fspath(content), name)
        else:
            self.held.append(_open_regular(os.fspath(content)))
            yield os.fsencode(name), self.held[-1]

    def check(self) -> None:
        for name, _ in self.rows:
            fault = "is too long" if len(name) > NAME_MAX else _name_fault(name)
            if fault:
                raise ValueError(f"files: {os.fsdecode(name)[:80]!r} {fault}; name files as they lie below /workspace, like out/a.csv")

    def check_for_run(self, has_code: bool) -> None:
        """A run begins with an empty /workspace, in which nothing is replaced."""
        seen = {b"main.py"} if has_code else set()
        for name, _ in self.rows:
            if name in seen:
                why = "comes twice" if name != b"main.py" or not has_code else "is the program itself; give the file another name"
                raise ValueError(f"files: {os.fsdecode(name)[:80]!r} {why}")
            seen.add(name)

    def close(self) -> None:
        held, self.held, self.rows = self.held, [], []
        for fd in held:
            os.close(fd)

    def give(self, put: Callable[[int, bytes, int], None], send: Callable[[bytes], None]) -> None:
        for name, content in self.rows:
            if content is None:
                put(_FOLDER, name, 0)
                continue
            if isinstance(content, bytes):
                put(_FILE, name, len(content))
                send(content)
                continue
            fd = content if isinstance(content, int) else _open_regular(content, os.O_NOFOLLOW)
            try:
                _give_file(name, fd, put, send)
            finally:
                if isinstance(content, str):
                    os.close(fd)


def _open_regular(path: str, flags: int = 0) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | flags)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"files: {path} is neither a regular file nor a directory")
    return fd


def _tree(top: str, name: str) -> Iterator[Tuple[bytes, Optional[str]]]:
    """All regular files of a directory, and None for each empty directory. A link is not followed: its target may be anywhere."""
    for folder, below, files in os.walk(top, onerror=_raise):
        below.sort()
        if not below and not files:
            yield os.fsencode(os.path.normpath(os.path.join(name, os.path.relpath(folder, top)))), None
        for each in sorted(files):
            path = os.path.join(folder, each)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield os.fsencode(os.path.join(name, os.path.relpath(path, top))), path


def _raise(error: OSError) -> None:
    raise error


def _small_file(fd: int, size: int) -> Optional[bytes]:
    """All bytes of a file that is small: the size that one of /proc or /sys reports is not the size that is read. None: it is large."""
    pieces: List[bytes] = []
    left = SMALL + 1
    while size <= SMALL and left > 0 and (piece := os.read(fd, left)):
        pieces.append(piece)
        left -= len(piece)
    if size <= SMALL and left > 0:
        return b"".join(pieces)
    os.lseek(fd, 0, os.SEEK_SET)
    return None


def _give_file(name: bytes, fd: int, put: Callable[[int, bytes, int], None], send: Callable[[bytes], None]) -> None:
    status = os.fstat(fd)
    head = _small_file(fd, status.st_size)
    if head is not None:
        put(_EXECUTABLE if status.st_mode & 0o111 else _FILE, name, len(head))
        send(head)
        return
    put(_EXECUTABLE if status.st_mode & 0o111 else _FILE, name, status.st_size)
    left = status.st_size
    while left:
        chunk = os.read(fd, min(left, CHUNK))
        if not chunk:
            raise OSError(f"files: {os.fsdecode(name)!r} became shorter while it was read")
        send(chunk)
        left -= len(chunk)


# --- patterns ---

_CHAR = rb"\[:\w+:\]|\\.|[^]\\]" # in a set
_PIECE = re.compile(rb"([*?])|\[([!^]|(?![!^]))((?:\]|%b)(?:%b)*)\]|\\?(.)" % (_CHAR, _CHAR), re.DOTALL)
_RANGE = re.compile(rb"\\?(.)-\\?(.)|\\?(.)", re.DOTALL)
_ANY: AbstractSet[int] = frozenset(range(256))
Pieces = List[Optional[AbstractSet[int]]] # the bytes that fit at each place; None: a star


def _set_of(negated: bytes, body: bytes) -> AbstractSet[int]:
    if b"[:" in body: # a class such as [:digit:] is left to the other side
        return _ANY
    found = {byte for low, high, one in _RANGE.findall(body) for byte in (range(low[0], high[0] + 1) if low else one)}
    return _ANY - found if negated else found


def _pieces(part: bytes) -> Pieces:
    made: Pieces = []
    for wild, negated, body, char in _PIECE.findall(part):
        made.append(None if wild == b"*" else _ANY if wild else {char[0]} if char else _set_of(negated, body))
    return made


def _fits(pieces: Pieces, text: bytes) -> bool:
    """Goes back to the last star only, so that no name takes long."""
    at = here = mark = 0
    star = -1
    while here < len(text):
        piece: Optional[AbstractSet[int]] = pieces[at] if at < len(pieces) else frozenset()
        if piece is None:
            star, mark, at = at, here, at + 1
        elif text[here] in piece:
            at, here = at + 1, here + 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return not any(piece is not None for piece in pieces[at:])


def _plain(pattern: bytes) -> bytes:
    """A pattern as people write it, with /workspace/, ./ or a slash at its end; one of nothing else is that of all files."""
    below = re.sub(rb"\A/workspace(?=/|\Z)", b".", pattern, count=1)
    return b"/".join(part for part in below.split(b"/") if part not in (b"", b".")) or b"**"


def patterns_of(get: Sequence[str], what: str = "get") -> List[Tuple[str, bytes]]:
    """Each as it was written, and plain. ValueError names one that cannot be asked for."""
    if isinstance(get, (str, bytes)):
        raise TypeError(f"{what}: expected a list of patterns, like [\"out/*.csv\"]")
    get = list(get)
    if len(get) > PATTERNS_MAX:
        raise ValueError(f"{what}: {len(get)} patterns, and {PATTERNS_MAX} is the most; use wildcards, like \"part*.csv\", or name a directory")
    made = []
    for each in get:
        raw = os.fsencode(each)
        plain = _plain(raw)
        fault = "is empty" if not raw else "begins with a slash, and is not below /workspace" if raw[:1] == b"/" and plain == _plain(b"." + raw) else _name_fault(plain)
        if fault:
            raise ValueError(f"{what}: the pattern {each[:80]!r} {fault}; name files as they lie below /workspace, like \"out/*.csv\"")
        made.append((each, plain))
    return made


class _Wanted:
    """The files that were asked for: those that match a pattern, and all below directories that match. A component ** stands for any number of directories."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        self._rows = [[None if part == b"**" else _pieces(part) for part in pattern.split(b"/")] for pattern in patterns]
        self._found = [False] * len(patterns)
        self._dots = [[part.startswith((b".", b"\\.")) for part in pattern.split(b"/")] for pattern in patterns]

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, bytes)
        parts, is_wanted = name.split(b"/"), False
        for i, row in enumerate(self._rows):
            if (not is_wanted or not self._found[i]) and _fits_row(row, parts):
                is_wanted = self._found[i] = True
        return is_wanted

    def hides(self, name: bytes) -> bool:
        """Every pattern that matches lacks a dot with which a component of the name begins."""
        parts = name.split(b"/")
        return not any(_fits_row(row, parts) and all(self._spells(row, dots, at, part) for at, part in enumerate(parts) if part.startswith(b"."))
                       for row, dots in zip(self._rows, self._dots))

    @staticmethod
    def _spells(row: Sequence[Optional[Pieces]], dots: Sequence[bool], at: int, part: bytes) -> bool:
        """Behind a ** the places of name and pattern are not the same: then any component of the pattern counts that fits."""
        if None not in row:
            return at < len(row) and dots[at]
        return any(dot and pieces is not None and _fits(pieces, part) for pieces, dot in zip(row, dots))

    def unfound(self) -> List[int]:
        """Which patterns have matched no name."""
        return [i for i, is_found in enumerate(self._found) if not is_found]


def _fits_row(row: Sequence[Optional[Pieces]], names: Sequence[bytes]) -> bool:
    """Goes back to the last ** only: the rest of a name is below what matched, so the earliest place of each part is as good as any."""
    at = here = mark = 0
    any_depth = -1
    while at < len(row):
        pieces = row[at]
        if pieces is None:
            at, mark = at + 1, here
            any_depth = at
        elif here == len(names):
            return False
        elif _fits(pieces, names[here]):
            at, here = at + 1, here + 1
        elif any_depth < 0:
            return False
        else:
            mark += 1
            at, here = any_depth, mark
    return True


def _literal(pattern: bytes) -> bytes:
    """In a session a backslash is a character like others; for a run it takes the meaning from the next one."""
    return pattern.replace(b"\\", b"\\\\")


# --- receiving ---

class _Taken:
    """What the other side has sent, without files that were not asked for: a program may control the sender. is_whole: the mark of the end has come."""

    def __init__(self, get: Sequence[bytes], listed: Sequence[bytes] = (), bytes_max: Optional[int] = None) -> None:
        self.files, self.sizes, self.is_whole = Files(), Found[int](), False
        self.entries: List[Entry] = []
        self._get, self._listed, self._room, self._entries = _Wanted(get), _Wanted(listed), bytes_max, 0
        self.files._asked = self._get

    def take(self, read: Callable[[int], bytes]) -> None:
        while True:
            kind, name_len, size = _ENTRY.unpack(read(_ENTRY.size))
            if kind == _END:
                self.is_whole = True
                return
            self._entries += 1
            if kind not in (_FILE, _EXECUTABLE, _LEFT, _LIST, _FOLDER, _STAT) or name_len > NAME_MAX:
                raise _Malformed("a malformed header in the stream of files")
            raw = read(name_len)
            fault = "" if kind == _STAT and not raw else _name_fault(raw)
            if fault:
                raise _Malformed(f"the name of a file {fault}: {raw[:80]!r}")
            self._take_entry(kind, raw, size, read)

    def tell_missing(self, patterns: Sequence[Tuple[str, bytes]]) -> None:
        """patterns: those of get."""
        if self.is_whole:
            self.files.left_out.update((patterns[i][0], "none") for i in self._get.unfound())

    def _take_entry(self, kind: int, raw: bytes, size: int, read: Callable[[int], bytes]) -> None:
        name = os.fsdecode(raw)
        if self._room is not None and self._entries > ENTRIES_MAX:
            raise FilesFailed(f"more than {ENTRIES_MAX} files; ask for fewer")
        if kind == _LEFT:
            raw in self._get # its pattern has matched
            why = _WHY[size] if size < len(_WHY) else "unknown"
            self.files.pop(name, None) # its bytes came before: the file changed while it was read
            self.files.left_out[name] = self.sizes.left_out[name] = why
        elif kind == _FOLDER:
            if raw in self._get:
                self.files.folders.append(name)
        elif kind == _STAT:
            if not _STATUS.size <= size <= _STATUS.size + _TARGET_MAX:
                raise _Malformed("a malformed description of a file")
            mode, _, length, modified = _STATUS.unpack(read(_STATUS.size))
            target = os.fsdecode(read(size - _STATUS.size)) or None
            self.entries.append(Entry(name or ".", mode, length, modified / 1e9, target))
        elif kind == _LIST:
            if raw in self._listed:
                self.sizes[name] = size
        else:
            if self._room is not None and size > self._room:
                raise FilesFailed(f"{name!r} is too large for what may come in one call; name fewer files, or say more with most=")
            if self._room is not None:
                self._room -= size
            content = read(size)
            if raw in self._get:
                self.files[name] = content


def _name_fault(name: bytes) -> str:
    """What is wrong with a path below /workspace; "": nothing."""
    parts = name.split(b"/")
    if b"" in parts:
        return "has an empty component"
    if b"." in parts or b".." in parts:
        return "has . or .. in it"
    if any(len(part) > 255 for part in parts) or len(parts) > DEPTH_MAX:
        return "is too long"
    return "has a NUL in it" if b"\0" in name else ""


def _recv(sock: socket.socket, size: int, before: Callable[[], Any] = lambda: None) -> bytes:
    data = bytearray()
    while len(data) < size:
        before()
        chunk = sock.recv(min(size - len(data), CHUNK))
        if not chunk:
            raise BrokenPipeError
        data += chunk
    return bytes(data)


def _parts(name: str) -> List[bytes]:
    raw = os.fsencode(name)
    if _name_fault(raw):
        raise ValueError(f"{name!r} {_name_fault(raw)}")
    return raw.split(b"/")


def _enter(directory: str, folders: Sequence[bytes]) -> int:
    """Makes directories that are missing. Opens one component after the other, so that no link is followed."""
    here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o777, dir_fd=here)
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _save(directory: str, name: str, content: bytes, replace: bool) -> str:
    *folders, last = _parts(name)
    here = _enter(directory, folders)
    try:
        with os.fdopen(_create(last, here, replace), "wb") as file:
            file.write(content)
    finally:
        os.close(here)
    return os.path.join(directory, name)


def _create(last: bytes, here: int, replace: bool) -> int:
    try:
        return os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=here)
    except FileExistsError:
        if not replace:
            raise
    fd = os.open(last, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=here)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileExistsError(f"{os.fsdecode(last)!r} is there, and is no regular file")
    os.ftruncate(fd, 0)
    return fd


# --- for a run ---

class Mover(threading.Thread):
    """Sends the files of a run and receives those that match, in a thread of its own, because each side may wait for the other."""

    def __init__(self, files: Optional[Mapping[str, Content]], get: Sequence[str], has_code: bool) -> None:
        super().__init__(name="brig-files", daemon=True)
        self.asked = patterns_of(get)
        self.patterns = [plain for _, plain in self.asked]
        self.taken, self.error = _Taken(self.patterns), None # type: _Taken, Optional[BaseException]
        self.sources = _Sources(files)
        try:
            self.sources.check()
            self.sources.check_for_run(has_code)
            self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except BaseException:
            self.sources.close()
            raise

    def end(self) -> None:
        """Called when the run has ended, or has not begun. Waits for the thread."""
        self.theirs.close()
        if self.ident is None:
            self.ours.close()
            self.sources.close()
            return
        self.join()
        self.ours.close()

    def run(self) -> None:
        try:
            self.sources.give(self._put, self.ours.sendall)
            self._put(_END, b"", 0)
            for pattern in self.patterns:
                self._put(_GET, pattern, _GET_FOLDERS)
            self._put(_END, b"", 0)
            self.taken.take(lambda size: _recv(self.ours, size))
            self.taken.tell_missing(self.asked)
        except (BrokenPipeError, ConnectionResetError):
            pass # the run was refused or has ended: its own outcome says why
        except _Malformed as error:
            self.error = ProtocolError(f"brigd has broken the protocol: {error}")
        except BaseException as error: # noqa: B902 raised in the thread that waits for this one
            self.error = error
        finally:
            self.sources.close()
            self.ours.shutdown(socket.SHUT_RDWR)

    def _put(self, kind: int, name: bytes, size: int) -> None:
        self.ours.sendall(_ENTRY.pack(kind, len(name), size) + name)


# --- for a session ---

def path_of(path: str, may_be_top: bool = False) -> bytes:
    """As it lies below /workspace; b"" is /workspace itself."""
    raw = os.fsencode(path)
    plain = _plain(raw) if raw else b""
    top = plain == b"**" and b"*" not in raw
    fault = ("is empty" if not raw else "begins with a slash, and is not below /workspace" if raw[:1] == b"/" and plain == _plain(b"." + raw) else
             "is too long" if len(plain) > NAME_MAX else "" if top and may_be_top else "is /workspace itself" if top else _name_fault(plain))
    if fault:
        raise ValueError(f"the path {path[:80]!r} {fault}; name it as it lies below /workspace, like \"out/a.csv\"")
    return b"" if top else plain


def made(path: str) -> Tuple[int, bytes, int, bytes]:
    return _FOLDER, path_of(path), 0, b""


def renamed(path: str, to: str) -> Tuple[int, bytes, int, bytes]:
    return _RENAME, path_of(path), len(path_of(to)), path_of(to)


def removed(path: str, tree: bool) -> Tuple[int, bytes, int, bytes]:
    return _REMOVE, path_of(path), int(tree), b""


class Transfer:
    """One request `files` of a session. If there are files to put, a thread of its own sends them, because each side may wait for the other."""

    def __init__(self, files: Optional[Mapping[str, Content]] = None, get: Sequence[str] = (), listed: Sequence[str] = (), most: int = BYTES_MAX,
                 timeout: float = SECONDS_MAX, changes: Sequence[Tuple[int, bytes, int, bytes]] = (), described: Sequence[Tuple[bytes, int]] = ()) -> None:
        self.asked, self.changes, self.described = patterns_of(get), changes, described
        asked, rows = [plain for _, plain in self.asked], [plain for _, plain in patterns_of(listed, "files")]
        self.patterns = [(_GET, each) for each in asked] + [(_LIST, each) for each in rows]
        self.taken = _Taken([_literal(each) for each in asked], [_literal(each) for each in rows], most)
        self.timeout, self.error = timeout, None # type: float, Optional[BaseException]
        self.sock: Optional[socket.socket] = None
        self.sources, self.ends_at, self.is_given, self.is_begun, self.is_aborted = _Sources(files), 0.0, False, False, False
        try:
            self.sources.check()
        except BaseException:
            self.sources.close()
            raise

    def open(self, fd: int) -> None:
        """Takes ownership of the descriptor."""
        self.sock = socket.socket(fileno=fd)

    def release(self) -> None:
        """Called when the transfer is over, or has not begun."""
        self.abort()
        if not self.is_begun:
            self._close()

    def abort(self) -> None:
        """Ends the transfer. May be called from any thread."""
        self.is_aborted = True
        if self.sock:
            with contextlib.suppress(OSError): # it is closed
                self.sock.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        self.sources.close()
        if self.sock:
            self.sock.close()

    def carry_out(self) -> None:
        self.is_begun, self.ends_at = True, time.monotonic() + self.timeout
        giver = threading.Thread(target=self._give, name="brig-files", daemon=True)
        try:
            if self.sources.rows:
                giver.start()
            else:
                self._give()
            self.taken.take(self._read)
            self.taken.tell_missing(self.asked)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except _Malformed as error:
            raise FilesFailed(f"what came out of the session is no list of files: {error}") from None
        except socket.timeout:
            raise self._late() from None
        finally:
            self.abort() # ends a sender that is still blocked
            if giver.ident is not None:
                giver.join()
            self._close()
        if self.error:
            raise self.error
        if not (self.is_given and self.taken.is_whole):
            raise FilesFailed("the session has ended, or has stopped in the middle of its files, as when its memory is used up; not all of them were moved")

    def check_put(self) -> None:
        """Raises FilesFailed if a file was not put."""
        left = self.taken.files.left_out
        if left:
            name, why = next(iter(left.items()))
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            raise FilesFailed(f"{name!r} was not put: {_SENTENCES.get(why, why)}{more}", left)

    def check_changes(self, done: str) -> None:
        """Raises FilesFailed if something was not done."""
        for name, why in self.taken.files.left_out.items():
            raise FilesFailed(f"{name!r} was not {done}: {_SENTENCES.get(why, why)}", self.taken.files.left_out)

    def _give(self) -> None:
        try:
            self.sources.give(self._put, self._send)
            for kind, name, size, beside in self.changes:
                self._put(kind, name, size)
                self._send(beside)
            self._put(_END, b"", 0)
            for kind, pattern in self.patterns:
                self._put(kind, pattern, _GET_FOLDERS if kind == _GET else 0)
            for name, depth in self.described:
                self._put(_STAT, name, depth)
            self._put(_END, b"", 0)
            self.is_given = True
        except (BrokenPipeError, ConnectionResetError):
            pass # the reading side reports why
        except socket.timeout:
            self.error = self._late()
            self.abort()
        except BaseException as error: # noqa: B902 raised in the thread that waits for this one
            self.error = error
            self.abort()

    def _late(self) -> FilesFailed:
        return FilesFailed(f"the files were not moved within {self.timeout:g} s; move fewer at once, or say more with timeout=")

    def _wait(self) -> socket.socket:
        """Sets the socket's timeout to the time that is left."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise socket.timeout
        assert self.sock
        self.sock.settimeout(left)
        return self.sock

    def _send(self, data: bytes) -> None:
        self._wait().sendall(data)

    def _put(self, kind: int, name: bytes, size: int) -> None:
        self._send(_ENTRY.pack(kind, len(name), size) + name)

    def _read(self, size: int) -> bytes:
        assert self.sock
        return _recv(self.sock, size, self._wait)
