"""docs/long-run.log: what the long tier measured, a block for each of its tests."""
import datetime
import os
import platform
import re
import shutil
import subprocess

from support import host

LOG = host.REPO / "docs" / "long-run.log"


def git(*words):
    if not shutil.which("git"): # as in a guest
        return ""
    done = subprocess.run(["git", "-C", host.REPO, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def heading():
    """What ran where; in general words, for the log is public."""
    commit = (git("rev-parse", "--short=12", "HEAD") or "no commit") + (" and changes" if git("status", "--porcelain", "--", ":!docs") else "")
    memory = next(int(line.split()[1]) for line in host.read("/proc/meminfo").splitlines() if line.startswith("MemTotal"))
    groups = "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1 or hybrid"
    return [f"commit   {commit}", f"date     {datetime.date.today()}",
            f"machine  {os.cpu_count()} cores {platform.machine()}, {memory >> 20} GiB, Linux {platform.release().split('-')[0]}, cgroup {groups}"]


HEADING = heading() # of the moment when the tests began


def write(title, lines, log=LOG):
    """Puts the block in the place of the one of this title, or at the end."""
    block = "\n".join([f"== {title} ==", *HEADING, "", *lines, "", ""])
    text = log.read_text() if log.exists() else ""
    old = re.compile(rf"^== {re.escape(title)} ==\n.*?(?=^== |\Z)", re.M | re.S)
    log.write_text(old.sub(lambda _: block, text) if old.search(text) else text + block)
