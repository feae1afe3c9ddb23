"""A notebook of forty cells gives the same values, errors, pictures and files over the protocol, on the command line, over MCP and in Python."""
import base64
import json
import pathlib
import re
import subprocess
import sys
import threading

import notebook
import pytest

from support import brig as tool
from support import daemon as daemons
from support import host, node
from support import mcp as mcp_client
from support.sessions import open_session

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import brig  # noqa: E402

PROFILE = "data-science"
CELLS, FILES = notebook.cells(), notebook.files()
SHOWN = re.compile(r"\[image/png, \d+ bytes, shown below\]")


@pytest.fixture(scope="module")
def service(jail):
    if lack := host.lacks(f"rootfs:{PROFILE}"):
        pytest.skip(lack)
    with daemons.Daemon() as made:
        yield made
        assert made.alive(), made.words()


def pictures(bundles):
    return [base64.b64decode(bundle["image/png"]) for bundle in bundles if "image/png" in bundle]


def seen_in(report, record, stdout):
    """Of a report as it is, or with a record around it."""
    report = report or {}
    shown = report.get("displays", [])
    return notebook.Seen(report.get("result"), stdout, sum(map(notebook.text_of, shown), []), pictures(shown), (report.get("error") or {}).get("traceback", ""),
                         record["session"]["state"], record["exit_reason"])


# --- the ways; each returns what it has seen of the cells, and the files at the end ---

def by_protocol(service, _):
    seen = []
    with service.connect() as talk:
        session = open_session(talk, profile=PROFILE)
        for cell in CELLS:
            run = session.start(cell.code, limits={"wall_ms": cell.seconds * 1000})
            begin = ""
            if cell.wanted["interrupt"]:
                begin = run.line() + "\n"
                talk.ask("interrupt", run=run.id)
            ended = run.finish()
            seen.append(seen_in(json.loads(ended.result) if ended.result else None, ended.record, begin + ended.stdout))
        found, left_out = session.get(*FILES)
    assert not left_out, left_out
    return seen, {name.decode(): data.decode() for name, data in found.items()}


def by_command_line(service, folder):
    env, path = tool.environment({"BRIG_SOCKET": str(service.path)}), folder / "record.json"

    def start(*words):
        return subprocess.Popen([tool.binary(), "session", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=folder)

    def interrupted(cell):
        """Its output is printed as it comes, and its record has no report."""
        with start("run", "notebook", "--record", path, "-c", cell.code) as call:
            out = call.stdout.readline()
            assert start("interrupt", "notebook").wait(host.HANG) == 0
            rest, err = call.communicate(timeout=host.HANG)
        return seen_in({"error": {"traceback": err}}, json.loads(path.read_text()), out + rest)

    def run(cell):
        with start("run", "notebook", "--json", "--timeout", cell.seconds, "-c", cell.code) as call:
            said = json.loads(call.communicate(timeout=host.HANG)[0])
        return seen_in(said, said, said["stdout"])
    assert start("open", "notebook", "-p", PROFILE).wait(host.HANG) == 0
    seen = [interrupted(cell) if cell.wanted["interrupt"] else run(cell) for cell in CELLS]
    assert start("get", "notebook", *FILES).wait(host.HANG) == 0 and start("close", "notebook").wait(host.HANG) == 0
    return seen, {name: (folder / name).read_text() for name in FILES}


def by_python(service, _):
    seen = []
    with brig.Session(PROFILE, server="service", path=str(service.path)) as session:
        for cell in CELLS:
            interrupt = threading.Thread(target=session.interrupt)
            more = {"on_stdout": lambda _, thread=interrupt: thread.start()} if cell.wanted["interrupt"] else {}
            result = session.run(cell.code, timeout=cell.seconds, **more)
            shown = result.displays
            seen.append(notebook.Seen(result.value, result.stdout, sum(map(notebook.text_of, shown), []), pictures(shown), result.error.traceback if result.error else "",
                                      result.session.state, result.verdict))
        return seen, {name: data.decode() for name, data in session.get(*FILES).items()}


def seen_by_model(step):
    """What a tool's answer shows. One that was interrupted by its client has none."""
    if "error" in step:
        return None
    text, *images = step["result"]["content"]
    said = json.loads(text["text"])
    assert all(image["type"] == "image" and image["mimeType"] == "image/png" for image in images), images
    shown = [one for one in said.get("displays", []) if not SHOWN.search(one)]
    return notebook.Seen(said["result"], said["stdout"], shown, [base64.b64decode(image["data"]) for image in images], said["traceback"] or "", said["session"]["state"],
                         said["exit_reason"])


def by_mcp(sdk, mode):
    def replay(service, _):
        if lack := node.lacks():
            pytest.skip(lack)
        own = {"session": "notebook"}
        calls = [{"do": "call", "name": "execute_code", "arguments": {"code": cell.code, "timeout": cell.seconds, **own},
                  **({"progress": True, "cancel_after": "progress"} if cell.wanted["interrupt"] else {})} for cell in CELLS]
        reads = [{"do": "call", "name": "read_file", "arguments": {"path": name, **own}} for name in FILES]
        said = node.drive([*calls, *reads], sdk=sdk, mode=mode, command=[mcp_client.binary(), "--profile", PROFILE, "--progress", "0.25"], env={"BRIG_SOCKET": str(service.path)})
        assert said["connect"] is None, said
        return [seen_by_model(step) for step in said["steps"][:len(CELLS)]], {name: step["result"]["content"][0]["text"] for name, step in zip(FILES, said["steps"][len(CELLS):])}
    return replay


WAYS = {"protocol": by_protocol, "command line": by_command_line, "Python": by_python, "MCP, v1": by_mcp("v1", None), "MCP, v2": by_mcp("v2", {"pin": mcp_client.MODERN})}


def test_the_notebook_has_forty_cells():
    assert len(CELLS) == 40 and len({cell.name for cell in CELLS}) == 40


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_a_notebook_gives_the_same_everywhere(service, tmp_path, way):
    seen, files = WAYS[way](service, tmp_path)
    assert len(seen) == len(CELLS)
    unheard = [cell.name for cell, one in zip(CELLS, seen) if one is None]
    assert unheard == ([cell.name for cell in CELLS if cell.wanted["interrupt"]] if way.startswith("MCP") else []), "a client of MCP that gives a call up gets no answer"
    wrong = [found for cell, one in zip(CELLS, seen) if one and (found := notebook.judge(cell, one))]
    assert not wrong, "\n".join(wrong)
    assert {name: notebook.plain(text).rstrip("\n") for name, text in files.items()} == FILES
