"""brig-rootfs on a store of its own."""
import json
import os
import pathlib
import subprocess

from support import host

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BRIG_BUILD", REPO / "build"))
BINARY = BUILD / "bin" / "brig-rootfs"


class Rootfs:
    """brig-rootfs on one store."""

    def __init__(self, store, binary=BINARY):
        self.store, self.binary = pathlib.Path(store), binary

    def __call__(self, *args, timeout=host.HANG, **kwargs):
        env = dict(os.environ, BRIG_STORE=str(self.store))
        return subprocess.run([self.binary, *map(str, args)], env=env, capture_output=True, text=True, timeout=timeout, **kwargs)

    def start(self, *args, **kwargs):
        env = dict(os.environ, BRIG_STORE=str(self.store))
        return subprocess.Popen([self.binary, *map(str, args)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)

    def must(self, *args, **kwargs):
        done = self(*args, **kwargs)
        assert done.returncode == 0, done.stderr
        return done

    def rows(self):
        return {row["name"]: row for row in json.loads(self.must("list", "--json").stdout)}

    def leftovers(self):
        return sorted(p.name for part in ("tmp", "trees", "names") for p in (self.store / part).iterdir()) if self.store.exists() else []
