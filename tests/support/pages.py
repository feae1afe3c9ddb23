"""The commands that pages of the project show."""
import re

# What starts this suite, changes the host, or wants its services; tests/release and tests/systemd do these in trees and guests of their own.
LEFT_OUT = "./dev ", "PREFIX=", "sudo ", "systemctl ", "claude ", "cmake ", "export PATH=", "brig rootfs build ", "brig stats ", "strace "
NETWORK = re.compile(r"--net |examples/network") # these reach other hosts: tests/network has an internet for them


def commands(page, left_out=LEFT_OUT, network=False):
    """(line, the statuses it may have) of its blocks of sh; "status N" in the comment says that it is not 0, "status N or M" that both will do."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(left_out) and bool(NETWORK.search(line)) == network:
                status = re.search(r"#.*\bstatus (\d+)(?: or (\d+))?", line)
                yield line, {int(number) for number in status.groups() if number} if status else {0}
