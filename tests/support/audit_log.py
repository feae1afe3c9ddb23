"""Records of the kernel's audit, which is one for the whole machine: a test that reads them is marked `alone`. No auditd is needed."""
import secrets
import socket
import struct

import pytest

from support import host

NETLINK_AUDIT, READERS, RCVBUFFORCE = 9, 1, 33 # the netlink family; its multicast group for readers; an option of sockets
REQUEST, LARGE = 1, 64 << 20          # a flag of netlink; bytes that may wait to be read
USER, USER_AVC = 1005, 1107           # records that root may send: only while auditing is on, and always
ABEND, LINK, SECCOMP, LANDLOCK = OF_PROGRAMS = 1701, 1702, 1326, 1423 # what a program without any right makes: a crash, links that are refused, the filter's kills, ...
HEADER = struct.Struct("IHHII")


def listener():
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT)
    try:
        made.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, LARGE)
        made.bind((0, READERS))
    except OSError:
        made.close()
        raise
    return made


def lacks():
    """None when records can be read, else the reason to print for a skip."""
    try:
        listener().close()
    except OSError as e:
        return f"needs to read the kernel's audit (CAP_AUDIT_READ, no user or network namespace): {e.strerror}"
    return None


class AuditLog:
    """Records of these types from now on."""

    def __init__(self, *types):
        if lacks():
            pytest.skip(lacks())
        self.types, self.socket = types, listener()
        self.socket.settimeout(host.HANG)

    def say(self, kind, word):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT) as out:
            body = f"op={word}\0".encode()
            out.sendto(HEADER.pack(HEADER.size + len(body), kind, REQUEST, 1, 0) + body, (0, 0))

    def read_to(self, word):
        """(type, text) of everything before the record that has this word."""
        while True:
            message = self.socket.recv(1 << 16)
            kind, text = HEADER.unpack_from(message)[1], message[HEADER.size:].decode(errors="replace")
            if word in text and kind == USER_AVC:
                return
            yield kind, text

    def records(self):
        """The kernel sends records in order: when our own record arrives, all earlier ones have arrived."""
        word = secrets.token_hex(8)
        self.say(USER_AVC, word)
        return [text for kind, text in self.read_to(word) if kind in self.types]

    def is_on(self):
        """Whether auditing is switched on: else the kernel makes records of little more than its filters' kills."""
        word = secrets.token_hex(8)
        self.say(USER, word)
        self.say(USER_AVC, f"{word}-end")
        return any(kind == USER and word in text for kind, text in self.read_to(f"{word}-end"))

    def close(self):
        self.socket.close()
