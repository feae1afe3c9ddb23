"""Five minutes of new bytes for every parser: ./dev test nightly fuzz. BRIG_FUZZ_SECONDS is for another time; test_long.py takes an hour."""
import pytest

from support import fuzzing

SECONDS = fuzzing.seconds(300)


@pytest.mark.nightly(seconds=SECONDS + fuzzing.BUILD)
@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_five_minutes_break_no_promise(target):
    fuzzing.fuzz(target, SECONDS).check()
