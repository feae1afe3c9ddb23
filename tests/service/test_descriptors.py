"""Row I4: descriptors at the server, one in the place of another, and those that not every kernel has."""
import json

import pytest

import hostile
from hostile import hear_out, say, with_descriptors
from support import tiers

SHOWN = {
    # what may be shown, or is found to have no path when the cell is built: how such a run ends
    "directory": "exited", "file": "exited", "opath": "exited", "gone": "setup_failed", "mount": "setup_failed",
}


@pytest.mark.row("I4")
@pytest.mark.parametrize("kind", tiers.few(sorted(hostile.KINDS | hostile.RARE), "pipe", "socket", "directory", "unsealed-write", "huge", "gone", "proc-self"))
def test_one_in_the_place_of_another_is_refused(talk, kind):
    if hostile.lacks(kind):
        pytest.skip(hostile.lacks(kind))
    for message, kinds in (({"op": "run"}, [kind]), ({"op": "run", "ro": ["a"]}, [kind, "directory"])):
        say(talk, json.dumps(message).encode(), with_descriptors(kinds))
        assert hear_out(talk) in (("ended",) if kind == "empty" else ("bad_descriptors", "bad_field")), kinds # an empty program is one
    for message, kinds in (({"op": "run", "ro": ["a"]}, ["code", kind]), ({"op": "exec", "argv": ["true"], "ro": ["a", "b"]}, ["directory", kind])):
        say(talk, json.dumps(message).encode(), with_descriptors(kinds))
        if kind in SHOWN:
            assert (ended := talk.until(lambda body: body.get("event") == "ended")).body["record"]["exit_reason"] == SHOWN[kind], ended
        else:
            assert hear_out(talk) in ("bad_descriptors", "denied"), kinds
    assert talk.ask("hello")["version"] == 1


@pytest.mark.nightly
@pytest.mark.row("I4")
@pytest.mark.parametrize("kind", sorted(hostile.RARE))
def test_253_that_not_every_kernel_has_are_refused_and_closed(daemon, talk, kind):
    if hostile.lacks(kind):
        pytest.skip(hostile.lacks(kind))
    hostile.check_253(daemon, talk, kind)
