"""Runs in the guest: every part of the order one after the other, reports to the host's pytest."""
import json
import pathlib
import pwd
import shlex
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
CHANNEL = "/dev/ttyS1"


def say(**word):
    with open(CHANNEL, "w") as channel:
        channel.write(json.dumps(word) + "\n")


def log_in(user):
    """Starts the user's systemd, and waits for its bus."""
    subprocess.run(["loginctl", "enable-linger", user], check=True)
    uid = pwd.getpwnam(user).pw_uid
    end = time.monotonic() + 120
    while not pathlib.Path(f"/run/user/{uid}/bus").exists():
        if time.monotonic() > end:
            raise TimeoutError(f"the systemd of {user} did not come up")
        time.sleep(0.1)


def run_part(part, slower):
    if part["before"]:
        subprocess.run(part["before"], cwd=REPO, check=True)
    if part["user"]:
        log_in(part["user"])
    command = ["/usr/bin/python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "vm.tell", "--tb=short", *part["tests"]]
    env = {"PYTHONPATH": f"{REPO}/tests", "BRIG_TEST_SLOWER": str(slower), "BRIG_VM_CHANNEL": CHANNEL, **part["env"]}
    line = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items()) + " " + shlex.join(command)
    done = subprocess.run([*part["through"], "sh", "-c", f"cd {REPO} && umask 022 && exec env {line}"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    say(part=part["name"], status=done.returncode, output=done.stdout[-4000:])


def main():
    order = json.loads((REPO / "order.json").read_text())
    subprocess.run(["stty", "-F", CHANNEL, "raw", "-echo", "115200"], check=True)
    subprocess.run(["chmod", "666", CHANNEL], check=True)
    say(up=pathlib.Path("/proc/uptime").read_text().split()[0])
    for part in order["parts"]:
        run_part(part, order["slower"])
    say(done=True)


main()
