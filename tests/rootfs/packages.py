"""A mirror of packages that nobody would make by accident, signed with a key that stands in for Debian's."""
import hashlib
import io
import os
import pathlib
import subprocess
import tarfile

from support import host

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TRUSTING = 'mount --bind "$1" "$2"; shift 2; exec "$@"'
FOLDER, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def member(name, data=b"", kind=tarfile.REGTYPE, to="", mode=None, dev=(0, 0)):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, (info.devmajor, info.devminor) = kind, to, len(data), dev
    info.mode = (0o755 if kind == FOLDER else 0o644) if mode is None else mode
    return info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape") + data + bytes(-len(data) % 512)


def hole(name, size):
    """A file of that size without a byte in it: GNU tar's old sparse format."""
    head = bytearray(member(name))
    head[156:157] = b"S"
    head[386:398], head[398:410] = b"\x80" + size.to_bytes(11, "big"), b"%011o\0" % 0
    head[483:495] = b"\x80" + size.to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def archive(members, ends=True):
    return b"".join(members) + (bytes(1024) if ends else b"")


def package(name, data):
    """(its paragraph in the index, the file)"""
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: -\nDescription: -\n"
    out = io.BytesIO(b"!<arch>\n")
    out.seek(0, os.SEEK_END)
    for part, text in (("debian-binary", b"2.0\n"), ("control.tar", archive([member("./control", control.encode())])), ("data.tar", data)):
        out.write(b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (part.encode(), 0, 0, 0, b"100644", len(text)) + text + b"\n" * (len(text) % 2))
    return control, out.getvalue()


class Keys:
    """A key and the file that has its public half. Its home is short: gpg's agent listens there."""

    def __init__(self, folder):
        self.home, self.public = pathlib.Path(folder), pathlib.Path(folder, "public.gpg")
        self.home.chmod(0o700)
        self.gpg("--passphrase", "", "--quick-generate-key", "nobody", "ed25519", "sign", "never")
        self.gpg("--output", self.public, "--export")

    def gpg(self, *words):
        subprocess.run(["gpg", "--homedir", self.home, "--batch", "--quiet", "--yes", *words], check=True, capture_output=True, timeout=host.HANG)

    def close(self):
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], check=False, capture_output=True, timeout=host.HANG)


def mirror(top, packages, keys, suite="bookworm"):
    """{name: data.tar} as a mirror that apt can copy from; the file with its address."""
    index = top / f"dists/{suite}/main/binary-amd64"
    for folder in (index, top / "pool"):
        folder.mkdir(parents=True)
    rows = ""
    for name, data in packages.items():
        control, text = package(name, data)
        (top / f"pool/{name}.deb").write_bytes(text)
        rows += f"{control}Filename: pool/{name}.deb\nSize: {len(text)}\nSHA256: {hashlib.sha256(text).hexdigest()}\n\n"
    (index / "Packages").write_text(rows)
    release = top / f"dists/{suite}/Release"
    release.write_text(f"Suite: {suite}\nCodename: {suite}\nArchitectures: amd64\nComponents: main\nDate: Sat, 01 Jan 2022 00:00:00 UTC\n"
                       f"SHA256:\n {hashlib.sha256(rows.encode()).hexdigest()} {len(rows.encode())} main/binary-amd64/Packages\n")
    keys.gpg("--output", release.with_name("InRelease"), "--clearsign", release)
    (top / "sources.list").write_text(f"deb copy:{top} {suite} main\n")
    return top / "sources.list"


def trusting(keys, *command):
    """The command, on a host where that key is Debian's."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", TRUSTING, "sh", str(keys.public), KEYRING, *map(str, command)]
