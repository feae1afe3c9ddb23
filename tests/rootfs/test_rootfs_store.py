"""build, verify, list, gc on small trees: what goes wrong is found, and nothing is left behind."""
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from support import host


def wait_for(condition, process):
    """Until it is true; the process ending first is a failure, not a reason to wait on."""
    assert host.poll(lambda: condition() or process.poll() is not None, every=0)
    assert condition(), process.stderr.read()


def workspaces(rootfs):
    return list((rootfs.store / "tmp").glob("build-*")) if rootfs.store.exists() else []


def is_let_go(workspace):
    with open(workspace / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# --- verify ---

@pytest.mark.nightly
@pytest.mark.requirement("A101")
def test_verify_finds_a_changed_byte(tiny):
    path = tiny.tree / "etc/services"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    done = tiny("verify")
    assert done.returncode == 1
    assert done.stdout == "verify: /etc/services: content changed\n"
    assert done.stderr.count("\n") == 1 and "1 difference" in done.stderr


@pytest.mark.nightly
def test_verify_finds_a_changed_mode(tiny):
    (tiny.tree / "etc/services").chmod(0o755)
    assert tiny("verify", "tiny").stdout == "verify: /etc/services: mode is 0755, was 0644\n"


@pytest.mark.nightly
def test_verify_finds_an_extra_file_and_a_missing_one(tiny):
    (tiny.tree / "etc/services").rename(tiny.tree / "etc/extra")
    assert tiny("verify", "tiny").stdout == "verify: /etc/extra: is extra\nverify: /etc/services: is missing\n"


@pytest.mark.nightly
def test_verify_finds_a_manifest_that_was_changed_along(tiny):
    (tiny.tree / "etc/passwd").write_text("root::0:0::/:/bin/sh\n")
    manifest = tiny.tree.parent / "manifest.json"
    text = json.loads(manifest.read_text())
    text["files"] = [row for row in text["files"] if row["path"] != "/etc/passwd"]
    manifest.write_text(json.dumps(text))
    done = tiny("verify", "tiny")
    assert done.returncode == 1 and "manifest.json: was changed as well" in done.stdout


@pytest.mark.nightly
def test_verify_shows_twenty_lines_of_many(tiny):
    for i in range(50):
        (tiny.tree / f"etc/{i}").touch()
    lines = tiny("verify", "tiny").stdout.splitlines()
    assert len(lines) == 21 and lines[-1] == "verify: and 30 more"


@pytest.mark.nightly
def test_building_again_with_force_repairs_a_damaged_tree(tiny, recipe):
    (tiny.tree / "etc/services").unlink()
    assert tiny("verify").returncode == 1
    tiny.must("build", "--force", recipe())
    tiny.must("verify")


@pytest.mark.nightly
def test_building_again_replaces_a_tree_that_belongs_to_somebody_else(tiny, recipe, needs_root):
    """Root in the clone of a user who built before: root's runs refuse the user's tree."""
    os.chown(tiny.tree, 1000, 1000)
    done = tiny.must("build", recipe())
    assert "already built" not in done.stderr and tiny.tree.stat().st_uid == 0
    tiny.must("verify")


@pytest.mark.nightly
def test_verify_of_an_unknown_name_says_what_builds_it(tiny):
    assert tiny("verify", "web").stderr == f'brig-rootfs: rootfs "web" is not in the store {tiny.store}; build it: brig rootfs build web\n'


# --- list ---

def test_list_of_no_store_is_empty(rootfs):
    assert rootfs.must("list", "--json").stdout == "[]\n"
    done = rootfs.must("list")
    assert done.stdout == "" and str(rootfs.store) in done.stderr and "build basic" in done.stderr


@pytest.mark.nightly
def test_list_as_json_has_name_digest_path_and_size(tiny):
    row = tiny.row
    assert set(row) == {"name", "digest", "path", "size"}
    assert pathlib.Path(row["path"]) == tiny.store / "trees" / row["digest"] / "tree" and (tiny.tree / "etc").is_dir()
    assert os.readlink(tiny.store / "names/tiny") == f"../trees/{row['digest']}"


# --- gc ---

@pytest.mark.nightly
def test_gc_keeps_a_tree_that_has_a_name(tiny):
    assert tiny.must("gc").stdout == ""
    assert tiny.tree.exists()


def test_gc_keeps_a_tree_in_use_and_removes_it_afterwards(tiny):
    (tiny.store / "names/tiny").unlink()
    with open(tiny.tree.parent / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert tiny.must("gc").stdout == f"kept {tiny.row['digest']}: in use\n"
        assert tiny.tree.exists()
    assert tiny.must("gc").stdout == f"removed {tiny.row['digest']}\n"
    assert tiny.leftovers() == []


@pytest.mark.nightly
def test_gc_dry_run_only_tells(tiny):
    (tiny.store / "names/tiny").unlink()
    assert tiny.must("gc", "--dry-run").stdout == f"would remove {tiny.row['digest']}\n"
    assert tiny.tree.exists()


@pytest.mark.nightly
def test_gc_takes_the_old_tree_when_a_name_moves_on(tiny, recipe):
    tiny.must("build", recipe(dirs=["/another"]))
    assert tiny.rows()["tiny"]["digest"] != tiny.row["digest"]
    assert tiny.must("gc").stdout == f"removed {tiny.row['digest']}\n"
    tiny.must("verify")


@pytest.mark.nightly
def test_gc_and_verify_never_see_a_build_half_way(tiny, recipe):
    """Two recipes take turns at one name while others collect and look."""
    other = recipe(dirs=["/another"]).rename(recipe().parent / "x.json")
    (other.parent / "2").mkdir()
    paths = [recipe(), other.rename(other.parent / "2" / "tiny.json")]
    for path in paths * 2:
        build = tiny.start("build", "--force", path)
        while build.poll() is None:
            assert "unfinished" not in tiny.must("gc").stdout
            tiny.must("verify", "tiny")
        assert build.returncode == 0, build.stderr.read()


# --- builds that do not finish ---

@pytest.mark.nightly
@pytest.mark.parametrize("number, name", [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")])
def test_an_interrupted_build_leaves_nothing(rootfs, recipe, number, name):
    build = rootfs.start("build", recipe())
    wait_for(lambda: [p for p in workspaces(rootfs) if (p / "unpack" / "tree").exists()], build)
    build.send_signal(number)
    _, err = build.communicate(timeout=host.HANG)
    assert build.returncode == 1
    assert err.splitlines()[-1] == f"brig-rootfs: tiny: unpack: interrupted by {name}; nothing of it was kept"
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_killed_build_takes_its_programs_along_and_the_next_one_cleans_up(rootfs, recipe):
    build = rootfs.start("build", recipe())
    wait_for(lambda: [p for p in workspaces(rootfs) if (p / "unpack" / "tree").exists()], build)
    [left] = workspaces(rootfs)
    build.kill()
    build.communicate(timeout=host.HANG)
    assert left.exists()
    assert host.poll(lambda: is_let_go(left)), "the programs of a killed build live on"
    rootfs.must("build", recipe())
    assert not left.exists() and workspaces(rootfs) == []
    assert sorted(rootfs.rows()) == ["tiny"]


@pytest.mark.nightly
def test_a_build_does_not_sweep_away_one_that_is_running(rootfs, recipe):
    builds = [rootfs.start("build", recipe(name), dirs) for name, dirs in (("one", "--force"), ("two", "--force"))]
    assert [b.wait(timeout=host.HANG) for b in builds] == [0, 0], [b.stderr.read() for b in builds]
    assert sorted(rootfs.rows()) == ["one", "two"]


@pytest.mark.nightly
def test_two_builds_of_one_name_at_a_time_both_succeed(rootfs, recipe):
    path = recipe()
    builds = [rootfs.start("build", path) for _ in range(2)]
    assert [b.wait(timeout=host.HANG) for b in builds] == [0, 0], [b.stderr.read() for b in builds]
    rootfs.must("verify", "tiny")
    assert workspaces(rootfs) == []


@pytest.mark.nightly
def test_packages_that_the_suite_does_not_have_are_named_in_one_line_without_a_log(rootfs, recipe):
    done = rootfs("build", recipe(packages=["netbase", "no-such-package-at-all", "python2.7", "awk"]))
    error = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "its log" not in done.stderr and error == (
        f"brig-rootfs: tiny: unpack: packages: Debian {host.debian()} has no no-such-package-at-all, python2.7, awk; "
        "name what it has in its place, or take it out (a row of omit, if another recipe names it)")
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_failed_build_leaves_nothing_and_shows_why_without_the_mirrors_name(rootfs, recipe):
    done = rootfs("build", recipe(omit=["libc6"], packages=["libc-bin"]))
    assert done.returncode == 1 and "its log" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("brig-rootfs: tiny: unpack: mmdebstrap: exit status ")
    assert "://" not in done.stderr.replace(":///", "")
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_mirror_that_cannot_be_reached_is_not_named(rootfs, recipe, tmp_path):
    sources = tmp_path / "my.list"
    sources.write_text(f"deb http://packages.invalid/debian {host.debian()} main\n")
    done = rootfs("build", "--sources", sources, recipe())
    assert done.returncode == 1 and "packages.invalid" not in done.stderr and "(mirror)" in done.stderr
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_sources_without_debian_are_refused_with_the_way_out(rootfs, recipe, tmp_path):
    sources = tmp_path / "vendor.list"
    sources.write_text(f"deb [signed-by=/usr/share/keyrings/vendor.gpg] http://vendor.invalid/apt {host.debian()} main\n")
    done = rootfs("build", "--sources", sources, recipe())
    assert done.stderr == f"brig-rootfs: tiny: {sources} has no source of Debian {host.debian()} (main, signed by Debian); name a file that has one: --sources FILE\n"


@pytest.mark.nightly
def test_a_tree_above_its_size_is_not_published(rootfs, recipe):
    done = rootfs("build", recipe(size_max="1K"))
    error = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and re.fullmatch(
        r'brig-rootfs: tiny: manifest: the tree has \d+ bytes, size_max of the recipe is 1K; raise it: "size_max": "1M"', error), error
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_what_extends_a_recipe_has_room_for_what_it_adds_unless_it_says_otherwise(installed):
    base = {"suite": host.debian(), "packages": ["netbase"], "size_max": "1M"}
    mine = installed(base=base, more={"extends": "base", "packages": ["media-types", "base-files", "ncurses-base", "tzdata"]},
                     less={"extends": "more", "size_max": "1M"})
    mine.must("build", "more")
    assert mine.rows()["more"]["size"] > 1 << 20
    done = mine("build", "less")
    assert done.returncode == 1 and "size_max of the recipe is 1M; raise it: " in done.stderr.splitlines()[-1]


@pytest.mark.nightly
def test_a_build_makes_what_a_cell_needs_in_a_tree_whose_recipe_does_not_name_it(tiny):
    for path in "dev/pts dev/shm proc tmp workspace".split():
        assert (tiny.tree / path).is_dir() and not list((tiny.tree / path).iterdir())
    for path in "null zero full random urandom".split():
        assert (tiny.tree / "dev" / path).is_file() and (tiny.tree / "dev" / path).stat().st_size == 0


@pytest.mark.nightly
def test_a_recipe_that_takes_away_what_a_cell_needs_is_told(rootfs, recipe):
    done = rootfs("build", recipe(prune_last=["/workspace"]))
    assert done.returncode == 1 and "lint: /workspace: missing, and a cell needs a directory there" in done.stderr
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_full_disk_fails_and_leaves_nothing(rootfs, recipe, needs_root):
    rootfs.store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", rootfs.store], check=True)
    try:
        done = rootfs("build", recipe(packages=["python3"]))
        assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("brig-rootfs: tiny: unpack")
        assert rootfs.leftovers() == []
    finally:
        subprocess.run(["umount", rootfs.store], check=True)


@pytest.mark.nightly
def test_a_store_below_a_0700_directory_with_umask_077_works(rootfs, recipe):
    rootfs.store.parent.chmod(0o700)
    rootfs.must("build", recipe(), preexec_fn=lambda: os.umask(0o077))
    tree = pathlib.Path(rootfs.rows()["tiny"]["path"])
    for path in (rootfs.store, rootfs.store / "names", tree.parent, tree, tree / "etc"):
        assert path.stat().st_mode & 0o7777 == 0o755, path


@pytest.mark.nightly
def test_what_is_locked_cannot_be_opened_by_others_also_in_a_store_of_an_older_version(rootfs, recipe):
    """A lock that everybody may open, everybody may hold: then nothing is built, or run, any more."""
    for part in ("trees", "tmp"):
        (rootfs.store / part).mkdir(parents=True)
        (rootfs.store / part).chmod(0o755)
    rootfs.must("build", recipe())
    tree = pathlib.Path(rootfs.rows()["tiny"]["path"])
    for path, mode in ((rootfs.store / "trees", 0o711), (rootfs.store / "tmp", 0o700), (tree.parent / "lock", 0o600)):
        assert path.stat().st_mode & 0o7777 == mode, path


# --- hostile recipes and trees ---

ROWS = [
    # what is wrong, the change, the error
    ("an unknown key", {"package": []}, "package: no such setting"),
    ("a number for a list", {"packages": 1}, 'packages: expected a list of at most 1024 texts, as ["a", "b"], not 1'),
    ("a size out of range", {"size_max": 0}, "size_max: 0 is outside 1..64G"),
    ("an option as package", {"packages": ["--hook"]}, 'packages: "--hook": no name of a Debian package'),
    ("two packages in one row", {"packages": ["a1,b1"]}, 'packages: "a1,b1": no name of a Debian package'),
    ("a directory with ..", {"dirs": ["/a/../../etc"]}, 'dirs: "/a/../../etc": not a plain absolute path'),
    ("a relative directory", {"dirs": ["etc"]}, 'dirs: "etc": not a plain absolute path'),
    ("a pattern with ..", {"prune": ["/../*"]}, 'prune: "/../*": not a plain absolute path'),
    ("pruning the root", {"prune": ["/"]}, 'prune: "/": not a plain absolute path'),
    ("a link without a target", {"links": ["/a"]}, 'links: "/a": expected PATH -> TARGET'),
    ("a link at ..", {"links": ["/.. -> /etc"]}, 'links: "/.. -> /etc": expected PATH -> TARGET with a plain absolute PATH'),
    ("an unknown generator", {"generate": ["/etc/x = magic"]}, 'generate: "/etc/x = magic": expected PATH = GENERATOR; brig-rootfs(1) lists them'),
    ("a control character", {"dirs": ["/a\nb"]}, "dirs: a row with a character that cannot be shown"),
    ("a change of direction", {"links": ["/a -> b\u202ec"]}, "links: a row with a character that cannot be shown"),
    ("an escape sequence of eight bits", {"compile": ["/a\u009b2J"]}, "compile: a row with a character that cannot be shown"),
    ("a newline in a package", {"packages": ["netbase\nbase-files"]}, "packages: a row with a character that cannot be shown"),
    ("a way up to compile", {"compile": ["/usr/../.."]}, 'compile: "/usr/../..": not a plain absolute path'),
    ("a way up to prune last", {"prune_last": ["/usr/lib/../../*"]}, 'prune_last: "/usr/lib/../../*": not a plain absolute path'),
    ("a second half with nothing in it", {"dirs": ["/a = b -> "]}, 'dirs: "/a = b -> ": not a plain absolute path'),
    ("a generated file above the tree", {"generate": ["/../x = empty"]}, 'generate: "/../x = empty": expected PATH = GENERATOR with a plain absolute PATH'),
    ("a way out as base", {"extends": "../basic"}, 'extends: "../basic" is no name; use a-z, 0-9, \'-\', \'_\', \'.\''),
    ("a file as base", {"extends": "basic.json"}, 'extends "basic.json": expected a name, not a file'),
    ("an omitted package that is wanted", {"omit": ["netbase"]}, 'omit: "netbase": is in packages as well'),
    ("a row kept that nobody prunes", {"keep": ["/var"]}, 'keep: "/var": it extends no recipe'),
    ("requirements from nowhere", {"requirements": "r.txt"}, 'requirements: nothing says where its wheels are; add "wheels": "DIRECTORY" or "index": "https://..."'),
    ("requirements from two places", {"requirements": "r.txt", "wheels": "w", "index": "https://a/"}, "index: there is a directory of wheels as well; one of them"),
    ("wheels for nothing", {"wheels": "w"}, "wheels: there is no requirements that says what to take from it"),
    ("an index for nothing", {"index": "https://a/"}, "index: there is no requirements that says what to take from it"),
    ("an index without encryption", {"requirements": "r.txt", "index": "http://example.org/simple"}, "index: expected https://HOST/PATH/, or http:// for 127.0.0.1 and localhost"),
    ("an index of files", {"requirements": "r.txt", "index": "file:///srv"}, "index: expected https://HOST/PATH/, or http:// for 127.0.0.1 and localhost"),
    ("an index with an option behind it", {"requirements": "r.txt", "index": "https://a/ --pre"}, "index: expected https://HOST/PATH/, or http:// for 127.0.0.1 and localhost"),
    ("no package", {"packages": []}, "packages: missing; a rootfs without a package is empty"),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("change, error", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_bad_recipe_gives_one_line(rootfs, recipe, change, error):
    path = recipe(**change)
    done = rootfs("build", path)
    assert (done.returncode, done.stderr) == (1, f"brig-rootfs: {path}: {error}\n")


def test_a_recipe_that_is_not_there_is_named(rootfs):
    done = rootfs("build", "nothing")
    assert done.returncode == 1 and done.stderr.startswith("brig-rootfs: no recipe ") and done.stderr.endswith("; there are: basic-debian12, basic, data-science-debian12, data-science-wheels, data-science, network-debian12, network\n")


@pytest.mark.nightly
def test_a_recipe_gets_the_packages_and_rows_of_what_it_extends_and_a_changed_base_is_another_recipe(installed):
    mine = installed(more={"extends": "tiny", "packages": ["media-types"], "dirs": ["/more"]}, most={"extends": "more", "dirs": ["/most"]})
    mine.must("build", "most")
    tree = pathlib.Path(mine.rows()["most"]["path"])
    assert all((tree / path).exists() for path in ("etc/services", "etc/mime.types", "etc/passwd", "workspace", "more", "most"))
    assert mine.must("build", "most").stderr == "most is already built from this recipe; --force builds it again\n"
    (mine.binary.parent.parent / "recipes/tiny.json").write_text(json.dumps({**mine.tiny, "dirs": ["/workspace", "/base"]}))
    mine.must("build", "most")
    assert (pathlib.Path(mine.rows()["most"]["path"]) / "base").is_dir()


def test_a_base_that_is_not_there_is_named_with_those_that_are(installed):
    mine = installed(more={"extends": "nothing"})
    done = mine("build", "more")
    recipes = mine.binary.parent.parent / "recipes"
    assert (done.returncode, done.stderr) == (1, f'brig-rootfs: {recipes}/more.json: extends "nothing": no recipe {recipes}/nothing.json; '
                                                 "there are: more, tiny\n")
    assert mine.leftovers() == []


def test_a_recipe_that_extends_itself_over_another_is_told(installed):
    mine = installed(one={"extends": "other"}, other={"extends": "one"})
    done = mine("build", "one")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "does one extend itself?" in done.stderr
    assert mine.leftovers() == []


def test_a_base_lies_in_brigs_folder_and_not_beside_the_recipe(rootfs, recipe, tmp_path):
    """Whoever may write beside somebody's recipe must not get to say what root builds."""
    recipe("base")
    done = rootfs("build", recipe(extends="base"))
    assert done.returncode == 1 and 'extends "base": no recipe ' in done.stderr and str(tmp_path / "base") not in done.stderr


@pytest.mark.nightly
def test_what_another_recipe_names_can_be_omitted_from_it(installed):
    mine = installed(more={"extends": "tiny", "packages": ["media-types"], "omit": ["netbase"]})
    mine.must("build", "more")
    packages = json.loads((mine.store / "names/more/manifest.json").read_text())["packages"]
    assert [row["name"] for row in packages] == ["media-types"]


@pytest.mark.nightly
def test_a_directory_to_compile_that_is_not_there_is_named(rootfs, recipe):
    done = rootfs("build", recipe(compile=["/usr/lib/python9.*"]))
    assert done.returncode == 1 and done.stderr.endswith('brig-rootfs: tiny: compile: "/usr/lib/python9.*": no such directory in the tree\n')
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_an_omitted_package_stays_away_with_all_that_it_needs(rootfs, recipe):
    rootfs.must("build", recipe(packages=["ca-certificates"], omit=["openssl", "debconf"]))
    tree = pathlib.Path(rootfs.rows()["tiny"]["path"])
    manifest = json.loads((tree.parent / "manifest.json").read_text())
    assert [row["name"] for row in manifest["packages"]] == ["ca-certificates"]


def test_a_file_that_is_not_there_is_no_name_of_a_recipe(rootfs):
    assert rootfs("build", "./nothing.json").stderr == "brig-rootfs: no recipe ./nothing.json\n"


def test_an_empty_store_is_not_the_current_directory(rootfs):
    done = rootfs("list", "--store", "")
    assert done.returncode == 1 and done.stderr.startswith('brig-rootfs: --store "": ')


@pytest.mark.nightly
def test_a_recipe_cannot_write_through_a_link_out_of_the_tree(rootfs, recipe, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    done = rootfs("build", recipe(links=[f"/way -> {outside}", "/up -> ../../../../../../.." + str(outside)],
                                  dirs=["/workspace"], generate=["/way/passwd = passwd"]))
    assert done.returncode == 1 and list(outside.iterdir()) == []
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_link_out_of_the_tree_fails_the_build(rootfs, recipe):
    done = rootfs("build", recipe(links=["/out -> ../../etc/passwd"]))
    assert done.returncode == 1 and "lint: /out: leads out of the tree: -> ../../etc/passwd [link]" in done.stderr
    assert rootfs.leftovers() == []


@pytest.mark.nightly
def test_a_generated_file_replaces_a_link_and_does_not_follow_it(rootfs, recipe):
    rootfs.must("build", recipe(links=["/etc/passwd -> services"]))
    tree = pathlib.Path(rootfs.rows()["tiny"]["path"])
    assert not (tree / "etc/passwd").is_symlink() and (tree / "etc/services").stat().st_size > 1000


# --- the command line ---

def test_every_command_has_a_help(rootfs):
    for command in "build verify list gc lint".split():
        assert rootfs.must(command, "--help").stdout.startswith(f"usage: brig-rootfs {command}")


@pytest.mark.parametrize("args", [[], ["bake"], ["build"], ["build", "a", "b"], ["list", "--color"], ["gc", "--store"]])
def test_wrong_usage_is_status_2(rootfs, args):
    assert rootfs(*args).returncode == 2


@pytest.mark.nightly
def test_the_option_store_wins_over_the_environment(rootfs, tiny):
    assert [row["name"] for row in json.loads(rootfs.must("list", "--json", "--store", tiny.store).stdout)] == ["tiny"]
