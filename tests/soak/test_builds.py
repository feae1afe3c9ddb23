"""Other compilers, optimizations and ways to link: the tree builds without a warning, and the unit tests pass."""
import pytest

from support import builds


def way(compiler, level, static):
    """The extremes are in nightly, where warnings differ most; those between them are run by hand."""
    is_nightly = level in ("-O0", "-O3")
    return pytest.param(compiler, level, static, marks=pytest.mark.nightly(seconds=3600) if is_nightly else pytest.mark.long, id=f"{compiler} {level} {static}")


WAYS = [*(way(compiler, f"-O{level}", "ON") for compiler in ("gcc", "clang") for level in range(4)), way("gcc", "-O2", "OFF"), way("clang", "-O2", "OFF")]


@pytest.mark.parametrize("compiler, level, static", WAYS)
def test_it_builds_without_a_warning_and_the_unit_tests_pass(compiler, level, static, tmp_path):
    builds.check(tmp_path, compiler, f"{level} -Werror", f"-DBRIG_STATIC_LIBS={static}")
