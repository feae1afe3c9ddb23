# program.py - runs /workspace/main.py as `python3 -I main.py` would, and keeps the value of its last expression
BLOCKED = '"blocked_import"'
UNKNOWN = ('{"type": "Exception", "message": "what ended the program could not be written down", "traceback": null, '
           '"line": null, "offset": null, "text": null}')
RESULT_NAMES = "result", "output", "_", "__return_value__"
FUNCTION = type(is_a)
PLAIN_TYPES = type(None), bool, int, float, str, bytes, list, tuple, dict, set
RICH_NAMES = "_repr_html_", "_repr_png_", "_repr_svg_", "_repr_mimebundle_", "_repr_latex_", "_repr_markdown_", "_repr_jpeg_", "_repr_pdf_", "_repr_json_", "_repr_javascript_"


def fresh_main(path):
    main = MODULE("__main__")
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    main.__dict__.update(__loader__=loader, __annotations__={}, __builtins__=builtins, __file__=path, __cached__=None)
    sys.modules["__main__"] = main
    return main.__dict__


def execute(codes, names):
    """Returns the value of the last expression, unless it is in names as VALUE."""
    for code in codes:
        value = eval(code, names)
        if code.co_flags & COROUTINE:
            import asyncio
            value = asyncio.run(value)
    return value


def watch_imports(hooks):
    """hooks: {name of a module: function that gets the module when it is imported}. Any other import costs one look-up more."""
    def find_spec(name, path=None, target=None):
        if name not in hooks:
            return None
        found = (each.find_spec(name, path, target) for each in list(sys.meta_path) if each is not finder)
        spec = next((spec for spec in found if spec is not None), None)
        loader = getattr(spec, "loader", None)

        def exec_module(module):
            del loader.exec_module
            loader.exec_module(module)
            hook = hooks.pop(name, None)
            if hook is not None:
                hook(module)
        if hasattr(loader, "exec_module"):
            loader.exec_module = exec_module
        return spec
    finder = RECORD(find_spec=find_spec)
    for name in [name for name in hooks if name in sys.modules]:
        hooks.pop(name)(sys.modules[name])
    if hooks:
        sys.meta_path.insert(0, finder)


# --- display() and show(): display.py is loaded when they are called ---

def show_values(*values, **options):
    """display(), a builtin of the program."""
    need("failure", "display")
    show(values, options)


def show_figures(*_, **__):
    need("failure", "display")
    show_open_figures()


def show_value(value, *_, **__):
    show_values(value)


def offer_display(**hooks):
    """Adds display(), and replaces show() of these modules, which would open a window, when the program imports them."""
    builtins.display = show_values
    shows = {"matplotlib.pyplot": show_figures, "plotly.io": show_value, "PIL.ImageShow": show_value}
    watch_imports({**hooks, **{name: lambda module, show=show: setattr(module, "show", show) for name, show in shows.items()}})


def ancestors_of(value):
    return type.__dict__["__mro__"].__get__(type(value))


def is_rich(value):
    """Does it have more to show than its repr?"""
    return type(value) not in PLAIN_TYPES and any(name in each.__dict__ for each in ancestors_of(value) for name in RICH_NAMES)


def rich_json(value, figures, images, cut):
    """What was shown, and the paths of those of these images of files that are."""
    if "SHOWN" not in OURS and not figures and not images and not is_rich(value):
        return f', "left_out": {json_texts([cut])}' if cut else "", ()
    need("failure", "display")
    return shown_json(value, images, cut)


# --- the end ---

def join_threads():
    """The interpreter would do this next anyway. Until then a thread may change the value."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()


def is_data(value):
    return value is not None and not is_a(value, (type, MODULE, type(is_data), type(len)))


def names_assigned_in(source, path):
    need("tree")
    return leaving_modules(assigned_names, source, path)


def find_result(program):
    """The value of the last expression, or of a variable that a plain assignment of the module has set: the variable of a loop is no result."""
    if program.value is not None:
        return program.value
    names = program.names
    found = [name for name in program.result_names if name in names and is_data(names[name])]
    try:
        assigned = compile_or_explain(names_assigned_in, program.source, program.path) if found else ()
    except Exception:
        return None # nested too deep to be a tree
    return next((names[name] for name in found if name in assigned and (assigned[name] or names[name] is not program.earlier.get(name))), None)


def variables_of(names):
    found = [name for name, value in names.items() if type(name) is str and name[:1] != "_" and not is_a(value, MODULE)]
    return [name[:NAME_MAX] for name in found[:NAMES_MAX]]


def result_json(value):
    """The value as JSON, its repr, and a sentence about what is cut, or ""."""
    if value is None:
        return "null", "null", ""
    if type(value) is int and -SAFE_INTEGER <= value <= SAFE_INTEGER: # a short cut for the most common values
        return f"{value}", f'"{value}"', ""
    if type(value) is str and len(value) < 1000:
        return json_text(value), json_text(repr(value)), ""
    need("value")
    text, cut = short(value), ""
    try:
        result, cut = json_and_cut(value)
        return result, json_text(text), cut
    except TooLarge:
        text += f" (as JSON it is larger than {RESULT_MAX >> 10} KiB)"
        cut = f"the result is larger than {RESULT_MAX >> 10} KiB as JSON, and is left out; print what you need, or write it into a file"
    except BaseException as error:
        text += f" (as JSON: {type_name(type(error))})"
    return "null", json_text(text), cut


def exit_code_of(error):
    """The exit status of the process; 130 stands for SIGINT, as in a shell."""
    if error is None:
        return 0
    if not is_a(error, SystemExit):
        return 130 if type(error) is KeyboardInterrupt else 1
    code = SystemExit.code.__get__(error)
    if code is None:
        return 0
    if not is_a(code, int):
        return 1
    code = int.__int__(code)
    return code & 255 if -1 << 63 <= code < 1 << 63 else 255


def begin(program):
    program.source = read_file(program.folder + MAIN_FILE) # has the program's text whatever its path is
    program.names = fresh_main(program.path)
    program.codes = compile_program(program.source, program.path)
    value = execute(program.codes, program.names)
    program.value = program.names.pop(VALUE, value)


def run(program):
    """Returns the exception that ended it, or None."""
    try:
        begin(program)
    except BaseException as error:
        return error
    return None


def open_figures():
    """How many figures are open, and how many were shown and closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    try:
        return (0 if pyplot is None else len(pyplot.get_fignums())) + (SHOWN.closed if "SHOWN" in OURS else 0)
    except BaseException:
        return 0


def report_text(program, error, failure, blocked):
    value = find_result(program) if failure == "null" else None
    result, result_repr, cut = result_json(value)
    figures = open_figures()
    written = written_since(program.before)
    rich, shown = rich_json(value, figures, images_of(written), cut)
    return (f'{{"result": {result}, "result_repr": {result_repr}, "error": {failure}, '
            f'"variables": {json_texts(variables_of(program.names))}, "exit_code": {exit_code_of(error)}, '
            f'"security_event": {BLOCKED if blocked else "null"}, "security_warnings": {json_texts(blocked)}'
            + (f', "figures": {figures}' if figures else "") + rich + (written_json(written, shown) + folder_json(error) if program.tells_written else "") + "}")


def told(program, error, write_down=None):
    """Prints the exception on stderr. Returns the exception to end with, which sys.excepthook may have changed, and the JSON to report."""
    need("value", "failure")
    clean(error, program.codes)
    if is_a(error, SystemExit):
        return error, "null"
    text = (write_down or display)(error)
    failure = failure_json(error, text, program.path, program.source)
    return tell(error, text, program.codes) or error, failure


def in_program(work, program, *args):
    """Calls a function of one line so that its frame has the program's path and last line: what is destroyed there may warn, and a warning names the frame."""
    line = program.source.count(b"\n", 0, last_start(program.source)) + 1
    FUNCTION(work.__code__.replace(co_filename=program.path, co_name="<module>", co_firstlineno=line), program.names)(*args)


def drop_values(program): program.value = program.earlier = None


def let_go(program):
    """Destroys what only the runner refers to any more: values of the program, behind the report."""
    if type(program.value) not in PLAIN_TYPES or program.earlier:
        in_program(drop_values, program, program)


def report_short(error, blocked):
    """For when memory is used up, or a signal handler of the program has raised while the full report was made."""
    failure = "null" if error is None or is_a(error, SystemExit) else UNKNOWN
    return (f'{{"result": null, "result_repr": null, "error": {failure}, "variables": [], "exit_code": {exit_code_of(error)}, '
            f'"security_event": {BLOCKED if blocked else "null"}, "security_warnings": []}}')


def run_report(pipe, tells_written, imports, main, args):
    """
    tells_written: whether the report may have the keys written and workspace.
    main: the program's path, from the working directory on, or absolute if that is not /workspace. "" and "/workspace/" mean the
    main.py that was sent. Any other path is a file in a directory of --ro: that directory then comes first in sys.path.
    """
    folder = WORKSPACE if main[:len(WORKSPACE)] == WORKSPACE else f"{getcwd()}/"
    beside = main not in ("", folder)
    program = RECORD(folder=folder, path=(main if main[:1] == "/" else folder + main) + ("" if beside else MAIN_FILE), source=b"", codes=[], names={}, result_names=RESULT_NAMES, earlier={}, value=None, before=look_at_files(), tells_written=tells_written)
    sys.argv[:] = [program.path if main[:1] == "/" else main or MAIN_FILE, *args]
    sys.orig_argv[:] = ["python3", "-Es" if beside else "-I", *sys.argv]
    blocked = [] if imports is None else limit_imports(imports)
    offer_display()
    if beside:
        sys.path.insert(0, program.path.rpartition("/")[0])
    error = run(program)
    settrace(None)
    setprofile(None)
    setrecursionlimit(max(getrecursionlimit(), 1000))
    failure = "null"
    try:
        if error is not None:
            error, failure = told(program, error)
        join_threads()
        report = report_text(program, error, failure, blocked)
        let_go(program)
    except BaseException:
        report = report_short(error, blocked)
    send(pipe, report)
    if error is not None and not is_a(error, SystemExit):
        sys.excepthook = say_nothing # it is printed already; the interpreter only sets the exit status
    return error


def say_nothing(*_):
    pass
