"""What programs show: figures, images and other values, in order, as a model and a person get them; what has no room."""
import base64
import json
import subprocess

import pytest

from support import host
from support import mcp as mcp_client

PICTURE = """
import base64, os, struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Picture:
    def __init__(self, more=0): self.more = more
    def _repr_png_(self):
        png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")
        return png + os.urandom(self.more)
class Drawing:
    def __repr__(self): return "Drawing()"
    def _repr_svg_(self): return "<svg></svg>"
"""
WAYS = [{}, {"session": "pictures"}]


@pytest.fixture(scope="module")
def shared(built_mcp, needs_rootfs):
    with mcp_client.McpStdio() as mcp:
        yield mcp


def call(mcp, code, **arguments):
    return mcp.call("execute_code", {"code": PICTURE + code, **arguments})


def kinds(result):
    return [block["type"] for block in result["content"]]


@pytest.mark.sample(5)
@pytest.mark.parametrize("way", WAYS, ids=["of its own", "in a session"])
@pytest.mark.parametrize("reply", ["json", "text"])
@pytest.mark.parametrize("revision", mcp_client.REVISIONS)
def test_what_a_program_shows_and_returns_comes_as_images_behind_the_text(start_mcp, revision, reply, way):
    mcp = start_mcp(revision=revision)
    result = call(mcp, "print('printed')\ndisplay('words', {'a': 1})\ndisplay(Picture())\nPicture()", format=reply, **way)
    assert kinds(result) == ["text", "image", "image"] and "structuredContent" not in result
    assert all(base64.b64decode(block["data"]).startswith(b"\x89PNG") and block["mimeType"] == "image/png" for block in result["content"][1:])
    size = len(base64.b64decode(result["content"][1]["data"]))
    shown = f"[image/png, {size} bytes, shown below]"
    text = result["content"][0]["text"]
    if reply == "text":
        assert text.endswith(f"--- stdout ---\nprinted\n--- displayed ---\n'words'\n{{'a': 1}}\n{shown}\n--- result ---\n{shown}\n"), text
    else:
        said = json.loads(text)
        assert (said["stdout"], said["displays"], said["result"]) == ("printed\n", ["'words'", "{'a': 1}", shown], shown)


@pytest.mark.parametrize("way", WAYS, ids=["of its own", "in a session"])
def test_what_has_no_room_is_told_with_what_to_do(shared, way):
    result = call(shared, "display(Picture(500_000))\ndisplay(Picture(500_000))\nPicture()", **way)
    said = json.loads(result["content"][0]["text"])
    assert kinds(result) == ["text", "image", "image"] and "shown below" in said["displays"][0] and "shown below" in said["result"]
    assert said["displays"][1].endswith("too large to be shown: a reply has room for 720 KiB of images; save it smaller, as with dpi=60]"), said
    assert len(json.dumps(result)) < 1 << 20, "the most popular of clients takes no more"


@pytest.mark.parametrize("way", WAYS, ids=["of its own", "in a session"])
def test_what_has_no_room_or_is_shown_by_no_client_is_saved(start_mcp, tmp_path, way):
    mcp = start_mcp("--artifacts", tmp_path)
    said = json.loads(mcp_client.text_of(call(mcp, "display(Drawing())\ndisplay(Picture(800_000))\nDrawing()", **way)))
    run = said["execution_id"][:8]
    assert said["displays"][0] == f"Drawing()\n[image/svg+xml, 11 bytes, saved as {tmp_path}/brig-{run}.svg]", said
    assert said["displays"][1].endswith(f"too large to be shown, saved as {tmp_path}/brig-{run}.png]") and said["result"].endswith(f"saved as {tmp_path}/brig-{run}-2.svg]"), said
    assert (tmp_path / f"brig-{run}.svg").read_text() == "<svg></svg>" and (tmp_path / f"brig-{run}.png").stat().st_size > 800_000
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


def test_without_such_a_directory_it_is_named(shared):
    said = json.loads(mcp_client.text_of(call(shared, "Drawing()")))
    assert said["result"] == "Drawing()\n[image/svg+xml, 11 bytes, not shown]"


def test_a_directory_that_cannot_be_had_is_told_at_the_start(built_mcp):
    done = subprocess.run([mcp_client.binary(), "--artifacts", "/proc/nothing"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and "--artifacts /proc/nothing" in done.stderr and done.stdout == "", done


def test_a_program_that_lies_about_its_picture_has_it_shown_as_text(shared):
    result = call(shared, "class Liar:\n    def _repr_png_(self): return b'GIF89a, not png'\n    def __repr__(self): return 'a liar'\ndisplay(Liar())\nLiar()")
    assert kinds(result) == ["text"] and json.loads(result["content"][0]["text"])["result"] == "a liar"


def test_many_long_values_are_cut_in_all(shared):
    said = json.loads(mcp_client.text_of(call(shared, "for n in range(20): display('x' * 5000)")))
    assert sum(map(len, said["displays"])) < 12_000 and "bytes in all" in said["displays"][-1], [len(one) for one in said["displays"]]
    text = mcp_client.text_of(call(shared, "for n in range(20): display('x' * 5000)", format="text"))
    assert len(text) <= 8192 and "characters in all" in text


# --- of libraries ----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def science(built_mcp):
    missing = host.lacks("rootfs:data-science")
    if missing:
        pytest.skip(missing)
    with mcp_client.McpStdio("--profile", "data-science") as mcp:
        yield mcp


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS, ids=["of its own", "in a session"])
def test_figures_are_shown_where_they_are_shown_and_at_the_end(science, way):
    result = science.call("execute_code", {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.figure(); _ = plt.plot([2, 1])", **way})
    said = json.loads(result["content"][0]["text"])
    assert kinds(result) == ["text", "image", "image"] and len(said["displays"]) == 2 and "hint" not in said, said


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS, ids=["of its own", "in a session"])
def test_of_a_data_frame_a_model_gets_the_text(science, way):
    result = science.call("execute_code", {"code": "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})\ndisplay(frame)\nframe", **way})
    said = json.loads(result["content"][0]["text"])
    assert said["displays"] == ["   a\n0  1\n1  2"] and said["result"] == "   a\n0  1\n1  2" and "<table" not in result["content"][0]["text"]


@pytest.mark.nightly
def test_more_figures_than_are_shown_are_told(science):
    result = science.call("execute_code", {"code": "import matplotlib.pyplot as plt\nfor n in range(10): plt.figure(); plt.plot([n])"})
    said = json.loads(result["content"][0]["text"])
    assert kinds(result) == ["text", *["image"] * 8] and said["warnings"] == ["2 more figures: a call shows at most 8"], said
