# session_files.py - a session's files helper: copies files in and out, and changes and describes what is there; brig-protocol(7), FILES
#
# It is a fork of the session server, with the rights that every program of the session has. Paths are opened one component after the other,
# without following links, and in a way that cannot block.
from posix import ftruncate, link, mkdir, open as open_at, readlink, readv, rename, rmdir, scandir, stat as stat_of, unlink as unlink_at

END, REGULAR, EXECUTABLE, GET, LEFT, LIST, FOLDER, STAT, RENAME, REMOVE = range(10)
GET_FOLDERS = 1 # a pattern's length, from a client that knows FOLDER
REMOVE_TREE = 1 # the length of REMOVE: a directory with all that is in it
LINK, SPECIAL, SIZE, UNREADABLE, DEEP, ROOM, UNWRITABLE, CHANGED, MISSING, NOT_EMPTY = range(10)
NAME_BYTES, FOLDERS_MAX, GETS_MAX, BLOCK_BYTES = 1024, 32, 64, 64 << 10
O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_CLOEXEC = 0o200000, 0o400000, 0o4000, 0o400, 0o2000000
O_WRONLY, O_TMPFILE = 1, 0o20200000
ENOENT, ENOMEM, EEXIST, ENOSPC, EROFS, ENAMETOOLONG, ENOTEMPTY, EDQUOT = 2, 12, 17, 28, 30, 36, 39, 122
FORMAT, LINK_TYPE, FILE_TYPE, DIRECTORY_TYPE = 0o170000, 0o120000, 0o100000, 0o040000


class Ended(Exception):
    """The client has gone, or has sent something invalid."""


ROOM_FOR_BLOCK = memoryview(bytearray(BLOCK_BYTES)) # allocated once: when memory is used up, a new buffer would get a process of the session killed
NOTHING = memoryview(bytes(4096)) # the same


def read_block(fd, most):
    """Reads between 1 and `most` bytes. The block is valid until the next one is read."""
    got = readv(fd, [ROOM_FOR_BLOCK[:min(most, BLOCK_BYTES)]])
    if not got:
        raise Ended
    return ROOM_FOR_BLOCK[:got]


def read_exactly(fd, size):
    pieces = []
    while size:
        pieces.append(bytes(read_block(fd, size)))
        size -= len(pieces[-1])
    return b"".join(pieces)


def try_to_write(file, block):
    """0, or the errno."""
    try:
        write_all(file, block)
        return 0
    except OSError as error:
        try:
            ftruncate(file, 0) # at once: memory may be used up, and this gives some back
        except OSError:
            pass
        return error.errno


def put_entry(fd, kind, name=b"", size=0):
    write_all(fd, kind.to_bytes(4, sys.byteorder) + len(name).to_bytes(4, sys.byteorder) + size.to_bytes(8, sys.byteorder) + name)


def next_entry(fd):
    head = read_exactly(fd, 16)
    kind, length, size = (int.from_bytes(head[at:to], sys.byteorder) for at, to in ((0, 4), (4, 8), (8, 16)))
    if kind > REMOVE or length > NAME_BYTES:
        raise Ended
    return kind, read_exactly(fd, length), size


def is_plain(name):
    parts = name.split(b"/")
    return 0 < len(name) <= NAME_BYTES and b"\0" not in name and len(parts) <= FOLDERS_MAX and all(part not in (b"", b".", b"..") and len(part) <= 255 for part in parts)


def open_folder(parts, makes):
    """Opens a directory below /workspace; makes: creates what is missing. The caller closes it."""
    folder = open_at(WORKSPACE, O_DIRECTORY | O_CLOEXEC)
    for part in parts:
        try:
            if makes:
                try:
                    mkdir(part, 0o755, dir_fd=folder)
                except FileExistsError:
                    pass
            below = open_at(part, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)
        finally:
            close(folder)
        folder = below
    return folder


# --- in ---

def skip(fd, size):
    while size:
        size -= len(read_block(fd, size))


def give_name(file, folder, last):
    """Gives a name to a file that has none. An existing file of that name is replaced in a single step, and stays if that fails."""
    def name_it(name):
        link(b"/proc/self/fd/%d" % file, name, dst_dir_fd=folder, follow_symlinks=True)
    try:
        return name_it(last)
    except FileExistsError:
        pass
    own = b".brig-put-%d" % getpid()
    name_it(own)
    try:
        rename(own, last, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        unlink_at(own, dir_fd=folder)
        raise


def drop_bytecode(folder, last):
    """Removes what Python, or pytest, has compiled of the module that was just replaced: they compare the size and the time of a source, the time in
    whole seconds, and would execute the old bytecode if both are the same."""
    module, _, kind = last.rpartition(b".")
    if kind != b"py":
        return
    try:
        cache = open_at(b"__pycache__", O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)
    except OSError:
        return # nothing is compiled
    try:
        with scandir(cache) as entries:
            names = [name for name in (sys.modules["os"].fsencode(entry.name) for entry in entries) if name.startswith(module + b".")]
        for name in names:
            unlink_at(name, dir_fd=cache)
    except OSError:
        pass # a program removed it first
    finally:
        close(cache)


def put_file(fd, kind, name, size):
    """Returns the reason why the file is left out, or None. All its bytes are read in any case. It has no name before it is complete: if memory is
    used up and this process is killed, the incomplete file must disappear."""
    *above, last = name.split(b"/")
    folder = file = -1
    left, errnum = size, 0
    try:
        folder = open_folder(above, True)
        file = open_at(b".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0o755 if kind == EXECUTABLE else 0o644, dir_fd=folder)
        while left and not errnum:
            block = read_block(fd, left)
            left -= len(block)
            errnum = try_to_write(file, block)
        if errnum:
            raise OSError(errnum, "write")
        give_name(file, folder, last)
        drop_bytecode(folder, last)
        return None
    except OSError as error:
        skip(fd, left)
        return ROOM if error.errno in (ENOMEM, ENOSPC, EDQUOT) else UNWRITABLE
    finally:
        close_those_open(folder, file)


def put_folder(name):
    """As put_file()."""
    try:
        close(open_folder(name.split(b"/"), True))
        return None
    except OSError as error:
        return ROOM if error.errno in (ENOMEM, ENOSPC, EDQUOT) else UNWRITABLE


def why_not(error, otherwise=UNWRITABLE):
    """The reason that is reported of an OSError."""
    return {ENOENT: MISSING, ENOTEMPTY: NOT_EMPTY, EEXIST: NOT_EMPTY, ENAMETOOLONG: DEEP, ENOMEM: ROOM, ENOSPC: ROOM, EDQUOT: ROOM}.get(error.errno, otherwise)


def own_device():
    """What is below /workspace and of another device is a mount: what --ro shows is the host's."""
    return stat_of(WORKSPACE).st_dev


def rename_one(name, to):
    """As put_file(). A link at the end of either path is itself renamed or replaced; no other is followed."""
    (*above, last), (*above_to, last_to) = name.split(b"/"), to.split(b"/")
    source = target = -1
    try:
        source, target = open_folder(above, False), open_folder(above_to, False)
        rename(last, last_to, src_dir_fd=source, dst_dir_fd=target)
        drop_bytecode(target, last_to)
        return None
    except OSError as error:
        return why_not(error)
    finally:
        close_those_open(source, target)


def remove_one(name, is_tree):
    """As put_file()."""
    *above, last = name.split(b"/")
    folder = -1
    try:
        folder = open_folder(above, False)
        remove_entry(folder, last, own_device(), FOLDERS_MAX if is_tree else 0)
        return None
    except OSError as error:
        return why_not(error)
    finally:
        close_those_open(folder)


def remove_entry(folder, last, device, depth):
    """depth: of how many levels of directories all is removed. What is mounted there is the host's, and stays."""
    status = stat_of(last, dir_fd=folder, follow_symlinks=False)
    if status.st_dev != device:
        raise OSError(EROFS, "a mount")
    if status.st_mode & FORMAT != DIRECTORY_TYPE:
        return unlink_at(last, dir_fd=folder)
    try:
        rmdir(last, dir_fd=folder)
    except OSError as error:
        if not depth or error.errno not in (EEXIST, ENOTEMPTY):
            raise
        empty(folder, last, device, depth)
        rmdir(last, dir_fd=folder)


def empty(folder, last, device, depth):
    if depth == 1:
        raise OSError(ENAMETOOLONG, "too deep")
    below = open_at(last, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)
    try:
        with scandir(below) as entries:
            names = [sys.modules["os"].fsencode(entry.name) for entry in entries]
        for each in names:
            try:
                remove_entry(below, each, device, depth - 1)
            except FileNotFoundError:
                pass # a program removed it first
    finally:
        close(below)


def close_those_open(*fds):
    for fd in fds:
        if fd >= 0:
            close(fd)


def take_files(fd):
    """Returns the files that were left out, each with its reason. What is changed is changed in the order in which it comes."""
    left = []
    while True:
        kind, name, size = next_entry(fd)
        if kind == END:
            return left
        if kind not in (REGULAR, EXECUTABLE, FOLDER, RENAME, REMOVE) or kind == RENAME and size > NAME_BYTES:
            raise Ended
        to = read_exactly(fd, size) if kind == RENAME else name
        if not is_plain(name) or not is_plain(to):
            skip(fd, size if kind in (REGULAR, EXECUTABLE) else 0)
            left.append((name, UNWRITABLE))
        elif kind in (RENAME, REMOVE):
            if (why := rename_one(name, to) if kind == RENAME else remove_one(name, size == REMOVE_TREE)) is not None:
                left.append((name, why))
        elif (why := put_folder(name) if kind == FOLDER else put_file(fd, kind, name, size)) is not None:
            left.append((name, why))


# --- out ---

def set_end(pattern, at):
    """The index of the "]" of the set that begins at `at`; -1: it is no set."""
    end = at + 1 + (pattern[at + 1:at + 2] in (b"!", b"^"))
    return pattern.find(b"]", end + 1)


def in_set(set, char):
    negated = set[:1] in (b"!", b"^")
    set, found, i = set[negated:], False, 0
    while i < len(set):
        if i + 2 < len(set) and set[i + 1] == 45: # a range
            found |= set[i] <= char <= set[i + 2]
            i += 3
        else:
            found |= set[i] == char
            i += 1
    return found != negated


def matches_part(pattern, text):
    """Matches one component against *, ? and []; without recursion, so that no pattern takes long."""
    at = here = 0
    star, mark = -1, 0
    while here < len(text):
        kind, step = pattern[at:at + 1], 1
        end = set_end(pattern, at) if kind == b"[" else -1
        if kind == b"*":
            star, mark = at, here
            at += 1
            continue
        if kind == b"?":
            fits = True
        elif end > 0:
            fits, step = in_set(pattern[at + 1:end], text[here]), end + 1 - at
        else:
            fits = kind == text[here:here + 1]
        if fits:
            at, here = at + step, here + 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return not pattern[at:].strip(b"*")


def plain_pattern(pattern):
    """The components of a pattern as people write it, with /workspace/, ./ or a slash at its end; None: no name can match it."""
    if pattern == WORKSPACE[:-1].encode() or pattern.startswith(WORKSPACE.encode()):
        pattern = b"." + pattern[len(WORKSPACE) - 1:]
    parts = [part for part in pattern.split(b"/") if part not in (b"", b".")] or [b"**"]
    return parts if pattern and pattern[:1] != b"/" and is_plain(b"/".join(parts)) else None


def matches(parts, name):
    """
    True if the pattern matches the name or a directory above it. A component ** stands for any number of directories. Goes back to the last ** only:
    with the rest of a name below what matched, the earliest place of each part is as good as any.
    """
    names, at, here, mark, any_depth = name.split(b"/"), 0, 0, 0, -1
    while at < len(parts):
        if parts[at] == b"**":
            at, mark = at + 1, here
            any_depth = at
        elif here == len(names):
            return False
        elif matches_part(parts[at], names[here]):
            at, here = at + 1, here + 1
        elif any_depth < 0:
            return False
        else:
            mark += 1
            at, here = any_depth, mark
    return True


def send_file(fd, folder, last, name, most):
    """Returns how many bytes were sent, at most `most`."""
    try:
        file = open_at(last, O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, dir_fd=folder)
    except OSError:
        put_entry(fd, LEFT, name, UNREADABLE)
        return 0
    try:
        status = fstat(file)
        size = status.st_size
        if status.st_mode & FORMAT != FILE_TYPE or size > most: # it may have changed since send_one(); a sparse file can be larger than /workspace
            put_entry(fd, LEFT, name, SPECIAL if status.st_mode & FORMAT != FILE_TYPE else SIZE)
            return 0
        put_entry(fd, EXECUTABLE if status.st_mode & 0o100 else REGULAR, name, size)
        if send_bytes(fd, file, size) or fstat(file).st_size != size:
            put_entry(fd, LEFT, name, CHANGED)
        return size
    finally:
        close(file)


def send_bytes(fd, file, size):
    """Sends exactly `size` bytes: NULs for those that have vanished meanwhile. Returns how many have."""
    while size:
        try:
            block = read_block(file, size)
        except (Ended, OSError):
            break
        write_all(fd, block)
        size -= len(block)
    missing = size
    while size:
        block = NOTHING[:min(size, len(NOTHING))]
        write_all(fd, block)
        size -= len(block)
    return missing


class Sender:
    def __init__(self, fd, patterns, sends_folders):
        self.fd, self.patterns, self.sends_folders = fd, patterns, sends_folders

    def wants(self, name):
        """GET, LIST or None; GET where both match."""
        return min((kind for kind, pattern in self.patterns if matches(pattern, name)), default=None)

    def send(self):
        folder = open_at(WORKSPACE, O_DIRECTORY | O_CLOEXEC)
        self.device = fstat(folder).st_dev
        self.bytes, self.names = room_of(folder)
        self.send_folder(folder, b"", 1)

    def send_folder(self, folder, prefix, depth):
        """Sends the entries in the order of their names, and closes folder."""
        try:
            with scandir(folder) as entries:
                names = sorted(sys.modules["os"].fsencode(entry.name) for entry in entries)
            if not names and self.sends_folders and prefix and self.wants(prefix[:-1]) == GET:
                put_entry(self.fd, FOLDER, prefix[:-1])
            for last in names:
                self.send_one(folder, last, prefix + last, depth)
        finally:
            close(folder)

    def send_one(self, folder, last, name, depth):
        self.names -= 1
        if self.names < 0: # an entry that is moved meanwhile can be met again and again
            raise Ended
        try:
            status = stat_of(last, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return
        kind = status.st_mode & FORMAT
        if status.st_dev != self.device: # a mount: what --ro shows is the host's
            return
        if kind == DIRECTORY_TYPE:
            return self.enter(folder, last, name, depth)
        wanted = self.wants(name)
        if wanted is None:
            return
        if len(name) > NAME_BYTES:
            put_entry(self.fd, LEFT, name[:NAME_BYTES], DEEP)
        elif kind == LINK_TYPE:
            put_entry(self.fd, LEFT, name, LINK)
        elif kind != FILE_TYPE:
            put_entry(self.fd, LEFT, name, SPECIAL)
        elif wanted == LIST:
            put_entry(self.fd, LIST, name, status.st_size)
        else:
            self.bytes -= send_file(self.fd, folder, last, name, self.bytes)

    def enter(self, folder, last, name, depth):
        try:
            below = open_at(last, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder) if depth < FOLDERS_MAX and len(name) < NAME_BYTES else -1
        except OSError:
            below = None
        if below is not None and below >= 0:
            return self.send_folder(below, name + b"/", depth + 1)
        if self.wants(name) is not None:
            put_entry(self.fd, LEFT, name[:NAME_BYTES], UNREADABLE if below is None else DEEP)


def room_of(folder):
    """How many bytes and how many names /workspace has room for."""
    from posix import statvfs
    room = statvfs(folder) # a path or a descriptor
    return room.f_blocks * room.f_frsize, room.f_files


class Describer:
    """Sends what stat() has of a path, and of what is below it. Links are described, and not followed."""

    def __init__(self, fd):
        self.fd, self.device, self.names = fd, own_device(), room_of(WORKSPACE)[1]

    def send(self, name, depth):
        *above, last = name.split(b"/") if name else [b"."]
        folder = -1
        try:
            if name and not is_plain(name):
                raise OSError(ENOENT, "no plain path")
            folder = open_folder(above, False)
            if fstat(folder).st_dev != self.device: # below a mount
                raise OSError(EROFS, "a mount")
            self.send_one(folder, last, name, min(depth, FOLDERS_MAX))
        except OSError as error:
            put_entry(self.fd, LEFT, name, why_not(error, UNREADABLE))
        finally:
            close_those_open(folder)

    def send_one(self, folder, last, name, depth):
        status, target = stat_of(last, dir_fd=folder, follow_symlinks=False), b""
        self.names -= 1
        if self.names < 0: # as in Sender
            raise Ended
        if status.st_mode & FORMAT == LINK_TYPE:
            target = sys.modules["os"].fsencode(readlink(last, dir_fd=folder))
        numbers = (status.st_mode, 4), (0, 4), (status.st_size, 8), (status.st_mtime_ns, 8)
        head = b"".join(number.to_bytes(size, sys.byteorder, signed=size == 8) for number, size in numbers)
        put_entry(self.fd, STAT, name, len(head) + len(target))
        write_all(self.fd, head + target)
        if depth and status.st_mode & FORMAT == DIRECTORY_TYPE and status.st_dev == self.device:
            self.send_below(folder, last, name + b"/" if name else b"", depth - 1)

    def send_below(self, folder, last, prefix, depth):
        try:
            below = open_at(last, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            return put_entry(self.fd, LEFT, prefix[:-1], why_not(error, UNREADABLE))
        try:
            with scandir(below) as entries:
                names = sorted(sys.modules["os"].fsencode(entry.name) for entry in entries)
            for each in names:
                if len(prefix + each) > NAME_BYTES:
                    put_entry(self.fd, LEFT, (prefix + each)[:NAME_BYTES], DEEP)
                    continue
                try:
                    self.send_one(below, each, prefix + each, depth)
                except FileNotFoundError:
                    pass # a program removed it
        finally:
            close(below)


def take_patterns(fd):
    """Returns them, whether empty directories that match are sent, too, and the paths to describe, each with a depth."""
    patterns, sends_folders, described = [], False, []
    while True:
        kind, name, size = next_entry(fd)
        if kind == END:
            return patterns, sends_folders, described
        if kind not in (GET, LIST, STAT) or len(patterns) + len(described) == GETS_MAX:
            raise Ended
        if kind == STAT:
            described.append((name, size))
            continue
        sends_folders |= kind == GET and size == GET_FOLDERS
        parts = plain_pattern(name)
        patterns.append((kind, parts) if parts else (kind, [b""])) # which matches nothing


def serve_files(fd):
    try_to_write(-1, b" ") # code needs memory when it is executed for the first time, and when this code matters there is none
    try:
        left = take_files(fd)
        patterns, sends_folders, described = take_patterns(fd)
        for name, why in left:
            put_entry(fd, LEFT, name[:NAME_BYTES], why)
        if described:
            describer = Describer(fd)
            for name, depth in described:
                describer.send(name, depth)
        if patterns:
            Sender(fd, patterns, sends_folders).send()
        put_entry(fd, END)
    except (Ended, OSError):
        pass
