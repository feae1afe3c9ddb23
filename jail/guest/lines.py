# lines.py - what a program prints is there at once, line by line as in a terminal: sitecustomize of the rootfs's interpreter
#
# Into a pipe Python writes 8 KiB at a time: nothing of a program that works is seen, and what one had printed that is killed
# is lost. A system call a line costs up to thirty times as much as a line, so a program that prints more than LINES within
# WITHIN_S has its buffer until it is slower again. Not with threads: what one of them prints while another's text is written
# gets lost there (CPython gh-119506).
#
# Nothing of sys.stdout is replaced but one method at a time, in the object of the buffer. None is called while the buffer
# is locked: signal handlers and tracers of the program run in ours as well, and may print. Whatever is looked up here while
# the interpreter ends must be a variable of the function: globals are gone then.
import sys
from _thread import _count
from atexit import register
from time import monotonic

del sys.modules["atexit"] # a plain interpreter has not loaded it
LINES, WITHIN_S, PAUSE_S, CHUNK = 1024, 0.05, 0.01, 1024


def flush_lines(out, lines, within, pause, now, threads):
    buffer, usual, small = out.buffer, out._CHUNK_SIZE, CHUNK
    hooks, flush_buffer, write_buffer = buffer.__dict__, buffer.flush, buffer.write
    count, since = 0, now()

    def switch(by_line):
        hooks.pop("flush", None)
        hooks.pop("write", None)
        try:
            out.reconfigure(line_buffering=by_line) # flushes
            out._CHUNK_SIZE = usual if by_line else small # how much is gathered before write_block() hears of it
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
        """Without hooks there is no cycle, and the streams go in their usual order."""
        hooks.pop("flush", None)
        hooks.pop("write", None)

    switch(True)
    register(end)


if hasattr(getattr(sys.stdout, "buffer", None), "raw"): # not closed, not unbuffered
    flush_lines(sys.stdout, LINES, WITHIN_S, PAUSE_S, monotonic, _count)
