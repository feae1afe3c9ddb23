"""brig rootfs import: what others made, as a tree, an archive or an image, and what is hostile."""
import bz2
import io
import json
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile

import pytest

from builder import Rootfs
from images import ARCH, BASE, DIRS, Layout, config_of, docker, layout, sha, tar_of, zipped
from packages import FOLDER, HARD, LINK, archive, hole, member
from support import host, terminal
from support import daemon as daemons

NAME = "mine"


def tree_of(rootfs):
    return pathlib.Path(rootfs.rows()[NAME]["path"])


def files(rootfs, below="etc"):
    """{path: content} of what a tree has there, without what import puts into every tree."""
    top = tree_of(rootfs) / below
    made = {"brig", "group", "hostname", "hosts", "nsswitch.conf", "passwd", "resolv.conf"}
    return {str(path.relative_to(top)): os.readlink(path) if path.is_symlink() else "/" if path.is_dir() else path.read_text()
            for path in top.rglob("*") if path.name not in made}


def plain(folder):
    """BASE as a directory."""
    with tarfile.open(fileobj=io.BytesIO(BASE)) as tar:
        tar.extractall(folder)
    return folder


def packed(path, data):
    path.write_bytes(data)
    return path


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


FORMS = {
    "a directory": lambda top: plain(top / "tree"),
    "a tar": lambda top: packed(top / "x", BASE),
    "gzip": lambda top: packed(top / "x", zipped(BASE)),
    "bzip2": lambda top: packed(top / "x", bz2.compress(BASE)),
    "xz": lambda top: packed(top / "x", lzma.compress(BASE)),
    "zstd": lambda top: packed(top / "x", zstd(BASE)),
    "an OCI layout": lambda top: layout(top / "x", [BASE]),
    "an OCI layout with a layer of gzip": lambda top: layout(top / "x", [BASE], packed=[zipped(BASE)]),
    "an OCI layout with a layer of zstd": lambda top: layout(top / "x", [BASE], packed=[zstd(BASE)]),
    "a tar of an OCI layout": lambda top: tar_of(layout(top / "x", [BASE]), top / "x.tar"),
    "docker save up to 24": lambda top: docker(top / "x.tar", [BASE]),
    "docker save up to 24, a layer by a link": lambda top: docker(top / "x.tar", [BASE, archive([member("etc/kept", b"kept")])]),
    "docker save from 25 on": lambda top: docker(top / "x.tar", [BASE], style="blobs"),
    "podman save": lambda top: docker(top / "x.tar", [BASE], style="flat"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
def test_whatever_the_form_the_tree_is_the_same(rootfs, tmp_path, form):
    if "zstd" in form and host.lacks("tool:zstd"):
        pytest.skip(host.lacks("tool:zstd"))
    rootfs.must("import", NAME, FORMS[form](tmp_path))
    assert files(rootfs) == {"old": "old", "kept": "kept"} and (tree_of(rootfs) / "usr/bin/tool").stat().st_mode & 0o7777 == 0o755
    rootfs.must("import", "control", packed(tmp_path / "control", BASE))
    assert rootfs.rows()["control"]["digest"] == rootfs.rows()[NAME]["digest"]
    rootfs.must("verify")
    assert rootfs("lint", tree_of(rootfs)).stdout == "" and os.listdir(rootfs.store / "tmp") == []


@pytest.mark.nightly
def test_an_imported_tree_is_listed_as_a_built_one_and_collected_when_its_name_is_gone(rootfs, tmp_path):
    rootfs.must("import", NAME, packed(tmp_path / "x", BASE))
    row = rootfs.rows()[NAME]
    manifest = json.loads((tree_of(rootfs).parent / "manifest.json").read_text())
    assert (manifest["name"], manifest["packages"], manifest["digest"]) == (NAME, [], row["digest"]) and row["size"] == manifest["bytes"]
    (rootfs.store / "names" / NAME).unlink()
    assert row["digest"][:12] in rootfs.must("gc").stdout and os.listdir(rootfs.store / "trees") == []


def test_what_a_cell_mounts_over_is_made_whatever_was_there(rootfs, tmp_path):
    odd = [member("dev", kind=LINK, to="/etc"), member("proc", b"a file"), member("workspace", kind=LINK, to="usr"), member("tmp/", kind=FOLDER), member("tmp/x", b"x")]
    rootfs.must("import", NAME, packed(tmp_path / "x", archive([*DIRS, *odd])))
    tree = tree_of(rootfs)
    for path in ("dev", "dev/pts", "dev/shm", "proc", "tmp", "workspace"):
        assert (tree / path).is_dir() and not (tree / path).is_symlink(), path
    for path in ("full", "null", "random", "urandom", "zero"):
        assert (tree / "dev" / path).is_file() and not (tree / "dev" / path).is_symlink() and (tree / "dev" / path).stat().st_size == 0
    assert os.readlink(tree / "dev/fd") == "/proc/self/fd" and (tree / "etc/hosts").read_text().startswith("127.0.0.1 localhost")


@pytest.mark.nightly
def test_directories_beside_usr_are_merged_into_it(rootfs, tmp_path):
    """A cell executes what lies below /usr: the loader and the shell of systems that keep them apart, too."""
    apart = [member("bin/", kind=FOLDER), member("bin/sh", b"sh", mode=0o755), member("usr/bin/sh", kind=LINK, to="/bin/sh"), member("bin/tool", kind=LINK, to="../usr/bin/tool"),
             member("lib/x/", kind=FOLDER), member("lib/x/real", b"r"), member("lib/x/near", kind=LINK, to="real"), member("lib/x/far", kind=LINK, to="../../etc/far"),
             member("etc/far", b"far"), member("usr/bin/tool", b"tool", mode=0o755), member("sbin", kind=LINK, to="bin")]
    rootfs.must("import", NAME, packed(tmp_path / "x", archive([*DIRS, *apart])))
    tree = tree_of(rootfs)
    assert (os.readlink(tree / "bin"), os.readlink(tree / "lib"), os.readlink(tree / "sbin")) == ("usr/bin", "usr/lib", "bin")
    assert (tree / "usr/bin/sh").read_text() == "sh" and not (tree / "usr/bin/sh").is_symlink() and (tree / "bin/tool").read_text() == "tool"
    assert (tree / "usr/lib/x/near").read_text() == "r" and os.readlink(tree / "usr/lib/x/far") == "/etc/far"


@pytest.mark.nightly
def test_a_tree_that_is_merged_the_other_way_round_is_turned(rootfs, tmp_path):
    parts = [member("usr/", kind=FOLDER), member("usr/bin", kind=LINK, to="../bin"), member("bin/", kind=FOLDER), member("bin/tool", b"tool", mode=0o755)]
    rootfs.must("import", NAME, packed(tmp_path / "x", archive(parts)))
    tree = tree_of(rootfs)
    assert os.readlink(tree / "bin") == "usr/bin" and not (tree / "usr/bin").is_symlink() and (tree / "usr/bin/tool").read_text() == "tool"


@pytest.mark.nightly
def test_links_to_nothing_go_and_a_program_without_its_library_stays(rootfs, tmp_path):
    parts = [member("etc/gone", kind=LINK, to="/nowhere"), member("etc/mtab", kind=LINK, to="/proc/mounts"), member("usr/bin/true", pathlib.Path("/bin/true").read_bytes(), mode=0o755)]
    done = rootfs.must("import", NAME, packed(tmp_path / "x", archive([*DIRS, *parts])))
    assert files(rootfs) == {"mtab": "/proc/mounts"} and "1 program or libraries lack a library" in done.stderr
    assert "its loader is not in the tree" in rootfs("lint", tree_of(rootfs)).stdout


def test_what_no_tree_may_have_is_left_out_and_told(rootfs, tmp_path):
    parts = [member("usr/bin/su", b"x", mode=0o4755), member("usr/bin/wall", b"x", mode=0o2755), member("etc/null", kind=tarfile.CHRTYPE, dev=(1, 3), mode=0o666),
             member("etc/disk", kind=tarfile.BLKTYPE, dev=(8, 0)), member("etc/pipe", kind=tarfile.FIFOTYPE), member("etc/first", b"same"), member("etc/second", kind=HARD, to="etc/first")]
    done = rootfs.must("import", NAME, packed(tmp_path / "x", archive([*DIRS, *parts])))
    tree = tree_of(rootfs)
    assert "left out: 3 device nodes, pipes or sockets\n" in done.stderr and "set-group-ID bits of 2 files\n" in done.stderr
    assert (tree / "usr/bin/su").stat().st_mode & 0o7777 == (tree / "usr/bin/wall").stat().st_mode & 0o7777 == 0o755
    assert files(rootfs) == {"first": "same", "second": "same"} and (tree / "etc/second").stat().st_nlink == 1


# --- layers ---

def whiteout(name):
    folder, _, last = name.rpartition("/")
    return member(f"{folder}/.wh.{last}" if folder else f".wh.{last}")


LAYERS = {
    # the layers above BASE; what /etc then has
    "a file is replaced": ([[member("etc/old", b"new")]], {"old": "new", "kept": "kept"}),
    "a file goes": ([[whiteout("etc/old")]], {"kept": "kept"}),
    "a directory goes with all in it": ([[member("etc/d/", kind=FOLDER), member("etc/d/x", b"x")], [whiteout("etc/d")]], {"old": "old", "kept": "kept"}),
    "what goes may come again in the same layer": ([[member("etc/old", b"again"), whiteout("etc/old")]], {"old": "again", "kept": "kept"}),
    "an opaque directory has what its layer brings": ([[member("etc/new", b"new"), member("etc/.wh..wh..opq")]], {"new": "new"}),
    "what is not there may go": ([[whiteout("etc/none"), whiteout("no/such/place")]], {"old": "old", "kept": "kept"}),
    "a directory becomes a file": ([[member("etc/d/", kind=FOLDER), member("etc/d/x", b"x")], [member("etc/d", b"file")]], {"old": "old", "kept": "kept", "d": "file"}),
    "a file becomes a directory": ([[member("etc/old/", kind=FOLDER), member("etc/old/x", b"x")]], {"old": "/", "old/x": "x", "kept": "kept"}),
    "a link becomes a directory": ([[member("etc/l", kind=LINK, to="kept")], [member("etc/l/", kind=FOLDER), member("etc/l/x", b"x")]], {"old": "old", "kept": "kept", "l": "/", "l/x": "x"}),
    "a file is written in the place of a link, not through it": ([[member("etc/l", kind=LINK, to="kept")], [member("etc/l", b"mine")]], {"old": "old", "kept": "kept", "l": "mine"}),
    "a whiteout takes a link and not what it leads to": ([[member("etc/l", kind=LINK, to="kept")], [whiteout("etc/l")]], {"old": "old", "kept": "kept"}),
    "a second name of a lower layer's file": ([[member("etc/second", kind=HARD, to="etc/kept")]], {"old": "old", "kept": "kept", "second": "kept"}),
    "notes of the file system that made it": ([[member("etc/.wh..wh.plnk"), member("etc/.wh..wh.orph")]], {"old": "old", "kept": "kept"}),
    "a layer with nothing in it": ([[]], {"old": "old", "kept": "kept"}),
    "the last of two entries of a name": ([[member("etc/old", b"first"), member("etc/old", b"last")]], {"old": "last", "kept": "kept"}),
    "a file below a link that stays in the tree": ([[member("etc/l", kind=LINK, to="/etc/d"), member("etc/d/", kind=FOLDER)], [member("etc/l/x", b"x")]],
                                                   {"old": "old", "kept": "kept", "l": "/etc/d", "d": "/", "d/x": "x"}),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", LAYERS)
def test_layers(rootfs, tmp_path, what):
    above, expected = LAYERS[what]
    rootfs.must("import", NAME, layout(tmp_path / "x", [BASE, *map(archive, above)]))
    assert files(rootfs) == expected


@pytest.mark.nightly
def test_in_a_plain_archive_nothing_is_a_whiteout(rootfs, tmp_path):
    rootfs.must("import", NAME, packed(tmp_path / "x", archive([*DIRS, member("etc/old", b"old"), whiteout("etc/old")])))
    assert files(rootfs) == {"old": "old", ".wh.old": ""}


# --- which image ---

def several(top, *platforms, nested=False):
    """One image for each, whose /etc/old names it; docker buildx adds entries for "unknown/unknown"."""
    made = Layout(top / "x")
    rows = []
    for each in platforms:
        os_name, _, arch = each.partition("/")
        layer = archive([*DIRS, member("etc/old", each.encode())])
        rows.append(made.image([layer], config=config_of([layer], arch=arch), platform={"os": os_name, "architecture": arch}))
    return made.finish(made.index(*rows)) if nested else made.finish(*rows)


@pytest.mark.nightly
@pytest.mark.parametrize("nested", [False, True], ids=["in index.json", "in an index of its own"])
def test_of_several_platforms_this_machines_is_taken(rootfs, tmp_path, nested):
    done = rootfs.must("import", NAME, several(tmp_path, "linux/s390x", f"linux/{ARCH}", "unknown/unknown", nested=nested))
    assert files(rootfs) == {"old": f"linux/{ARCH}"} and f"taking linux/{ARCH}; there are also: linux/s390x, unknown/unknown\n" in done.stderr


def changed(manifest, **changes):
    return lambda it: it.update(changes)


def spoil(part, key, value):
    """Of the manifest: config, or a layer."""
    def change(manifest):
        (manifest["config"] if part == "config" else manifest["layers"][0])[key] = value
    return change


def with_changed_blob(part, change):
    """A layout after change(path) of one blob: the manifest, its config, or its first layer."""
    def make(top):
        made = Layout(top / "x")
        found = {}
        row = made.image([BASE], change=lambda manifest: found.update(manifest))
        change(made.path(row if part == "manifest" else found[part] if part == "config" else found["layers"][0]))
        return made.finish(row)
    return make


def without(part):
    return with_changed_blob(part, pathlib.Path.unlink)


def with_other_bytes(part):
    """As many bytes as before, with another digest than the blob's name."""
    return with_changed_blob(part, lambda path: path.write_bytes(path.read_bytes()[:-1] + b" "))


def finished(top, text):
    made = Layout(top / "x")
    (made.folder / "index.json").write_text(text)
    return made.folder


def ring(top):
    """An index for each level below the one before."""
    made = Layout(top / "x")
    row = made.image([BASE])
    for _ in range(6):
        row = made.index(row)
    return made.finish(row)


def of(*members, above=BASE):
    """An image with one more layer."""
    return lambda top: layout(top / "x", [above, archive(members)])


def alone(*members):
    """A tar that is the tree."""
    return lambda top: packed(top / "x", archive([*DIRS, *members]))


def deep(levels):
    return [member("usr/" + "d/" * n, kind=FOLDER) for n in range(1, levels + 1)]


def linked(top):
    """A blob that is a link out of the layout."""
    (top / "outside.json").write_text(json.dumps(config_of([BASE])))
    made = Layout(top / "x")
    data = (top / "outside.json").read_bytes()
    row = made.image([BASE], config=json.loads(data))
    path = made.folder / "blobs/sha256" / sha(data)
    path.unlink()
    path.symlink_to("../../../outside.json")
    return made.finish(row)


OUT = "/../" * 12
REFUSED = {
    # what is given; a word of the error
    "nothing": (lambda top: top / "none", "No such file or directory"),
    "a pipe": (lambda top: os.mkfifo(top / "pipe") or top / "pipe", "neither a directory nor a regular file"),
    "no archive": (lambda top: packed(top / "x", b"\xff" * 4096), "no sound tar archive"),
    "an empty file": (lambda top: packed(top / "x", b""), "no sound tar archive"),
    "an empty directory": (lambda top: (top / "x").mkdir() or top / "x", "no tree of a system: it has neither /usr nor /bin"),
    "a tree below a directory": (lambda top: packed(top / "x", archive([member("root/", kind=FOLDER), member("root/usr/", kind=FOLDER)])), "it begins with /root"),
    "usr is a link": (lambda top: packed(top / "x", archive([member("usr", kind=LINK, to="."), member("bin/", kind=FOLDER)])), "/usr is a link"),
    "an archive that ends early": (lambda top: packed(top / "x", archive([*DIRS, member("etc/x", b"x" * 5000)], ends=False)[:-4096]), "no sound tar archive|Truncated"),
    "a compressed archive that ends early": (lambda top: packed(top / "x", zipped(BASE)[:-20]), "truncated"),
    "a name with ..": (alone(member("usr/../../etc/x", b"x")), "climbs out of the tree"),
    "a name that is ..": (alone(member("..", kind=FOLDER)), "climbs out of the tree"),
    "a hard link with ..": (alone(member("etc/h", kind=HARD, to="../../../etc/passwd")), "climbs out of the tree"),
    "a hard link to nothing": (alone(member("etc/h", kind=HARD, to="etc/none")), "which is no file of the tree"),
    "a hard link to a directory": (alone(member("etc/h", kind=HARD, to="usr")), "which is no file of the tree"),
    "a hard link to the root": (alone(member("etc/h", kind=HARD, to="/")), "which is no file of the tree"),
    "a link that climbs out": (alone(member("etc/old", b"x"), member("etc/up", kind=LINK, to="../../../../etc/old")), "[link]"),
    "a link to itself": (alone(member("etc/me", kind=LINK, to="me")), "[link]"),
    "a file below a file": (alone(member("etc/f", b"x"), member("etc/f/x", b"x")), "Not a directory"),
    "a file in place of the root": (alone(member("./.", b"x")), "the root of the tree is no directory"),
    "a name that a terminal obeys": (alone(member("etc/\x1b]0;x\x07", b"x")), "its name is not printable UTF-8"),
    "a name that is no UTF-8": (alone(member("etc/\udcff\udcfe", b"x")), "its name is not printable UTF-8"),
    "a target that a terminal obeys": (alone(member("etc/l", kind=LINK, to="\u202ex")), "its target is not printable UTF-8"),
    "directories that are too deep": (alone(*deep(70)), "more than 64 directories deep"),
    "a file of a terabyte": (alone(hole("etc/large", 1 << 40)), "--size-max allows more"),
    "second names of a large file": (alone(member("etc/f", bytes(1 << 20)), *[member(f"etc/{n}", kind=HARD, to="etc/f") for n in range(3000)]), "--size-max allows more"),
    "whiteouts that climb": (of(whiteout("etc/..")), "a whiteout of no name"),
    "whiteouts of nothing": (of(member("etc/.wh.")), "a whiteout of no name"),
    "a whiteout behind a link": (of(member("etc/.wh..wh..opq"), member("way/.wh.old"), above=archive([*DIRS, member("way", kind=LINK, to="etc")])), "a whiteout behind a link"),
    "an opaque link": (of(member("way/.wh..wh..opq"), above=archive([*DIRS, member("way", kind=LINK, to="etc")])), "a whiteout behind a link"),
    "a layer that is no archive": (lambda top: layout(top / "x", [BASE, b"\xff" * 2048]), "layer 2 of 2: no sound tar archive"),
    "no layer": (lambda top: layout(top / "x", []), "no list of 1 to 512"),
    "an image of another platform": (lambda top: layout(top / "x", [BASE], config=config_of([BASE], arch="s390x")), f"it is an image for linux/s390x, this machine is linux/{ARCH}"),
    "an index without this platform": (lambda top: several(top, "linux/s390x", "linux/riscv64"), f"it has no image for linux/{ARCH}; it has: linux/s390x, linux/riscv64"),
    "two images": (lambda top: (lambda made: made.finish(made.image([BASE], annotations={"org.opencontainers.image.ref.name": "a"}),
                                                         made.image([BASE, BASE], annotations={"org.opencontainers.image.ref.name": "b"})))(Layout(top / "x")), "it has several images; save one alone: a, b"),
    "indexes below indexes": (ring, "more than 4 indexes below each other"),
    "an index that is no JSON": (lambda top: finished(top, "{"), "index.json"),
    "an index without a list": (lambda top: finished(top, "{}"), '"manifests" is no list'),
    "an index with a million values": (lambda top: finished(top, '{"manifests":[' + "{}," * 10**6 + "{}]}"), "it has too many values"),
    "an index of many megabytes": (lambda top: finished(top, '{"manifests":["' + "x" * (5 << 20) + '"]}'), "index.json"),
    "an index with nothing": (lambda top: finished(top, '{"manifests":[]}'), "it has: none"),
    "another version of the layout": (lambda top: (lambda made: (made / "oci-layout").write_text('{"imageLayoutVersion":"2.0.0"}') and made)(layout(top / "x", [BASE])), "expected version 1"),
    "a digest that is a path": (lambda top: finished(top, '{"manifests":[{"digest":"sha256:../../../../etc/passwd","size":1}]}'), 'not "sha256:" and 64 hex digits'),
    "a digest of another kind": (lambda top: layout(top / "x", [BASE], change=spoil("layer", "digest", "sha512:" + "0" * 128)), 'a layer: its digest is not "sha256:"'),
    "a size that is none": (lambda top: layout(top / "x", [BASE], change=spoil("layer", "size", -1)), "a layer: its size is no number"),
    "a size that is not the layer's": (lambda top: layout(top / "x", [BASE], change=spoil("layer", "size", 1)), "its descriptor says 1"),
    "a size that is not the configuration's": (lambda top: layout(top / "x", [BASE], change=spoil("config", "size", 1)), "its descriptor says 1"),
    "a configuration with other layers": (lambda top: layout(top / "x", [BASE], config=config_of([BASE, BASE])), "names 1 layers, its configuration 2"),
    "a layer with another content": (lambda top: layout(top / "x", [BASE], config=config_of([b"other"])), "its content has another digest than in the image"),
    "a manifest that is missing": (without("manifest"), "it is not there"),
    "a configuration that is missing": (without("config"), "it is not there"),
    "a layer that is missing": (without("layers"), "it is not there"),
    "a manifest that was changed": (with_other_bytes("manifest"), "its content has another digest"),
    "a configuration that was changed": (with_other_bytes("config"), "its content has another digest"),
    "a layer that was changed": (with_other_bytes("layers"), "its content has another digest"),
    "a blob that is a link out": (linked, "it is not there"),
    "docker: two images": (lambda top: docker(top / "x", [BASE], change=lambda rows: rows.append({**rows[0], "RepoTags": ["two:1"]})), "it has several images; save one alone: one:latest, two:1"),
    "docker: no list": (lambda top: packed(top / "x", archive([member("manifest.json", b"{}")])), "not as docker save writes it"),
    "docker: a layer outside": (lambda top: docker(top / "x", [BASE], change=lambda rows: rows[0].update(Layers=["../../etc/passwd"])), "no plain path"),
    "docker: a layer that is not there": (lambda top: docker(top / "x", [BASE], change=lambda rows: rows[0].update(Layers=["none/layer.tar"])), "it is not there"),
    "docker: a configuration by another name": (lambda top: docker(top / "x", [BASE], change=lambda rows: rows[0].update(Config="config.json")), "is no digest"),
    "docker: a layer with another content": (lambda top: docker(top / "x", [BASE], config=config_of([b"other"])), "its content has another digest than in the image"),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_one_clear_error_and_nothing_is_left(rootfs, tmp_path, what):
    make, words = REFUSED[what]
    top = tmp_path / "given"
    top.mkdir()
    source = make(top)
    done = rootfs("import", NAME, source)
    errors = [line for line in done.stderr.splitlines() if line.startswith("brig-rootfs: ")]
    assert done.returncode == 1 and len(errors) == 1 and done.stderr.endswith(errors[0] + "\n"), done
    assert any(word in done.stderr for word in words.split("|")), done.stderr
    assert not terminal.obeyed(done.stderr) and rootfs.leftovers() == []


@pytest.mark.parametrize("args, words", [
    (["Mine!", "x"], "is not a valid name of a rootfs"), (["--size-max", "0", NAME, "x"], "--size-max"), (["--size-max", "much", NAME, "x"], "a size such as"),
    (["--size-max", "65G", NAME, "x"], "at most 64G")], ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_bad_arguments(rootfs, args, words):
    done = rootfs("import", *args)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and words in done.stderr and not rootfs.store.exists()


@pytest.mark.nightly
def test_a_size_that_is_allowed_is_enough_and_one_byte_less_is_not(rootfs, tmp_path):
    layers = [archive([*DIRS, member("etc/f", bytes(1000))]), archive([member("etc/f", bytes(500))])]
    source = layout(tmp_path / "x", layers)
    done = rootfs("import", "--size-max", "1499", NAME, source)
    assert done.returncode == 1 and "/etc/f: up to here all files together have more than 1499; --size-max allows more" in done.stderr and rootfs.leftovers() == []
    rootfs.must("import", "--size-max", "1500", NAME, source)


@pytest.mark.nightly
def test_a_bomb_is_not_unpacked_to_its_end(rootfs, tmp_path):
    """Half a gigabyte of zeros behind the end of the archive, in half a megabyte: it belongs to the layer's digest and to no file."""
    bomb = zipped(BASE + bytes(512 << 20))
    done = rootfs("import", "--size-max", "1M", NAME, packed(tmp_path / "x", bomb))
    assert done.returncode == 1 and "it has more than 66M when it is not compressed" in done.stderr and rootfs.leftovers() == []
    rootfs.must("import", "--size-max", "1M", NAME, packed(tmp_path / "x", zipped(BASE + bytes(1 << 20))))


@pytest.mark.nightly
def test_a_name_that_is_taken_is_given_only_by_force(rootfs, tmp_path):
    rootfs.must("import", NAME, packed(tmp_path / "x", BASE))
    other = packed(tmp_path / "y", archive([*DIRS, member("etc/old", b"other")]))
    done = rootfs("import", NAME, other)
    assert done.returncode == 1 and "is in the store already" in done.stderr and "--force" in done.stderr and files(rootfs)["old"] == "old"
    rootfs.must("import", "--force", NAME, other)
    assert files(rootfs) == {"old": "other"}


def test_an_archive_that_has_been_imported_is_not_imported_again_under_its_name(rootfs, tmp_path):
    rootfs.must("import", NAME, packed(tmp_path / "x", BASE))
    done = rootfs("import", NAME, packed(tmp_path / "copy", BASE))
    assert done.returncode == 0 and "already imported" in done.stderr and "--force" in done.stderr and "unpack" not in done.stderr, done
    assert "unpack" in rootfs.must("import", "--force", NAME, tmp_path / "copy").stderr


@pytest.mark.nightly
def test_the_store_itself_is_not_imported(rootfs, tmp_path):
    plain(tmp_path / "tree")
    inside = Rootfs(tmp_path / "tree" / "store")
    done = inside("import", NAME, tmp_path / "tree")
    assert done.returncode == 1 and "/store: the store itself is in there" in done.stderr and inside.leftovers() == []


@pytest.mark.nightly
def test_interrupted_it_leaves_nothing(rootfs, tmp_path):
    source = packed(tmp_path / "x", archive([*DIRS, *[member(f"etc/{n}", b"x") for n in range(60000)]]))
    child = rootfs.start("import", NAME, source)
    assert host.poll(lambda: list((rootfs.store / "tmp").glob("build-*/tree/etc")) if rootfs.store.exists() else child.poll() is not None, every=0)
    child.send_signal(signal.SIGTERM)
    _, words = child.communicate(timeout=host.HANG)
    assert child.returncode == 1 and "interrupted by SIGTERM" in words and rootfs.leftovers() == [], words


# --- outside ---

@pytest.fixture(params=["root", "a plain user"])
def importer(request, needs_root):
    """import(members...) as that user, and a world-writable folder beside it."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as top:
        top = pathlib.Path(top)
        top.chmod(0o755)
        made = Rootfs(top / "store")
        uid = 0 if request.param == "root" else host.own_id(9)
        made.outside = top / "outside"
        for folder in (made.store, made.outside):
            folder.mkdir()
        os.chown(made.store, uid, uid)
        (made.outside / "victim").write_text("victim")
        for path in (made.outside, made.outside / "victim"):
            path.chmod(0o777)

        def run(*layers):
            source = layout(pathlib.Path(tempfile.mkdtemp(dir=top)) / "x", [archive(layer) for layer in layers])
            source.parent.chmod(0o755)
            user = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
            return subprocess.run([*user, made.binary, "import", "--store", made.store, NAME, source], capture_output=True, text=True, timeout=host.HANG,
                                  env={"PATH": os.environ["PATH"]}, cwd=made.outside)
        made.run = run
        yield made


THROUGH = {
    "a file": [member("way/new", b"x")],
    "a file in place of another": [member("way/victim", b"x")],
    "a directory": [member("way/folder/", kind=FOLDER)],
    "a link": [member("way/link", kind=LINK, to="victim")],
    "a second name of a file there": [member("usr/mine", kind=HARD, to="way/victim")],
    "a whiteout": [member("way/.wh.victim")],
    "an opaque directory": [member("way/.wh..wh..opq")],
}


@pytest.mark.sample(2)
@pytest.mark.diagonal("importer")
@pytest.mark.parametrize("up", [False, True], ids=["an absolute link", "a link that climbs"])
@pytest.mark.parametrize("what", THROUGH)
def test_nothing_outside_changes_by_a_link_of_an_earlier_layer(importer, what, up):
    out = ("../" * 20 if up else "/") + str(importer.outside)[1:]
    done = importer.run([*DIRS, member("way", kind=LINK, to=out)], THROUGH[what])
    victim = importer.outside / "victim"
    assert os.listdir(importer.outside) == ["victim"] and victim.read_text() == "victim" and victim.stat().st_nlink == 1, done
    assert done.returncode == 1 and done.stderr.count("brig-rootfs: ") == 1 and importer.leftovers() == [], done


@pytest.mark.nightly
@pytest.mark.diagonal("importer")
def test_control_the_same_layers_with_a_directory_in_place_of_the_link_are_imported(importer):
    done = importer.run([*DIRS, member("way/", kind=FOLDER), member("way/victim", b"old")], [*THROUGH["a file"], *THROUGH["a second name of a file there"]])
    assert done.returncode == 0 and files(importer, "way") == {"victim": "old", "new": "x"} and files(importer, "usr")["mine"] == "old", done


# --- runs ---

@pytest.fixture(scope="module")
def pythons(basic, tmp_path_factory):
    """A store with the tree of basic as an image whose Python and its library lie where the images named python have theirs, none of it compiled."""
    top = tmp_path_factory.mktemp("pythons")

    def moved(info):
        for folder in ("bin", "lib"):
            info.name = info.name.replace(f"./usr/{folder}/python3", f"./usr/local/{folder}/python3")
        return None if "__pycache__" in info.name or info.name.startswith("./usr/lib/brig") else info
    with tarfile.open(top / "first", "w") as tar:
        tar.add(basic.tree, ".", filter=moved)
    above = [member("usr/local/bin/tool", b"#!/bin/sh\necho tool\n", mode=0o755), member("dev/.wh..wh..opq"), whiteout("workspace")]
    store = Rootfs(top / "store")
    store.done = store.must("import", NAME, docker(top / "x.tar", [(top / "first").read_bytes(), archive(above)], style="blobs"))
    (top / "profiles").mkdir()
    for policy in (host.REPO / "profiles").glob("*.policy"):
        shutil.copy(policy, top / "profiles")
    (top / "profiles/own.json").write_text(json.dumps({"rootfs": NAME, "policy": "python", "warm": "demand"}))
    store.env = {"BRIG_PRESETS": str(top / "profiles"), "BRIG_STORE": str(store.store)}
    return store


@pytest.mark.nightly
def test_an_image_with_a_python_is_run(needs_root, pythons, run_brig):
    assert "its Python is /usr/local/bin/python3\n" in pythons.done.stderr
    run = run_brig("-p", "own", env=pythons.env, program="import json, os, sys; print(sys.prefix, json.__file__, os.path.exists(json.__cached__), os.listdir('/workspace'))")
    assert (run.status, run.out) == (0, "/usr/local /usr/local/lib/python3.13/json/__init__.py True ['main.py']\n"), str(run)
    run = run_brig("-p", "own", verb="exec", env=pythons.env, args=["--", "tool"])
    assert (run.status, run.out) == (0, "tool\n"), str(run)


@pytest.mark.nightly
def test_a_service_runs_it_warm(needs_root, pythons):
    with daemons.Daemon(env=pythons.env) as one, one.connect() as talk:
        assert host.poll(lambda: talk.run("print(1)", profile="own").record["warm"]), one.words()
        run = talk.run("print(6 * 7)", profile="own")
        assert run.stdout == "42\n" and run.record["warm"], run
