# lines.py - sitecustomize of the rootfs's interpreter: a program's output is written line by line, as to a terminal, and it finds its packages
#
# To a pipe Python writes 8 KiB at a time: the output of a program that is working would not be seen, and that of a program that
# is killed would be lost. But a system call for each line costs up to thirty times as much as the line, so a program that prints
# more than LINES lines within WITHIN_S gets its buffer back until it prints more slowly. Not with threads: with the buffer, what
# one thread prints while another's text is written can get lost (CPython gh-119506).
#
# Only one method of sys.stdout.buffer is replaced at a time. The replacements are never called while the buffer is locked, because
# signal handlers and tracers of the program can run inside them, and may print. What is used while the interpreter ends must be
# a local variable: globals are gone then.
import sys
from _thread import _count
from atexit import register
from posix import stat
from time import monotonic

del sys.modules["atexit"] # a plain interpreter has not loaded it
LINES, WITHIN_S, PAUSE_S, CHUNK = 1024, 0.05, 0.01, 1024
PACKAGES = "/opt/packages"


def flush_lines(out, lines, within, pause, now, threads):
    buffer, usual, small = out.buffer, out._CHUNK_SIZE, CHUNK
    hooks, flush_buffer, write_buffer = buffer.__dict__, buffer.flush, buffer.write
    count, since = 0, now()

    def switch(by_line):
        hooks.pop("flush", None)
        hooks.pop("write", None)
        try:
            out.reconfigure(line_buffering=by_line) # flushes
            out._CHUNK_SIZE = usual if by_line else small # how much is gathered before write_block() is called
        except ValueError:
            return # detached or closed by the program
        if by_line:
            hooks["flush"] = flush_line
        else:
            hooks["write"] = write_block

    def flush_line():
        nonlocal count, since
        flush_buffer()
        count += 1
        if count >= lines:
            before, since, count = since, now(), 0
            if since - before < within and not threads():
                switch(False)

    def write_block(data):
        nonlocal since
        length = write_buffer(data)
        before, since = since, now()
        if since - before > pause or threads():
            switch(True)
        return length

    def end():
        """Breaks the reference cycle, so that the streams are destroyed in their usual order."""
        hooks.pop("flush", None)
        hooks.pop("write", None)

    switch(True)
    register(end)


def is_there(path):
    try:
        return stat(path) is not None
    except OSError:
        return False


def find_packages(tag):
    """A run's layer of packages, which is mounted before Python starts: behind the standard library, before what the rootfs has."""
    if is_there(f"{PACKAGES}/{tag}"):
        at = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
        sys.path.insert(at, f"{PACKAGES}/{tag}")
        sys.modules["site"].ENABLE_USER_SITE = False # else site would execute a usercustomize of the layer
    elif is_there(f"{PACKAGES}/requirements.txt"):
        print(f"brig: the packages of this run are for another Python than {tag}; brig packages --upgrade finds others", file=sys.stderr)


find_packages(sys.implementation.cache_tag)
if hasattr(getattr(sys.stdout, "buffer", None), "raw"): # not closed, not unbuffered
    flush_lines(sys.stdout, LINES, WITHIN_S, PAUSE_S, monotonic, _count)
