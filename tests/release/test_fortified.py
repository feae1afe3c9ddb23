"""Distributions build with more checks of the C library than brig's own flags ask for: that works, too."""
import pytest

from support import builds


@pytest.mark.nightly(seconds=3600)
def test_clang_builds_it_with_all_checks_of_the_c_library_and_no_warning(tmp_path):
    builds.check(tmp_path, "clang", "-O2 -Werror -D_FORTIFY_SOURCE=3")
