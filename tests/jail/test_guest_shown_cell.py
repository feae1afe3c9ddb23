"""What the real libraries show, where they are: in cells, by runs of their own and by calls of a context."""
import base64
import json
import struct

import pytest

from support import client, host, tiers

PROFILE = "data-science"


@pytest.fixture(autouse=True)
def needs_libraries():
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)


@pytest.fixture
def caller(service):
    with client.Client.at(service.path) as caller:
        yield caller


def report_of(run):
    ended = run.finish()
    assert ended.reason == "exited" and ended.stderr == "", ended
    return json.loads(bytes(run.text["result"]))


@pytest.fixture(params=tiers.few(["a run", "a call"], "a run"))
def shown_by(request, caller):
    """The report of a program, in each of the ways to run one."""
    def run(source):
        return report_of(caller.start(source, profile=PROFILE, mode="report"))

    def call(source):
        tag = caller.begin("open", profile=PROFILE)
        opened = caller.until(lambda body: body.get("tag") == tag and (body.get("event") == "opened" or "error" in body)).body
        report = report_of(caller.start(source, session=opened["session"]))
        assert not {"displays", "bundle", "left_out", "figures"} & report_of(caller.start("1", session=opened["session"])).keys()
        caller.ask("close", session=opened["session"])
        return report
    return run if request.param == "a run" else call


def size_of(bundle):
    data = base64.b64decode(bundle["image/png"], validate=True)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_figures_of_matplotlib_are_shown_and_closed(shown_by):
    report = shown_by("""
import warnings
warnings.simplefilter("error")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.show()
fig, ax = plt.subplots(figsize=(20, 10))
ax.plot([3, 1])
plt.figure()
display("between")
plt.get_fignums()
""")
    assert report["result"] == [1, 2] and report["figures"] == 3
    first, between, second = report["displays"]
    assert size_of(first) == (640, 480) and first["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    assert between == {"text/plain": "'between'"} and size_of(second) == (1280, 640)


def test_what_is_drawn_beside_the_axes_is_not_cut_off(shown_by):
    report = shown_by("import matplotlib.pyplot as plt\nplt.plot([1, 2], label='outside')\nplt.legend(bbox_to_anchor=(1.6, 1))\nNone")
    width, height = size_of(report["displays"][0])
    assert width > 700 and height == 480


@pytest.mark.nightly
def test_a_figure_of_seaborn_and_one_of_pandas(shown_by):
    report = shown_by("import seaborn, pandas\nd = pandas.DataFrame({'a': [1, 2, 3], 'b': [3, 1, 2]})\nseaborn.scatterplot(d, x='a', y='b')\nd.plot()\nNone")
    assert [size_of(one) for one in report["displays"]] == [(640, 480)] * 2


def test_a_data_frame_is_text_and_a_table(shown_by):
    report = shown_by("import pandas\npandas.DataFrame({'a': [1, 2]})")
    assert report["bundle"]["text/plain"] == report["result"] == "   a\n0  1\n1  2"
    assert report["bundle"]["text/html"].count("<td>") == 2 and "<table" in report["bundle"]["text/html"]


def test_a_large_data_frame_is_shown_as_pandas_abbreviates_it(shown_by):
    report = shown_by("import pandas\npandas.DataFrame({str(i): range(100_000) for i in range(50)})")
    assert len(json.dumps(report["bundle"])) < 100_000 and "[100000 rows x 50 columns]" in report["bundle"]["text/plain"]


def test_a_formula_of_sympy_is_latex(shown_by):
    report = shown_by("import sympy\nx = sympy.Symbol('x')\nsympy.Integral(x**2, x)")
    assert report["bundle"] == {"text/plain": "Integral(x**2, x)", "text/latex": "$\\displaystyle \\int x^{2}\\, dx$"}


def test_a_figure_of_plotly_is_its_json(shown_by):
    report = shown_by("import plotly.graph_objects as go, numpy\nf = go.Figure(go.Scatter(x=numpy.arange(3), y=[1, 2, float('nan')]))\nf.show()\nf")
    for bundle in *report["displays"], report["bundle"]:
        assert bundle["application/vnd.plotly.v1+json"]["data"][0]["x"] == [0, 1, 2] and bundle["text/plain"].startswith("Figure({")
        assert set(bundle) == {"application/vnd.plotly.v1+json", "text/plain"}


def test_an_image_of_pillow_is_a_picture(shown_by):
    report = shown_by("from PIL import Image\nImage.new('CMYK', (30, 20)).show()\nImage.new('L', (5, 4))")
    assert size_of(report["displays"][0]) == (30, 20) and size_of(report["bundle"]) == (5, 4)


@pytest.mark.nightly
def test_an_image_that_is_too_large_is_made_smaller(shown_by):
    report = shown_by("from PIL import Image\nimport numpy\nImage.fromarray(numpy.random.randint(0, 255, (3000, 2000, 3), dtype='uint8'))")
    assert report["left_out"] == ["the result: the image of 2000 x 3000 is shown as 640 x 960"] and {"image/png", "image/jpeg"} & set(report["bundle"])


def test_a_figure_that_cannot_be_drawn_is_told(shown_by):
    report = shown_by("import matplotlib.pyplot as plt\nplt.title('$\\\\broken{$')\nNone")
    assert set(report["displays"][0]) == {"text/plain"} and report["left_out"][0].startswith("display 1: ValueError: ")


def test_a_run_that_shows_nothing_finds_nothing_of_it(caller):
    """Nor of what a zygote has rehearsed."""
    look = "import builtins, sys\nprint(hasattr(builtins, 'display'), [type(f).__name__ for f in sys.meta_path].count('SimpleNamespace'), 'binascii' in sys.modules)"
    assert caller.run(look, profile="basic").stdout == "False 0 False\n"
    run = caller.start(look, profile="basic", mode="report")
    assert run.finish().stdout == "True 1 False\n"
