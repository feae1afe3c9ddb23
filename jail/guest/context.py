# context.py - a live Python as in notebooks: one namespace, one call after the other
#
# A fork of the session server calls live_as_context() and never returns from it. It waits for a datagram with a call, which brings code and
# pipes as descriptors, executes the call, reports it as program.py does, and answers. It has no further thread: between calls it waits, and
# keeps what threads and children of the program write meanwhile.
#
# The program can do anything to its interpreter, and its signal handlers can raise an exception between any two instructions of this file. So
# Live.state has the next step, and live_as_context() goes on from there after any exception. Two steps must not be done twice or by half, taking
# a call and answering it: each is a single call into C code, during which no handler of the program runs.
need("value", "failure", "last", "tree", "written", "program", "bridge") # and session.py, for _socket: its server forks this process
import _io
import _signal
from posix import _exit as exit_at_once, chdir, dup2, fchdir, pipe as make_pipe, pread, set_blocking

SOURCES_MAX = 16 << 20 # bytes of code of earlier calls, for tracebacks
SOURCES = {}           # file name: code
FRAMES_MAX = 1000      # as in the interpreter's own tracebacks
SETTLE_S = 0.5         # how long an interrupted task may take to end
CALL_BYTES, CALL_FDS = 96 << 10, 6 # a request has 64 KiB
IDLE, BEGUN, OWED = range(3)
RESULTS_OF_CALL = "result", "output", "__return_value__"
IN_LOOP = "create_task", "ensure_future", "get_running_loop"
OWN_LOOP = "run", "run_until_complete", "run_forever", "Runner", "new_event_loop"
NO_TOOLS = "the call is over that had these tools"
NO_INPUT = "there is no input here; put the values into the code"


# --- standard streams ---

class NoInput(_io._RawIOBase):
    """Standard input: reading it raises EOFError. Descriptor 0 is open for children."""
    name = "<stdin>"

    def readable(self):
        return True

    def readinto(self, _):
        raise EOFError(NO_INPUT)

    def fileno(self):
        return 0


def open_no_input():
    stream = _io.TextIOWrapper(_io.BufferedReader(NoInput()), "utf-8", "surrogateescape", "\n")
    stream.mode = "r"
    return stream


NOTHING_TO_READ = open_no_input() # made once, for every context that does not close it


def open_output(fd, name, errors):
    raw = _io.open(fd, "wb", -1, closefd=False)
    raw.raw.name = name
    stream = _io.TextIOWrapper(raw, "utf-8", errors, "\n", True)
    stream.mode = "w"
    return stream


def is_usable(stream):
    """The program may have closed or detached it."""
    try:
        return not stream.closed
    except BaseException:
        return False


def c_flush():
    """A function that writes what C code has printed. Not fflush(NULL): it would wait for a thread that reads from any stream of the C library."""
    if "zygote_flush" in OURS:
        return zygote_flush
    import ctypes # the session server has imported it, too
    library = ctypes.CDLL(None)
    streams = [ctypes.c_void_p.in_dll(library, name) for name in ("stdout", "stderr")]
    return lambda: [library.fflush(stream) for stream in streams]


FLUSH_C = c_flush() # before a program can change ctypes


def flush(*streams):
    for stream in streams:
        try:
            stream.flush()
        except Exception:
            pass # a stream of the program, or a pipe without a reader
    FLUSH_C()


def open_between():
    """The ends of a pipe for what is written between calls."""
    reading, writing = make_pipe()
    set_blocking(reading, False)
    return reading, writing


def write_all(fd, text):
    rest = memoryview(text)
    while rest:
        rest = rest[write(fd, rest):]


def pread_all(fd):
    size, text = fstat(fd).st_size, b""
    while len(text) < size and (piece := pread(fd, size - len(text), len(text))):
        text += piece
    return text


# --- source lines ---

def lines_of(source):
    return source.decode("utf-8", "replace").splitlines(True)


def entry_of(source):
    """An entry for linecache: each line ends with a newline, and without an mtime linecache does not look on disk."""
    return len(source), None, lines_of(source if source.endswith(b"\n") else source + b"\n")


def remember_source(path, source):
    SOURCES[path] = source
    while len(SOURCES) > 1 and sum(map(len, SOURCES.values())) > SOURCES_MAX:
        forget = next(iter(SOURCES))
        del SOURCES[forget]
        getattr(sys.modules.get("linecache"), "cache", {}).pop(forget, None)
    if "linecache" in sys.modules:
        fill_linecache(sys.modules["linecache"])


def fill_linecache(linecache):
    for path, source in SOURCES.items():
        if path not in linecache.cache:
            linecache.cache[path] = (*entry_of(source), path)


def display_with_lines(error):
    """A traceback with source lines of calls; display() of failure.py has only those of files. The import costs a context's first error some ms."""
    try:
        from traceback import TracebackException
        return "".join(TracebackException(type(error), error, traceback_of(error), limit=-FRAMES_MAX, compact=True).format())
    except Exception:
        return display(error)


SPAWN_WATCHED = "multiprocessing.reduction", "multiprocessing.pool", "concurrent.futures.process"


def check_spawned(name, module):
    need("spawn")
    SPAWN_HOOKS[name](module)


# --- compiling ---

def is_muted(source, node):
    """`plot(x);` shows no value, as in notebooks."""
    lines = source.split(b"\n") if b";" in source else []
    return len(lines) >= node.end_lineno and lines[node.end_lineno - 1][node.end_col_offset:].lstrip()[:1] == b";"


def compile_call(source, path, flags):
    tree = compile(source, path, "exec", ONLY_AST | TOP_LEVEL_AWAIT | flags, True)
    if tree.body and not is_muted(source, tree.body[-1]):
        keep_value(tree)
    return compile(tree, path, "exec", TOP_LEVEL_AWAIT | flags, True)


def compile_live(source, path, flags):
    try:
        return compile_call(source, path, flags)
    except (RecursionError, MemoryError):
        return compile(source, path, "exec", TOP_LEVEL_AWAIT | flags, True)


# --- the event loop ---

def wants_loop(names):
    """Is this code without `await` to be executed inside a running loop, as in a notebook? If it makes tasks, and does not run a loop itself."""
    return ("asyncio" in names or "asyncio" in sys.modules) and any(name in names for name in IN_LOOP) and not any(name in names for name in OWN_LOOP)


class EventLoop:
    """A loop of asyncio that stays: tasks of an earlier call go on when a later call waits for something."""

    def __init__(self):
        self.loop = self.task = self.giving_up = None
        self.was_interrupted = False

    def open(self):
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop

    def is_waiting(self, frame):
        """Was code of the loop interrupted, and no code of the program?"""
        while frame is not None and self.task is not None:
            if frame.f_code is EventLoop.turn.__code__:
                return True
            name = frame.f_globals.get("__name__")
            if type(name) is not str or not (name.startswith("asyncio.") or name == "selectors"):
                return False
            frame = frame.f_back
        return False

    def interrupt(self):
        """Cancels the task, which is waiting. KeyboardInterrupt inside the loop could lose callbacks that are about to run."""
        self.was_interrupted = True
        self.task.cancel()
        self.giving_up = self.loop.call_later(SETTLE_S, self.give_up)
        self.loop.call_soon_threadsafe(lambda: None) # wakes it

    def give_up(self):
        if self.task is not None and not self.task.done():
            raise KeyboardInterrupt

    def turn(self, task):
        return self.loop.run_until_complete(task)

    def settle(self, task):
        """Ends the task if it did not end the loop: KeyboardInterrupt or SystemExit did, in this task or in another."""
        if not task.done():
            task.cancel()
            stop = self.loop.call_later(SETTLE_S, self.loop.stop)
            try:
                self.turn(task)
            except BaseException:
                pass # the task's exception, or the loop was stopped first
            stop.cancel()
        if task.done() and not task.cancelled():
            task.exception() # otherwise asyncio would report it later

    def run(self, coroutine):
        loop = self.open()
        self.task, self.was_interrupted, self.giving_up = loop.create_task(coroutine), False, None
        task = self.task
        try:
            return self.turn(task)
        except BaseException as error:
            if self.was_interrupted and task.cancelled():
                raise KeyboardInterrupt().with_traceback(traceback_of(error)) from None
            self.task = None
            self.settle(task)
            if self.was_interrupted and type(error) is KeyboardInterrupt and links_of(traceback_of(error))[-1].tb_frame.f_code is EventLoop.give_up.__code__:
                raise KeyboardInterrupt from None # the traceback has only frames of the loop
            raise
        finally:
            self.task = None
            if self.giving_up is not None:
                self.giving_up.cancel()

    async def step(self, work):
        """Calls work() inside the running loop; tasks that it makes begin before the call ends."""
        work()
        import asyncio
        await asyncio.sleep(0)


# --- tools ---

class Bridges:
    """Passes requests to the bridge of the current call."""
    now = None

    def ask(self, body):
        return self.now.ask(body)

    def ask_in(self, loop, body):
        return self.now.ask_in(loop, body)


def hang_up(fd):
    """Wakes a thread that waits for an answer."""
    connection = _socket.socket(1, 1, 0, fd)
    try:
        connection.shutdown(2)
    except OSError:
        pass
    finally:
        connection.detach()


# --- one context ---

compile("", "", "exec", ONLY_AST) # the first one makes the types of nodes: here it does so once, for all contexts


class Stopped(KeyboardInterrupt):
    """Interrupts a repr() or sys.excepthook that takes too long."""


STOPS = Stopped, # for value.py

class Live:
    """
    state: the next step, and its data.
        IDLE, []            wait for a call
        IDLE, [datagram]    begin the call
        BEGUN, [datagram]   end the call: its code was executed, or an exception came first
        OWED, [answer]      send the answer
        OWED, []            the answer is sent
    """

    def __init__(self, fd):
        self.fd, self.pid, self.state, self.count = fd, getpid(), (IDLE, []), 0
        self.socket = _socket.socket(1, 5, 0, fd) # AF_UNIX, SOCK_SEQPACKET
        self.kept, self.between = {1: Kept(), 2: Kept()}, {1: open_between(), 2: open_between()}
        self.poll = select.poll()
        for each in fd, *(reading for reading, _ in self.between.values()):
            self.poll.register(each, 1) # POLLIN
        self.streams, self.first_stdin = {"stdin": NOTHING_TO_READ}, sys.stdin # kept: destroying it would cost each context time
        self.fds, self.tools, self.bridges = [], None, Bridges()
        self.exit_code, self.loop, self.flags = 1, EventLoop(), 0
        self.environ, self.own_variables, self.own_folder = sys.modules["os"].environ, {}, None # own: what a call has replaced
        self.interruptible = self.is_telling = False
        self.main = MODULE("__main__")
        self.names = self.main.__dict__
        self.names.update(__builtins__=builtins)

    def begin(self):
        set_inheritable(self.fd, False)
        register_at_fork(after_in_child=self.leave)
        sys.argv[:], sys.orig_argv[:] = [""], ["python3", "-I"]
        sys.path.insert(0, "") # as in notebooks: modules in the working directory
        offer_display(linecache=fill_linecache, **{name: lambda module, name=name: check_spawned(name, module) for name in SPAWN_WATCHED})
        _signal.signal(15, _signal.SIG_DFL) # SIGTERM: the server ignores it, and children inherit that
        self.set_streams()
        self.point_to_kept()
        self.reset_interrupt()

    def leave(self):
        """Called in a fork of the program, which must not use the channel."""
        self.interruptible = True
        for fd in self.fd, *self.fds:
            try:
                close(fd)
            except OSError:
                pass
        self.fds = []

    # --- between calls ---

    def wait(self, inbox):
        for fd, _ in self.poll.poll():
            if fd != self.fd:
                self.drain()
            else:
                inbox.extend(map(self.socket.recvmsg, (CALL_BYTES,), (CALL_FDS * 4 + 64,), (0x40000000,))) # MSG_CMSG_CLOEXEC
                if not inbox[0][0]:
                    exit_at_once(0) # the server has ended

    def drain(self):
        for fd, (reading, _) in self.between.items():
            self.kept[fd].drain(reading)

    def point_to_kept(self):
        for fd, (_, writing) in self.between.items():
            dup2(writing, fd)

    def on_interrupt(self, number, frame):
        if not self.interruptible:
            return
        if self.is_telling:
            raise Stopped
        if self.loop.is_waiting(frame) and not self.loop.was_interrupted:
            self.loop.interrupt()
        else:
            raise KeyboardInterrupt

    # --- a call ---

    def set_streams(self):
        """Puts back the standard streams, which an earlier call may have replaced. They stay the same objects, for what refers to them (logging)."""
        for name, make in ("stdin", open_no_input), ("stdout", lambda: open_output(1, "<stdout>", "surrogateescape")), ("stderr", lambda: open_output(2, "<stderr>", "backslashreplace")):
            if name not in self.streams:
                self.streams[name] = getattr(sys, name, None)
            setattr(sys, name, None) # a program's wrapper around the stream closes it when it is destroyed, here
            if not is_usable(self.streams[name]):
                self.streams[name] = make()
            setattr(sys, name, self.streams[name])
            setattr(sys, f"__{name}__", self.streams[name])

    def take_pipes(self):
        """Makes 1 and 2 the call's pipes. The buffers are flushed first: their text was written between calls."""
        flush(self.streams["stdout"], self.streams["stderr"])
        for to, fd in (1, self.fds[1]), (2, self.fds[2]):
            dup2(fd, to)
            close(fd)
        self.fds[1:3] = []
        self.drain() # only now: a thread that waits for room in the old pipes would wait until the call has ended

    def give_kept(self):
        for fd, kept in self.kept.items():
            if text := kept.take():
                write_all(fd, text)

    def call(self, inbox):
        text, control, _, _ = inbox[0]
        self.fds = [int.from_bytes(data[i:i + 4], "little") for _, _, data in control for i in range(0, len(data) - 3, 4)]
        order = scan(text.decode(), 0)[0]
        if len(self.fds) != 4 + order["tools"] + bool(order.get("cwd")):
            return
        self.count += 1
        call = RECORD(path=f"<call {self.count}>", source=pread_all(self.fds[0]), codes=[], names=self.names, value=None, result_names=(), earlier={name: self.names[name] for name in RESULTS_OF_CALL if name in self.names}, before=look_at_files(), tells_written=order["written"])
        setrecursionlimit(max(getrecursionlimit(), 1000))
        self.set_streams()
        self.take_pipes()
        self.set_surroundings(order.get("env") or (), self.fds.pop() if order.get("cwd") else -1)
        if order["tools"]:
            self.open_tools(self.fds.pop())
        _signal.signal(2, self.on_interrupt)
        self.exit_code = self.perform(call)

    def set_surroundings(self, entries, folder):
        """The variables and the working directory of this call alone: put_back() is called at its end."""
        for entry in entries:
            name, _, value = entry.partition("=")
            self.own_variables.setdefault(name, self.environ.get(name))
            self.environ[name] = value
        if folder >= 0:
            self.fds.append(folder) # closed with the others
            try:
                self.own_folder = getcwd()
            except OSError: # it was removed
                self.own_folder = WORKSPACE
            fchdir(folder)
            close(self.fds.pop())

    def perform(self, call):
        error = self.run(call)
        settrace(None)
        setprofile(None)
        setrecursionlimit(max(getrecursionlimit(), 1000))
        failure = "null"
        try:
            self.is_telling = self.interruptible = True
            if error is not None:
                error, failure = told(call, error, display_with_lines)
                if is_a(error, SystemExit):
                    say_exit(error)
            if getpid() != self.pid:
                self.end_fork(error)
            report = report_text(call, error, failure, [])
            let_go(call)
            flush(getattr(sys, "stdout", None), getattr(sys, "stderr", None))
        except BaseException:
            report = report_short(error, [])
        self.interruptible = False
        if getpid() != self.pid:
            self.end_fork(error)
        self.send_report(report)
        return exit_code_of(error)

    def run(self, call):
        """Returns the exception that ended it, or None."""
        try:
            self.is_telling, self.interruptible = False, True
            self.give_kept()
            call.value = self.execute(call)
            if call.value is not None:
                in_program(keep_last, call, builtins, call.value)
            self.interruptible = False
        except BaseException as error:
            self.interruptible = False
            return error
        finally:
            self.names.pop(VALUE, None)
        return None

    def execute(self, call):
        """Returns the value of the last expression."""
        names = self.names
        sys.modules["__main__"] = self.main
        names["__builtins__"] = builtins
        names.pop("__warningregistry__", None) # its keys are line numbers, and each call has a line 1
        forget_folder()
        remember_source(call.path, call.source)
        code = compile_or_explain(compile_live, call.source, call.path, self.flags)
        self.flags |= code.co_flags & FUTURE # as in the interactive interpreter
        call.codes.append(code)
        self.evaluate(code)
        call.result_names = RESULTS_OF_CALL
        return names.pop(VALUE, None)

    def evaluate(self, code):
        if code.co_flags & COROUTINE:
            self.loop.run(eval(code, self.names))
        elif wants_loop(code.co_names):
            self.loop.run(self.loop.step(lambda: eval(code, self.names)))
        else:
            eval(code, self.names)

    def end_fork(self, error):
        """Ends a child that the program forked and that came to the end of the code."""
        flush(getattr(sys, "stdout", None), getattr(sys, "stderr", None))
        exit_at_once(exit_code_of(error))

    # --- tools ---

    def open_tools(self, fd):
        """Gives the module `tools` the socket of this call. The module stays the same, so functions that the program has taken from it work on."""
        need("schema", "tools")
        self.bridges.now = Bridge(fd)
        if self.tools is None:
            self.tools = Tools(self.bridges)
            register_at_fork(after_in_child=lambda: self.bridges.now.leave())
        self.tools._forget()
        show_tools(self.tools)

    # --- the end of a call ---

    def send_report(self, text):
        try:
            write_all(self.fds[1], text.encode("utf-8", "replace"))
        except OSError:
            pass # the pipe has no reader any more

    def close_all(self):
        while self.fds:
            try:
                close(self.fds.pop())
            except OSError:
                pass

    def flush_out(self):
        flush(self.streams["stdout"], self.streams["stderr"])

    def drop_unread(self):
        """Empties the buffers if the client has gone without reading: the client of the next call must not get their text."""
        if is_unread(1) or is_unread(2):
            nowhere = open_file("/dev/null", 0o2000001) # O_WRONLY | O_CLOEXEC
            for fd in 1, 2:
                dup2(nowhere, fd)
            close(nowhere)
            self.flush_out()

    def close_tools(self):
        bridge = self.bridges.now
        if bridge is not None and bridge.fd >= 0:
            bridge.end(NO_TOOLS)
            hang_up(bridge.fd)
            bridge.retire(NO_TOOLS)

    def put_back(self):
        while self.own_variables:
            name, value = next(iter(self.own_variables.items()))
            if value is None:
                self.environ.pop(name, None)
            else:
                self.environ[name] = value
            self.own_variables.pop(name, None)
        if self.own_folder is not None:
            try:
                chdir(self.own_folder)
            except OSError: # the call has removed it
                chdir(WORKSPACE)
            self.own_folder = None

    def reset_interrupt(self):
        """The program may have set its own handler."""
        _signal.signal(2, self.on_interrupt)

    def end(self, inbox):
        """May be called more than once, and after an exception anywhere in call()."""
        self.interruptible = False
        if getpid() != self.pid:
            exit_at_once(1)
        for step in self.close_tools, self.flush_out, self.drop_unread, self.point_to_kept, self.put_back, self.close_all, self.reset_interrupt:
            try:
                step()
            except BaseException:
                pass
        if "SHOWN" in OURS:
            forget_shown()
        number = scan(inbox[0][0].decode(), 0)[0]["call"]
        self.state = OWED, [f'{{"call": {number:d}, "exit_code": {self.exit_code:d}}}'.encode()]

    # --- the next step ---

    def go_on(self):
        phase, thing = self.state
        try:
            self.do(phase, thing)
        except OSError as error:
            if phase != BEGUN and error.errno in (9, 32, 104): # EBADF, EPIPE, ECONNRESET: the channel is gone
                exit_at_once(1)
            raise

    def do(self, phase, thing):
        if phase == IDLE and not thing:
            self.wait(thing)
        elif phase == IDLE:
            self.exit_code = 1
            self.state = BEGUN, thing
            self.call(thing)
        elif phase == BEGUN:
            self.end(thing)
        elif thing:
            next(map(write, (self.fd,), iter(thing.pop, None)))
        else:
            self.state = IDLE, []


def forget_folder():
    """Clears the importer's cache for the working directory: a module may just have been written there."""
    try:
        sys.path_importer_cache.pop(getcwd(), None)
    except Exception:
        pass


def keep_last(builtins, value): builtins._ = value


def say_exit(error):
    """Prints the text of sys.exit("text"), as the interpreter does."""
    code = SystemExit.code.__get__(error)
    if code is not None and not is_a(code, int):
        say(f"{code}\n")


def again_and_again(work):
    while True:
        try:
            while True:
                work()
        except BaseException:
            pass # raised by a signal handler of the program


def live_as_context(fd):
    """Does not return. fd: a socket of the type SOCK_SEQPACKET, whose other end sends calls."""
    live = Live(fd)
    live.begin()
    again_and_again(lambda: again_and_again(live.go_on)) # the outer loop catches what is raised before the inner one has entered its try again
