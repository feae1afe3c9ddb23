"""What a program shows: bundles of MIME types, in a run of its own and in calls of a context. The libraries here have only the names of the real ones."""
import base64
import json
import textwrap

import pytest

from live import Live

MIB = 1 << 20
PNG = b"\x89PNG\r\n\x1a\nx"
PNG_TEXT = base64.b64encode(PNG).decode()
CLASSES = f"""
class Rich:
    def __init__(self, **made): self.made = made
    def __repr__(self): return "<rich>"
    def _repr_html_(self): return self.made.get("html")
    def _repr_markdown_(self): return self.made.get("markdown")
    def _repr_latex_(self): return self.made.get("latex")
    def _repr_svg_(self): return self.made.get("svg")
    def _repr_png_(self): return self.made.get("png")
    def _repr_jpeg_(self): return self.made.get("jpeg")
    def _repr_pdf_(self): return self.made.get("pdf")
    def _repr_json_(self): return self.made.get("json")
    def _repr_javascript_(self): return self.made.get("javascript")
PNG = {PNG!r}
"""
LIBRARIES = {
    "matplotlib/__init__.py": "",
    "matplotlib/figure.py": """
        import warnings
        class Figure:
            def __init__(self, figsize=(6.4, 4.8), dpi=100, children=2):
                self.figsize, self.dpi, self.children, self.drawn = figsize, dpi, children, []
            def get_size_inches(self): return self.figsize
            def get_children(self): return [None] * self.children
            def savefig(self, file, format, dpi):
                if hasattr(self, "warns"): warnings.warn("while drawing")
                self.drawn.append(tuple(round(side * dpi) for side in self.figsize))
                file.write(b"\\x89PNG" + f"{self.drawn[-1][0]}x{self.drawn[-1][1]}".encode() + b" " * getattr(self, "bytes", 0))
            def _repr_html_(self): return None
            def __repr__(self): return "<Figure>"
        """,
    "matplotlib/pyplot.py": """
        import warnings
        from matplotlib.figure import Figure
        figures = {}
        def figure(number=None, **options):
            if number is None:
                number = max(figures, default=0) + 1
                figures[number] = Figure(**options)
            return figures[number]
        def get_fignums(): return sorted(figures)
        def close(figure):
            for number in [number for number in figures if figures[number] is figure]: del figures[number]
        def show(): warnings.warn("cannot be shown")
        """,
    "plotly/__init__.py": "",
    "plotly/basedatatypes.py": """
        class BaseFigure:
            text = '{"data": [{"x": [1, 2.5, null]}]}'
            def to_json(self): return self.text
            def __repr__(self): return "Figure({})"
            def _repr_html_(self): raise ValueError
            def show(self):
                import plotly.io
                plotly.io.show(self, renderer=None)
        """,
    "plotly/io.py": "def show(figure, renderer): raise OSError('no browser')",
    "PIL/__init__.py": "",
    "PIL/Image.py": """
        class Image:
            def __init__(self, mode, size, bytes=0): self.mode, (self.width, self.height), self.bytes = mode, size, bytes
            def save(self, file, kind): file.write(f"{kind} {self.mode} {self.width}x{self.height}".encode() + b" " * (self.bytes if kind == "PNG" else 0))
            def convert(self, mode): return Image(mode, (self.width, self.height), self.bytes)
            def copy(self): return Image(self.mode, (self.width, self.height), self.bytes)
            def thumbnail(self, size):
                self.bytes = self.bytes * size[0] * size[1] // (self.width * self.height)
                self.width, self.height = size
            def __repr__(self): return "<image>"
            def _repr_png_(self): return b"other"
            def show(self):
                from PIL import ImageShow
                ImageShow.show(self, title=None)
        """,
    "PIL/ImageShow.py": "def show(image, title): raise OSError('no viewer')",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in LIBRARIES.items():
        path = tmp_path / "libraries" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture(params=["a run", "a call"])
def report_of(request, guest, folder, pyc):
    """Of a program, in each of the ways to run one."""
    def run(source):
        source = f"import sys\nsys.path.insert(0, {str(folder / 'libraries')!r})\n{source}"
        done = guest(source)
        assert done.err == "", done.err
        return done.report

    def call(source):
        with Live(pyc, folder, [str(folder / "libraries")]) as live:
            done = live(source)
            assert done.err == "", done.err
            again = live("1").report
            assert {"displays", "bundle", "left_out"} & again.keys() == set(), "each call has its own"
            return done.report
    return run if request.param == "a run" else call


def shown(report):
    return [report.get("displays"), report.get("bundle"), report.get("left_out")]


class Row:
    def __init__(self, name, source, displays=None, bundle=None, left_out=None, **more):
        self.name, self.source, self.shown, self.more = name, source, [displays, bundle, left_out], more


PLAIN = {"text/plain": "<rich>"}
ROWS = [
    Row("nothing shown is no key", "x = 1\nx", result=1),
    Row("a value without more than a repr has no bundle", "class A:\n    def __repr__(self): return 'a'\nA()", result="a"),
    Row("display shows any value", "display(5)\ndisplay('a', [1])", [{"text/plain": "5"}, {"text/plain": "'a'"}, {"text/plain": "[1]"}]),
    Row("display has no value", "display(5)", [{"text/plain": "5"}], result=None),
    Row("display is a builtin that a program may hide", "display = 3\ndisplay", result=3),
    Row("HTML beside text", CLASSES + "display(Rich(html='<b>'))", [{**PLAIN, "text/html": "<b>"}]),
    Row("the last value is a bundle", CLASSES + "Rich(html='<b>', latex='$x$')", None, {**PLAIN, "text/html": "<b>", "text/latex": "$x$"}, result="<rich>"),
    Row("each method of notebooks", CLASSES + "Rich(html='h', markdown='m', latex='l', svg='<svg/>', png=PNG, jpeg=b'j', pdf=b'pdf', json={'a': [1, None]}, javascript='j()')", None,
        {**PLAIN, "text/html": "h", "text/markdown": "m", "text/latex": "l", "image/svg+xml": "<svg/>", "image/png": PNG_TEXT, "image/jpeg": "ag==", "application/pdf": "cGRm",
         "application/json": {"a": [1, None]}, "application/javascript": "j()"}),
    Row("a picture that is base64 already", CLASSES + f"display(Rich(png={PNG_TEXT!r}))", [{**PLAIN, "image/png": PNG_TEXT}]),
    Row("base64 that breaks off", CLASSES + "display(Rich(png='AAA', html='h'))", [{**PLAIN, "text/html": "h"}], None, ["display 1: image/png: binascii.Error: Incorrect padding"]),
    Row("data with metadata", CLASSES + "display(Rich(png=(PNG, {'width': 5})))", [{**PLAIN, "image/png": PNG_TEXT}]),
    Row("a bundle of its own", "class A:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'p', 'text/html': 'h', 'x/y': 'z', 5: 6}\nA()", None, {"text/plain": "p", "text/html": "h"}),
    Row("a bundle with metadata", "class A:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/latex': 'l'}, {}\n    def __repr__(self): return 'a'\nA()", None, {"text/plain": "a", "text/latex": "l"}),
    Row("a bundle of plotly's type", "class A:\n    def _repr_mimebundle_(self, **_): return {'application/vnd.plotly.v1+json': {'data': [float('nan')]}}\n    def __repr__(self): return 'a'\nA()", None,
        {"text/plain": "a", "application/vnd.plotly.v1+json": {"data": ["NaN"]}}),
    Row("a raw bundle", "display({'text/html': '<i>', 'image/png': b'x'}, raw=True)", [{"text/html": "<i>", "image/png": "eA=="}]),
    Row("a dictionary that is not raw", "display({'text/html': '<i>'})", [{"text/plain": "{'text/html': '<i>'}"}]),
    Row("an exception in one method leaves the others", "class A:\n    def _repr_html_(self): 1 / 0\n    def _repr_latex_(self): return 'l'\n    def __repr__(self): return 'a'\nA()", None, {"text/plain": "a", "text/latex": "l"}),
    Row("an exception in all of them leaves the repr", "class A:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): return 'a'\ndisplay(A())\nA()", [{"text/plain": "a"}], None, result="a"),
    Row("a repr that raises as well", "class A:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): 1 / 0\ndisplay(A())", [{"text/plain": "<A object whose repr() raised ZeroDivisionError>"}]),
    Row("a method that returns what it should not", CLASSES + "display(Rich(html=5, svg=b'x', png=7))", [PLAIN], None,
        ["display 1: text/html: TypeError: expected a text", "display 1: image/svg+xml: TypeError: expected a text", "display 1: image/png: TypeError: memoryview: a bytes-like object is required, not 'int'"]),
    Row("a class is not asked, its instances are", CLASSES + "display(Rich)", [{"text/plain": "<class '__main__.Rich'>"}]),
    Row("an object that has every attribute", "class A:\n    def __getattr__(self, name): return lambda *a, **k: 'x'\n    def __repr__(self): return 'a'\ndisplay(A())", [{"text/plain": "a"}]),
    Row("what was shown before an exception", "import sys\nsys.stderr = None\ndisplay(1)\n1 / 0", [{"text/plain": "1"}], exit_code=1),
    # bounds
    Row("a repr is cut", "display('x' * 100_000)", left_out=["display 1: text/plain is cut to 32768 characters"]),
    Row("HTML of more than two MiB is left out", CLASSES + "display(Rich(html='x' * (2 << 20), markdown='m'))", [{**PLAIN, "text/markdown": "m"}], None, ["display 1: text/html has more than 2 MiB"]),
    Row("bytes count, and not characters", CLASSES + "Rich(html='é' * (1 << 20))", None, None, ["the result: text/html has more than 2 MiB"]),
    Row("a picture of more than two MiB as base64", CLASSES + "display(Rich(png=bytes(1600 << 10)))", [PLAIN], None, ["display 1: image/png has more than 2 MiB"]),
    Row("JSON of more than two MiB", CLASSES + "display(Rich(json=['x' * 1000] * 2200))", [PLAIN], None, ["display 1: application/json has more than 2 MiB"]),
    Row("JSON of very many values", CLASSES + "display(Rich(json=[1] * 300_000))", [PLAIN], None, ["display 1: application/json has more than 2 MiB"]),
    Row("forty displays", "for i in range(40): display(i)", [{"text/plain": str(i)} for i in range(32)], None, ["8 more displays: a call shows at most 32"]),
    # libraries
    Row("a figure that is open at the end", "import matplotlib.pyplot as plt\nf = plt.figure()", [{"text/plain": "<Figure>", "image/png": base64.b64encode(b"\x89PNG640x480").decode()}], figures=1),
    Row("a figure that is shown is closed by that", "import matplotlib.pyplot as plt\nplt.figure()\nplt.show()\nx = plt.get_fignums()\nx",
        [{"text/plain": "<Figure>", "image/png": base64.b64encode(b"\x89PNG640x480").decode()}], figures=1, result=[]),
    Row("show() of figures, then others", "import matplotlib.pyplot as plt\nplt.figure(figsize=(8, 4))\nplt.show(block=True)\ndisplay(1)\nplt.figure(figsize=(4, 8))", None, figures=2),
    Row("from matplotlib.pyplot import show", "from matplotlib.pyplot import *\nfigure()\nshow()", figures=1),
    Row("a figure that is the last value is shown once", "import matplotlib.pyplot as plt\nplt.figure()", None, {"text/plain": "<Figure>", "image/png": base64.b64encode(b"\x89PNG640x480").decode()}, figures=1),
    Row("a figure that nobody keeps open", "from matplotlib.figure import Figure\nFigure()", None, {"text/plain": "<Figure>", "image/png": base64.b64encode(b"\x89PNG640x480").decode()}),
    Row("a figure without anything in it is not shown", "import matplotlib.pyplot as plt\nf = plt.figure(children=1)", figures=1),
    Row("ten figures", "import matplotlib.pyplot as plt\nfor i in range(10): plt.figure()", left_out=["2 more figures: a call shows at most 8"], figures=10),
    Row("a figure that cannot be drawn leaves its repr", "import matplotlib.pyplot as plt\nplt.figure().get_size_inches = lambda: 1 / 0", [{"text/plain": "<Figure>"}], None, ["display 1: ZeroDivisionError: division by zero"]),
    Row("a figure that is larger than two MiB is drawn smaller", "import matplotlib.pyplot as plt\nf = plt.figure(dpi=190)\nf.bytes = 3 << 20\nplt.show()\nf.drawn", [{"text/plain": "<Figure>"}], None, ["display 1: image/png has more than 2 MiB"], result=[[1216, 912], [640, 480]]),
    Row("plotly shows its JSON", "import plotly.basedatatypes as p\np.BaseFigure().show()", [{"text/plain": "Figure({})", "application/vnd.plotly.v1+json": {"data": [{"x": [1, 2.5, None]}]}}]),
    Row("and as a value", "import plotly.basedatatypes as p\np.BaseFigure()", None, {"text/plain": "Figure({})", "application/vnd.plotly.v1+json": {"data": [{"x": [1, 2.5, None]}]}}),
    Row("text of plotly that is no JSON", "import plotly.basedatatypes as p\nf = p.BaseFigure()\nf.text = '{]'\ndisplay(f)", [{"text/plain": "Figure({})"}], None,
        ["display 1: json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"]),
    Row("an image is shown", "from PIL.Image import Image\nImage('RGB', (3, 4)).show()\nImage('CMYK', (3, 4))", [{"text/plain": "<image>", "image/png": base64.b64encode(b"PNG RGB 3x4").decode()}],
        {"text/plain": "<image>", "image/png": base64.b64encode(b"PNG RGB 3x4").decode()}),
    Row("a large image is shown smaller", "from PIL.Image import Image\nImage('L', (4000, 3000), 12 << 20)", None, None, ["the result: the image of 4000 x 3000 is shown as 1280 x 960"], figures=None),
    Row("a larger one as JPEG", "from PIL.Image import Image\nImage('L', (4000, 3000), 50 << 20)", None, {"text/plain": "<image>", "image/jpeg": base64.b64encode(b"JPEG RGB 1280x960").decode()},
        ["the result: the image of 4000 x 3000 is shown as 1280 x 960"]),
    Row("a library that breaks", "import sys, types\nsys.modules['matplotlib.pyplot'] = types.ModuleType('x')\nsys.modules['matplotlib.pyplot'].get_fignums = lambda: [1]\nsys.modules['matplotlib.pyplot'].figure = lambda n: 5\n1", result=None, exit_code=0),
]
ANY = {"show() of figures, then others", "from matplotlib.pyplot import show", "ten figures", "a repr is cut", "a large image is shown smaller"}


@pytest.mark.diagonal("report_of")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_a_program_shows(report_of, row):
    report = report_of(row.source)
    if row.name in ANY:
        assert row.shown[2] == report.get("left_out")
    else:
        assert shown(report) == row.shown
    for key, value in row.more.items():
        assert report.get(key) == value, key


def test_figures_are_drawn_with_one_to_two_times_640_x_480(report_of):
    sizes = [(6.4, 4.8), (12, 4), (20, 10), (2, 2), (1, 9), (6.4, 4.8, 200), (6.4, 4.8, 20), (0.1, 0.1)]
    report = report_of("import matplotlib.pyplot as plt\ndrawn = []\nfor width, height, *dpi in %r:\n    f = plt.figure(figsize=(width, height), dpi=(dpi or [100])[0])\n    plt.show()\n    drawn.append(f.drawn[0])\ndrawn" % sizes)
    for width, height in report["result"]:
        assert 0.99 <= max(width / 640, height / 480) <= 2.01, (width, height)
    assert report["result"][:2] == [[640, 480], [1200, 400]], "its own size, where that is within these bounds"


def test_what_a_library_warns_of_while_a_figure_is_drawn_is_printed(guest, folder):
    done = guest(f"import sys\nsys.path.insert(0, {str(folder / 'libraries')!r})\nimport matplotlib.pyplot as plt\nf = plt.figure()\nf.warns = True")
    assert len(done.report["displays"]) == 1 and done.err == "UserWarning: while drawing\n"


def test_everything_that_is_shown_has_six_mib(report_of):
    report = report_of(CLASSES + "for i in range(5): display(Rich(html='x' * ((2 << 20) - 100)))\nRich(html='y')")
    assert sum("text/html" in one for one in report["displays"]) == 2 + 1 and len(json.dumps(report)) < 8 * MIB
    assert report["left_out"] == [f"display {i}: text/html is left out: all that a call shows has at most 6 MiB" for i in (4, 5)] and report["bundle"]["text/html"] == "y"


def test_sentences_about_what_is_left_out_are_bounded(report_of):
    report = report_of(CLASSES + "for i in range(32): display(Rich(html=1, markdown=1, latex=1, svg=1))")
    assert len(report["left_out"]) == 50 and len(report["displays"]) == 32


def test_a_program_that_shows_nothing_imports_nothing_and_has_no_class_of_ours(guest):
    done = guest("import sys\n[sorted(sys.modules), [c.__name__ for c in object.__subclasses__()], [type(f).__name__ for f in sys.meta_path]]")
    modules, classes, finders = done.report["result"]
    bare = guest.plain("import sys; print(*sys.modules)").out.split() # what this host's site-packages import is not ours
    assert not {"binascii", "warnings"} & (set(modules) - set(bare)) and not {"TooMuch", "Finder", "Json"} & set(classes)
    assert finders.count("SimpleNamespace") == 1


def test_a_module_that_is_looked_for_and_not_imported_is_still_hooked(report_of):
    report = report_of("import importlib.util\nimportlib.util.find_spec('matplotlib.pyplot')\nimport matplotlib.pyplot as plt\nf = plt.figure()\nplt.show()\n[plt.__spec__.loader is plt.__loader__, plt.__name__, 'exec_module' in vars(plt.__loader__)]")
    assert len(report["displays"]) == 1 and report["result"] == [True, "matplotlib.pyplot", False]


def test_a_module_that_cannot_be_imported_fails_as_always(guest):
    done = guest("import matplotlib.pyplot")
    plain = guest.plain("import matplotlib.pyplot")
    assert (done.status, done.err) == (plain.status, plain.err)


def test_figures_of_earlier_calls_are_drawn_again_when_they_are_the_value(folder, pyc):
    with Live(pyc, folder, [str(folder / "libraries")]) as live:
        first = live("import matplotlib.pyplot as plt\nf = plt.figure()\n1").report
        assert len(first["displays"]) == 1 and first["figures"] == 1
        again = live("f").report
        assert "image/png" in again["bundle"] and "displays" not in again and "figures" not in again
        assert live("display(f)").report["displays"] == first["displays"]
        assert len(live("for i in range(3): plt.figure()\nplt.show()").report["displays"]) == 3


def test_a_repr_that_never_ends_is_interrupted_and_the_context_stays(folder, pyc):
    with Live(pyc, folder) as live:
        done = live.begin("class A:\n    def _repr_html_(self):\n        print('on', flush=True)\n        while True: pass\nA()").until("on").interrupt().done()
        assert done.report["result"] is None and done.exit_code == 0
        done = live.begin("display(A())").until("on").interrupt().done()
        assert done.error == "KeyboardInterrupt" and done.exit_code == 130
        assert live("1").value == 1


def test_what_a_thread_shows_between_calls_is_in_the_next(folder, pyc):
    with Live(pyc, folder) as live:
        live("import threading\nend = threading.Event()\ndef run():\n    end.wait()\n    display('late')\nthread = threading.Thread(target=run)\nthread.start()\nthreading.Timer(0.05, end.set).start()")
        assert live("thread.join()\n1").report["displays"] == [{"text/plain": "'late'"}]
