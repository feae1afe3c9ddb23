"""Other compilers, optimizations and ways to link: the tree builds without a warning, and the unit tests pass."""
import pytest

from support import builds

pytestmark = pytest.mark.long
WAYS = [*((compiler, f"-O{level}", "ON") for compiler in ("gcc", "clang") for level in range(4)), ("gcc", "-O2", "OFF"), ("clang", "-O2", "OFF")]


@pytest.mark.parametrize("compiler, level, static", WAYS, ids=lambda value: value)
def test_it_builds_without_a_warning_and_the_unit_tests_pass(compiler, level, static, tmp_path):
    builds.check(tmp_path, compiler, level, f"-DBRIG_STATIC_LIBS={static}")
