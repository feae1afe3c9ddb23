"""What a program did that it may not, in the audit of a service: for those who look after it, who see no records."""
import json

import pytest

from rules import audit_log
from support import daemon as daemons

TRIES = "import ctypes, socket\nlibc = ctypes.CDLL(None)\nlibc.ptrace(0, 0, 0, 0); libc.ptrace(0, 0, 0, 0)\ntry: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nexcept OSError: pass\n"


@pytest.mark.requirement("A95")
@pytest.mark.parametrize("cold", [False, True])
def test_a_line_of_the_audit_has_the_system_calls_that_were_refused(built, cold):
    with audit_log() as file, daemons.Daemon({"audit": {"file": str(file)}}) as daemon, daemon.connect() as talk:
        assert [talk.run(program, cold=cold).reason for program in (TRIES, "pass")] == ["exited"] * 2
        bad, good = [json.loads(line) for line in file.read_text().splitlines()]
    assert (bad["refused"], good["refused"]) == ("ptrace=2 socket(AF_NETLINK)=1", None), (bad, good)
