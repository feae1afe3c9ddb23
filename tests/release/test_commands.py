"""Every command that README and guides show works as it stands, in the order in which it is shown."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from support import host
from support.pages import commands

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/debugging.md", *sorted((ROOT / "docs/guide").glob("*.md"))]


@pytest.mark.sample(0, "README", "install", "mcp", "profiles", "rootfs", "service", "tools", "troubleshooting")
@pytest.mark.requirement("A13")
@pytest.mark.parametrize("page", [page for page in PAGES if list(commands(page))], ids=lambda page: page.stem)
def test_every_command_of_the_page_works(jail, tmp_path, page):
    lack = host.lacks("rootfs:data-science") if "data-science" in page.read_text() else None
    if lack:
        pytest.skip(lack)
    wrong = []
    for line, status in commands(page):
        done = subprocess.run(["bash", "-c", line.replace("/tmp/", f"{tmp_path}/")], cwd=ROOT, capture_output=True, text=True, timeout=host.HANG,
                              env={**os.environ, "LC_ALL": "C", "PATH": f"{host.build_dir()}/bin:{os.environ['PATH']}"})
        if done.returncode not in status:
            wrong.append(f"{line}: status {done.returncode}, not {status}: {done.stderr.strip()[-300:]}")
    assert wrong == []


def test_the_readme_fits_on_two_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_readme_has_the_figures_of_the_benchmarks():
    import sys
    sys.path.insert(0, str(ROOT / "bench"))
    import chart
    rows = chart.table(chart.PAGE.read_text())
    readme = chart.README.read_text()
    assert chart.fill(readme, rows) == readme and chart.svg(rows) == chart.CHART.read_text()


def test_the_index_of_pages_lists_each():
    listed = set(re.findall(r"\]\(([^)#]+)", (ROOT / "docs/README.md").read_text()))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in ("decisions", "history")} - {"README.md"}
    assert pages <= listed, pages - listed


def test_troubleshooting_has_every_row_of_the_doctor():
    told = subprocess.run([host.build_dir() / "bin" / "brig", "doctor", "--json"], capture_output=True, text=True, check=False).stdout
    rows = [row["name"] for row in json.loads(told)["rows"]]
    page = (ROOT / "docs/guide/troubleshooting.md").read_text()
    assert len(rows) > 40 and [row for row in rows if f"| `{row}` |" not in page] == []
