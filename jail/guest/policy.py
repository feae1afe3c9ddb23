# policy.py - which modules the program's own code may import; not a security boundary
#
# A listed name allows itself and what is below it: "xml.etree" allows xml.etree.ElementTree, but neither xml nor xml.sax.
# Imports by libraries, and by the interpreter's C code, are not checked.
ALWAYS = ("__future__", "__main__", "tools") # tools: in a run with tools, see tools.py


def covers(allowed, name):
    return name in ALWAYS or any(name == each or name.startswith(each + ".") for each in allowed)


def refused(allowed, name, members=()):
    """The first name that is not allowed in `import name` or `from name import members`, or None."""
    if covers(allowed, name):
        return None
    inner = any(each.startswith(name + ".") for each in allowed)
    if not members or not inner:
        return name
    return next((f"{name}.{member}" for member in members if not covers(allowed, f"{name}.{member}")), None)


class ImportPolicy:
    """Wraps __import__ and importlib.import_module. `blocked` lists what was refused, even if the program caught the exception."""

    def __init__(self, allowed):
        self.allowed, self.blocked = allowed, []
        self.really_import = builtins.__import__

    def judge(self, name, members=()):
        no = refused(self.allowed, name, members)
        if no is None:
            return
        text = f"Import of '{no[:NAME_MAX]}' is not allowed in sandbox"
        if text not in self.blocked and len(self.blocked) < WARNINGS_MAX:
            self.blocked.append(text)
        raise ImportError(text, name=no)

    def is_own(self, frame):
        """Is this the program's code? It is a library's if sys.modules has a module with these globals under their __name__."""
        names = frame.f_globals
        name = names.get("__name__")
        if name == "__main__" or type(name) is not str:
            return True
        return getattr(sys.modules.get(name), "__dict__", None) is not names

    def import_(self, name, globals=None, locals=None, fromlist=(), level=0):
        frame = sys._getframe(1)
        in_c = type(fromlist) is list and "__import__" not in frame.f_code.co_names # PyImport_Import()
        if type(name) is str and not level and not in_c and self.is_own(frame):
            self.judge(name, tuple(fromlist or ()))
        module = self.really_import(name, globals, locals, fromlist, level)
        if type(name) is str and name.startswith("importlib"):
            self.guard_importlib()
        return module

    def guard_importlib(self):
        importlib = sys.modules["importlib"]
        really_import_module = importlib.import_module
        if getattr(really_import_module, "__module__", None) != "importlib":
            return

        def import_module(name, package=None):
            if type(name) is str and self.is_own(sys._getframe(1)):
                self.judge(name)
            return really_import_module(name, package)
        importlib.import_module = import_module
        importlib.__import__ = builtins.__import__


def limit_imports(allowed):
    """Installs the policy. Returns the list to which refused imports will be added."""
    policy = ImportPolicy(allowed)
    builtins.__import__ = policy.import_
    return policy.blocked
