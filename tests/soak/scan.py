"""Sorts the test modules of a tree by what their sources use, into modules.json: python3 tests/soak/scan.py [--check] TREE."""
import json
import pathlib
import re
import sys

MODULES = pathlib.Path(__file__).parent / "modules.json"
TESTS = "usr/lib/python3.11/test"

# What a source does that a jail could have something to do with. A module that does none of it is pure.
USES = {
    "network": r"requires\(['\"](network|urlfetch)|requires_resource\(['\"](network|urlfetch)",
    "resources": r"requires(_resource)?\(['\"](cpu|largefile|extralargefile)|bigmemtest|bigaddrspacetest",
    "processes": r"\bsubprocess\b|script_helper|assert_python|spawn_python|os\.popen|os\.system|os\.(spawn|exec)[lv]",
    "threads": r"\b(threading|_thread|threading_helper)\b",
    "sockets": r"\b(socket|socketserver|asyncore|socket_helper)\b",
    "ctypes": r"\bctypes\b",
    "fork": r"\bos\.fork\b|fork_wait|requires_fork",
    "signals": r"\bsignal\b",
    "multiprocessing": r"\bmultiprocessing\b",
    "terminals": r"\b(pty|curses|termios|openpty)\b",
    "accounts": r"\b(pwd|grp|spwd)\b",
    "windows": r"requires\(['\"]gui|\btkinter\b|\bidlelib\b|\bturtle\b",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in USES.items()}

# These use one of it in a corner only, and are what people's programs stand on.
PURE_TOO = "json re decimal struct zlib bz2 lzma hashlib unicodedata codecs sqlite3 pickle random itertools".split()

# What shows that a jail is a place where programs work, and what needs its loopback.
JAIL = """subprocess os posix shutil tempfile pathlib threading concurrent_futures multiprocessing_fork multiprocessing_spawn multiprocessing_forkserver
    multiprocessing_main_handling mmap fcntl signal select selectors epoll io fileio zipfile tarfile ctypes faulthandler resource time locale pty""".split()
LOOPBACK = "httplib httpservers urllib2_localnet xmlrpc poplib ftplib smtplib imaplib socket ssl asyncio".split()


def sources(place):
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def uses(place):
    text = "\n".join(path.read_text(errors="replace") for path in sources(place))
    return [name for name, pattern in PATTERNS.items() if pattern.search(text)]


def scan(tree):
    places = sorted(path for path in (pathlib.Path(tree) / TESTS).glob("test_*") if path.suffix == ".py" or (path / "__init__.py").exists())
    found = {path.stem: uses(path) for path in places}
    named = {"jail": JAIL, "loopback": LOOPBACK}
    chosen = {f"test_{name}": group for group, names in named.items() for name in names}
    groups = {"pure": {}, "jail": {}, "loopback": {}, "other": {}, "not run": {}}
    for name, what in found.items():
        pure = not what or name.removeprefix("test_") in PURE_TOO
        group = chosen.get(name) or ("pure" if pure else "not run" if "windows" in what else "other")
        groups[group][name] = ", ".join(what)
    return groups


def main(*words):
    check, tree = words[:-1] == ("--check",), words[-1]
    text = json.dumps(scan(tree), indent=1) + "\n"
    if not check:
        MODULES.write_text(text)
    elif text != MODULES.read_text():
        sys.exit(f"{MODULES.name} is of another tree: python3 tests/soak/scan.py TREE")


if __name__ == "__main__":
    main(*sys.argv[1:])
