"""An hour of new bytes for every parser: ./dev test long. Figures go to docs/long-run.log. BRIG_FUZZ_SECONDS is for another time."""
import pytest

from support import fuzzing, longlog

SECONDS = fuzzing.seconds(3600)


@pytest.fixture(scope="module")
def figures():
    """Lines of the log; those of targets that were reached."""
    lines = [fuzzing.HEAD]
    yield lines
    longlog.write("fuzzing", lines)


@pytest.mark.long(seconds=SECONDS + fuzzing.BUILD)
@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_an_hour_breaks_no_promise(target, figures):
    outcome = fuzzing.fuzz(target, SECONDS)
    figures.append(outcome.line())
    outcome.check()
