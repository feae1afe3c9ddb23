# notebook.py - lines that only notebooks and shells understand: passed over, or told what to write instead
#
# It is loaded when a program has a syntax error, so the others pay nothing for it, and a text that has such a line in it is not changed.
PASSED_OVER = b"%matplotlib", b"%load_ext", b"%reload_ext", b"%autoreload", b"%config"
INSTALLERS = "pip", "pip3", "conda", "mamba", "apt", "apt-get", "uv"
LINES = ( # what the line is, and what to write instead; the first one that fits counts
    (lambda line, value: is_install(line) or is_install(value), "nothing can be installed from inside; import what is there"),
    (lambda line, value: "!" in (line[:1], value[:1]), "a line that begins with ! is IPython's; here: subprocess.run([...])"),
    (lambda line, value: "%" in (line[:1], value[:1]), "a line that begins with % is IPython's; here: plain Python, and figures are shown without %matplotlib"),
    (lambda line, value: line[:1] == "?" or line[-1:] == "?", "a line with ? is IPython's; here: help(name)"),
    (lambda line, value: line[:3] in ("```", "~~~"), "a fence of Markdown; send only what is between the fences"),
)


def is_install(line):
    """pip install x, !pip install x, %pip install x, !python3 -m pip install x"""
    words = line.lstrip("!%").split()
    return words[:1] != [] and (words[0] in INSTALLERS and "install" in words or words[0].startswith("python") and words[1:3] == ["-m", "pip"])


def line_at(error, source, path):
    if error.filename != path or type(error.lineno) is not int:
        return None
    lines = source.split(b"\n")
    return lines[error.lineno - 1] if 0 < error.lineno <= len(lines) else b""


def passed_over(source, error, path):
    """The source with the line of the error as a comment, in the same place, if the line changes nothing here; else None."""
    line = line_at(error, source, path)
    if not line or line[:1] != b"%" or line.split()[0] not in PASSED_OVER:
        return None
    lines = source.split(b"\n")
    lines[error.lineno - 1] = b"#" + line[1:]
    return b"\n".join(lines)


def explain(error, source, path):
    """Adds the source line, which the compiler finds only in files, and what to write instead of the line."""
    found = line_at(error, source, path)
    if found is None:
        return
    text = found.decode("utf-8", "replace")
    if error.text is None:
        error.text = text
    line = text.strip()
    value = line.partition("=")[2].strip()
    advice = next((advice for fits, advice in LINES if fits(line, value)), None)
    if advice:
        error.msg = f"{error.msg}: {advice}"
