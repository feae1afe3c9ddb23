# program.py - runs /workspace/main.py as `python3 -I main.py` would, and keeps the value of its last expression
ONLY_AST, TOP_LEVEL_AWAIT, COROUTINE = 0x400, 0x2000, 0x80 # of compile() and of a code object's flags
VALUE = "<value>" # a name that no program can write
RESULT_NAMES = "result", "output", "_", "__return_value__"


def fresh_main(path):
    main = MODULE("__main__")
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    main.__dict__.update(__loader__=loader, __annotations__={}, __builtins__=builtins, __file__=path, __cached__=None)
    sys.modules["__main__"] = main
    return main.__dict__


# --- the value of the last expression ---

def keep_value(tree):
    """Makes the last statement, if it is an expression, an assignment; a docstring stays one."""
    import _ast
    last = tree.body[-1] if tree.body else None
    if type(last) is not _ast.Expr:
        return
    place = {"lineno": last.lineno, "col_offset": last.col_offset, "end_lineno": last.end_lineno, "end_col_offset": last.end_col_offset}
    kept = _ast.Assign(targets=[_ast.Name(VALUE, _ast.Store(), **place)], value=last.value, **place)
    if len(tree.body) == 1 and type(last.value) is _ast.Constant:
        tree.body.append(kept)
    else:
        tree.body[-1] = kept


def without_warnings(work, *args):
    """The parser has warned already."""
    import _warnings
    silence = [("ignore", None, kind, None, 0) for kind in (SyntaxWarning, DeprecationWarning)]
    _warnings.filters[:0] = silence
    _warnings._filters_mutated()
    try:
        return work(*args)
    finally:
        del _warnings.filters[:len(silence)]
        _warnings._filters_mutated()


def compile_again(source, path):
    tree = compile(source, path, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True)
    keep_value(tree)
    return compile(tree, path, "exec", TOP_LEVEL_AWAIT, True)


def refuse_nul(source, path):
    """compile() would raise a ValueError that does not say where."""
    if (at := source.find(b"\0")) >= 0:
        raise SyntaxError("source code cannot contain null bytes", (path, source.count(b"\n", 0, at) + 1, None, None))


def compile_program(source, path):
    """First as it stands, so that each error and warning is Python's own."""
    refuse_nul(source, path)
    code = compile(source, path, "exec", TOP_LEVEL_AWAIT, True)
    known = set(sys.modules)
    try:
        return without_warnings(compile_again, source, path)
    except (RecursionError, MemoryError): # it was deep enough already
        return code
    finally:
        for name in set(sys.modules) - known:
            del sys.modules[name]


def execute(code, names):
    if not code.co_flags & COROUTINE:
        return exec(code, names)
    import asyncio
    asyncio.run(eval(code, names))


# --- the end ---

def join_threads():
    """What the interpreter does next anyway; a value may still grow in a thread."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()


def is_data(value):
    return value is not None and not isinstance(value, (type, MODULE, type(is_data), type(len)))


def find_result(names):
    value = names.pop(VALUE, None)
    if value is not None:
        return value
    return next((names[name] for name in RESULT_NAMES if name in names and is_data(names[name])), None)


def variables_of(names):
    found = [name for name, value in names.items() if type(name) is str and name[:1] != "_" and not isinstance(value, MODULE)]
    return [name[:NAME_MAX] for name in found[:NAMES_MAX]]


def result_json(value):
    if value is None:
        return "null", "null"
    text = short(value)
    try:
        return json_of(value), json_text(text)
    except TooLarge:
        text += f" (as JSON it is larger than {RESULT_MAX >> 10} KiB)"
    except BaseException as error:
        text += f" (as JSON: {type_name(type(error))})"
    return "null", json_text(text)


def exit_code_of(error):
    """What the process will end with; 130 stands for SIGINT, as in a shell."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        return 130 if type(error) is KeyboardInterrupt else 1
    code = getattr(error, "code", None)
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    code = int.__int__(code)
    return code & 255 if -1 << 63 <= code < 1 << 63 else 255


class Program:
    def __init__(self, path):
        self.path, self.source, self.code, self.names = path, b"", None, {}

    def start(self):
        self.source = read_file(self.path)
        self.names = fresh_main(self.path)
        self.code = compile_program(self.source, self.path)
        execute(self.code, self.names)

    def run(self):
        """Returns the exception that ended it, or None."""
        try:
            self.start()
        except BaseException as error:
            return error
        return None


def report_text(program, error, failure, blocked):
    ended_itself = error is None or isinstance(error, SystemExit)
    result, result_repr = result_json(find_result(program.names) if ended_itself else None)
    return (f'{{"result": {result}, "result_repr": {result_repr}, "error": {failure}, "variables": {json_texts(variables_of(program.names))}, '
            f'"exit_code": {exit_code_of(error)}, "security_event": {json_or_null("blocked_import" if blocked else None)}, '
            f'"security_warnings": {json_texts(blocked)}}}')


def report_short(error, blocked):
    """When there is no memory or no stack for more."""
    return (f'{{"result": null, "result_repr": null, "error": null, "variables": [], "exit_code": {exit_code_of(error)}, '
            f'"security_event": {"null" if not blocked else json_text("blocked_import")}, "security_warnings": []}}')


def run_report(pipe, imports, args):
    sys.argv[:] = [MAIN_FILE, *args]
    sys.orig_argv[:] = ["python3", "-I", *sys.argv]
    policy = ImportPolicy(imports) if imports is not None else None
    blocked = policy.blocked if policy else []
    if policy:
        policy.apply()
    program = Program(f"{getcwd()}/{MAIN_FILE}")
    error = program.run()
    sys.settrace(None)
    sys.setprofile(None)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
    failure = "null"
    if error is not None:
        clean(error, program.code)
        if not isinstance(error, SystemExit):
            text = display(error)
            error = tell(error, text, program.code) or error
            failure = failure_json(error, text, program.path, program.source)
    join_threads()
    try:
        report = report_text(program, error, failure, blocked)
    except BaseException:
        report = report_short(error, blocked)
    pipe.send(report)
    if error is not None and not isinstance(error, SystemExit):
        sys.excepthook = say_nothing # it has been told; the interpreter only chooses the exit status now
    return error


def say_nothing(*_):
    pass
