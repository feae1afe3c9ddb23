# last.py - compiles the program so that the value of its last expression is not lost
#
# The reliable way is the syntax tree. But the first call of compile() makes the types of all nodes, which takes as long as
# all the rest of the runner. So the text is cut in two where that certainly changes nothing: before the last line that begins
# a statement in column 0, if the part from there on is one expression and the part before it is complete. In any other case,
# and for programs with errors, the syntax tree is used.
TOP_LEVEL_AWAIT = 0x2000          # a flag of compile()
COROUTINE, FUTURE = 0x80, 0x1fe0000 # flags of a code object; FUTURE: all of "from __future__"
VALUE = "<value>"                 # a name that no program can write
UNSURE = b"\r", b"\f", b"\xef\xbb\xbf", b"coding" # other line ends, a declared encoding


def refuse_nul(source, path):
    """compile() would raise a ValueError that does not say where."""
    if (at := source.find(b"\0")) >= 0:
        raise SyntaxError("source code cannot contain null bytes", (path, source.count(b"\n", 0, at) + 1, None, None))


# --- in two ---

def code_of(run, source, path):
    """The code object that exec or eval makes of source: a tracer stops it before its first instruction. A warning counts as an error."""
    found, stopped = [], BaseException()

    def stop(frame, event, arg):
        if frame.f_code.co_filename == "<string>": # for a non-ASCII name the compiler imports a module, which is traced as well
            found.append(frame.f_code)
            raise stopped
    change_filters("error")
    settrace(stop)
    try:
        run(source, {})
    except BaseException as error:
        if error is not stopped:
            raise
        error.__traceback__ = None # breaks a cycle: it refers to this frame, which refers to the error
        fix_filename(found[0], path)
        return found[0]
    finally:
        settrace(None)
        change_filters(None)
    raise SyntaxError


def last_start(source):
    """The offset of the last line on which a statement can begin in column 0."""
    end = len(source)
    while end > 0:
        at = source.rfind(b"\n", 0, end) + 1
        if source[at:at + 1] not in (b"", b" ", b"\t", b"\n", b"#", b")", b"]", b"}"):
            return at
        end = at - 1
    return 0


def is_no_expression(source, at):
    """source[at:] is no expression by itself: is it certain that the last statement begins there?"""
    rest = source[at:]
    return (rest[:1].isalpha() or rest[:1] in b"_@") and not any(mark in rest for mark in (b";", b'"""', b"'''")) \
        and all(rest.count(opening) == rest.count(closing) for opening, closing in (b"()", b"[]", b"{}")) \
        and not source.endswith(b"\\\n", 0, at)


def compile_in_two(source, path):
    """Code objects to execute one after the other, the last one for its value; None where the result might be wrong."""
    at = last_start(source)
    if source[at:at + 1] in (b" ", b"\t"): # an error, which eval() would accept
        return None
    if any(mark in source for mark in UNSURE) or b'"' in source[at:at + 3] or b"'" in source[at:at + 3]: # perhaps a docstring
        return None
    try:
        tail = code_of(eval, b"\n" * source.count(b"\n", 0, at) + source[at:], path)
    except SyntaxError:
        return [code_of(exec, source, path)] if is_no_expression(source, at) else None
    body = [code_of(exec, source[:at], path)] if at else []
    return None if body and body[0].co_flags & FUTURE else [*body, tail]


# --- through the syntax tree ---

def compile_whole(source, path):
    """Compiles the unchanged source first, so that errors and warnings are Python's own."""
    code = compile(source, path, "exec", TOP_LEVEL_AWAIT, True)
    need("tree")
    try:
        return [leaving_modules(without_warnings, compile_tree, source, path)]
    except (RecursionError, MemoryError): # too deep to be changed: the value is lost
        return [code]


def compile_here(source, path):
    try:
        codes = compile_in_two(source, path)
    except Exception:
        codes = None
    return codes or compile_whole(source, path)


def compile_or_explain(work, source, path, *rest):
    """work(source, path), which compiles. Lines that it refuses and that only a notebook needs are passed over; other mistakes get advice."""
    refuse_nul(source, path)
    while True:
        try:
            return work(source, path, *rest)
        except SyntaxError as error:
            need("notebook")
            plain = passed_over(source, error, path)
            if plain is None:
                explain(error, source, path)
                raise
        source = plain


def compile_program(source, path):
    return compile_or_explain(compile_here, source, path)
