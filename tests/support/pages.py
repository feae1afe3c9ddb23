"""The commands that pages of the project show."""
import re
import shlex

# What starts this suite, changes the host, or wants its services; tests/release and tests/systemd do these in trees and guests of their own.
LEFT_OUT = "./dev ", "PREFIX=", "sudo ", "tar xpf ", "brig-0", "systemctl ", "claude ", "cmake ", "export PATH=", "brig rootfs build ", "brig stats ", "strace "
NETWORK = re.compile(r"--net |examples/network") # these reach other hosts: tests/network has an internet for them
PACKAGES = re.compile(r"--with |--requirements |--script |brig packages") # these want packages of PyPI itself: tests/network/test_index.py has some of its own


def commands(page, left_out=LEFT_OUT, network=False):
    """(line, the statuses it may have) of its blocks of sh; "status N" in the comment says that it is not 0, "status N or M" that both will do."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(left_out) and bool(NETWORK.search(line)) == network and not PACKAGES.search(line):
                status = re.search(r"#.*\bstatus (\d+)(?: or (\d+))?", line)
                yield line, {int(number) for number in status.groups() if number} if status else {0}


def script(page, user="", left_out=()):
    """Lines of sh that execute what a page shows, literally, and stop at the first that ends otherwise than it says; USER goes before each. A plain user
    without control groups is told that nothing holds --memory: 125."""
    lines = ""
    for line, statuses in commands(page):
        if any(word in line for word in left_out):
            continue
        statuses = statuses | {125} if user and "--memory" in line else statuses
        lines += f"set +e\n{user} sh -c {shlex.quote(line)} >>/tmp/out 2>&1\nstatus=$?\nset -e\n"
        lines += f"case $status in {'|'.join(map(str, statuses))}) ;; *) echo {shlex.quote(line)}: $status; cat /tmp/out; exit 1 ;; esac\nrm -f /tmp/out\n"
    return lines + "echo all of them\n"
