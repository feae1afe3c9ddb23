"""Each tracked file keeps the rules of .editorconfig, so that an editor which follows them changes nothing else."""
import fnmatch
import itertools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABS, SPACES = re.compile(r"^( {8}| +\t)", re.M), re.compile(r"^ *\t", re.M)


def expanded(glob):
    """{a,b} of a glob, inner ones first: fnmatch knows no alternatives."""
    found = re.search(r"\{([^{}]*)\}", glob)
    return [glob] if not found else list(itertools.chain.from_iterable(
        expanded(glob[:found.start()] + word + glob[found.end():]) for word in found[1].split(",")))


def sections():
    made = []
    for line in (ROOT / ".editorconfig").read_text().splitlines():
        if line.startswith("["):
            made.append((expanded(line[1:-1]), {}))
        elif made and re.match(r"[a-z]", line):
            made[-1][1].update([re.split(r"\s*=\s*", line)])
    return made


def rules_of(name, made):
    rules = {}
    for globs, given in made:
        if any(fnmatch.fnmatchcase(name if "/" in glob else name.rpartition("/")[2], glob) for glob in globs):
            rules.update(given)
    return rules


def broken(content, rules):
    if rules.get("charset") == "utf-8":
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return ["charset"]
    else:
        text = content.decode("latin-1")
    bad = {
        "end_of_line": rules.get("end_of_line") == "lf" and "\r" in text,
        "insert_final_newline": rules.get("insert_final_newline") == "true" and text and not text.endswith("\n"),
        "trim_trailing_whitespace": rules.get("trim_trailing_whitespace") == "true" and re.search(r"[ \t]$", text, re.M),
        "indent_style": {"tab": TABS, "space": SPACES}.get(rules.get("indent_style"), re.compile("(?!)")).search(text),
    }
    return [rule for rule, yes in bad.items() if yes]


def test_no_tracked_file_breaks_a_rule_of_editorconfig():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    made, found = sections(), {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and (rules := broken(path.read_bytes(), rules_of(name, made))):
            found[name] = rules
    assert found == {}
