# last.py - compiles the program so that the value of its last expression is not lost
#
# The sure way is the syntax tree. But the first use of compile(), for whatever, makes the types of its nodes, which
# takes as long as all the rest of the runner. So the text is cut in two where that is certain to change nothing: before
# the last line that begins a statement in column 0, when what follows is one expression and what precedes is whole without
# it. Whatever is not certain, and whatever is wrong, takes the sure way.
TOP_LEVEL_AWAIT = 0x2000          # of compile()
COROUTINE, FUTURE = 0x80, 0x1fe0000 # of a code object; the second are those of "from __future__"
VALUE = "<value>"                 # a name that no program can write
UNSURE = b"\r", b"\f", b"\xef\xbb\xbf", b"coding" # other ends of lines, an encoding that would have to be found


def refuse_nul(source, path):
    """compile() would raise a ValueError that does not say where."""
    if (at := source.find(b"\0")) >= 0:
        raise SyntaxError("source code cannot contain null bytes", (path, source.count(b"\n", 0, at) + 1, None, None))


# --- in two ---

def code_of(run, source, path):
    """What exec or eval would execute: they are stopped before the first instruction. A warning is an error here."""
    found, stopped = [], BaseException()

    def stop(frame, event, arg):
        if frame.f_code.co_filename == "<string>": # for a name that is no ASCII the compiler imports a module, which is traced as well
            found.append(frame.f_code)
            raise stopped
    change_filters("error")
    settrace(stop)
    try:
        run(source, {})
    except BaseException as error:
        if error is not stopped:
            raise
        error.__traceback__ = None # it has this frame, which has it
        fix_filename(found[0], path)
        return found[0]
    finally:
        settrace(None)
        change_filters(None)
    raise SyntaxError


def last_start(source):
    """Where the last line begins in whose column 0 a statement can."""
    end = len(source)
    while end > 0:
        at = source.rfind(b"\n", 0, end) + 1
        if source[at:at + 1] not in (b"", b" ", b"\t", b"\n", b"#", b")", b"]", b"}"):
            return at
        end = at - 1
    return 0


def is_no_expression(source, at):
    """Is it certain that the last statement begins here, when this alone is no expression?"""
    rest = source[at:]
    return (rest[:1].isalpha() or rest[:1] in b"_@") and not any(mark in rest for mark in (b";", b'"""', b"'''")) \
        and all(rest.count(opening) == rest.count(closing) for opening, closing in (b"()", b"[]", b"{}")) \
        and not source.endswith(b"\\\n", 0, at)


def compile_in_two(source, path):
    """Code objects to be run one after the other, the last one for its value; None where this way is not certain."""
    at = last_start(source)
    if source[at:at + 1] in (b" ", b"\t"): # eval() would forgive it
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
    """First as it stands, so that each error and warning is Python's own."""
    code = compile(source, path, "exec", TOP_LEVEL_AWAIT, True)
    need("tree")
    try:
        return [leaving_modules(without_warnings, compile_tree, source, path)]
    except (RecursionError, MemoryError): # it was deep enough already
        return [code]


def compile_program(source, path):
    refuse_nul(source, path)
    try:
        codes = compile_in_two(source, path)
    except Exception:
        codes = None
    return codes or compile_whole(source, path)
