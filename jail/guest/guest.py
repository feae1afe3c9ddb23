# guest.py - the way in: python3 -I guest.pyc MODE FD IMPORTS MODULES CALLS -- ARG...


def names_of(text):
    """A list of the command line; None for "*": any."""
    return None if text == "*" else [name.strip() for name in text.split(",") if name.strip()]


def start(argv):
    mode, fd, imports, modules, calls = argv[1:6]
    pipe = Pipe(int(fd))
    if mode == "check":
        allowed = names_of(modules if imports == "*" else imports)
        return run_check(pipe, allowed, names_of(calls) or [])
    return run_report(pipe, names_of(imports), argv[7:])


ended = start(sys.argv)
if ended is not None:
    raise ended
