# main.py - what a zygote executes in the place of a program: it waits, and in each fork becomes the program
#
# Nothing is imported that a plain `python3 -I main.py` has not loaded itself: a program would find it in sys.modules.
# The work is in functions whose file is the guest runner's, so that nobody takes these lines for the program's.
#
# Before these lines the spawner puts one more: PRELOAD, the names of modules between commas.
import sys

WORK = '''
import _imp, builtins, sys
from marshal import loads
from posix import _exit, close, environ as first_environ, fsync, kill, open as open_file, read, write

GUEST = "/usr/lib/brig/guest.pyc"
LOG = 5
MODULE = type(sys)
os = sys.modules["os"]
decode = os.fsdecode


def read_file(path):
    fd, parts = open_file(path, 0o2000000), []  # O_CLOEXEC
    try:
        while part := read(fd, 1 << 20):
            parts.append(part)
    finally:
        close(fd)
    return b"".join(parts)


def load(path):
    spec = type(sys.__spec__)("zygote", None, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module


def load_guest():
    try:
        return loads(read_file(GUEST)[16:])
    except FileNotFoundError:
        return None


# --- in the fork ---

def set_environ(entries):
    pairs = dict(entry.split(b"=", 1) for entry in entries)
    for names in os.environ._data, first_environ:
        names.clear()
        names.update(pairs)


def reseed():
    """What keeps its random state in C, and does not hear of forks."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._main_thread._set_native_id()  # the hooks of this version leave the zygote's


def open_stdin():
    """As the interpreter does; the zygote's own is /dev/null."""
    from _io import TextIOWrapper, open
    raw = open(0, "rb", -1, closefd=False)
    raw.raw.name = "<stdin>"
    old = sys.stdin
    sys.stdin = sys.__stdin__ = TextIOWrapper(raw, old.encoding, old.errors, "\\n", False)
    sys.stdin.mode = "r"


def fresh_main(path):
    main = MODULE("__main__")
    if path == GUEST:
        loader = sys.modules["_frozen_importlib_external"].SourcelessFileLoader("__main__", path)
    else:
        path = path if path[:1] == "/" else f"/workspace/{path}"
        loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    main.__dict__.update(__loader__=loader, __annotations__={}, __builtins__=builtins, __file__=path, __cached__=None)
    sys.modules["__main__"] = main
    return main


def run(main, code):
    """The status that the process ends with; None: by SIGINT."""
    try:
        if code is None:
            path = main.__file__
            code = compile(read_file(path), path, "exec", 0, True)
        exec(code, main.__dict__)
    except BaseException as raised:
        error = raised
    else:
        return 0
    return status_of(error) # behind the except: what a hook raises has no context of ours


def status_of(error):
    if isinstance(error, SystemExit):
        return exit_status(error.code)
    trace = error.__traceback__
    zygote.print_error(type(error), error, trace and trace.tb_next)
    return None if isinstance(error, KeyboardInterrupt) else 1


def exit_status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    try:
        sys.stderr.write(f"{code}\\n")
    except Exception:
        pass
    return 1


def attempt(work, *args):
    try:
        work(*args)
    except BaseException:
        zygote.print_error(*sys.exc_info())


def flush():
    """False as when the interpreter ends: what was printed is lost."""
    good = True
    for stream in sys.stdout, sys.stderr:
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            good = stream is sys.stderr
            if not good:
                hook = sys.unraisablehook
                hook(type("", (), dict(zip(("exc_type", "exc_value", "exc_traceback"), sys.exc_info()), err_msg=None, object=stream))())
    return good


def finish(main, status):
    """
    What the interpreter does at its end, in its order, but for taking itself apart, which costs two milliseconds and
    more: threads, exit functions, what the program's own names hold, cycles, and what was printed.
    """
    threading, exits = sys.modules.get("threading"), sys.modules.get("atexit")
    if threading is not None:
        attempt(threading._shutdown)
    if exits is not None:
        exits._run_exitfuncs()
    good = flush()
    names = main.__dict__
    del main
    for name in [n for n in names if n[:1] == "_" and n[:2] != "__"] + [n for n in names if n[:1] != "_"]:
        names[name] = None
    collect()
    if not (flush() and good) and status == 0:
        status = 120
    if status is None:
        import _signal
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        kill(os.getpid(), _signal.SIGINT)
        status = 130
    _exit(status)


def become(argv, entries, has_stdin):
    words = [decode(word) for word in argv]
    sys.argv[:], sys.orig_argv[:] = words[2:], words
    set_environ(entries)
    reseed()
    if has_stdin:
        open_stdin()
    enable()
    main = fresh_main(words[2])
    finish(main, run(main, guest if words[2] == GUEST else None))


# --- before ---

def preload(name):
    try:
        __import__(name)
    except BaseException as error:
        tell(f"cannot import {name}", error)


def begin():
    global zygote, guest, collect, enable
    import gc
    for name in filter(None, PRELOAD.split(",")):
        preload(name)
    zygote, guest = load("/workspace/zygote.so"), load_guest()
    collect, enable = gc.collect, gc.enable
    del sys.modules["gc"]
    collect()
    gc.disable()
    gc.freeze()


def tell(what, error):
    write(LOG, f"brig zygote: {what}: {type(error).__name__}: {str(error)[:200]!a}\\n".encode())


try:
    begin()
    ordered = zygote.serve()
except BaseException as error:
    tell("cannot begin", error)
    _exit(1)
become(*ordered)
'''
exec(compile(WORK, "/usr/lib/brig/guest.py", "exec"), {"__name__": "brig", "__builtins__": __builtins__, "PRELOAD": PRELOAD})
