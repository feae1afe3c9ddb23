# session.py - the session server: forks what a session executes, and executes nothing of a program itself
#
# Brigd sends requests as JSON over one socket, and gets structs of a fixed size (jail/server/sessions/session_message.h).
# A context is a fork of this process that executes code of programs (context.py). A command is started and awaited by another fork, the
# command's parent (stay_beside()). All processes of a session have the same rights as this one, so it is not dumpable: they cannot read
# or write its memory, take its descriptors, or trace it. They can kill it, which ends the session. What they send is hostile.
from posix import P_ALL, P_PID, WEXITED, WNOHANG, WNOWAIT, _exit, chdir, POSIX_SPAWN_DUP2, closerange, fork, getsid, kill, killpg, pipe, posix_spawn, sched_yield, setsid, stat, waitid, waitpid

READY, STARTED, ENDED, FAILED, LOST, CPU, BACKGROUND = range(1, 8)
RESIZE, INTERRUPT = 1, 2 # to the parent of a command that has a terminal
FRESH, GONE, NO_EXEC, NO_CWD = 1, 2, 4, 8
ORDER_MAX = 160 << 10
WORD_MAX = 4 << 10
SIGINT, SIGKILL, SIGPIPE, SIGTERM, SIGCHLD, SIGCONT, SIGXCPU, SIGXFSZ = 2, 9, 13, 15, 17, 18, 24, 25
BY_DEFAULT = SIGINT, SIGPIPE, SIGTERM, SIGCHLD, SIGXCPU, SIGXFSZ # the signals whose action is reset for a command
BLOCK, UNBLOCK = 0, 1
DONTWAIT, CMSG_CLOEXEC = 0x40, 0x40000000
POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16
SEQPACKET, RIGHTS, EMFILE = 5, 1, 24
FOLDER_ONLY = 0o12200000 # O_PATH | O_DIRECTORY | O_CLOEXEC
SET_DUMPABLE, SET_CHILD_SUBREAPER = 4, 36
FDS_MAX = 1 << 20
KEPT_MAX = 64 << 10 # bytes of what is written to a stream between calls
NOTE_MAX = 100      # and of the note about those that were dropped
PIPE_MAX = 1 << 20  # bytes that a pipe can hold, if a program has made it larger
LEFT_MAX = 64       # pipes of calls that have ended, which processes still write to; beyond, the oldest is closed
ENDING_MS = 2       # how often is looked whether it has
READING_S = 2       # how long the client of such a call may take to read what was written before its end
PATH = "/usr/local/bin", "/usr/bin", "/bin"

_socket, resource = extension("_socket"), extension("resource")
import _signal
from time import clock_gettime_ns, monotonic


def set_process(option, value):
    """prctl(): that of the zygote's extension in a fork of a zygote, otherwise that of the C library."""
    if "zygote_prctl" in OURS:
        return zygote_prctl(option, value)
    import ctypes
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def packed(kind, call=0, value=0, flags=0, cpu_ns=0):
    parts = (kind, 4), (call, 4), (value & 0xffffffff, 4), (flags, 4), (max(cpu_ns, 0), 8)
    return b"".join(number.to_bytes(size, sys.byteorder) for number, size in parts)


def rights(fds):
    return [(1, RIGHTS, b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds))] if fds else []


def receive(sock, most, flags=0):
    """One datagram and its descriptors; b"" at the end."""
    data, control, _, _ = sock.recvmsg(most, 256, CMSG_CLOEXEC | flags)
    bytes = b"".join(part for level, kind, part in control if (level, kind) == (1, RIGHTS))
    return data, [int.from_bytes(bytes[i:i + 4], sys.byteorder) for i in range(0, len(bytes) - 3, 4)]


def step_aside():
    """Lets another process run on this processor first. A policy may refuse the call."""
    try:
        sched_yield()
    except OSError:
        pass


def close_all(fds):
    for fd in fds:
        try:
            close(fd)
        except OSError:
            pass


def keep_only(*kept):
    """Closes all descriptors but 0 to 2 and these."""
    first = 3
    for fd in sorted(kept):
        closerange(first, fd)
        first = fd + 1
    closerange(first, FDS_MAX)


def cpu_ns_of(pid):
    """The CPU time of all threads of a process that is not reaped yet."""
    try:
        return clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def cpu_ns_in(usage):
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


def children_of(pid):
    try:
        return [int(child) for thread in listdir(f"/proc/{pid}/task") for child in read_file_slowly(f"/proc/{pid}/task/{thread}/children").split()]
    except (OSError, ValueError):
        return []


def listdir(path):
    from posix import listdir as list_directory
    return list_directory(path)


def read_file_slowly(path):
    """Reads a file of /proc, which does not have a size."""
    fd, pieces = open_file(path, 0o2000000), []
    try:
        while piece := read(fd, 1 << 16):
            pieces.append(piece)
    finally:
        close(fd)
    return b"".join(pieces)


def kill_one(pid, signal=SIGKILL):
    try:
        kill(pid, signal)
    except OSError:
        pass


def is_over(pid, how=WNOHANG):
    """Has this child ended? Does not reap it. how=0 waits for its end."""
    try:
        return waitid(P_PID, pid, WEXITED | WNOWAIT | how) is not None
    except ChildProcessError:
        return True


def next_ended():
    """The pid of a child that has ended, or None. Does not reap it."""
    try:
        ended = waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
        return ended and ended.si_pid
    except ChildProcessError:
        return None


def has_children():
    """Does this process have children? It is a subreaper, so orphans are among them."""
    try:
        waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
        return True
    except ChildProcessError:
        return False


def session_of(pid):
    """The pid of the context or other process whose setsid() this one has inherited."""
    try:
        return getsid(pid)
    except OSError:
        return 0


def end_children(spared=()):
    """Kills all children of this process, and their descendants: orphans become its children, because it is a subreaper. None is reaped meanwhile.
    The dead count towards the limit of processes, so programs that fork faster than they are killed soon cannot fork any more. A process that a
    program has hidden (PR_SET_DUMPABLE) becomes a child when its parent ends.
    spared: these, and what has their session: a process can leave a session, but not enter one.

    All have ended when a second look finds only dead children, the same as the first: while a process runs, its own children are not in the list."""
    seen = []
    while has_children():
        children = [child for child in children_of("self") if not spared or not {child, session_of(child)} & spared]
        running = [child for child in children if not is_over(child)]
        if not running and children == seen:
            return
        for child in running:
            kill_one(child)
        if running:
            is_over(running[0], 0)
        seen = children


# --- what is written after the end of a call ---

class Kept:
    """The last of what came through pipes: of what is written between calls, for the output of the next one."""

    def __init__(self):
        self.pieces, self.length, self.lost = [], 0, 0

    def drain(self, reading):
        """Reads as much as a pipe can hold, and no more: a program that writes all the time would keep this loop busy. False: nobody writes any more."""
        try:
            for _ in range(PIPE_MAX // KEPT_MAX):
                piece = read(reading, KEPT_MAX)
                if not piece:
                    return False
                self.keep(piece)
        except BlockingIOError:
            pass
        return True

    def keep(self, piece):
        self.pieces.append(piece)
        self.length += len(piece)
        while self.length - len(self.pieces[0]) >= KEPT_MAX:
            self.lost += len(self.pieces[0])
            self.length -= len(self.pieces.pop(0))

    def take(self, most=KEPT_MAX):
        text, lost = b"".join(self.pieces), self.lost
        self.pieces, self.length, self.lost = [], 0, 0
        if len(text) > most:
            lost += len(text) - most
            text = text[-most:]
        if lost:
            begin = next((i for i in range(4) if text[i] & 0xc0 != 0x80), 0) # the first byte of a character
            text = b"[%d bytes that were written between calls are cut here]\n" % (lost + begin) + text[begin:]
        return text


def new_kept():
    """For stdout and stderr."""
    return Kept(), Kept()


def has_events(fd, events):
    poll = select.poll()
    poll.register(fd, events)
    return any(event & events for _, event in poll.poll(0))


def is_unread(fd):
    """Is this a pipe that has no reader any more?"""
    return has_events(fd, POLLERR)


def open_left(streams, kept):
    """
    Closes the writing ends of a call that has ended; opens and returns reading ends of those pipes that processes write to which the call has left
    running, each with what keeps their text. The client still has its own reading ends, so at no moment is there none, at which the processes would
    die of SIGPIPE.
    """
    left = []
    while streams:
        writing = streams.pop()
        is_abandoned = is_unread(writing) # the client has gone: what it did not read is for nobody
        try:
            reading = open_file(f"/proc/self/fd/{writing}", 0o2004000) # O_NONBLOCK | O_CLOEXEC
        except OSError:
            reading = -1
        close(writing)
        if reading >= 0 and (is_abandoned and not Kept().drain(reading) or has_events(reading, POLLHUP)):
            close(reading)
        elif reading >= 0:
            left.append((reading, kept[len(streams)]))
    return left


class Ending:
    """A call that has ended, with processes that still write to its pipes: the client may read until these are empty, then the rest is not its own."""

    def __init__(self, owner, left, told):
        self.owner, self.left, self.told, self.until = owner, left, told, monotonic() + READING_S

    def is_read(self):
        return not any(has_events(reading, POLLIN) for reading, _ in self.left) or monotonic() > self.until


# --- contexts and commands, as the server sees them ---

class Context:
    """An interpreter, and the call that it executes."""

    def __init__(self, pid, channel):
        self.pid, self.channel = pid, channel
        self.call, self.is_known, self.is_reaped = None, False, False # is_known: brigd was told of it
        self.streams, self.kept = [], new_kept() # streams: writing ends of the call's output

    def begin(self, call, limit_ns):
        self.call, self.limit_ns, self.is_told = call, limit_ns, False
        self.before = cpu_ns_of(self.pid)

    def used(self):
        return cpu_ns_of(self.pid) - self.before

    def interrupt(self):
        kill_one(self.pid, SIGINT)

    def kill(self):
        """Does nothing after it was reaped: its pid may then belong to another process."""
        if not self.is_reaped:
            kill_one(self.pid)


class Command:
    """A command's parent: the parent or subreaper of all that the command starts; it reports how the command ended."""

    def __init__(self, pid, channel, call, ends, order):
        self.pid, self.channel, self.call, self.ends = pid, channel, call, ends
        self.detaches, self.terminal = bool(order.get("detach")), bool(order.get("terminal"))
        self.leader, self.size = 0, None # size: of its terminal, while the message about it does not fit into the channel
        self.streams = [] # of one that detaches: writing ends of its output

    def say(self, kind, value=0, flags=0):
        """False: the channel is full, for example because a program has stopped the process."""
        try:
            self.channel.sendmsg([packed(kind, 0, value, flags)], [], DONTWAIT)
        except BlockingIOError:
            return False
        except OSError: # the process has ended
            pass
        return True

    def say_size(self):
        if self.size and self.say(RESIZE, *self.size):
            self.size = None

    def interrupt(self):
        if self.terminal:
            self.say(INTERRUPT)
        elif self.leader:
            try:
                killpg(self.leader, SIGINT)
            except OSError:
                pass

    def kill(self):
        kill_one(self.pid, SIGTERM)
        kill_one(self.pid, SIGCONT) # a program may have stopped it


# --- a command's parent ---

def find_executables(name):
    return [name] if "/" in name else [f"{folder}/{name}" for folder in PATH]


def environment_of(order):
    env = dict(sys.modules["os"].environ._data)
    env.update(entry.encode("utf-8", "surrogateescape").split(b"=", 1) for entry in order.get("env") or ())
    return env


def start_leader(order, actions):
    """
    Returns the pid of the command's first process, the errno if it could not be started, and flags for the server. actions: where its streams come
    from. This process sets the directory and the limit of CPU time for itself, and the command inherits them. So posix_spawn() can start it, without
    a fork that copies this interpreter. This process does little but wait, so the limit does not matter to it.
    """
    try:
        _signal.signal(SIGXCPU, _signal.SIG_IGN)
        seconds, most = -(-order["cpu_ms"] // 1000), resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, most), min(seconds + 1, most)))
        chdir(order.get("cwd") or WORKSPACE)
    except OSError as failed: # reported like a program that does not exist
        return 0, failed.errno or 5, 0
    env = environment_of(order)
    for path in find_executables(order["argv"][0]):
        try:
            stat(path) # cheaper than a process that finds nothing to execute
            return posix_spawn(path, order["argv"], env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=BY_DEFAULT), 0, 0
        except OSError as failed:
            error = failed.errno or 5
            if error not in (2, 13, 20): # ENOENT, EACCES, ENOTDIR: the next directory may have it
                break
    return 0, error, NO_EXEC if error in (11, 12) else 0 # EAGAIN, ENOMEM: no process could be made


def stay_beside(order, channel, streams):
    """Starts a command, waits for its end and reports it. Never returns."""
    set_process(SET_CHILD_SUBREAPER, 1)
    if order.get("terminal"):
        need("session_terminal")
        leader, status = stay_at_terminal(order, channel, *streams)
    else:
        leader, status = stay_in_pipes(order, channel, streams)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    channel.sendmsg([packed(ENDED, leader, status, 0, cpu_ns_in(usage))], [], DONTWAIT)
    step_aside() # the server answers the client first: freeing this process's memory takes longer
    channel.close()
    reap_children() # detached processes keep this parent, so the server does not take them for what a context has left
    _exit(0)


def stay_in_pipes(order, channel, streams):
    """Returns the pid of the command's first process, and its status from waitpid()."""
    _signal.pthread_sigmask(BLOCK, [SIGCHLD])
    leader, errnum, flags = start_leader(order, [(POSIX_SPAWN_DUP2, fd, to) for fd, to in zip(streams, (1, 2, 0))])
    close_all(streams)
    channel.sendmsg([packed(FAILED if errnum else STARTED, leader, errnum, flags)], [], DONTWAIT)
    if errnum:
        _exit(0)
    status = wait_for(leader)
    if not order.get("detach"):
        end_children()
        reap_children()
    return leader, status


def wait_for(leader):
    """Returns the status of the leader. SIGTERM and SIGCHLD are blocked, and taken by sigwait(): with a handler, a signal just before a blocking
    waitpid() would be missed. Not wait4(): its result is a class of another module, which it would import."""
    while True:
        pid, status = waitpid(-1, WNOHANG)
        if pid == leader:
            return status
        if not pid and _signal.sigwait([SIGTERM, SIGCHLD]) == SIGTERM:
            end_children()


def reap_children():
    try:
        while True:
            waitpid(-1, 0)
    except ChildProcessError:
        pass


# --- the server ---

class Server:
    def __init__(self, fd):
        self.brigd = _socket.socket(_socket.AF_UNIX, SEQPACKET, 0, fd)
        self.contexts, self.commands = {}, {}
        self.others = {} # pid of a files helper, or of the parent of a command that has ended: whether the client has asked for what it does
        self.told = 0    # the sum of these that brigd was told; None: brigd waits for one
        self.left = {}   # reading end of a pipe that a call has left to processes: what keeps their text
        self.endings, self.kept = [], new_kept() # kept: of commands, for any call
        self.wake, self.woken = pipe()
        self.poll = select.poll()
        self.on = {}
        self.watch(fd, self.hear_brigd)
        self.watch(self.wake, self.reap)

    def watch(self, fd, work):
        self.on[fd] = work
        self.poll.register(fd, POLLIN)

    def mute(self, channel):
        if self.on.pop(channel.fileno(), None):
            self.poll.unregister(channel.fileno())

    def forget(self, channel):
        self.mute(channel)
        channel.close()

    def tell(self, kind, call=0, value=0, flags=0, cpu_ns=0, fds=()):
        self.brigd.sendmsg([packed(kind, call, value, flags, cpu_ns)], rights(fds))

    # --- forking ---

    def fork(self, work, *kept):
        """Forks a child that does only work(). It has descriptors 0 to 2 and these, and the default action for SIGCHLD."""
        pid = fork()
        if pid:
            step_aside() # the child first: the client waits for what it does
            return pid
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(SIGCHLD, _signal.SIG_DFL)
            keep_only(*kept)
            work()
        except BaseException as error:
            write(2, f"brig: {type(error).__name__} in a process of the session\n".encode())
        finally:
            _exit(1)

    def start_context(self, number):
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, SEQPACKET)

        def work():
            setsid()
            set_process(SET_DUMPABLE, 1)
            if "zygote_reseed" in OURS: # else no module was imported ahead
                zygote_reseed()
            _signal.pthread_sigmask(UNBLOCK, [SIGTERM])
            live_as_context(theirs.fileno())
        context = self.contexts[number] = Context(self.fork(work, theirs.fileno()), ours)
        self.watch(ours.fileno(), lambda: self.hear_context(number, context))
        return context

    def start_ahead(self):
        """Starts the first context before brigd asks for it. If that fails, the first call will report why."""
        try:
            self.start_context(0)
        except OSError:
            pass

    # --- calls ---

    def run(self, order, fds):
        """Starts a call. If that fails, the context has not received it, or is lost: it must not execute a call that brigd takes for failed."""
        number, call = order["context"], order["call"]
        ends, given, flags = [], [], 0
        try:
            if len(fds) != 1 + order["tools"]:
                raise OSError(EMFILE, "a call")
            if order.get("cwd"):
                flags = NO_CWD
                fds.append(open_file(f"{order['cwd']}/." if order["cwd"][0] == "/" else f"{WORKSPACE}{order['cwd']}/.", FOLDER_ONLY)) # with /. it must be one to enter
                flags = 0
            for _ in range(3):
                reading, writing = pipe()
                ends.append(reading)
                given.append(writing)
            self.hand_over(given, *([self.contexts[number].kept] if number in self.contexts else []), self.kept)
            try:
                self.begin(number, order, [fds[0], *given, *fds[1:]])
            except ConnectionError: # the context was just ending: a new one gets the call
                self.lose(number)
                self.begin(number, order, [fds[0], *given, *fds[1:]])
            context = self.contexts[number]
            context.streams, given = given[:2], given[2:]
            self.tell(STARTED, call, 0, 0 if context.is_known else FRESH, fds=ends)
            context.is_known = True
        except OSError as error:
            if number in self.contexts and (self.contexts[number].call == call or not self.contexts[number].is_known):
                self.lose(number)
            self.tell(FAILED, call, error.errno or 5, flags)
        finally:
            close_all(ends + given)

    def begin(self, number, order, fds):
        context = self.contexts.get(number) or self.start_context(number)
        context.begin(order["call"], order["cpu_ms"] * 1000000)
        try:
            context.channel.sendmsg([order["text"]], rights(fds), DONTWAIT) # as it came: with the keys of this call
        except OSError:
            context.call = None
            raise

    def exec(self, order, fds):
        ends, given, call = [], [], order["call"]
        try:
            for _ in range(2):
                reading, writing = pipe()
                ends.append(reading)
                given.append(writing)
            if order["stdin"]:
                reading, writing = pipe()
                ends.append(writing)
                given.append(reading)
            if not order.get("terminal"):
                self.hand_over(given, self.kept)
            ours, theirs = _socket.socketpair(_socket.AF_UNIX, SEQPACKET)
            pid = self.fork(lambda: stay_beside(order, theirs, given), theirs.fileno(), *given)
            command = self.commands[pid] = Command(pid, ours, call, ends, order)
            self.watch(ours.fileno(), lambda: self.hear_command(command))
            ends = []
            if command.detaches:
                command.streams, given = given[:2], given[2:]
        except OSError as error:
            self.tell(FAILED, call, error.errno or 5, NO_EXEC)
        finally:
            close_all(ends + given)

    def files(self, order, fds):
        self.told = None # brigd waits for BACKGROUND, also if this fails
        if not fds:
            return # this process had no room for descriptors; the client sees the end of its socket

        def work():
            need("session_files")
            serve_files(fds[0])
        try:
            self.others[self.fork(work, fds[0])] = True
        except OSError:
            pass # the client sees the end of its socket

    def named(self, order):
        running = [*self.contexts.values(), *self.commands.values()]
        return next((one for one in running if one.call is not None and one.call == order["call"]), None)

    def interrupt(self, order, fds):
        if one := self.named(order):
            one.interrupt()

    def resize(self, order, fds):
        one = self.named(order)
        if type(one) is Command and one.terminal:
            one.size = order["size"]
            self.say_size(one)

    def say_size(self, command):
        command.say_size()
        if command.channel.fileno() in self.on:
            self.poll.modify(command.channel.fileno(), POLLIN | POLLOUT if command.size else POLLIN)

    def kill(self, order, fds):
        if one := self.named(order):
            one.kill()

    def restart(self, order, fds):
        if order["context"] in self.contexts:
            self.lose(order["context"])

    def end(self, order=None, fds=()):
        _exit(0) # PID 1 of the jail ends with this process, and with it all others

    # --- messages ---

    def hear_brigd(self):
        data, fds = receive(self.brigd, ORDER_MAX)
        if not data:
            self.end()
        order, _ = scan(data.decode(), 0)
        order["text"] = data
        self.reap_all() # the dead count towards the limit of processes
        try:
            ORDERS[order["op"]](self, order, fds)
        finally:
            close_all(fds)

    def hear_context(self, number, context):
        """A context may only answer its call. Anything else that it sends, or its end, makes the server kill it."""
        try:
            data, fds = receive(context.channel, WORD_MAX, DONTWAIT)
        except BlockingIOError:
            return # the event was for an earlier descriptor with this number
        except OSError:
            data, fds = b"", []
        close_all(fds)
        try:
            answer = read_answer(data)
        except Exception:
            answer = None
        if answer is None or answer[0] != context.call:
            self.mute(context.channel)
            return context.kill()
        self.conclude(context, context.kept, ENDED, context.call, (answer[1] & 255) << 8, 0, context.used())
        context.call = None

    def hear_command(self, command):
        if command.size:
            self.say_size(command)
        try:
            data = command.channel.recv(WORD_MAX, DONTWAIT)
        except (BlockingIOError, ConnectionResetError): # reset: it ended without reading all messages; its own can still be read
            return
        except OSError:
            data = b""
        if len(data) != 24:
            return self.mute(command.channel) # its end will be reaped soon
        kind, value = int.from_bytes(data[:4], sys.byteorder), int.from_bytes(data[8:12], sys.byteorder)
        if kind == STARTED and not command.leader:
            command.leader = int.from_bytes(data[4:8], sys.byteorder)
            self.tell_started(command)
        elif kind == FAILED:
            self.tell(FAILED, command.call, value, int.from_bytes(data[12:16], sys.byteorder))
            self.drop(command)
        elif kind == ENDED and command.leader:
            if command.call is not None:
                self.conclude(command, self.kept, ENDED, command.call, value, 0, int.from_bytes(data[16:24], sys.byteorder))
            self.drop(command)

    def tell_started(self, command):
        """This can fail: programs can have so many descriptors in flight that the user's limit is reached."""
        try:
            self.tell(STARTED, command.call, fds=command.ends)
        except OSError as error:
            self.tell(FAILED, command.call, error.errno or 5, NO_EXEC)
            command.call = None
            command.kill()
        close_all(command.ends)

    def drop(self, command):
        """Forgets a command whose parent process is not reaped yet."""
        self.forget(command.channel)
        close_all(command.streams)
        close_all([] if command.leader else command.ends)
        if self.commands.pop(command.pid, None):
            self.others[command.pid] = command.detaches

    def reap(self):
        read(self.wake, 4096)
        self.reap_all()

    def reap_all(self):
        while pid := next_ended():
            used = cpu_ns_of(pid)
            self.on_end(pid, waitpid(pid, 0)[1], used)

    def on_end(self, pid, status, used):
        number = next((number for number, context in self.contexts.items() if context.pid == pid), None)
        if number is not None:
            return self.end_context(number, status, used)
        if pid not in self.commands and pid not in self.others:
            return
        if pid in self.commands:
            command = self.commands[pid]
            while pid in self.commands and command.channel.fileno() in self.on and has_events(command.channel.fileno(), POLLIN):
                self.hear_command(command)
            if pid in self.commands: # it was killed, and the command's processes became children of this one
                self.end_orphans()
                if command.call is not None:
                    self.tell(ENDED if command.leader else FAILED, command.call, 9 if command.leader else 5, 0 if command.leader else NO_EXEC)
                self.drop(command)
        elif status & 127: # killed: its detached processes became children of this one
            self.end_orphans()
        self.others.pop(pid, None)

    def end_context(self, number, status, used):
        context = self.contexts[number]
        context.is_reaped = True
        if context.call is not None and context.channel.fileno() in self.on and has_events(context.channel.fileno(), POLLIN):
            self.hear_context(number, context) # the answer that it gave before its end
        if context.call is None:
            return self.lose(number)
        del self.contexts[number]
        close_all(context.streams)
        self.forget(context.channel)
        self.end_orphans()
        self.tell(ENDED, context.call, status, GONE, used - context.before)

    def lose(self, number):
        """Kills and forgets a context that has no call to answer. The next call gets a new one at once, even if this one has not ended yet."""
        context = self.contexts.pop(number)
        context.kill()
        close_all(context.streams)
        self.end_calls(context)
        self.forget(context.channel)
        self.end_orphans()
        if context.is_known:
            self.tell(LOST, 0, number)

    def end_orphans(self):
        """
        Kills the processes that a context has left, or a command's parent that was killed: as orphans they became children of this process. Those
        of the other contexts have their sessions, and stay. A daemon has one of its own and tells nobody whose it is: it is killed, too.
        """
        end_children({*(context.pid for context in self.contexts.values()), *self.commands, *self.others})

    # --- what is written after the end of a call ---

    def hand_over(self, pipes, *kept):
        """Writes what was kept, and what waits in pipes that were left, into the empty pipes of a call."""
        for left in list(self.left.items()):
            self.drain_left(*left)
        for both in kept:
            for each, writing in zip(both, pipes):
                self.hand_over_one(each, writing)

    def hand_over_one(self, kept, writing):
        text = kept.take(KEPT_MAX - NOTE_MAX) # a pipe has room for 64 KiB
        if text:
            set_blocking(writing, False)
            try:
                text = text[write(writing, text):]
            except BlockingIOError:
                pass
            set_blocking(writing, True)
            if text: # a pipe is small where its user has too many of them
                kept.keep(text)

    def conclude(self, owner, kept, *told):
        """Tells the end of a call, at once or when its client has read what is its own."""
        left = open_left(owner.streams, kept)
        if not left:
            return self.tell(*told)
        self.endings.append(Ending(owner, left, told))
        self.end_calls()

    def end_calls(self, owner=None):
        """Those that are read, or all of an owner."""
        for ending in self.endings[:]:
            if ending.owner is owner or ending.is_read():
                self.endings.remove(ending)
                for reading, kept in ending.left:
                    self.watch_left(reading, kept)
                self.tell(*ending.told)

    def watch_left(self, reading, kept):
        if len(self.left) == LEFT_MAX:
            oldest = next(iter(self.left))
            self.ignore(oldest)
            close(oldest)
        self.left[reading] = kept
        self.watch(reading, lambda: self.drain_left(reading, kept))

    def drain_left(self, reading, kept):
        self.ignore(reading)
        if kept.drain(reading):
            self.watch_left(reading, kept) # as the last one: others take their turns
        else:
            close(reading)

    def ignore(self, reading):
        del self.left[reading], self.on[reading]
        self.poll.unregister(reading)

    # --- its life ---

    def patience(self):
        """Milliseconds until a call can have used up its CPU time; None: no call has a limit left to reach."""
        left = [context.limit_ns - context.used() for context in self.contexts.values() if context.call is not None and not context.is_told]
        until_cpu = max(min(left) // 4000000, 5) if left else None
        return ENDING_MS if self.endings else until_cpu

    def check_cpu(self):
        for context in self.contexts.values():
            if context.call is not None and not context.is_told and context.used() >= context.limit_ns:
                context.is_told = True
                self.tell(CPU, context.call)

    def tell_others(self):
        """Tells brigd how many processes still do what a client asked for. If there are none, and no call, it may freeze the session."""
        number = sum(self.others.values())
        if self.told != number:
            self.told = number
            self.tell(BACKGROUND, 0, number)

    def serve(self):
        self.tell(READY)
        need("context")
        self.start_ahead()
        while True:
            ready = sorted((fd for fd, _ in self.poll.poll(self.patience())), key=self.left.__contains__) # what was left behind comes last
            for fd in ready[:1]: # only one: its handler may close descriptors, whose numbers can then be used again
                self.on[fd]()
            self.end_calls()
            self.check_cpu()
            self.tell_others()


ORDERS = {name: getattr(Server, name) for name in ("run", "exec", "files", "interrupt", "resize", "kill", "restart", "end")}


def read_answer(data):
    answer, end = scan(data.decode(), 0)
    call, code = answer["call"], answer["exit_code"]
    if type(call) is not int or type(code) is not int:
        raise ValueError
    return call, code


def become_server():
    set_process(SET_DUMPABLE, 0)
    set_process(SET_CHILD_SUBREAPER, 1)
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most, most)) # each call has a limit of its own
    for signal in SIGINT, SIGPIPE, SIGTERM:
        _signal.signal(signal, _signal.SIG_IGN)
    _signal.pthread_sigmask(BLOCK, [SIGTERM]) # it ends a command, whose parent inherits the mask, and takes the signal only when it is ready for it


def run_session(fd):
    become_server()
    server = Server(fd)
    _signal.signal(SIGCHLD, lambda *_: None)
    set_blocking(server.wake, False)
    set_blocking(server.woken, False)
    _signal.set_wakeup_fd(server.woken, warn_on_full_buffer=False)
    server.serve()
