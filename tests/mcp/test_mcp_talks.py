"""Conversations with brig-mcp on stdin and stdout, a file each: talks/*.talk, and mcp_talk.py tells how to read them."""
import pathlib

import pytest

import mcp_talk
from support import mcp

FOLDER = pathlib.Path(__file__).parent / "talks"
SCRIPTS = [mcp_talk.Script(path) for path in sorted(FOLDER.glob("*.talk"))]


def test_every_conversation_with_the_frontend_has_a_name_of_its_own():
    names = [script.name for script in SCRIPTS]
    assert SCRIPTS and len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)


def test_every_revision_has_a_conversation():
    said = "".join(script.path.read_text() for script in SCRIPTS)
    assert [revision for revision in mcp.LEGACY if f'"result":{{"protocolVersion":"{revision}"' not in said] == [] and "$modern" in said


@pytest.mark.parametrize("script", [pytest.param(script, id=script.name) for script in SCRIPTS])
def test_the_conversation_goes_like_this(script):
    mcp_talk.Talk(script).play()
