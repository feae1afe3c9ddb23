"""A file that decides what runs is read only if it is root's or the reader's, and nobody else may write to it: each reader of one, in one row."""
import json
import os
import subprocess

import pytest

from support import host

SECRET = {"host": "api.example", "header": "Authorization: Bearer {}"}
NEEDS_TOKEN = {"extends": "basic", "network": {"allow": ["api.example"]}}
RUN = ("brig", "run", "-p", "mine", "-c", "pass")
CREDENTIAL = "Operation not permitted" # of a descriptor: there is no path to name

# Which file is spoilt, its text, what else there is, the command. The text itself is refused, too, for another reason: so each reader ends early.
READERS = {
    "a profile": ("mine.json", "{", {}, RUN),
    "a profile that is extended": ("base.json", "{", {"mine.json": json.dumps({"extends": "base"})}, RUN),
    "a policy": ("mine.policy", "no policy", {"mine.json": json.dumps({"extends": "basic", "policy": "mine"})}, RUN),
    "a secret": ("token", "", {"mine.json": json.dumps({**NEEDS_TOKEN, "secrets": "file"})}, RUN),
    "a credential of systemd": ("token", "", {"mine.json": json.dumps({**NEEDS_TOKEN, "secrets": "credential"})}, RUN),
    "a recipe": ("mine.json", "{", {}, ("brig-rootfs", "build", "--store", "store", "./mine.json")),
    "requirements": ("list.txt", "", {"mine.json": json.dumps({"extends": "basic", "requirements": "list.txt", "wheels": "wheels"})}, ("brig-rootfs", "build", "--store", "store", "./mine.json")),
    "the configuration of a service": ("brig.json", "{", {}, ("brigd", "--foreground", "--config", "{}/brig.json", "--socket", "{}/sock")),
    "the settings of brig-mcp": ("mcp.json", "{", {}, ("brig-mcp", "--config", "{}/mcp.json")),
    "the servers of brig-mcp": ("servers.json", "{", {}, ("brig-mcp", "--servers", "{}/servers.json")),
    "the token of brig-mcp": ("bearer", "short", {}, ("brig-mcp", "--http", "--token-file", "{}/bearer")),
}
SPOILT = {"nobody's": (None, None), "another user's": (1234, 0o600), "its group's to write": (0, 0o620), "everybody's to write": (0, 0o602)}


def secrets_of(text, folder):
    made = json.loads(text)
    if isinstance(made.get("secrets"), str):
        kind = made.pop("secrets")
        made["network"]["secrets"] = {"TOKEN": {**SECRET, "from": {kind: str(folder / "token") if kind == "file" else "token"}}}
    return json.dumps(made)


def said_by(folder, words):
    program, *rest = (word.replace("{}", str(folder)) for word in words)
    env = {**os.environ, "BRIG_PROFILES": str(folder), "CREDENTIALS_DIRECTORY": str(folder), "XDG_CONFIG_HOME": str(folder / "none")}
    done = subprocess.run([host.build_dir() / "bin" / program, *rest], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode != 0 and done.stdout == "", done
    return done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of other users")
@pytest.mark.parametrize("what", READERS)
def test_no_file_is_obeyed_that_somebody_else_could_have_written(tmp_path, what):
    name, text, others, words = READERS[what]
    tmp_path.chmod(0o755)
    for other, content in others.items():
        (tmp_path / other).write_text(secrets_of(content, tmp_path))
    file, said = tmp_path / name, {}
    file.write_text(text)
    for spoilt, (owner, mode) in SPOILT.items():
        os.chown(file, owner or 0, 0)
        file.chmod(mode or 0o600)
        said[spoilt] = said_by(tmp_path, words)
    control = said.pop("nobody's")
    assert "may write to it" not in control and "belongs to uid" not in control and CREDENTIAL not in control, control
    if what == "a credential of systemd":
        assert all(CREDENTIAL in one for one in said.values()), said
        return
    assert "belongs to uid 1234" in said["another user's"] and str(name) in said["another user's"], said
    assert "its group may write to it" in said["its group's to write"] and "all users may write to it" in said["everybody's to write"], said
