# failure.py - the exception that ended the program, as Python prints it: on stderr and in the report
#
# The interpreter's own C code formats tracebacks: importing the module traceback would cost each failing run some milliseconds,
# and fails when the program has used up its descriptors.
DISPLAY = sys.__excepthook__


class Collector:
    """Replaces sys.stderr while this thread formats a traceback; what other threads print goes to the stream from before."""

    def __init__(self, before):
        self.before, self.thread, self.pieces = before, get_ident(), []

    def write(self, text):
        if get_ident() == self.thread:
            self.pieces.append(text)
        elif self.before is not None:
            self.before.write(text)

    def flush(self):
        pass


def display(error):
    before = getattr(sys, "stderr", None)
    sys.stderr = collector = Collector(before)
    try:
        DISPLAY(type(error), error, traceback_of(error))
    finally:
        sys.stderr = before
    return "".join(collector.pieces)


# --- frames ---

def traceback_of(error):
    return BaseException.__traceback__.__get__(error)


def links_of(traceback):
    links = []
    while traceback is not None:
        links.append(traceback)
        traceback = traceback.tb_next
    return links


def is_ours(link):
    return link.tb_frame.f_code.co_filename.startswith(OUR_FOLDER)


def without_us(traceback, codes):
    """The traceback from the program's first frame on, without frames of the runner, such as its import hook."""
    links = links_of(traceback)
    if not any(map(is_ours, links)):
        return traceback
    first = next((i for i, link in enumerate(links) if link.tb_frame.f_code in codes), 0)
    links = [link for link in links[first:] if not is_ours(link)]
    for i, link in enumerate(links):
        link.tb_next = links[i + 1] if i + 1 < len(links) else None
    return links[0] if links else None


def clean(error, codes):
    """Removes the runner's frames from the whole chain: causes, contexts, groups."""
    seen, rest = set(), [error]
    while rest:
        error = rest.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        BaseException.__traceback__.__set__(error, without_us(traceback_of(error), codes))
        rest += BaseException.__cause__.__get__(error), BaseException.__context__.__get__(error)
        if is_a(error, BaseExceptionGroup):
            rest += BaseExceptionGroup.exceptions.__get__(error)


# --- printing ---

def say(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        pass # closed, or not a file


def tell(error, text, codes):
    """Does what the interpreter does with an uncaught exception. Returns the SystemExit that sys.excepthook raised, if it did."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback_of(error)
    if sys.hexversion >= 0x30c0000:
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is DISPLAY:
        return say(text)
    if hook is None:
        return say("sys.excepthook is missing\n" + text)
    try:
        hook(type(error), error, traceback_of(error))
    except SystemExit as exit:
        return exit
    except BaseException as second:
        BaseException.__context__.__set__(second, None)
        clean(second, codes)
        say(f"Error in sys.excepthook:\n{display(second)}\nOriginal exception was:\n{text}")


def message_of(error):
    try:
        return str(SyntaxError.msg.__get__(error) if is_a(error, SyntaxError) else error)
    except BaseException:
        return "<exception str() failed>"


def place_of(error, path, source):
    """line, offset and text in main.py: of a syntax error, or of the innermost frame in that file."""
    if is_a(error, SyntaxError) and SyntaxError.filename.__get__(error) == path:
        return tuple(getattr(SyntaxError, name).__get__(error) for name in ("lineno", "offset", "text"))
    links = [link for link in links_of(traceback_of(error)) if link.tb_frame.f_code.co_filename == path]
    if not links:
        return None, None, None
    lines = source.splitlines()
    line = links[-1].tb_lineno
    text = lines[line - 1].decode("utf-8", "replace") if line and line <= len(lines) else None
    return line, None, text


def number_or_null(number):
    return int.__repr__(number) if type(number) is int and 0 <= number < 1 << 31 else "null"


def failure_json(error, text, path, source):
    line, offset, line_text = place_of(error, path, source)
    line_text = cut(line_text.rstrip("\r\n"), LINE_MAX) if type(line_text) is str else None
    return (f'{{"type": {json_text(cut(type_name(type(error)), LINE_MAX))}, "message": {json_text(cut(message_of(error), MESSAGE_MAX))}, '
            f'"traceback": {json_text(cut(text, TRACEBACK_MAX))}, "line": {number_or_null(line)}, "offset": {number_or_null(offset)}, '
            f'"text": {json_or_null(line_text)}}}')
