"""Packages from an index: pip in a jail reaches that index and nothing else, and the program reaches nothing because of it."""
import json

import pytest

from support import host

ANSWER = "import tiny; print(tiny.answer)"
REACH = "import urllib.request as r\ntry:\n    print(r.urlopen('https://pypi.org/simple/tiny/', timeout=20).status)\nexcept OSError as e:\n    print('not reached')\n"


@pytest.fixture
def shop(internet, jail):
    """Every layer is made anew."""
    lack = host.lacks("rootfs:basic")
    if lack:
        pytest.skip(lack)
    store = internet.store("basic")
    for layer in (store / "layers").glob("*"):
        layer.unlink()
    return internet


def asked(internet, before):
    """(host, path) of what nginx answered since."""
    return [(one["host"], one["request"].split()[1]) for one in internet.requests()[before:]]


def run(shop, *words, env=None):
    return shop.brig(*words, env={"BRIG_STORE": str(shop.store("basic")), **(env or {})}, json_record=False, program=None)


@pytest.mark.gate
def test_a_private_run_takes_packages_from_pypi_and_its_program_reaches_nothing(shop):
    before = len(shop.requests())
    done = run(shop, "--with", "tiny", "-c", ANSWER + "\n" + REACH)
    assert (done.status, done.stdout) == (0, "42\nnot reached\n"), done
    assert {name for name, _ in asked(shop, before)} == {"pypi.org"}, asked(shop, before)
    after = len(shop.requests())
    assert run(shop, "--with", "tiny", "-c", ANSWER).stdout == "42\n" and asked(shop, after) == []
    assert run(shop, "--net", "pypi.org", "--with", "tiny", "-c", REACH).stdout == "200\n" # the control


@pytest.mark.nightly
def test_pip_reaches_only_the_index_that_was_named(shop):
    """At evil.example the same files lie; the page of this index refers to them there."""
    page = shop.folder / "www" / "elsewhere" / "tiny"
    page.mkdir(parents=True, exist_ok=True)
    wheel = (shop.folder / "www/simple/tiny/index.html").read_text()
    (page / "index.html").write_text(wheel.replace('href="', 'href="https://evil.example/simple/tiny/'))
    before = len(shop.requests())
    done = run(shop, "--index", "https://pypi.example/elsewhere/", "--with", "tiny", "-c", ANSWER)
    assert done.status == 125 and "evil.example" in done.stderr and done.stdout == "", done
    assert {name for name, _ in asked(shop, before)} == {"pypi.example"}, asked(shop, before)
    allowed = run(shop, "--index", "https://pypi.example/simple/", "--with", "tiny", "-c", ANSWER)
    assert (allowed.status, allowed.stdout) == (0, "42\n"), allowed


@pytest.mark.nightly
def test_a_service_resolves_at_the_index_of_its_profile_and_at_no_other(shop, tmp_path):
    (tmp_path / "open.json").write_text(json.dumps({"extends": "basic", "packages": {"index": "https://pypi.example/simple/"}}))
    env = {"BRIG_PROFILES": str(tmp_path), "BRIG_STORE": str(shop.store("basic"))}
    with shop.daemon(env=env) as service:
        env["BRIG_SOCKET"] = str(service.path)
        before = len(shop.requests())
        done = run(shop, "-p", "open", "--with", "tiny", "-c", ANSWER + "\n" + REACH, env=env)
        assert (done.status, done.stdout) == (0, "42\nnot reached\n"), done
        assert {name for name, _ in asked(shop, before)} == {"pypi.example"}
        other = run(shop, "-p", "open", "--index", "https://pypi.org/simple/", "--with", "tiny", "-c", ANSWER, env=env)
        assert other.status == 125 and "profile open takes packages from https://pypi.example/simple/ alone" in other.stderr, other
        for words in (["--net", "pypi.example"], ["-p", "basic"]):
            refused = run(shop, *words, *(["-p", "open"] if words[0] == "--net" else []), "--with", "tiny", "-c", ANSWER, env=env)
            assert refused.status == 125 and refused.stdout == "", refused
