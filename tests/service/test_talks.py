"""Conversations with a real server, a file each: talks/*.talk, and talk.py tells how to read them."""
import json
import pathlib

import pytest

import talk
from support import daemon as daemons

FOLDER = pathlib.Path(__file__).parent / "talks"
SCRIPTS = sorted((talk.Script(path) for path in sorted(FOLDER.glob("*.talk"))), key=lambda script: json.dumps(script.config)) # few services


def test_every_conversation_has_a_name_of_its_own():
    names = [script.name for script in SCRIPTS]
    assert SCRIPTS and len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)


def of_way(way):
    """What both have is fast with the service; what a program is, where it comes from its own user, with both."""
    def marks(script):
        return [pytest.mark.nightly] if way == "private" and len(script.ways) > 1 and "sealed" not in script.name else []
    return [pytest.param(script, id=script.name, marks=marks(script)) for script in SCRIPTS if way in script.ways]


@pytest.mark.parametrize("script", of_way("service"))
def test_with_the_service(stock, script):
    daemon = stock.get(script.config)
    talk.Talk(script, daemon.connect).play()
    assert daemon.alive(), f"the daemon ended with status {daemon.process.returncode}:\n{daemon.words()}"


@pytest.mark.parametrize("script", of_way("private"))
def test_with_a_server_of_ones_own(jail, script):
    lack = daemons.lacks_binaries("brigd")
    if lack:
        pytest.fail(lack)
    with daemons.Private() as own:
        talk.Talk(script, own.connect).play()
    assert own.ends() == 0, f"brigd --private ended with status {own.process.returncode}"


PATTERNS = [
    # pattern, what was said, whether that fits
    ('{"a":1}', '{"a":1}', True), ('{"a":1}', '{"a":1.0}', False), ('{"a":1}', '{"a":true}', False), ('{"a":1}', '{"a":1,"b":2}', False),
    ('{"a":1,...}', '{"a":1,"b":2}', True), ('{...}', '{}', True), ('{"a":1,...}', '{"b":1}', False), ('{"a":"*"}', '{}', False),
    ('["x",...]', '["y","x"]', True), ('["x",...]', '["y"]', False), ('["x"]', '["x","y"]', False), ('{"a":"$n","b":"$n"}', '{"a":1,"b":1}', True),
    ('{"a":"$n","b":"$n"}', '{"a":1,"b":2}', False), ('"~^a.c$"', '"abc"', True), ('"~^a.c$"', '"abcd"', False), ('"count"', "-1", False),
    ('"count"', "3", True), ('"count"', "3.5", False), ('"number"', "3.5", True), ('"text"', '""', False), ('"bool"', "1", False), ('null', "0", False),
]


@pytest.mark.parametrize("pattern, said, fits", PATTERNS)
def test_a_pattern_fits_what_it_says_and_nothing_else(pattern, said, fits):
    assert (talk.differs(talk.read_json(pattern), json.loads(said), {}) is None) == fits
