"""The libraries of the data-science and network rootfs, each imported and used in its jail, within its profile's limits."""
import shutil
import textwrap

import pytest

from support import host

# sentence, program; it prints nothing but "fine", and nothing goes to stderr: a warning is a failure
NUMBERS = [
    ("numpy solves equations and finds eigenvalues", r"""
        import numpy as np
        a = np.array([[3.0, 1.0], [1.0, 2.0]])
        assert np.allclose(np.linalg.solve(a, [9, 8]), [2, 3])
        assert np.allclose(np.linalg.eigvalsh([[2, 0], [0, 5]]), [2, 5])
        b = np.random.default_rng(1).random((300, 300))
        assert np.allclose(np.linalg.inv(b) @ b, np.eye(300)) and abs(np.fft.fft(np.ones(8))[0] - 8) < 1e-12"""),
    ("pandas groups, joins, reads CSV and resamples", r"""
        import io, pandas as pd
        d = pd.read_csv(io.StringIO("town,year,n\nA,2020,1\nB,2020,2\nA,2021,3\n"))
        assert d.groupby("town")["n"].sum().to_dict() == {"A": 4, "B": 2}
        assert d.merge(pd.DataFrame({"town": ["A"], "size": [10]}))["size"].tolist() == [10, 10]
        assert d.pivot(index="town", columns="year", values="n").loc["A", 2021] == 3
        t = pd.Series(range(48), index=pd.date_range("2024-01-01", periods=48, freq="60min", tz="Europe/Berlin"))
        assert t.resample("D").sum().tolist() == [276, 852]
        d.to_pickle("d.pickle"); assert pd.read_pickle("d.pickle").equals(d)"""),
    ("scipy integrates, optimises, fits and tests", r"""
        import numpy as np
        from scipy import integrate, interpolate, optimize, signal, sparse, special, stats
        assert abs(integrate.quad(np.sin, 0, np.pi)[0] - 2) < 1e-12
        assert abs(optimize.brentq(lambda x: x * x - 2, 0, 2) - 2 ** 0.5) < 1e-10
        assert np.allclose(optimize.minimize(lambda p: (p[0] - 1) ** 2 + (p[1] + 2) ** 2, [0, 0]).x, [1, -2], atol=1e-4)
        assert abs(stats.norm.cdf(1.959964) - 0.975) < 1e-6 and abs(special.gamma(5) - 24) < 1e-12
        assert stats.linregress([0, 1, 2, 3], [1, 3, 5, 7]).slope == 2 and sparse.eye(5).sum() == 5
        assert abs(float(interpolate.CubicSpline([0, 1, 2], [0, 1, 4])(1.5)) - 2.25) < 1e-9
        assert len(signal.butter(3, 0.1)[0]) == 4 and abs(integrate.solve_ivp(lambda t, y: -y, (0, 1), [1], rtol=1e-8).y[0, -1] - np.exp(-1)) < 1e-6"""),
    ("matplotlib draws with Agg and writes PNG, SVG and PDF", r"""
        import struct, matplotlib, matplotlib.pyplot as plt
        from mpl_toolkits.mplot3d import Axes3D
        assert matplotlib.get_backend().lower() == "agg"
        fig, (ax, _) = plt.subplots(1, 2, figsize=(6.4, 4.8)); ax.plot([1, 2, 3], label="line"); ax.set_title(r"$\int_0^1 x^2\,dx$ ä"); ax.legend()
        fig.add_subplot(projection="3d"); fig.savefig("f.png", dpi=100); fig.savefig("f.svg"); fig.savefig("f.pdf"); plt.show()
        head = open("f.png", "rb").read(24)
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (640, 480)
        assert open("f.svg").read(5) == "<?xml" and open("f.pdf", "rb").read(5) == b"%PDF-" """),
    ("Pillow makes, saves and reads a picture with text", r"""
        from PIL import Image, ImageDraw, ImageFont
        i = Image.new("RGB", (60, 40), "white"); ImageDraw.Draw(i).text((5, 5), "ä", "black", ImageFont.truetype("DejaVuSans.ttf", 20))
        for kind in "png", "jpeg", "tiff", "webp": i.save("i." + kind); assert Image.open("i." + kind).size == (60, 40)
        assert min(i.convert("L").getdata()) < 64"""),
    ("seaborn draws a regression and a heat map", r"""
        import numpy as np, pandas as pd, seaborn as sns
        d = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) * 2, "kind": list("ab") * 10})
        ax = sns.regplot(data=d, x="x", y="y"); ax.figure.savefig("r.png"); assert len(ax.lines) == 1
        sns.set_theme(); sns.relplot(data=d, x="x", y="y", hue="kind").savefig("h.png"); sns.heatmap(d[["x", "y"]].corr())
        assert open("h.png", "rb").read(4) == b"\x89PNG" """),
    ("scikit-learn fits, predicts and scores", r"""
        from sklearn.datasets import load_iris, make_blobs
        from sklearn.cluster import KMeans
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LinearRegression
        from sklearn.model_selection import cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        m = LinearRegression().fit([[0], [1], [2]], [1, 3, 5]); assert abs(m.predict([[10]])[0] - 21) < 1e-9
        x, y = load_iris(return_X_y=True); assert cross_val_score(make_pipeline(StandardScaler(), SVC()), x, y).mean() > 0.9
        assert RandomForestClassifier(20, random_state=0).fit(x, y).score(x, y) > 0.95
        b, _ = make_blobs(60, centers=3, random_state=0, cluster_std=0.1); assert len(set(KMeans(3, n_init=3, random_state=0).fit_predict(b))) == 3"""),
    ("statsmodels does OLS, with a formula, and knows time series", r"""
        import numpy as np, pandas as pd, statsmodels.api as sm, statsmodels.formula.api as smf
        from statsmodels.tsa.arima.model import ARIMA
        x = np.arange(30.0); y = 3 * x + 5 + np.sin(x) * 0.01
        fit = sm.OLS(y, sm.add_constant(x)).fit(); assert np.allclose(fit.params, [5, 3], atol=0.05) and fit.rsquared > 0.999
        assert "OLS Regression Results" in str(fit.summary())
        assert abs(smf.ols("y ~ x", pd.DataFrame({"x": x, "y": y})).fit().params["x"] - 3) < 0.01
        assert len(ARIMA(np.random.default_rng(0).normal(size=80), order=(1, 0, 0)).fit().forecast(3)) == 3
        assert len(sm.datasets.longley.load_pandas().data) == 16"""),
    ("sympy solves, integrates and prints", r"""
        import sympy as s
        x = s.symbols("x"); assert set(s.solve(x ** 2 - 5 * x + 6)) == {2, 3}
        assert s.integrate(s.sin(x), (x, 0, s.pi)) == 2 and s.latex(s.sqrt(x)) == r"\sqrt{x}" and s.factorint(2 ** 61 - 1) == {2 ** 61 - 1: 1}
        assert abs(s.lambdify(x, s.exp(x), "numpy")(1.0) - 2.718281828) < 1e-8 and s.N(s.pi, 30) > 3"""),
    ("plotly makes figures, JSON and a page that needs no server", r"""
        import json, plotly.express as px, plotly.graph_objects as go
        f = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]), layout={"title": "t"}); d = json.loads(f.to_json())
        assert d["data"][0]["y"] == [3, 4] and d["layout"]["title"]["text"] == "t"
        assert len(px.scatter(px.data.iris(), x="sepal_width", y="sepal_length", color="species").data) == 3
        f.write_html("f.html"); assert "Plotly.newPlot" in open("f.html").read()"""),
    ("pandas writes and reads Excel, HTML, Markdown and styles", r"""
        import io, pandas as pd
        d = pd.DataFrame({"town": ["A", "ä"], "n": [1, 2]})
        d.to_excel("d.xlsx", index=False); assert pd.read_excel("d.xlsx").equals(d)
        assert pd.read_html(io.StringIO(d.to_html(index=False)), flavor="lxml")[0].equals(d) and d.to_markdown(index=False).splitlines()[0] == "| town   |   n |"
        assert "<table" in d.style.highlight_max(subset=["n"]).to_html()"""),
    ("bs4 and lxml find what is in a page, requests and yaml parse", r"""
        import bs4, lxml.html, requests, yaml
        page = "<p class=x>one<p>two"
        assert bs4.BeautifulSoup(page, "lxml").find("p", class_="x").text == "one" and lxml.html.fromstring(page).xpath("count(//p)") == 2
        assert yaml.safe_load("a: [1, 2]") == {"a": [1, 2]} and requests.Request("GET", "http://a.test/", params={"b": "c"}).prepare().url == "http://a.test/?b=c" """),
    ("networkx finds ways, jinja2 fills in, tqdm counts", r"""
        import jinja2, networkx as nx, sys, tqdm
        assert nx.shortest_path(nx.cycle_graph(6), 0, 2) == [0, 1, 2] and max(nx.pagerank(nx.star_graph(4)).items(), key=lambda one: one[1])[0] == 0
        assert jinja2.Template("{% for x in xs %}{{ x }};{% endfor %}").render(xs=[1, 2]) == "1;2;"
        assert sum(tqdm.tqdm(range(4), file=open("progress", "w"))) == 6 and "4/4" in open("progress").read()"""),
    ("numpy and friends find their versions", r"""
        from importlib.metadata import version
        for name in "numpy pandas scipy matplotlib seaborn scikit-learn statsmodels sympy plotly openpyxl networkx".split(): assert version(name)"""),
]

NETWORK = [
    ("requests and httpx talk to a server in a thread", r"""
        import http.server, threading, httpx, requests
        class Hello(http.server.BaseHTTPRequestHandler):
            def do_GET(self): self.send_response(200); self.send_header("Content-Length", "5"); self.end_headers(); self.wfile.write(b"hello")
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello); threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        assert requests.get(url, timeout=50).text == "hello" and httpx.get(url, timeout=50).text == "hello"
        with requests.Session() as s, httpx.Client() as c: assert s.get(url).status_code == c.get(url).status_code == 200
        server.shutdown()"""),
    ("httpx and aiohttp talk to an aiohttp server, JSON both ways", r"""
        import asyncio, aiohttp, httpx
        from aiohttp import web
        async def double(request): return web.json_response({"twice": 2 * (await request.json())["n"]})
        async def main():
            app = web.Application(); app.router.add_post("/", double)
            runner = web.AppRunner(app); await runner.setup(); site = web.TCPSite(runner, "127.0.0.1", 0); await site.start()
            url = "http://127.0.0.1:%d/" % runner.addresses[0][1]
            async with aiohttp.ClientSession() as s, s.post(url, json={"n": 4}) as r: assert await r.json() == {"twice": 8}
            async with httpx.AsyncClient() as c: assert (await c.post(url, json={"n": 5})).json() == {"twice": 10}
            await runner.cleanup()
        asyncio.run(main())"""),
    ("websockets serves an echo to itself and to websocket", r"""
        import asyncio, websocket, websockets
        async def echo(s):
            async for message in s: await s.send(message)
        def other(url):
            c = websocket.create_connection(url, timeout=50); c.send("ä" * 70000); answer = c.recv(); c.close(); return answer
        async def main():
            async with websockets.serve(echo, "127.0.0.1", 0) as server:
                url = "ws://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
                async with websockets.connect(url) as c: await c.send("x"); assert await c.recv() == "x"
                assert await asyncio.to_thread(other, url) == "ä" * 70000
        asyncio.run(main())"""),
    ("there is no network but the loopback, and the libraries say so", r"""
        import requests
        try: requests.get("http://192.0.2.1/", timeout=5); raise SystemExit("answered")
        except requests.ConnectionError: pass"""),
]

# Ways to do several things at once, as programs with numbers do them.
AT_ONCE = [
    ("joblib with processes", ("--cpus", "2"), r"""
        from joblib import Parallel, delayed
        assert Parallel(n_jobs=2)(delayed(pow)(i, 2) for i in range(10)) == [i * i for i in range(10)]"""),
    ("joblib with as many workers as there are", ("--cpus", "2"), r"""
        from joblib import Parallel, delayed
        assert Parallel(n_jobs=-1)(delayed(abs)(-i) for i in range(10)) == list(range(10))"""),
    ("joblib with threads and with multiprocessing", (), r"""
        from joblib import Parallel, delayed
        for how in "threading", "multiprocessing": assert Parallel(n_jobs=2, backend=how)(delayed(abs)(-i) for i in range(10)) == list(range(10))"""),
    ("scikit-learn with n_jobs=2", ("--cpus", "2"), r"""
        from sklearn.datasets import load_iris
        from sklearn.model_selection import GridSearchCV
        from sklearn.tree import DecisionTreeClassifier
        x, y = load_iris(return_X_y=True)
        assert GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, n_jobs=2).fit(x, y).best_params_ == {"max_depth": 3}"""),
    ("numpy in threads", ("--cpus", "2"), r"""
        import numpy as np
        from concurrent.futures import ThreadPoolExecutor
        a = np.random.default_rng(0).random((400, 400))
        with ThreadPoolExecutor(4) as pool: assert all(np.allclose(r, a @ a) for r in pool.map(lambda _: a @ a, range(8)))"""),
    ("numpy in forks, after it has computed in the parent", ("--cpus", "2"), r"""
        import multiprocessing, numpy as np
        a = np.ones((500, 500)); a @ a
        def total(n): return float((a @ a).sum()) * n
        with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(total, [1, 2]) == [125e6, 250e6]"""),
    ("numpy over shared memory, by spawn", (), r"""
        import numpy as np, multiprocessing as m
        from multiprocessing.shared_memory import SharedMemory
        def fill(name): s = SharedMemory(name); np.ndarray(1000, float, s.buf)[:] = 7; s.close()
        if __name__ == "__main__":
            s = SharedMemory(create=True, size=8000); p = m.get_context("spawn").Process(target=fill, args=(s.name,)); p.start(); p.join()
            assert p.exitcode == 0 and np.ndarray(1000, float, s.buf).sum() == 7000; s.close(); s.unlink()"""),
    ("pools of the default size, on however large a host", ("--pids", "20"), r"""
        import concurrent.futures, multiprocessing
        with multiprocessing.Pool() as pool: assert pool.map(abs, range(-5, 0)) == [5, 4, 3, 2, 1]
        for how in concurrent.futures.ProcessPoolExecutor, concurrent.futures.ThreadPoolExecutor:
            with how() as pool: assert list(pool.map(abs, range(-5, 0))) == [5, 4, 3, 2, 1]"""),
]


@pytest.fixture(scope="module")
def needs(jail):
    """needs("network") skips, and says what builds it, when that rootfs is not in the store."""
    def check(name):
        lack = host.lacks(f"rootfs:{name}")
        if lack:
            pytest.skip(lack)
    return check


def works(run_brig, options, program):
    run = run_brig(*options, program=textwrap.dedent(program) + "\nif __name__ == '__main__': print('fine')")
    assert (run.status, run.reason, run.out, run.record["stderr"]) == (0, "exited", "fine\n", ""), str(run)
    return run


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", [row[1] for row in NUMBERS], ids=[row[0] for row in NUMBERS])
@pytest.mark.requirement("A70", "A71", "A72", "A111")
def test_numbers(needs, run_brig, program):
    needs("data-science")
    works(run_brig, ["-p", "data-science"], program)


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", [row[1] for row in NETWORK], ids=[row[0] for row in NETWORK])
@pytest.mark.requirement("A73", "A74", "A75", "A111")
def test_network(needs, run_brig, program):
    needs("network")
    works(run_brig, ["-p", "network"], program)


@pytest.mark.sample(1)
@pytest.mark.parametrize("options, program", [row[1:] for row in AT_ONCE], ids=[row[0] for row in AT_ONCE])
def test_at_once(needs, run_brig, options, program):
    needs("data-science")
    works(run_brig, ["-p", "data-science", *options], program)


def test_numpy_computes_under_the_strict_policy_too(needs, run_brig, tmp_path):
    needs("data-science")
    for policy in (host.REPO / "profiles").glob("*.policy"):
        shutil.copy(policy, tmp_path)
    (tmp_path / "numbers.json").write_text('{"rootfs": "data-science", "policy": "python-strict", "workspace_exec": false, "require": "all"}')
    run = run_brig("-p", "numbers", env={"BRIG_PRESETS": str(tmp_path)}, program="""
import numpy as np
a = np.random.default_rng(1).random((300, 300)); assert np.allclose(np.linalg.inv(a) @ a, np.eye(300)); print("fine")""")
    assert (run.status, run.out, run.record["stderr"]) == (0, "fine\n", ""), str(run)


@pytest.mark.nightly
@pytest.mark.private("a zygote has one thread when it imports numpy, and so has each fork's OpenBLAS")
@pytest.mark.parametrize("cpus, threads", [("1", 1), ("2", 2), ("1.5", 2), ("0.5", 1)], ids=lambda value: str(value))
def test_every_library_has_as_many_threads_as_cpus(needs, run_brig, cpus, threads):
    """threadpoolctl asks the libraries themselves. (On a machine with fewer CPUs joblib has fewer workers.)"""
    needs("data-science")
    run = run_brig("-p", "data-science", "--cpus", cpus, program="""
import joblib, numpy, scipy.linalg, sklearn.utils._openmp_helpers as omp, threadpoolctl
import sklearn.ensemble
pools = {row["user_api"]: row["num_threads"] for row in threadpoolctl.threadpool_info()}
print(pools["blas"], pools["openmp"], omp._openmp_effective_n_threads(), joblib.cpu_count())""")
    assert [int(word) for word in run.out.split()] == [threads, threads, threads, min(threads, host.cpus())], str(run)
