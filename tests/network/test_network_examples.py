"""What README and the guide of the network say, typed as it stands there."""
import json
import os
import re

import pytest

from support import host
from support import internet as internets

SAYS = re.compile(r"^(?:\./dev rootfs network && )?((?:[A-Z_]+=\S+ )*brig run .*)$", re.MULTILINE)


def lines(page):
    """The commands of a page that have a network."""
    text = "\n".join(re.findall(r"```sh\n(.*?)```", host.read(host.REPO / page), re.DOTALL))
    return [line for line in SAYS.findall(text) if "--net" in line or "examples/network" in line]


LINES = [pytest.param(page, line, id=f"{page}: {line[:60]}") for page in ("README.md", "docs/guide/network.md") for line in lines(page)]


def typed(net, line):
    env = {**os.environ, **net.environment(), "PATH": f"{host.build_dir() / 'bin'}:{os.environ['PATH']}"}
    return net.host.run("sh", "-c", line, check=False, env={name: word for name, word in env.items() if name != "BRIG_SOCKET"}, cwd=host.REPO)


@pytest.mark.sample(2)
@pytest.mark.parametrize("page, line", LINES)
def test_a_line_of_the_documents_does_what_it_says(net, page, line):
    done = typed(net, line)
    if "# status 1" in line:
        assert done.returncode == 1 and done.stdout == "" and "example.com is not on the list of hosts that this run may reach" in done.stderr, done
    elif "GITHUB_TOKEN=" in line:
        before = len(net.requests())
        assert (done.returncode, done.stdout) == (0, "brig-secret-GITHUB_TOKEN\noctocat\n"), done
        assert internets.TOKEN not in done.stderr and [one["authorization"] for one in net.requests()[before - 1:]] == [f"Bearer {internets.TOKEN}"]
    elif "--json" in line:
        (one,) = json.loads(done.stdout)["network"]["connections"]
        assert (one["name"], one["port"]) == ("pypi.org", 443) and one["verdict"] in ("done", "open"), done # the run's end may come first
    elif "GITHUB_TOKEN" in line:
        assert (done.returncode, done.stdout) == (0, "brig-secret-GITHUB_TOKEN\noctocat\n"), done
    else:
        assert (done.returncode, done.stdout) == (0, "200\n"), done


def test_both_documents_have_such_lines():
    assert len([one for one in LINES if one.values[0] == "README.md"]) == 3 and len(LINES) >= 7
