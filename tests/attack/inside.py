# The half of the suite that travels: this text, the probes' own text and a call of main() become one
# program, which runs in a jail (the attack must fail) and outside of one (it must succeed).
# Standard library only; nothing here decides whether a result is good.
import ctypes
import errno
import json
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
GIVEN = {}     # what the test hands to its probes: paths, names
REPORT_FD = -1 # the pipe on which a probe answers; not part of what is probed


def name_of(number):
    return errno.errorcode.get(number, str(number))


# Numbers of system calls are x86-64's everywhere in these files; other machines have these. From 335 on, the same number is the same call, or none.
ARM64 = {0: 63, 16: 29, 27: 232, 29: 194, 30: 196, 40: 71, 41: 198, 56: 220, 64: 190, 68: 186, 99: 179, 101: 117, 103: 116, 117: 147, 122: 151, 135: 92,
         149: 228, 151: 230, 155: 41, 157: 167, 161: 51, 165: 40, 166: 39, 169: 142, 170: 161, 175: 105, 176: 106, 240: 180, 246: 104, 248: 217, 249: 218,
         250: 219, 272: 97, 275: 76, 276: 77, 278: 75, 279: 239, 298: 241, 303: 264, 304: 265, 308: 268, 310: 270, 311: 271, 312: 272, 313: 273, 317: 277,
         321: 280, 323: 282, 326: 285, 327: 286}


def call_number(number):
    return number if os.uname().machine == "x86_64" or number >= 335 else ARM64[number]


def sc(number, *args):
    """A raw system call: its value, or the name of the error."""
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(call_number(number)), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return name_of(ctypes.get_errno()) if value == -1 else value


def attempt(what, *args, **kw):
    """"ok", the name of the errno, or the name of the exception."""
    try:
        what(*args, **kw)
    except OSError as e:
        return name_of(e.errno) if e.errno else type(e).__name__
    except BaseException as e:
        return type(e).__name__
    return "ok"


def open_as(path, flags):
    """Opens and closes; never writes, never creates."""
    def doing():
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
    return attempt(doing)


def read_some(path, count=64):
    """The first bytes as text, or the name of the errno."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.read(fd, count).decode("latin-1")
        finally:
            os.close(fd)
    except OSError as e:
        return "errno " + name_of(e.errno)


def in_child(what, seconds=3):
    """What happens to a child that does this: its answer, {"signal": ...}, {"stopped": true} or {"timeout": true}."""
    global REPORT_FD
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        REPORT_FD = writing
        signal.alarm(seconds + 1)
        try:
            answer = what()
        except OSError as e:
            answer = {"raised": type(e).__name__, "errno": name_of(e.errno) if e.errno else None, "text": str(e)[:200]}
        except BaseException as e:
            answer = {"raised": type(e).__name__, "text": str(e)[:200]}
        os.write(writing, (json.dumps(answer) + "\n").encode())
        os._exit(0)
    os.close(writing)
    end, text, status, stopped = time.monotonic() + seconds, b"", None, False
    while not text.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0:
            break
        if select.select([reading], [], [], min(left, 0.02))[0]:
            part = os.read(reading, 65536)
            if part:
                text += part
                continue
            break
        if status is None:
            done, status_now = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if done and os.WIFSTOPPED(status_now):
                stopped = True
                break
            if done:
                status = status_now
                if not select.select([reading], [], [], 0)[0]:
                    break
    os.close(reading)
    if status is None and not text.endswith(b"\n"):
        # the pipe may have closed a moment before the process is gone
        while time.monotonic() < end and status is None and not stopped:
            done, status_now = os.waitpid(pid, os.WNOHANG)
            status = status_now if done else None
            time.sleep(0.001)
    late = status is None and not text.endswith(b"\n")
    if status is None:
        attempt(os.kill, pid, signal.SIGKILL)
        attempt(os.waitpid, pid, 0)
    if text.endswith(b"\n"):
        return json.loads(text)
    if late:
        return {"stopped" if stopped else "timeout": True}
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"signal": signal.Signals(number).name if number in list(signal.Signals) else number}
    return {"ended": os.WEXITSTATUS(status)}


def main(probes, given):
    GIVEN.update(given)
    for name, probe in probes:
        result = in_child(probe, GIVEN.get("seconds", 20))
        os.write(1, (json.dumps({"id": name, "result": result}) + "\n").encode())
