"""Images of containers as docker and skopeo write them, and as they never would."""
import gzip
import hashlib
import json
import pathlib
import platform
import tarfile

from packages import FOLDER, archive, member

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CONFIG, MANIFEST, INDEX, LAYER = (f"application/vnd.oci.image.{kind}+json" for kind in ("config.v1", "manifest.v1", "index.v1", "layer.v1"))
DIRS = [member("./", kind=FOLDER), member("usr/", kind=FOLDER), member("usr/bin/", kind=FOLDER), member("etc/", kind=FOLDER)]
BASE = archive([*DIRS, member("usr/bin/tool", b"#!/bin/sh\n", mode=0o755), member("etc/old", b"old"), member("etc/kept", b"kept")])


def sha(data):
    return hashlib.sha256(data).hexdigest()


def config_of(layers, arch=ARCH, **changes):
    return {"architecture": arch, "os": "linux", "config": {"Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(layer) for layer in layers]}, **changes}


class Layout:
    """An OCI image layout. What a test spoils it spoils before finish()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "blobs/sha256").mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def path(self, descriptor):
        return self.folder / "blobs/sha256" / descriptor["digest"].removeprefix("sha256:")

    def blob(self, data, kind, **more):
        data = json.dumps(data).encode() if isinstance(data, dict) else data
        (self.folder / "blobs/sha256" / sha(data)).write_bytes(data)
        return {"mediaType": kind, "digest": "sha256:" + sha(data), "size": len(data), **more}

    def image(self, layers, packed=None, config=None, change=lambda manifest: None, **more):
        """The descriptor of a manifest. packed: the layers' files, where they are not the archives themselves."""
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": self.blob(config or config_of(layers), CONFIG),
                    "layers": [self.blob(file, LAYER) for file in packed or layers]}
        change(manifest)
        return self.blob(manifest, MANIFEST, **more)

    def index(self, *rows, **more):
        return self.blob({"schemaVersion": 2, "mediaType": INDEX, "manifests": rows}, INDEX, **more)

    def finish(self, *rows):
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": rows}))
        return self.folder


def layout(folder, layers, **more):
    made = Layout(folder)
    return made.finish(made.image(layers, **more))


def tar_of(folder, path):
    with tarfile.open(path, "w") as tar:
        for each in sorted(pathlib.Path(folder).rglob("*")):
            tar.add(each, each.relative_to(folder), recursive=False)
    return path


def docker(path, layers, style="old", config=None, tags=("one:latest",), change=lambda rows: None):
    """As docker save wrote it up to 24 (a folder for each layer, and links where one is there already), podman and skopeo, and docker from 25 on."""
    text = json.dumps(config or config_of(layers)).encode()
    names = {"old": [f"{sha(b'id' + layer)}/layer.tar" for layer in layers], "flat": [f"{sha(layer)}.tar" for layer in layers],
             "blobs": [f"blobs/sha256/{sha(layer)}" for layer in layers]}[style]
    name = f"blobs/sha256/{sha(text)}" if style == "blobs" else f"{sha(text)}.json"
    rows = [{"Config": name, "RepoTags": list(tags), "Layers": names}]
    change(rows)
    files = {name: text, **dict(zip(names, layers)), "repositories": b"{}"}
    parts = [member(each, data) for each, data in files.items()]
    if style == "old" and len(layers) > 1:
        parts += [member("again/layer.tar", kind=tarfile.SYMTYPE, to=f"../{names[-1]}")]
        rows[0]["Layers"] = [*names[:-1], "again/layer.tar"]
    parts.append(member("manifest.json", json.dumps(rows).encode()))
    path.write_bytes(archive(parts))
    return path


def zipped(data):
    return gzip.compress(data, mtime=0)
