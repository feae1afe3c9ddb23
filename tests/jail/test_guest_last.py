"""Cutting a program in two changes nothing: against the syntax tree, over pieces of the standard library and made-up endings."""
import ast
import pathlib
import random
import sys
import types
import warnings

import pytest

GUEST = pathlib.Path(__file__).resolve().parents[2] / "jail/guest"
LIBRARY = sorted(pathlib.Path(ast.__file__).parent.glob("*.py"))
ENDINGS = ["f(x)", "x", "x = 1", "f(\n1,\n2)", "(1 +\nx)", "[\ny\n]", "'a'\n'b'", "x; y", "x = 1; y", "if x: y", "if x:\n    y\nelse: z", "else: z", "for a in b: c", "@d\ndef f(): pass",
           "class A: pass", "'''\nx'''", "x = '''\ny'''", "x = (\ny\n)", "f(a,\nb)", "x \\\n+ y", "x = \\\ny", "return x", "await x", "async def f(): await x", "lambda: x", "not x", "*a, b = c", "*a, b",
           "yield", "del x", "assert x", "x: int = 1", "x: int", "(x := 1)", "x if y else z", "(x if y else\nz)", "# x", "", "pass", "match x:\n    case 1: y", "match", "print(1) # x", "f'{x}'", "b'x'",
           "{\nx: y}", "x[\n1]", "-\\\n1", "...", "None", "import x", "global x", "try:\n    x\nfinally:\n    y", "with x: y", "\tx", "x.\\\ny", "x ,", "1 if", "break", "x\n\n# c\n\n", "x\n  # c", "x;"]


@pytest.fixture(scope="module")
def last():
    """last.py and what it stands on."""
    module = types.ModuleType("last")
    module.need = lambda *names: None
    for name in "base", "last", "tree":
        exec(compile((GUEST / f"{name}.py").read_bytes(), f"/usr/lib/brig/{name}.py", "exec"), module.__dict__)
    return module


def judge(last, source):
    """None where the program is cut as its syntax tree says, else what is wrong."""
    trace, filters = sys.gettrace(), list(warnings.filters)
    try:
        codes = last.compile_in_two(source, "main.py")
    except Exception:
        codes = None
    finally:
        sys.settrace(trace)
    if filters != warnings.filters:
        return "the filters of warnings are others"
    if codes is None: # the sure way is taken
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(source, "main.py", "exec")
    except SyntaxError:
        return "this is no program"
    is_expression = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
    if not is_expression:
        return None if len(codes) == 1 and codes[0].co_code == compile(source, "main.py", "exec").co_code else "there is no last expression"
    value = compile(ast.Expression(tree.body[-1].value), "main.py", "eval", dont_inherit=True)
    body = compile(ast.Module(tree.body[:-1], []), "main.py", "exec", dont_inherit=True)
    if codes[-1].co_code != value.co_code or list(codes[-1].co_positions()) != list(value.co_positions()):
        return "another expression"
    if len(codes) == 2 and (codes[0].co_code != body.co_code or list(codes[0].co_positions()) != list(body.co_positions())):
        return "another program before it"
    return None if len(codes) == 2 or len(tree.body) == 1 else "something is missing"


def test_every_ending_after_every_other(last):
    wrong = [(source, why) for first in ENDINGS for second in ENDINGS for source in [f"{first}\n{second}".encode()] if (why := judge(last, source))]
    assert wrong == []


def test_every_ending_alone(last):
    assert [(source, why) for source in ENDINGS if (why := judge(last, source.encode()))] == []


def test_pieces_of_the_standard_library(last):
    chance, wrong, cut = random.Random(5), [], 0
    for path in LIBRARY:
        lines = path.read_bytes().splitlines(keepends=True)
        for _ in range(6):
            source = b"".join(lines[:chance.randrange(len(lines) + 1)][-200:])
            why = judge(last, source)
            if why:
                wrong.append((path.name, source[-200:], why))
            cut += 1
    assert cut > 500 and wrong == []


@pytest.mark.parametrize("source, ways", [("print(1)", 1), ("x = 1\nprint(x)\n", 2), ("def f():\n    pass\nf(\n    1,\n)\n", 2), ("x = 1\n", 1), ("if __name__ == '__main__':\n    main()\n", 1)])
def test_common_programs_take_the_fast_way(last, source, ways):
    assert len(last.compile_in_two(source.encode(), "main.py")) == ways
