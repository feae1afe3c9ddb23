# base.py - what the runner needs of the interpreter, taken before the program can replace it
#
# The runner imports nothing that a plain `python3 -I main.py` has not loaded already: each further module would cost every run
# time, and the program would find it in sys.modules. What the program breaks, such as its builtins, does not break the runner.
import _warnings
import builtins
import sys
from _imp import _fix_co_filename as fix_filename
from _thread import get_ident
from sys import getrecursionlimit, setprofile, setrecursionlimit, settrace
from posix import close, fstat, getcwd, getpid, open as open_file, read, register_at_fork, set_blocking, set_inheritable, write

MODULE = type(sys)
RECORD = type(sys.implementation) # not a new class: a zygote executes this before it forks, and would have to hide the class from programs

REPORT_MAX = 1 << 20
RESULT_MAX = 512 << 10 # bytes of the result as JSON
REPR_MAX = 4 << 10     # characters, like MESSAGE_MAX, TRACEBACK_MAX, LINE_MAX and NAME_MAX
MESSAGE_MAX = 4 << 10
TRACEBACK_MAX = 16 << 10
WORKSPACE, MAIN_FILE = "/workspace/", "main.py"
LINE_MAX = 200
NAME_MAX = 100
NAMES_MAX = 200
WARNINGS_MAX = 50
DEPTH_MAX = 24
SAFE_INTEGER = 1 << 53 # beyond it a JavaScript client would read another number


def is_a(value, kind):
    """isinstance() would ask the value for its __class__."""
    return issubclass(type(value), kind)


def cut(text, most):
    """At most `most` characters: cuts the middle out, and leaves a note there."""
    if len(text) <= most:
        return text
    note = f"\n... {len(text) - most} characters are cut here ...\n"
    half = (most - len(note)) // 2
    return text[:half] + note + text[-half:]


def read_file(path):
    fd = open_file(path, 0o2000000) # O_CLOEXEC
    try:
        size = fstat(fd).st_size
        bytes = read(fd, size + 1)
        while len(bytes) < size and (more := read(fd, size)):
            bytes += more
        return bytes
    finally:
        close(fd)


def change_filters(action):
    """Sets what happens to the compiler's warnings; None takes that back."""
    filters = _warnings.filters
    filters[:0 if action else 2] = [(action, None, kind, None, 0) for kind in (SyntaxWarning, DeprecationWarning)] if action else []
    _warnings._filters_mutated()


# --- the pipe for the report: it is sent once, and never by a fork of this process ---

def open_pipe(fd):
    pipe = RECORD(fd=fd, pid=getpid(), identity=identity_of(fd))
    set_inheritable(fd, False)
    register_at_fork(after_in_child=lambda: close_pipe(pipe))
    return pipe


def identity_of(fd):
    status = fstat(fd)
    return status.st_dev, status.st_ino


def is_as_opened(pipe):
    """False if the program has closed the descriptor; its number may belong to another file now."""
    try:
        return pipe.fd >= 0 and getpid() == pipe.pid and identity_of(pipe.fd) == pipe.identity
    except OSError:
        return False


def close_pipe(pipe):
    if is_as_opened(pipe) or getpid() != pipe.pid:
        try:
            close(pipe.fd)
        except OSError:
            pass
    pipe.fd = -1


def send(pipe, text):
    if not is_as_opened(pipe):
        return
    rest = memoryview(text.encode("utf-8", "replace"))
    try:
        while rest:
            rest = rest[write(pipe.fd, rest):]
    except OSError:
        pass # the pipe has no reader any more
    close_pipe(pipe)


# --- JSON text ---

ESCAPES = {}


def json_text(text):
    """A JSON string. Lone surrogates are replaced when the whole report is encoded."""
    if not ESCAPES:
        ESCAPES.update((i, f"\\u{i:04x}") for i in range(32))
        ESCAPES.update({10: "\\n", 34: '\\"', 92: "\\\\"})
    return f'"{text.translate(ESCAPES)}"'


def json_texts(texts):
    return f'[{", ".join(map(json_text, texts))}]'


def json_or_null(text):
    return "null" if text is None else json_text(text)
