"""Runs in the guest: each part that the host asks for, reports to the host's pytest."""
import json
import pathlib
import pwd
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
ORDER = json.loads((REPO / "order.json").read_text())
CHANNEL = ORDER["channel"]


def say(**word):
    with open(CHANNEL, "w") as channel:
        channel.write(json.dumps(word) + "\n")


def log_in(user):
    """Starts the user's systemd, which has a bus when it is up."""
    subprocess.run(["loginctl", "enable-linger", user], check=True)
    subprocess.run(["systemctl", "start", f"user@{pwd.getpwnam(user).pw_uid}.service"], check=True)


def run_part(part, slower, tiers):
    if part["before"]:
        subprocess.run(part["before"], cwd=REPO, check=True)
    if part["user"]:
        log_in(part["user"])
    command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "vm.tell", "--tb=short", "--tier", tiers, *part["tests"]]
    env = {"PYTHONPATH": f"{REPO}/tests", "BRIG_TEST_SLOWER": str(slower), "BRIG_VM_CHANNEL": CHANNEL, **part["env"]}
    line = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items()) + " " + shlex.join(command)
    done = subprocess.run([*part["through"], "sh", "-c", f"cd {REPO} && umask 022 && exec env {line}"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    say(part=part["name"], status=done.returncode, output=done.stdout[-4000:])


def main():
    subprocess.run(["stty", "-F", CHANNEL, "raw", "-echo", "115200"], check=True)
    subprocess.run(["chmod", "666", CHANNEL], check=True)
    with open(CHANNEL) as asked:
        say(up=pathlib.Path("/proc/uptime").read_text().split()[0])
        for name in asked:
            run_part(ORDER["parts"][name.strip()], ORDER["slower"], ORDER["tiers"])


main()
