# bridge.py - the program's end of the bridge to its tools: lines of JSON over one socket, many calls at once
#
# The bridge has no thread of its own. Of the threads that wait for an answer one reads for all of them; when it has its own answer,
# another one takes over. In an event loop the loop reads. Answers are bounded and checked, so that a broken bridge raises and does
# not hang.
#
# _json is the C part of the package json, without the package's imports, which take longer than a run. Extensions are loaded by
# their path, without a search: a zygote has mapped the library already (jail/zygote/module/main.py), so this takes a tenth of the time.
import _imp
from _thread import allocate_lock


def extension(name):
    """A C module of the standard library, loaded without an entry in sys.modules."""
    path = f"{sys.modules['os'].__file__.rpartition('/')[0]}/lib-dynload/{name}{_imp.extension_suffixes()[0]}"
    spec = sys.modules["_frozen_importlib"].ModuleSpec(name, None, origin=path)
    try:
        module = _imp.create_builtin(spec) if _imp.is_builtin(name) > 0 else _imp.create_dynamic(spec)
        _imp.exec_dynamic(module)
        return module
    except ImportError: # it is not in lib-dynload
        return __import__(name)


_json, select = extension("_json"), extension("select")
make_scanner, make_encoder, encode_basestring = _json.make_scanner, _json.make_encoder, _json.encode_basestring

LINE_MAX_BYTES = 1 << 20
NESTED_MAX = 64
CHUNK_BYTES = 64 << 10
KINDS = "tool", "denied", "not_found", "bad_arguments", "limit", "lost", "cancelled", "timeout"


class ToolError(Exception):
    def __init__(self, name, message, kind="tool"):
        super().__init__(f"{name}: {message}" if name else message)
        self.name, self.message, self.kind = name, message, kind


class ToolDenied(ToolError):
    pass


# Docstrings are not compiled into this file.
ToolError.__doc__ = "A call of a tool that has no result: name, message, and kind (tool, denied, not_found, bad_arguments, limit, lost, cancelled, timeout)."
ToolDenied.__doc__ = "A call of a tool that was not allowed; another try has the same answer."
ToolError.__module__ = ToolDenied.__module__ = "builtins" # where programs find them


def error_of(name, kind, message):
    return (ToolDenied if kind == "denied" else ToolError)(name, message, kind)


# --- JSON ---

class BadLine(Exception):
    pass


def unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadLine("a key twice")
    return found


def no_constant(text):
    raise BadLine(f"{text} is not JSON")


scan = make_scanner(RECORD(strict=True, object_hook=None, object_pairs_hook=unique, parse_float=float, parse_int=int, parse_constant=no_constant))
encode = make_encoder(None, None, encode_basestring, None, ": ", ", ", False, False, False)


def check_depth(value):
    level = [value]
    for _ in range(NESTED_MAX + 1):
        inner = [item for each in level for item in (each.values() if type(each) is dict else each) if type(item) in (dict, list)]
        if not inner:
            return
        level = inner
    raise BadLine(f"nested deeper than {NESTED_MAX}")


def read_line(line):
    try:
        text = line.decode("utf-8").strip(" \t\r")
        value, end = scan(text, 0)
    except BadLine:
        raise
    except (ValueError, StopIteration, RecursionError) as error:
        raise BadLine(f"no JSON: {error}") from None
    if end != len(text) or type(value) is not dict or type(value.get("id")) is not int:
        raise BadLine("no object with an id")
    check_depth(value)
    return value


def written(value):
    """The JSON text of a value that plain() has made."""
    return "".join(encode(value, 0))


# --- values of the program as JSON ---

class NoJson(Exception):
    pass


def as_data(value):
    """A simpler value for an object that JSON does not have, for plain() to go on with; or raises NoJson."""
    kind = type(value)
    name = type_name(kind)
    if is_a(value, (bool, int, float, str)): # subclasses, like IntEnum
        return next(base(value) if base is not str else str.__str__(value) for base in (int, float, str) if is_a(value, base))
    if is_a(value, (bytes, bytearray, memoryview)):
        raise NoJson(f"{name} is not JSON; decode it, or send base64 text")
    if is_a(value, dict):
        return dict(value)
    if is_a(value, (list, tuple, set, frozenset, range)):
        return list(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {field: getattr(value, field) for field in kind.__dataclass_fields__}
    if name in ("pandas.core.frame.DataFrame", "pandas.DataFrame"):
        raise NoJson("a DataFrame is not JSON; send .to_dict(\"records\")")
    for method in "isoformat", "tolist", "item", "__fspath__":
        if hasattr(kind, method):
            return getattr(value, method)()
    if module_of(kind) in WRITTEN_OUT:
        return str(value)
    if "enum" in sys.modules and is_a(value, sys.modules["enum"].Enum):
        return value.value
    raise NoJson(f"{name} is not JSON; send strings, numbers, lists and dicts")


def key_of(key):
    if type(key) is str:
        return key
    if is_a(key, str):
        return str.__str__(key)
    if key is None or is_a(key, (bool, int, float)):
        return written(plain(key))
    raise NoJson(f"a key of a dict is a {type_name(type(key))}; in JSON keys are strings")


def plain(value, depth=2):
    """A copy of plain JSON types only; or raises NoJson."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        if not -1 << 63 <= value < 1 << 63:
            raise NoJson("an integer beyond 64 bits; send it as a string")
        return value
    if kind is float:
        if value - value != 0:
            raise NoJson(f"{value} is not JSON")
        return value
    if depth >= NESTED_MAX:
        raise NoJson("nested too deeply, or inside of itself")
    if kind is list or kind is tuple:
        return [plain(item, depth + 1) for item in value]
    if kind is dict:
        made = {key_of(key): plain(item, depth + 1) for key, item in value.items()}
        if len(made) != len(value):
            raise NoJson("a dict has two keys that are the same string in JSON")
        return made
    return plain(as_data(value), depth + 1)


# --- the socket ---

class Waiting:
    """A wait for the answer to one line. A thread waits for its lock, a coroutine for its future."""
    __slots__ = "answer", "lock", "loop", "future"

    def __init__(self, loop=None):
        self.answer, self.loop = None, loop
        self.lock = None if loop else allocate_lock()
        self.future = loop.create_future() if loop else None
        if self.lock:
            self.lock.acquire()

    def tell(self, answer):
        self.answer = answer
        if self.lock:
            return self.wake()
        try:
            self.loop.call_soon_threadsafe(self.settle)
        except RuntimeError:
            pass # the loop has ended, and the waiting task with it

    def wake(self):
        try:
            self.lock.release()
        except RuntimeError:
            pass # it is awake already

    def settle(self):
        if not self.future.done():
            self.future.set_result(self.answer)


class Bridge:
    def __init__(self, fd):
        self.fd, self.lost, self.last = fd, None, 0
        self.waiting, self.pieces, self.length = {}, [], 0
        self.sending, self.reading = allocate_lock(), allocate_lock()
        self.sender = self.reader = None # the threads that hold these
        self.poll = select.poll()
        self.poll.register(fd, 1) # POLLIN
        self.loops = {} # loop: how many of its coroutines wait
        set_inheritable(fd, False)

    def leave(self):
        """Called in a fork of the program, which would take answers from its parent."""
        try:
            close(self.fd)
        except OSError:
            pass
        self.fd, self.lost = -1, "a forked process has no tools; call them in the process that the program began in"
        self.waiting, self.sending, self.reading, self.sender, self.reader = {}, allocate_lock(), allocate_lock(), None, None

    def end(self, why):
        """Ends the bridge: each waiting call, and each later one, raises with this reason."""
        self.lost = self.lost or why
        for waiting in list(self.waiting.values()):
            waiting.tell(self.last_word())

    def retire(self, why):
        """Ends the bridge and closes its descriptor. Loops stop watching it first: its number can be used again."""
        self.end(why)
        fd, self.fd, loops, self.loops = self.fd, -1, self.loops, {}
        for loop in loops:
            try:
                loop.remove_reader(fd)
            except Exception:
                pass # the loop is closed
        close(fd)

    def last_word(self):
        return {"error": {"kind": "lost", "message": self.lost}}

    # --- sending ---

    def send(self, body, waiting=None):
        """body: the line without its beginning, the id."""
        me = get_ident()
        if self.sender == me or self.reader == me:
            raise ToolError("", "a signal handler that interrupts a call cannot make another", "lost")
        with self.sending:
            self.sender = me
            try:
                return self.send_line(body, waiting)
            finally:
                self.sender = None

    def send_line(self, body, waiting):
        if self.lost:
            raise ToolError("", self.lost, "lost")
        self.last += 1
        try:
            line = f'{{"id": {self.last}, {body}}}\n'.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolError("", "half of a surrogate pair is no text", "bad_arguments") from None
        if len(line) > LINE_MAX_BYTES:
            raise ToolError("", f"{len(line)} bytes of arguments, and a call has at most {LINE_MAX_BYTES}", "limit")
        self.waiting[self.last] = waiting
        self.write(line)
        return self.last

    def write(self, line):
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[write(self.fd, rest):]
        except BaseException as error:
            if is_a(error, OSError) and error.errno is not None:
                return self.end("the tools are gone")
            if len(rest) != len(line):
                self.end("a line was cut off by a signal")
            raise

    def cancel(self, number):
        if self.waiting.pop(number, None) is not None and not self.lost and self.sender != get_ident():
            with self.sending:
                self.write(f'{{"id": {number}, "op": "cancel"}}\n'.encode())

    # --- reading ---

    def receive(self, timeout=None):
        """Waits for data, reads once, and handles all complete lines. The caller holds self.reading."""
        if not self.poll.poll(timeout): # an exception from a signal handler of the program does no harm here
            return
        try:
            self.take_all(self.read())
        except BadLine as error:
            self.end(f"what came from the tools is broken: {error}")
        except BaseException:
            self.end("an answer was cut off by a signal")
            raise

    def read(self):
        try:
            return read(self.fd, CHUNK_BYTES)
        except OSError as error:
            if error.errno is None: # raised by a signal handler
                raise
            return b""

    def take_all(self, chunk):
        if not chunk:
            return self.end("the tools are gone")
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            self.pieces.append(lines[0])
            lines[0] = b"".join(self.pieces)
            self.pieces, self.length = [], 0
        last = lines.pop()
        if last:
            self.pieces.append(last)
            self.length += len(last)
        for line in lines:
            self.take(line)
        if self.length > LINE_MAX_BYTES:
            raise BadLine("too long")

    def take(self, line):
        if len(line) > LINE_MAX_BYTES:
            raise BadLine("too long")
        answer = read_line(line)
        if "progress" in answer:
            return
        waiting = self.waiting.pop(answer["id"], None)
        if waiting is not None: # otherwise the call was cancelled
            waiting.tell(answer)

    def hand_on(self):
        """Wakes a waiting thread, which reads from now on. An event loop needs no wake-up to read."""
        for waiting in list(self.waiting.values()):
            if waiting is not None and waiting.lock is not None and waiting.answer is None:
                return waiting.wake()

    def read_until(self, waiting):
        self.reader = get_ident()
        try:
            while waiting.answer is None and not self.lost:
                self.receive()
        finally:
            self.reader = None
            self.reading.release()

    def wait(self, waiting, number):
        try:
            while waiting.answer is None:
                if self.lost: # the bridge ended while the call was sent
                    waiting.answer = self.last_word()
                elif self.reading.acquire(False):
                    self.read_until(waiting)
                else:
                    waiting.lock.acquire()
        except BaseException: # Ctrl-C, or what a signal handler of the program raises
            self.cancel(number)
            raise
        finally:
            if self.waiting and not self.reading.locked():
                self.hand_on()
        return waiting.answer

    def ask(self, body):
        """Sends one line from a thread, and returns the answer."""
        waiting = Waiting()
        return self.wait(waiting, self.send(body, waiting))

    # --- in an event loop ---

    def on_readable(self):
        if not self.reading.acquire(False):
            return # a thread is reading, and passes answers on
        try:
            self.receive(0)
        finally:
            self.reading.release()
            self.hand_on()

    async def ask_in(self, loop, body):
        """Sends one line from a coroutine, and returns the answer."""
        waiting = Waiting(loop)
        number = self.send(body, waiting)
        self.loops[loop] = self.loops.get(loop, 0) + 1
        if self.loops[loop] == 1:
            loop.add_reader(self.fd, self.on_readable)
        if self.lost:
            waiting.tell(self.last_word())
        try:
            return await waiting.future
        except BaseException:
            self.cancel(number)
            raise
        finally:
            self.unwatch(loop)

    def unwatch(self, loop):
        if loop in self.loops: # unless the bridge has retired
            self.loops[loop] -= 1
            if not self.loops[loop]:
                del self.loops[loop]
                loop.remove_reader(self.fd)
