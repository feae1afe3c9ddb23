"""Lines of the audit that the journal does not take are counted in the journal, and a journal that was started again gets the next ones."""
import contextlib
import os
import socket

import pytest

from rules import MANY
from support import host

JOURNAL = "/run/systemd/journal/socket"


@contextlib.contextmanager
def listening():
    """The journal's socket, which nothing reads but recv() below."""
    os.makedirs(os.path.dirname(JOURNAL), exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(JOURNAL)
        try:
            os.chmod(JOURNAL, 0o666)
            sock.settimeout(host.HANG)
            yield sock
        finally:
            os.unlink(JOURNAL)


@pytest.fixture
def alone(built):
    if os.path.exists(JOURNAL):
        pytest.skip(f"{JOURNAL} is somebody else's here: tests/worker has a /run of its own")


def test_a_journal_that_was_started_again_gets_the_next_line_and_how_many_it_missed(alone, start_daemon):
    """The server may make no socket and no connection any more."""
    with listening() as journal:
        daemon = start_daemon(MANY)
        ended = daemon.run("pass")
        assert ended.id.encode() in journal.recv(65536)
    daemon.run("pass")
    daemon.run("pass")
    with listening() as journal:
        ended = daemon.run("pass")
        assert b"audit: journal: written again, without 2 lines\n" in journal.recv(65536)
        assert ended.id.encode() in journal.recv(65536)


def test_a_journal_that_is_flooded_has_the_number_of_lines_that_did_not_fit(alone, start_daemon):
    with listening() as journal, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as anybody:
        daemon = start_daemon(MANY)
        anybody.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                anybody.sendto(b"MESSAGE=noise", JOURNAL)
        for _ in range(3):
            daemon.run("pass")
        journal.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                assert journal.recv(65536) == b"MESSAGE=noise"
        journal.settimeout(host.HANG)
        ended = daemon.run("pass")
        assert b"audit: journal: written again, without 3 lines\n" in journal.recv(65536)
        assert ended.id.encode() in journal.recv(65536)
