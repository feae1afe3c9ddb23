# written.py - which files below /workspace a call has written
#
# Files are compared by what the kernel changes when they are written. A directory of the host (--ro, --rw) is another file system, and is passed
# over: what is there stays. So are hidden files, and what Python keeps for itself.
from posix import scandir, stat

LOOKED_AT_MAX = 2000 # entries: a call that has more is not told what it wrote
WRITTEN_MAX = 200
IMAGE_ENDINGS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
IMAGE_FILES_MAX, IMAGE_FILE_MAX = 4, 3 << 19 # bytes: as base64 it is what a bundle may have


def is_passed_over(name):
    return name[:1] == "." or name == "__pycache__"


def files_in(folder, device):
    """(path, status, is_folder) of each file and folder directly in it."""
    with scandir(folder) as entries:
        for entry in entries:
            if not is_passed_over(entry.name):
                status = entry.stat(follow_symlinks=False)
                if status.st_dev == device and (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
                    yield entry.path, status, entry.is_dir(follow_symlinks=False)


def look_at_files():
    """{path below /workspace: what differs when it was written, with its size first}, or None: there are too many."""
    found, folders, left = {}, [WORKSPACE], LOOKED_AT_MAX
    try:
        device = stat(WORKSPACE).st_dev
        while folders:
            folder = folders.pop()
            for path, status, is_folder in files_in(folder, device):
                left -= 1
                if left < 0:
                    return None
                if is_folder:
                    folders.append(path)
                else:
                    found[path[len(WORKSPACE):]] = status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
    except Exception:
        return None # a folder that the program has taken away meanwhile, or memory that is used up
    return found


def written_since(before):
    """[(path, size)] of the files that are new or changed, by name."""
    now = None if before is None else look_at_files()
    return sorted((path, marks[0]) for path, marks in now.items() if before.get(path) != marks)[:WRITTEN_MAX] if now else []


def image_type_of(path):
    return IMAGE_ENDINGS.get("." + path.rpartition(".")[2].lower())


def images_of(written):
    return [path for path, size in written if image_type_of(path) and size < IMAGE_FILE_MAX][:IMAGE_FILES_MAX]


def written_json(written, shown):
    rows = (f'{{"path": {json_text(cut(path, LINE_MAX))}, "bytes": {size}, "shown": {"true" if path in shown else "false"}}}' for path, size in written)
    return f', "written": [{", ".join(rows)}]' if written else ""


# --- what is there ---

NAMES_SHOWN = 20


def folder_json(error):
    """For a file that was not found: the names in /workspace. What a program asks for by a path of the host may be there."""
    if error is None or not is_a(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
        return ""
    try:
        with scandir(WORKSPACE) as entries:
            names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries if not is_passed_over(entry.name) and entry.name != MAIN_FILE)
    except Exception:
        return ""
    return f', "workspace": {json_texts([cut(name, LINE_MAX) for name in names[:NAMES_SHOWN]])}'
