"""Wheels that tests make: real ones, and hostile ones."""
import contextlib
import hashlib
import pathlib
import subprocess
import sys
import zipfile

from support import host


def wheel(folder, name, files, version="1.0", scripts="", modes=None):
    """NAME-VERSION-py3-none-any.whl of {path: text}; modes has the modes of some. Returns its line of a requirements file."""
    info = f"{name}-{version}.dist-info"
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    if scripts:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n"
    files[f"{info}/RECORD"] = "".join(f'"{path}",,\n' for path in [*files, f"{info}/RECORD"])
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        for entry, text in files.items():
            head = zipfile.ZipInfo(entry, (2020, 1, 1, 0, 0, 0))
            head.external_attr = (modes or {}).get(entry, 0o100644) << 16
            out.writestr(head, text)
    return f"{name}=={version} --hash=sha256:{digest(path)}\n"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def index(folder):
    """The address of a simple index on the loopback that has the files of the folder."""
    top = pathlib.Path(folder)
    for path in list(top.iterdir()):
        place = top / "simple" / path.name.split("-")[0].replace("_", "-")
        place.mkdir(parents=True, exist_ok=True)
        path.rename(place / path.name)
    server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"], cwd=top, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        port = server.stdout.readline().split(" port ")[1].split()[0]
        yield f"http://127.0.0.1:{port}/simple/"
    finally:
        server.kill()
        server.communicate(timeout=host.HANG)
