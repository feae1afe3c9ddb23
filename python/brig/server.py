"""Connects to the service, or starts a private brigd, as common/client/brigd_connection.c does for brig(1)."""
from __future__ import annotations

import errno
import os
import pathlib
import socket
import subprocess
from typing import List, Optional, Tuple

from .errors import ServiceUnavailable

HOST_SOCKET = "/run/brig/brig.sock"
APART = "BRIG_PROFILES", "BRIG_PRESETS", "BRIG_STORE" # the host's service has other places
UNITS = "sockets.target.wants/brigd.socket", "multi-user.target.wants/brigd.service", "default.target.wants/brigd.service"

Server = Tuple[socket.socket, Optional["subprocess.Popen[bytes]"]]


def find_brigd() -> Tuple[str, bool]:
    """(path of brigd, True if it is that of a built clone or of the tarball): found by the place of this package, never by PATH."""
    here = pathlib.Path(__file__).resolve()
    clone = here.parents[2]
    if (clone / "CMakeLists.txt").exists():
        return str(clone / "build/bin/brigd"), True
    if (clone / "brig.mark").exists(): # what the tarball unpacks to
        return str(clone / "bin/brigd"), True
    prefixes = [*list(here.parents)[4:5], pathlib.Path("/usr/local"), pathlib.Path("/usr")] # PREFIX/lib/python3.N/dist-packages/brig
    found = [str(prefix / "sbin/brigd") for prefix in prefixes]
    return next((path for path in found if os.access(path, os.X_OK)), found[0]), False


def _is_for_root_alone(path: str) -> bool:
    try:
        return not os.stat(os.path.dirname(path)).st_mode & 0o011
    except OSError:
        return False


def _refuse(path: str, error: OSError) -> ServiceUnavailable:
    number = error.errno or 0
    what_to_do = {
        errno.EACCES: "join the group brig, or use server=\"private\"",
        errno.ECONNREFUSED: "nothing listens there; start brigd, or use server=\"private\"",
        errno.ENOENT: "there is no such socket; start brigd, or use server=\"private\"",
        errno.EPROTOTYPE: "not the socket of a brigd",
    }.get(number, "connect")
    return ServiceUnavailable(f"{path}: {os.strerror(number)}; {what_to_do}")


def _try(path: str) -> Optional[socket.socket]:
    """Connects. None: there is no such socket, or only root may use it."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        sock.connect(path)
        return sock
    except OSError as error:
        sock.close()
        if error.errno == errno.ENOENT or (error.errno == errno.EACCES and _is_for_root_alone(path)):
            return None
        if error.errno is None: # an error of Python itself: the path is too long
            raise ServiceUnavailable(f"{path[:60]}...: a socket's path has at most 107 bytes") from None
        raise _refuse(path, error) from None


def _named(path: str, whence: str) -> socket.socket:
    """Connects to the socket that the caller named; an error if it does not exist."""
    if not path.startswith("/"):
        raise ServiceUnavailable(f"{whence}: \"{path[:60]}\" is not an absolute path")
    sock = _try(path)
    if sock is None:
        raise _refuse(path, FileNotFoundError(errno.ENOENT, ""))
    return sock


def _miss_service() -> None:
    """Raises an error if a service is enabled and down: without it there would be no quota and no audit log."""
    if not os.path.exists("/run/systemd/system"):
        return
    config = os.environ.get("XDG_CONFIG_HOME", "")
    own = os.path.join(config if config.startswith("/") else os.path.join(os.environ.get("HOME", ""), ".config"), "systemd/user")
    folders: List[Tuple[str, str, str]] = [] if os.geteuid() == 0 else [("your", own, "systemctl --user")]
    for whose, folder, systemctl in [*folders, ("this host's", "/etc/systemd/system", "systemctl")]:
        if any(os.path.exists(os.path.join(folder, unit)) for unit in UNITS):
            raise ServiceUnavailable(f"{whose} service is down; {systemctl} status brigd says more, server=\"private\" runs without it")


def start_private(program: str) -> Server:
    """Starts a brigd with the rights of this process, which serves this one connection and ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    with theirs:
        try:
            process = subprocess.Popen([program, "--private", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            ours.close()
            raise ServiceUnavailable(f"{program}: {error.strerror}; install brig, or in its clone type ./dev build") from None
    return ours, process


def connect(server: str = "any", path: Optional[str] = None, brigd: Optional[str] = None) -> Server:
    """server: any (a service, or else a private brigd), service, private. path, brigd: a socket and a program to use instead of the usual ones."""
    if server not in ("any", "service", "private"):
        raise ValueError(f"server: \"{server}\" is none of any, service, private")
    program, is_clone = (brigd, False) if brigd else find_brigd()
    named = path or os.environ.get("BRIG_SOCKET")
    is_apart = is_clone or any(os.environ.get(name) for name in APART)
    if server != "private":
        if named:
            return _named(named, "path" if path else "BRIG_SOCKET"), None
        for usual in () if is_apart else (f"/run/user/{os.geteuid()}/brig/brig.sock", HOST_SOCKET):
            sock = _try(usual)
            if sock is not None:
                return sock, None
    if server == "service":
        raise ServiceUnavailable("no brigd is running; start one (systemctl start brigd, or brigd --foreground)"
                                 + (" and name its socket in BRIG_SOCKET" if is_apart else ""))
    if server == "any" and not is_apart:
        _miss_service()
    return start_private(program)
