# guest.py - the entry point: python3 -I guest.pyc MODE FD[,TOOLS] IMPORTS MODULES CALLS --MAIN ARG...
#
# A zygote executes it once with the global `ahead`, which loads all that runs need into this namespace; each fork executes it again.
import builtins
from marshal import loads

__name__ = "brig" # a warning that is about the caller of the program does not name __main__
if "OURS" not in globals():
    __builtins__ = dict(builtins.__dict__) # for every function that is defined from here on
PARTS = "the other files, compiled; pack.py puts them here"
OUR_FOLDER = "/usr/lib/brig/" # in the file names of these parts' code, wherever they are compiled


def need(*names):
    """Executes these parts, unless that was done, in this namespace, which all parts share. No file is opened."""
    for name in names:
        if name in PARTS:
            exec(loads(PARTS[name]), OURS)
            del PARTS[name]


def names_of(text):
    """A list of names from the command line; None for "*": any name."""
    return None if text == "*" else [name.strip() for name in text.split(",") if name.strip()]


def start(argv):
    mode, fds, imports, modules, calls = argv[1:6]
    fd, _, bridge = fds.partition(",")
    if mode == "session":
        need("value", "bridge", "session")
        return run_session(int(bridge))
    if mode == "resolve":
        need("resolve")
        return resolve_packages(argv[7], argv[8:])
    pipe = open_pipe(int(fd))
    if mode == "check":
        need("value", "failure", "policy", "last", "tree", "check")
        return run_check(pipe, names_of(imports), names_of(modules) if imports == "*" else None, names_of(calls) or [])
    need("last", "written", "program", *() if imports == "*" else ("policy",), *("value", "bridge", "schema", "tools") if bridge else ())
    if bridge:
        open_tools(int(bridge))
    return run_report(pipe, mode == "report-written", names_of(imports), argv[6][2:], argv[7:])


OURS = globals()
need("base")
if "ahead" in OURS:
    need("last", "written", "program")
    try:
        need("value", "bridge", "schema", "tools", "session", "session_files", "context", "rehearse")
    except ImportError:
        pass # a session, or a run with tools, will report what this interpreter lacks
else:
    ended = start(sys.argv)
    if ended is not None:
        try:
            raise ended
        finally:
            del ended # it refers to the program's frames, and these to objects that must be destroyed
