# check.py - reads main.py without executing it, and reports what is against the rules
#
# This is advice and policy, never a security boundary: hostile code can be written so that it looks innocent. Findings come from
# the syntax tree, not from the text: "re.compile(" is no compile(), and the contents of strings do not count.
FINDINGS_MAX = 100
DYNAMIC_IMPORTS = "__import__", "importlib.import_module", "importlib.__import__"
INTERNALS = frozenset("""__class__ __base__ __bases__ __mro__ __subclasses__ __globals__ __builtins__ __code__ __closure__ __getattribute__
    __func__ __self__ __loader__ __import__ gi_frame cr_frame ag_frame tb_frame f_back f_globals f_locals f_builtins""".split())
HARMLESS_AFTER_CLASS = "__name__", "__qualname__", "__module__", "__doc__"
BETTER = { # a call, and what to write instead
    "eval": "Use ast.literal_eval instead of eval where only literals are read",
    "exec": "Write the code out instead of passing text to exec",
    "os.system": "Use subprocess.run with a list of arguments instead of os.system",
    "os.popen": "Use subprocess.run with a list of arguments instead of os.popen",
    "input": "Pass stdin with the run: without it input() meets the end of the file",
}
TOO_DEEP = "the program is nested too deeply, or too large, to be read"


class Source:
    """The program as text, and places in it as editors count them."""

    def __init__(self, source):
        self.lines = source.split(b"\n")
        text = source.decode("utf-8", "replace")
        self.character_count = len(text)
        self.line_count = len(self.lines) - (not self.lines[-1])

    def offset(self, node):
        """Characters, from 1; the tree counts bytes, from 0."""
        if node.lineno > len(self.lines):
            return node.col_offset + 1
        return len(self.lines[node.lineno - 1][:node.col_offset].decode("utf-8", "replace")) + 1


def children(node):
    """The child nodes, in the order of the source."""
    for field in node._fields:
        value = getattr(node, field, None)
        for child in value if type(value) is list else (value,):
            if hasattr(child, "_fields"):
                yield child


def walk(tree):
    """Every node with the number of loops around it. No recursion: the tree may be deep."""
    import _ast
    loops = _ast.For, _ast.AsyncFor, _ast.While
    rest = [(tree, 0)]
    while rest:
        node, depth = rest.pop()
        yield node, depth
        depth += isinstance(node, loops)
        rest.extend((child, depth) for child in reversed(list(children(node))))


# --- names ---

class Names:
    """What the names of the program stand for: modules and their members, under whatever name they were imported."""

    def __init__(self, nodes):
        import _ast
        self.ast = _ast
        self.known = {}     # a name of the program: its dotted name
        self.own = set()    # names that the program gives itself
        self.stars = []     # modules of which everything was imported
        for node in nodes:
            self.learn(node)
        for node in nodes:
            self.learn_assignment(node)

    def learn(self, node):
        ast = self.ast
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.known[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(node.module)
                else:
                    self.known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self.own.add(node.id)
        elif isinstance(node, ast.arg):
            self.own.add(node.arg)

    def learn_assignment(self, node):
        """`run = os.system` is another name of it."""
        ast = self.ast
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = self.dotted(node.value)
            if name and node.targets[0].id not in self.known:
                self.known[node.targets[0].id] = name

    def text(self, node, depth=0):
        """The value of an expression that is a text whatever happens, or None."""
        ast = self.ast
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is str else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < 20:
            left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
            return None if left is None or right is None else left + right
        return None

    def dotted_call(self, node, depth):
        """getattr(os, "system") and __import__("os") are names as well."""
        name = self.dotted(node.func, depth + 1)
        if name == "getattr" and len(node.args) >= 2:
            base, member = self.dotted(node.args[0], depth + 1), self.text(node.args[1])
            return f"{base}.{member}" if base and member else None
        if name in DYNAMIC_IMPORTS and node.args:
            module = self.text(node.args[0])
            return module.partition(".")[0] if module and name != "importlib.import_module" else module
        return None

    def dotted(self, node, depth=0):
        """The full name of an expression, or None when it has none that can be read."""
        ast, members = self.ast, []
        while isinstance(node, ast.Attribute):
            members.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            name = self.known.get(node.id) or (None if node.id in self.own else node.id)
        elif isinstance(node, ast.Call) and depth < 20:
            name = self.dotted_call(node, depth)
        else:
            name = None
        if not name:
            return None
        name = ".".join([name, *reversed(members)])
        for head in "builtins.", "__builtins__.":
            name = name.removeprefix(head)
        return name

    def candidates(self, node):
        name = self.dotted(node)
        if name is None:
            return []
        return [name] + [f"{module}.{name}" for module in self.stars if "." not in name]


# --- rules ---

class Check:
    def __init__(self, source, tree, allowed, listed, calls):
        """allowed: any other import is an error, because the run would refuse it. listed: the profile's list; others are a warning. None: any."""
        import _ast
        self.ast, self.source, self.allowed, self.listed, self.calls = _ast, source, allowed, listed, calls
        walked = list(walk(tree))
        self.nodes = [node for node, _ in walked]
        self.depth = max((depth for node, depth in walked if isinstance(node, (_ast.For, _ast.AsyncFor, _ast.While))), default=-1) + 1
        self.names = Names(self.nodes)
        self.errors, self.warnings, self.imports, self.advice = [], [], [], []
        self.spared = set() # inner nodes of what was found harmless
        for node in self.nodes:
            self.look_at(node)

    def look_at(self, node):
        ast = self.ast
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imported(node, alias.name)
        elif isinstance(node, ast.ImportFrom):
            self.imported_from(node)
        elif isinstance(node, ast.Call):
            self.called(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)
        elif isinstance(node, ast.Name) and node.id == "__builtins__":
            self.internals(node, node.id)
        elif isinstance(node, ast.While):
            self.loop(node)

    def find(self, where, node, message):
        if len(where) < FINDINGS_MAX:
            where.append((node.lineno, self.source.offset(node), message))

    def advise(self, text):
        if text not in self.advice and len(self.advice) < 20:
            self.advice.append(text)

    def imported(self, node, name, members=()):
        shown = cut(name, NAME_MAX)
        if shown not in self.imports and len(self.imports) < NAMES_MAX:
            self.imports.append(shown)
        no = None if self.allowed is None else refused(self.allowed, name, members)
        if no:
            no = cut(no, NAME_MAX)
            self.find(self.errors, node, f"Import '{no}' is not allowed")
            self.advise(f"Leave out the import of '{no}', or run with a profile or a list of allowed imports that has it")
            return
        beyond = None if self.listed is None else refused(self.listed, name, members)
        if beyond:
            self.find(self.warnings, node, f"Import '{cut(beyond, NAME_MAX)}' is not in the profile's list of modules; a run does not refuse it")

    def imported_from(self, node):
        if node.level:
            self.find(self.warnings, node, "Relative import: the program is in no package, so it raises ImportError")
        else:
            self.imported(node, node.module, tuple(alias.name for alias in node.names))

    def called(self, node):
        names = self.names.candidates(node.func)
        found = next((name for name in names if any(covers_call(rule, name) for rule in self.calls)), None)
        if found:
            self.find(self.warnings, node, f"Potentially dangerous call: '{cut(found, NAME_MAX)}'")
        for name in names[:1]:
            if name in BETTER and (found or name == "input"):
                self.advise(BETTER[name])
            if name in DYNAMIC_IMPORTS:
                self.dynamic_import(node)
            if name in ("getattr", "hasattr", "setattr") and len(node.args) >= 2:
                self.internals(node, self.names.text(node.args[1]))

    def dynamic_import(self, node):
        name = self.names.text(node.args[0]) if node.args else None
        if name:
            self.imported(node, name)
        elif self.allowed is not None or self.listed is not None:
            self.find(self.warnings, node, "Import of a name that is known only when the program runs")

    def attribute(self, node):
        if node.attr in HARMLESS_AFTER_CLASS and isinstance(node.value, self.ast.Attribute) and node.value.attr == "__class__":
            self.spared.add(node.value)
        elif node not in self.spared:
            self.internals(node, node.attr)

    def internals(self, node, name):
        if name in INTERNALS:
            self.find(self.warnings, node, f"Access to '{name}' leads into the interpreter's internals")

    def loop(self, node):
        ends = self.ast.Break, self.ast.Return, self.ast.Raise, self.ast.Yield, self.ast.YieldFrom, self.ast.Await
        if not (isinstance(node.test, self.ast.Constant) and node.test.value):
            return
        inner = [each for each, _ in walk(node)]
        exits = ("exit", "quit", "sys.exit", "os._exit")
        if not any(isinstance(each, ends) or isinstance(each, self.ast.Call) and self.names.dotted(each.func) in exits for each in inner):
            self.advise(f"Line {node.lineno}: this loop has no way out; only the time limit ends it")

    def complexity(self):
        ast = self.ast
        forks = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.BoolOp, ast.match_case,
                 ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.With, ast.AsyncWith, ast.Assert)
        n = sum(isinstance(node, forks) for node in self.nodes)
        if n > 50 or self.source.line_count > 200 or self.depth > 3:
            return "high"
        return "medium" if n > 10 or self.source.line_count > 50 or self.depth > 1 else "low"


def covers_call(rule, name):
    return name == rule or rule.endswith(".*") and name.startswith(rule[:-1])


# --- the report ---

def findings_json(findings):
    return f'[{", ".join(f"""{{"line": {line}, "offset": {offset}, "message": {json_text(text)}}}""" for line, offset, text in findings)}]'


def check_json(source, message, check=None, syntax_error="null", advice=()):
    errors, warnings = (check.errors, check.warnings) if check else ([], [])
    valid = "true" if check and not errors else "false"
    return (f'{{"valid": {valid}, "message": {json_text(message)}, "errors": {findings_json(errors)}, '
            f'"warnings": {findings_json(warnings)}, "syntax_error": {syntax_error}, '
            f'"line_count": {source.line_count}, "character_count": {source.character_count}, '
            f'"estimated_complexity": "{check.complexity() if check else "low"}", '
            f'"imports": {json_texts(check.imports if check else [])}, '
            f'"recommendations": {json_texts(check.advice if check else advice)}}}')


def unreadable_json(source, error):
    """The report on a program that the parser refuses."""
    is_syntax = isinstance(error, SyntaxError)
    message = cut(message_of(error), MESSAGE_MAX) if is_syntax or isinstance(error, ValueError) else TOO_DEEP
    line, offset, text = (error.lineno, error.offset, error.text) if is_syntax else (None, None, None)
    text = cut(text.rstrip("\r\n"), LINE_MAX) if type(text) is str else None
    syntax_error = (f'{{"message": {json_text(message)}, "line": {number_or_null(line)}, "offset": {number_or_null(offset)}, '
                    f'"text": {json_or_null(text)}}}')
    advice = [f"Correct line {line}: the program cannot start" if line else "Correct the program: it cannot start"]
    return check_json(source, f"Syntax error: {message}", None, syntax_error, advice)


def read_tree(bytes, path):
    tree = compile(bytes, path, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True)
    compile(tree, path, "exec", TOP_LEVEL_AWAIT, True) # "return outside of a function" is found only here
    return tree


def check_text(bytes, path, allowed, listed, calls):
    source = Source(bytes)
    try:
        check = Check(source, compile_or_explain(read_tree, bytes, path), allowed, listed, calls)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return unreadable_json(source, error)
    if check.complexity() == "high":
        check.advise("Divide the code into smaller functions")
    return check_json(source, "Code contains restricted operations" if check.errors else "Code passed validation", check)


def run_check(pipe, allowed, listed, calls):
    path = f"{getcwd()}/{MAIN_FILE}"
    send(pipe, check_text(read_file(path), path, allowed, listed, calls))
