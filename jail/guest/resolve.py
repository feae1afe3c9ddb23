# resolve.py - mode resolve: pip finds, fetches and unpacks what a program needs, and nothing of it is executed
#
# The lines come from a requirements file, further ones from the block `# /// script` of main.py (PEP 723). pip takes wheels only and
# installs into a new directory, so it runs no code of a package. What comes out is one archive: /workspace/out/layer.tar with
# TAG/, the packages for one version of Python, and requirements.txt, their versions and hashes. All of it is hostile outside.
LAYER, LAYER_OUT, SPARE = "/workspace/layer", "/workspace/out", "/workspace/spare"
PLACE = "/opt/packages" # where a run has it: compiled files have this path in them
WHEELS, TRUST, REQUIREMENTS = "/workspace/wheels", "/workspace/ca-certificates.crt", "/workspace/requirements.txt"
SUITE_PIPS = "/usr/share/python-wheels"
SCRIPT_BLOCK = r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$"
PIP_LINES_SHOWN = 12 # lines of pip's errors


class Unresolved(Exception):
    """The message is for the user; nothing comes out."""


def find_pip():
    """Words that start pip: Debian's wheel, which Python executes without installing it, or what an imported rootfs has."""
    import os
    wheels = sorted(name for name in (os.listdir(SUITE_PIPS) if os.path.isdir(SUITE_PIPS) else ()) if name.startswith("pip-") and name.endswith(".whl"))
    if wheels:
        sys.path.insert(0, f"{SUITE_PIPS}/{wheels[-1]}")
        return ["-S", f"{SUITE_PIPS}/{wheels[-1]}/pip"] # -S: what Debian has installed does not count
    import importlib.util
    if importlib.util.find_spec("pip") is None:
        raise Unresolved("the rootfs has no pip; build it again (brig rootfs build), or add the package python3-pip-whl to its recipe")
    return ["-m", "pip"]


# --- what is asked for ---

def script_block(text):
    """The TOML of a program's block, or ""."""
    import re
    found = [match for match in re.finditer(SCRIPT_BLOCK, text) if match["type"] == "script"]
    if len(found) > 1:
        raise Unresolved("the program has more than one block # /// script")
    if not found:
        if re.search(r"(?m)^# /// script\s*$", text):
            raise Unresolved("the program's block # /// script has no end: a line with # /// alone, and each line between begins with \"# \"")
        return ""
    return "".join(line[2:] if line.startswith("# ") else line[1:] for line in found[0]["content"].splitlines(keepends=True))


def read_toml(text):
    try:
        import tomllib
    except ImportError: # before Python 3.11
        from pip._vendor import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unresolved(f"the program's block # /// script is no TOML: {error}") from None


def of_program(text):
    """The requirements in a program's block, as (where, line)."""
    block = script_block(text)
    if not block:
        return []
    data = read_toml(block)
    wanted, python = data.get("dependencies", []), data.get("requires-python", "")
    if not isinstance(wanted, list) or not all(isinstance(each, str) for each in wanted) or not isinstance(python, str):
        raise Unresolved("the program's block # /// script: dependencies is a list of texts, and requires-python a text")
    check_python(python)
    return [(f"# /// script, dependencies[{i}]", line) for i, line in enumerate(wanted)]


def check_python(specifier):
    from pip._vendor.packaging.specifiers import InvalidSpecifier, SpecifierSet
    here = ".".join(map(str, sys.version_info[:3]))
    try:
        fits = SpecifierSet(specifier).contains(here, prereleases=True)
    except InvalidSpecifier:
        raise Unresolved(f"# /// script: requires-python: {specifier!a} is no range of versions") from None
    if not fits:
        raise Unresolved(f"the program requires Python {specifier}, and the rootfs has {here}; use a profile whose rootfs fits (-p)")


def of_lines(lines):
    """Lines of a requirements file, joined where one ends in a backslash, without comments, as (where, line)."""
    import re
    found, begun, first = [], "", 0
    for number, line in enumerate([*lines, ""], 1):
        line = re.sub(r"(^|\s)#.*$", "", line.rstrip("\r\n")).strip()
        first = first if begun else number
        begun += line
        if begun.endswith("\\"):
            begun = begun[:-1].rstrip() + " "
            continue
        if begun.strip():
            found.append((f"requirements, line {first}", begun.strip()))
        begun = ""
    return found


def plain_requirement(where, line):
    """The line as pip gets it, written from what was parsed: pip knows options, addresses and paths as well, and some of them make it build sources."""
    import re
    from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
    text, *hashes = re.split(r"\s+(?=--)", line)
    if len(line.splitlines()) != 1 or not all(re.fullmatch(r"--hash=sha256:[0-9a-fA-F]{64}", each) for each in hashes):
        raise Unresolved(f"{where}: {line[:80]!a}: what follows the version can only be --hash=sha256:... with 64 digits; other options are not taken from a file")
    if text.startswith("-"):
        raise Unresolved(f"{where}: {text[:80]!a}: options are not taken from a file; --index and --find-links of brig name where wheels come from")
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        raise Unresolved(f"{where}: {text[:80]!a}: expected NAME, or NAME and a version, like polars>=1.0; addresses and paths are refused") from None
    if wanted.url:
        raise Unresolved(f"{where}: {wanted.name} @ {wanted.url[:80]!a}: addresses are refused; packages come from the index as wheels")
    if re.search(r"(?i)\.(whl|zip|tar|tgz|tbz|txz|tlz|gz|bz2|xz|lzma)$", wanted.name): # pip takes a file of that name, if there is one
        raise Unresolved(f"{where}: {wanted.name[:80]!a}: is the name of a file, not of a package")
    return " ".join([str(wanted), *hashes])


# --- pip ---

def run_pip(words, index, log):
    import os, subprocess
    if index:
        source = ["--index-url", index]
    elif os.path.isdir(WHEELS):
        source = ["--no-index", "--find-links", WHEELS]
    else:
        raise Unresolved("there is neither an index nor a directory of wheels: the profile's find_links is shown as wheels (brig does it)")
    trust = ["--cert", TRUST] if os.path.exists(TRUST) else []
    command = [sys.executable, "-I", "-B", *words, "install", "--isolated", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar=off",
               "--only-binary=:all:", "--no-compile", "--no-warn-conflicts", "--no-warn-script-location", "--root-user-action=ignore", "--retries=1", "--timeout=20",
               "--target", f"{LAYER}/{sys.implementation.cache_tag}", "--report", f"{SPARE}/report.json", "--requirement", f"{SPARE}/requirements.txt", *source, *trust]
    return subprocess.run(command, cwd=f"{SPARE}/empty", env={**os.environ, "TMPDIR": SPARE, "PIP_CONFIG_FILE": os.devnull}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode


def explain_failure(text, index):
    """pip's own errors, and what helps."""
    import re
    errors = [line[7:] for line in text.splitlines() if line.startswith("ERROR: ") and line != "ERROR: Exception:"] or text.strip().splitlines()[-1:]
    place = index or "the directory of wheels"
    words = "; ".join(dict.fromkeys(errors[-PIP_LINES_SHOWN:]))
    if name := re.search(r"No matching distribution found for ([^\s;]+)", text):
        words = f"no wheel of {name[1]} at {place} fits Python {sys.version_info[0]}.{sys.version_info[1]} on this machine; a package without wheels cannot be used"
        if "Could not fetch URL" in text or "Retrying" in text or "ProxyError" in text:
            words = f"{place} cannot be reached, or what it refers to: " + (text.splitlines() or [""])[0]
    if "No space left on device" in text or "Cannot allocate memory" in text:
        words += "; they do not fit into /workspace of this profile: raise its ceilings of memory_bytes and workspace_bytes"
    return f"pip: {words[:2000]}"


def check_name(about, address):
    """pip believes what a wheel says about itself; the list of what is there would not name it."""
    from pip._vendor.packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
    file = address.rpartition("/")[2].partition("#")[0].replace("%2B", "+").replace("%21", "!")
    try:
        name, version = parse_wheel_filename(file)[:2]
    except (InvalidWheelFilename, ValueError):
        raise Unresolved(f"{file[:80]!a} is no name of a wheel") from None
    if canonicalize_name(about["name"]) != name or about["version"] != str(version) and about["version"] not in file:
        raise Unresolved(f"{file[:80]!a}: its metadata is of another package, {about['name'][:60]!a} {about['version'][:30]!a}")


def pins(report):
    """Lines for a requirements file: what pip has installed, with the hash of each wheel."""
    lines = []
    for each in report.get("install", ()):
        check_name(each["metadata"], each["download_info"]["url"])
        about, archive = each["metadata"], each["download_info"].get("archive_info", {})
        digest = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
        lines.append(f"{about['name']}=={about['version']}" + (f" --hash=sha256:{digest}" if digest else ""))
    return sorted(lines, key=str.lower)


# --- what comes out ---

def compile_layer():
    """Without it each run would compile what it imports. Files that cannot be compiled stay as they are."""
    import os, subprocess
    subprocess.run([sys.executable, "-I", "-B", "-m", "compileall", "-q", "-q", "-j", str(os.cpu_count() or 1), "--invalidation-mode", "unchecked-hash",
                    "-s", LAYER, "-p", PLACE, LAYER], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def pack_layer():
    """Removes each file that it has added: there is not room for both."""
    import os, tarfile
    with tarfile.open(f"{LAYER_OUT}/layer.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for folder, folders, names in os.walk(LAYER):
            folders.sort()
            if folder != LAYER:
                archive.add(folder, os.path.relpath(folder, LAYER), recursive=False)
            for name in sorted(names):
                path = os.path.join(folder, name)
                archive.add(path, os.path.relpath(path, LAYER), recursive=False)
                os.unlink(path)


def make_layer(index, lines):
    import json, os
    words = find_pip()
    wanted = [(f"package {number}", line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if os.path.exists(REQUIREMENTS):
        with open(REQUIREMENTS, encoding="utf-8-sig", errors="replace") as file:
            wanted += of_lines(file)
    with open("/workspace/main.py", encoding="utf-8", errors="replace") as program:
        wanted += of_program(program.read())
    plain = [plain_requirement(where, line) for where, line in wanted]
    for folder in f"{LAYER}/{sys.implementation.cache_tag}", LAYER_OUT, f"{SPARE}/empty":
        os.makedirs(folder)
    with open(f"{SPARE}/requirements.txt", "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in plain)
    with open(f"{SPARE}/log", "w+", encoding="utf-8", errors="replace") as log:
        if wanted and run_pip(words, index, log):
            log.seek(0)
            raise Unresolved(explain_failure(log.read(), index))
    report = {}
    if wanted:
        with open(f"{SPARE}/report.json", encoding="utf-8") as file:
            report = json.load(file)
    with open(f"{LAYER}/requirements.txt", "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in pins(report))
    compile_layer()
    pack_layer()
    for line in pins(report):
        print(line.partition(" ")[0])


def resolve_packages(index, lines):
    """Returns what the interpreter ends with."""
    try:
        make_layer(index, lines)
    except Unresolved as error:
        return SystemExit(f"{error}")
    except OSError as error:
        return SystemExit(f"{error.strerror}: the packages do not fit into /workspace of this profile; raise its ceilings of memory_bytes and workspace_bytes")
    return None
