# main.py - what a zygote executes instead of a program: it prepares the interpreter, and each fork becomes a program
#
# It leaves no module in sys.modules that a plain `python3 -I main.py` would not have loaded: a program would find it there.
# These lines are still being executed while a program runs, but in a thread state that is gone: the program has no frame of theirs below it.
#
# The supervisor puts two lines before these: PRELOAD, names of modules between commas, and ENVIRON, for programs that ask for no other environment.
import _imp, _warnings, atexit, builtins, gc, sys
from _weakref import getweakrefs
from marshal import dumps, loads
from posix import close, environ as first_environ, open as open_file, read, write

GUEST = "/usr/lib/brig/guest.pyc"
LOG = 5
IMMUTABLE, HEAP_TYPE = 1 << 8, 1 << 9 # bits of a class's __flags__
REHEARSALS = 16 # after eight calls bytecode is specialised
ARENA, ARENAS = 1 << 20, 64
MT19937_BYTES = 624 * 4 # the state of numpy.random's generator
MODULE = type(sys)
collect, run_exits = gc.collect, atexit._run_exitfuncs
del sys.modules["gc"], sys.modules["atexit"] # a plain interpreter has not loaded them
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


# Not by compile(): its first call makes the classes of the syntax tree, which are hidden from programs only where a rootfs has sessions.
calling = (lambda: exec(LOADED["part"], globals())).__code__


def new_main(path):
    main = MODULE("__main__")
    kind = "SourcelessFileLoader" if path == GUEST else "SourceFileLoader"
    loader = getattr(sys.modules["_frozen_importlib_external"], kind)("__main__", path)
    main.__dict__.update(__loader__=loader, __annotations__={}, __builtins__=builtins, __file__=path, __cached__=None)
    return main


def load_guest():
    """
    Returns the guest runner's code, and the module in which it is executed. What every run needs is made in that module here, once for all forks.
    The runner's code has its other parts as bytes: they are loaded once, into LOADED, and code that executes them from there takes their place.
    """
    try:
        code = loads(read_file(GUEST)[16:])
    except FileNotFoundError:
        return None, None
    parts = next(const for const in code.co_consts if type(const) is dict)
    main = new_main(GUEST)
    names = main.__dict__
    names["zygote_prctl"], names["zygote_flush"], names["zygote_reseed"] = zygote.prctl, zygote.flush, reseed
    names["LOADED"] = {name: loads(part) for name, part in parts.items()}
    for name in parts:
        parts[name] = dumps(calling.replace(co_consts=tuple(name if const == "part" else const for const in calling.co_consts)))
    if "ahead" in code.co_consts: # the runner in a rootfs of an older brig does all of it in the fork
        names["ahead"] = True
        exec(code, names)
        del names["ahead"]
    return code, main


def classes():
    """All classes that a program can find by __subclasses__(), by address."""
    found, left = {}, [object]
    while left:
        new = {id(each): each for each in type.__subclasses__(left.pop()) if id(each) not in found}
        found.update(new)
        left += new.values()
    return found


def hide_since(before):
    """
    Other programs must not see the classes that the runner has made for sessions: these are removed from the subclass lists of their bases. A base
    uses its list to tell subclasses that it has changed, so only bases that cannot change lose entries. The list is a dict with weak references,
    which only the collector can find.
    """
    made = {address: each for address, each in classes().items() if address not in before and all(is_fixed(base) for base in each.__bases__)}
    refs = {address: getweakrefs(each) for address, each in made.items()}
    for names in gc.get_referrers(*[ref for several in refs.values() for ref in several]):
        for address in made.keys() & names.keys() if type(names) is dict else ():
            if any(names[address] is ref for ref in refs[address]):
                del names[address]


def is_fixed(kind):
    return not kind.__flags__ & HEAP_TYPE or kind.__flags__ & IMMUTABLE


def map_extension(name):
    """Maps the library of an extension that a run may need, but makes no module: programs do not see it, and a fork need not load the file."""
    path = f"{os.__file__.rpartition('/')[0]}/lib-dynload/{name}{_imp.extension_suffixes()[0]}"
    try:
        _imp.create_dynamic(type(sys.__spec__)(name, None, origin=path))
    except ImportError:
        pass # it is built into the interpreter, or is elsewhere


def is_guest_ahead():
    return guest is not None and "OURS" in guest_main.__dict__


# --- in the fork ---

def set_environ(entries):
    pairs = dict(entry.split(b"=", 1) for entry in entries)
    for names in os.environ._data, first_environ:
        names.clear()
        names.update(pairs)


def reseed():
    """Draws random state again that modules drew at import, and updates a module that does not notice forks."""
    random = sys.modules.get("numpy.random")
    if random is not None: # not by seed(), which writes to three times as many pages, and a fork copies each of them
        random.set_state(("MT19937", memoryview(os.urandom(MT19937_BYTES)).cast("I"), MT19937_BYTES // 4))
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._main_thread._set_native_id()  # the after-fork hooks of this version keep the zygote's id


def open_stdin():
    """Opens stdin as the interpreter does: the zygote's own is /dev/null."""
    from _io import TextIOWrapper, open
    raw = open(0, "rb", -1, closefd=False)
    raw.raw.name = "<stdin>"
    old = sys.stdin
    sys.stdin = sys.__stdin__ = TextIOWrapper(raw, old.encoding, old.errors, "\n", False)
    sys.stdin.mode = "r"


def become(argv, entries, has_stdin, code):
    """Returns the program's path, and its code or source. entries: None for ENVIRON, which was set before the fork."""
    words = [decode(word) for word in argv]
    sys.argv[:], sys.orig_argv[:] = words[2:], words
    if entries is not None:
        set_environ(entries)
    if b"TZ" in first_environ and "time" in sys.modules:
        sys.modules["time"].tzset() # the C library has read another one at import
    if has_stdin:
        open_stdin()
    path = words[2] if words[2][:1] == "/" else f"/workspace/{words[2]}"
    if words[1] == "-Es": # not -I: the program's folder is on the path, for its modules
        sys.path.insert(0, path.rpartition("/")[0])
    sys.modules["__main__"] = guest_main if path == GUEST else new_main(path)
    if path == GUEST:
        return path.encode(), guest
    return path.encode(), read_file(path) if code is None else code


# --- rehearsing ---

REHEARSAL = b"""
class A:
    def __init__(self, x):
        self.x = x
    def f(self):
        return f"{self.x}"
for i in range(3):
    a = A([i, {"a": i}]).f()
print("", end="")
"""
# What a program is likely to begin with. No more: each page that these write to is copied in every ready fork.
SAMPLES = {
    "numpy": b"import numpy; numpy.arange(3).sum()",
    "pandas": b"import pandas; pandas.DataFrame({'a': [1, 2, 3]}).sum()",
}


def act(words, code):
    zygote.rehearse(*become([b"python3", b"-I", *words], None, False, code), collect)


def rehearse():
    """
    Does what a run does, with a program that prints nothing: bytecode is specialised, caches are filled, and a fork gets its
    own copies of the pages that a run writes to.
    """
    act([b"main.py"], REHEARSAL)


def rehearse_samples():
    for name, code in SAMPLES.items():
        if name in sys.modules:
            act([b"main.py"], code)


def unseen(*rehearsals):
    """Restores everything that a program could see of the rehearsals."""
    argv, words = sys.argv[:], sys.orig_argv[:]
    _warnings.filters.insert(0, ("ignore", None, Warning, None, 0))
    for work in rehearsals:
        work()
    sys.argv[:], sys.orig_argv[:] = argv, words
    del _warnings.filters[0]
    _warnings._filters_mutated()


def rehearse_guest():
    """Rehearses the runner, without what would affect the zygote: hooks for later forks, reading its own main.py, joining threads."""
    names, fd = guest_main.__dict__, open_file("/dev/null", 0o2000001)
    muted = {"register_at_fork": lambda **_: None, "read_file": lambda _: REHEARSAL, "join_threads": lambda: None, "offer_display": lambda: None}
    kept, length = {name: names[name] for name in muted if name in names}, len(names)
    names.update({name: muted[name] for name in kept})
    act([GUEST.encode(), b"report-written", b"%d" % fd, b"*", b"*", b"", b"--"], None)
    names.update(kept)
    while len(names) > length: # what the rehearsal has added comes last
        names.popitem()
    try:
        close(fd)
    except OSError:
        pass # the runner has closed it, if it came so far


def rehearse_sessions():
    """If this fails, sessions are slower, and nothing else changes."""
    rehearse = guest_main.__dict__.get("rehearse_session") # a rootfs of an older brig has none
    try:
        for _ in range(REHEARSALS if rehearse else 0):
            rehearse(REHEARSAL)
            collect()
    except Exception as error:
        tell("cannot rehearse a session", error)


# --- before ---

def reserve_arenas():
    """
    The interpreter takes its memory in arenas of a megabyte, and imports would map libraries between them: side by side, two
    arenas can be one huge page. One object keeps each arena; those that are still empty are freed with these objects.
    """
    objects = [bytes(440) for _ in range(ARENAS * ARENA // 480)]
    return objects[::ARENA // 480 // 2]


def preload(name):
    try:
        __import__(name)
    except BaseException as error:
        tell(f"cannot import {name}", error)


def begin():
    global guest, guest_main
    names = [name for name in PRELOAD.split(",") if name]
    del os.environ["LD_BIND_NOW"] # set by the supervisor: imported modules must see the environment that they see in a program
    pins = reserve_arenas() if names else None
    for name in names:
        preload(name)
    before, modules = classes(), set(sys.modules)
    guest, guest_main = load_guest()
    map_extension("_json") # tools need it; the runner in a rootfs of an older brig has not loaded it
    set_environ(ENVIRON)
    del pins
    gc.disable()
    gc.freeze() # each rehearsal collects, which passes frozen objects over
    if is_guest_ahead():
        unseen(rehearse_sessions, *[rehearse_guest] * REHEARSALS)
    gc.unfreeze()
    hide_since(before) # after the rehearsals: some classes are made at their first use
    for name in sys.modules.keys() - modules - {"__main__"}:
        del sys.modules[name]
    collect()
    zygote.settle(sorted(map(id, gc.get_objects())) if names else ())
    gc.freeze()
    unseen(*[reseed, rehearse, rehearse_samples] * REHEARSALS) # last: so that what the most frequent kind of run needs is close together in memory
    gc.freeze()


def begin_fork():
    """Does what depends on no order."""
    reseed()
    gc.enable()


def rehearse_fork(has_guest_runner):
    """
    Rehearses a short run, so that the fork has its own copies of the pages that programs write to. A run by the guest runner includes all of a plain
    one, but writes to half as many pages again: only where the newest run was one.
    """
    unseen(rehearse_guest if has_guest_runner and is_guest_ahead() else rehearse, rehearse_samples)


def tell(what, error):
    write(LOG, f"brig zygote: {what}: {type(error).__name__}: {str(error)[:200]!a}\n".encode())


def tell_no_begin(error):
    """BrokenPipeError: the supervisor has ended, as at the end of a service. An administrator need not know."""
    if not isinstance(error, BrokenPipeError):
        tell("cannot begin", error)


zygote = load("/workspace/zygote.so")
zygote.live(b"".join(entry + b"\0" for entry in ENVIRON), begin, tell_no_begin, begin_fork, rehearse_fork, become, run_exits, collect)
