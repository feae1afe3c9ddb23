"""The pages of the project lead where they say."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ROOT / "docs/decisions", ROOT / "docs/history"
DECIDED = [path for folder in FOLDERS for path in sorted(folder.glob("0*.md"))]


def tracked(*patterns):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).exists()]


PAGES = tracked("*.md")


def heading_anchor(line):
    return re.sub(r"[^\w\- ]", "", line.lstrip("# ").strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    text = re.sub(r"^(```.*?^```|    .*?$)", "", page.read_text(), flags=re.M | re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", text):
        target = target[0] or target[1]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        aim = (page.parent / name) if name else page
        if not aim.exists() or anchor and anchor not in map(heading_anchor, re.findall(r"^#.*$", aim.read_text(), re.M)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_index_of_decisions_lists_each_once_in_a_sentence(folder):
    indexed = re.findall(r"^- \[(\d{4})\]\((\S+)\) (?=\S)", (folder / "README.md").read_text(), re.M)
    assert sorted(indexed) == [(path.name[:4], path.name) for path in DECIDED if path.parent == folder]


def test_a_number_of_a_decision_is_in_one_folder_only_and_what_the_tree_names_is_there():
    numbers = [path.name[:4] for path in DECIDED]
    assert len(numbers) == len(set(numbers))
    there = {f"{path.parent.name}/{path.name[:4]}" for path in DECIDED}
    named = [(str(path.relative_to(ROOT)), place) for path in tracked("*.[ch]", "*.cmake", "CMakeLists.txt", "*.py", "*.in", "dev")
             for place in re.findall(r"docs/((?:decisions|history)/\d{4})|decision (\d{4})", path.read_text(errors="replace"))]
    assert named and [one for one in named if one[1][0] not in there and one[1][1] not in numbers] == []


def test_some_thirty_decisions_bind_and_each_begins_with_the_rule_of_today():
    binding = [path for path in DECIDED if path.parent.name == "decisions"]
    assert 28 <= len(binding) <= 38, "what is settled goes to docs/history"
    shape = re.compile(r"# [^\n]+\n\n[^*#\n].*?^\*\*Why\.\*\* ", re.M | re.S)
    assert [path.name for path in binding if not shape.match(path.read_text())] == []


def test_each_decision_has_at_most_a_page():
    assert {path.name: words for path in DECIDED if (words := len(path.read_text().split())) > 600} == {}


def test_each_path_of_the_map_is_there():
    rows = re.findall(r"^\|.*`.*$", re.search(r"^## To change something$(.*?)^## ", (ROOT / "ARCHITECTURE.md").read_text(), re.M | re.S)[1], re.M)
    paths = [path for row in rows for path in re.findall(r"`([a-z-]+(?:/[^`]*)?)`", row) if path != "brig"]
    assert len(rows) > 20 and [path for path in paths if not (ROOT / path).exists()] == []


def test_each_commit_that_a_contributor_is_to_read_is_in_the_history():
    commits = re.findall(r"^\*\*Add a .*:\*\* `([0-9a-f]{8})` (.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert len(commits) == 3
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True).stdout.strip() != "false":
        pytest.skip("this clone has not the whole history")
    for commit, subject in commits:
        assert subprocess.run(["git", "-C", ROOT, "show", "-s", "--format=%s", commit], capture_output=True, text=True).stdout.strip() == subject


def test_the_checklist_of_a_release_names_only_commands_and_groups_that_there_are():
    from support import tiers
    script, page = (ROOT / "dev").read_text(), (ROOT / "docs/releasing.md").read_text()
    words = [line.split("#")[0].split("./dev ")[1].split() for line in page.splitlines() if "./dev " in line.split("#")[0] and line.startswith(("./dev ", "BRIG_"))]
    assert len(words) > 10
    for command, *rest in words:
        assert f"\ncmd_{command}() {{" in script
        assert command != "test" or all(word in {*tiers.TIERS, *tiers.GROUPS} or (ROOT / word).exists() for word in rest)
    assert all((ROOT / name).exists() for name in re.findall(r"`([\w./-]+\.(?:md|log|txt)|packaging/[\w/]+)`", page))
