"""The Debian packages: built here, without errors of lintian, and put into a clean minimal tree where brig then runs without a network."""
import pathlib
import re
import shutil
import subprocess

import pytest

from support import host, minimal, pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEB = ROOT / "build/deb"
pytestmark = pytest.mark.nightly
PACKAGES = "brig", "brig-mcp", "brig-rootfs-basic", "python3-brig", "libbrig-dev"


@pytest.fixture(scope="module")
def packages(needs_root):
    done = subprocess.run(["./dev", "deb"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path.name.split("_")[0]: path for path in DEB.glob("*_*.deb")}
    assert found.keys() >= set(PACKAGES), found
    return {name: found[name] for name in PACKAGES}, done.stdout + done.stderr


@pytest.fixture(scope="module")
def required(packages, tmp_path_factory):
    """What Debian requires, and the libraries that the packages depend on; nothing of brig, no systemd, no mmdebstrap."""
    wanted = set()
    for path in packages[0].values():
        depends = subprocess.run(["dpkg-deb", "-f", path, "Depends"], capture_output=True, text=True, check=True).stdout
        wanted |= {re.match(r"[a-z0-9.+-]+", one.strip())[0] for one in depends.split(",") if one.strip()} - set(PACKAGES)
    tree = tmp_path_factory.mktemp("minimal") / "tree"
    minimal.make(tree, "required", wanted)
    return tree


@pytest.fixture
def in_tree(packages, required, tmp_path):
    """Runs a script in a copy of the tree, with the packages in /tmp: its exit status and output."""
    tree, folder = tmp_path / "tree", tmp_path / "packages"
    subprocess.run(["cp", "-a", "--reflink=auto", required, tree], check=True)
    folder.mkdir()
    for path in packages[0].values():
        shutil.copy(path, folder)
    shutil.copytree(ROOT / "examples", folder / "examples")

    return lambda script: minimal.run(tree, folder, script, host.HANG)


INSTALL = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root; dpkg -i /tmp/*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }\n"


def test_lintian_finds_no_error_and_no_warning(packages):
    assert re.findall(r"^[EW]: .*$", packages[1], re.M) == []


def test_the_packages_have_what_install_installs_and_nothing_twice(packages):
    listed = {name: set(re.findall(r"^-\S+ .* \./(\S+)", subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout, re.M))
              for name, path in packages[0].items()}
    assert {"usr/bin/brig", "usr/sbin/brigd", "usr/libexec/brig/monitor", "lib/systemd/system/brigd.socket", "usr/lib/sysusers.d/brig.conf", "etc/brig/brig.json"} <= listed["brig"]
    assert {"usr/share/doc/brig/README.md", "usr/share/doc/brig/docs/guide/first-steps.md", "usr/share/doc/brig/examples/hello.py"} <= listed["brig"], "and no page is compressed"
    assert [path for path in listed["brig"] if re.search(r"\.log|docs/(decisions|history|benchmarks)", path)] == []
    assert {"usr/bin/brig-mcp", "usr/libexec/brig/brig-mcp-http", "usr/libexec/brig/brig-mcp-remote", "lib/systemd/system/brig-mcp.service"} <= listed["brig-mcp"]
    assert {f"usr/lib/python3/dist-packages/brig/{path.name}" for path in (ROOT / "python/brig").glob("*.py")} <= listed["python3-brig"]
    assert {"usr/include/brig/protocol.h", "usr/share/pkgconfig/brig.pc"} <= listed["libbrig-dev"]
    assert "usr/share/brig/rootfs/basic.tar.zst" in listed["brig-rootfs-basic"]
    files = [path for of_one in listed.values() for path in of_one]
    assert len(files) == len(set(files))


def test_no_unit_of_users_is_enabled_and_an_upgrade_does_not_import_the_same_rootfs_again(in_tree):
    done = in_tree(INSTALL + """find /etc/systemd -name 'brig*'; echo none
        stat -c %z /var/lib/brig/rootfs/names/basic >/tmp/before; dpkg -i /tmp/brig-rootfs-basic_*.deb; stat -c %z /var/lib/brig/rootfs/names/basic | cmp - /tmp/before
        brig run -c 'print(6 * 7)'""")
    assert done.returncode == 0 and done.stdout.startswith("none\n") and done.stdout.endswith("\n42\n"), done
    assert " entries, " not in done.stdout + done.stderr, done


def test_root_runs_a_program_without_a_network_after_dpkg_i(in_tree):
    done = in_tree(INSTALL + """brig run -c 'print(6 * 7)'; brig run --json -c 'import os; os.getuid()' | grep -q '"user-ns"'; brig rootfs list; brig run /tmp/examples/hello.py""")
    assert done.returncode == 0 and done.stdout.startswith("42\n") and "basic" in done.stdout and "I cannot:" in done.stdout, done


def test_a_plain_user_does_too(in_tree):
    done = in_tree(INSTALL + """cd /tmp; HOME=/nonexistent setpriv --reuid=1234 --regid=1234 --clear-groups sh -c 'brig run -q -c "print(6 * 7)"; echo "print(45)" | brig run -q -'""")
    assert (done.returncode, done.stdout) == (0, "42\n45\n"), done


@pytest.mark.parametrize("user", ["", "HOME=/nonexistent setpriv --reuid=1234 --regid=1234 --clear-groups"], ids=["root", "a plain user"])
def test_the_examples_of_the_readme_work_literally(in_tree, user):
    """But for data science, whose tree is no package."""
    done = in_tree(INSTALL + "chmod -R a+rX /tmp/examples; cd /tmp\n" + pages.script(ROOT / "README.md", user, ["data-science"]))
    assert (done.returncode, done.stdout) == (0, "all of them\n"), done.stdout


def test_a_model_has_its_tool(in_tree):
    done = in_tree(INSTALL + "brig-mcp --check")
    assert done.returncode == 0, done


def test_the_client_of_servers_at_an_address_finds_its_libraries(in_tree):
    """No server listens at the address: that it says so shows that it has started, and has spoken to the network."""
    said = """{ echo '{"url":"http://127.0.0.1:9/mcp","headers":{}}'; echo '{"jsonrpc":"2.0","id":1,"method":"ping"}'; read -r line </tmp/answer; } | /usr/libexec/brig/brig-mcp-remote | tee /tmp/answer"""
    done = in_tree(INSTALL + f"mkfifo /tmp/answer; {said}")
    assert done.returncode == 0 and '"id":1,"error":' in done.stdout and "127.0.0.1" in done.stdout, done


def test_its_autopkgtest_passes(in_tree):
    script = (ROOT / "packaging/debian/tests/run-a-jail").read_text()
    done = in_tree(INSTALL + f"export AUTOPKGTEST_TMP=/tmp\ncat >/tmp/test <<'END'\n{script}END\nsh /tmp/test")
    assert done.returncode == 0, done


def test_a_purge_leaves_nothing(in_tree):
    done = in_tree("find / -xdev \\( -path /tmp -o -path /proc -o -path /sys \\) -prune -o -print | sort >/tmp/before\n" + INSTALL +
                   "brig run -c pass; dpkg --purge brig-mcp brig-rootfs-basic python3-brig libbrig-dev brig >/dev/null 2>&1\n"
                   "find / -xdev \\( -path /tmp -o -path /proc -o -path /sys \\) -prune -o -print | sort >/tmp/after; diff /tmp/before /tmp/after | grep -v '/var/lib/dpkg\\|/var/log\\|-old$\\|/var/cache' || true")
    assert done.returncode == 0 and re.findall(r"^[<>] .*$", done.stdout, re.M) == [], done.stdout


@pytest.mark.nightly(seconds=3600)
def test_the_source_package_builds_on_debian_13_and_what_it_builds_runs_there(packages, tmp_path):
    control = (ROOT / "packaging/debian/control").read_text()
    wanted = re.search(r"^Build-Depends: (.*)$", control, re.M)[1].replace("debhelper-compat (= 13)", "debhelper").split(", ")
    tree, folder = tmp_path / "tree", tmp_path / "source"
    minimal.make(tree, "buildd", wanted, suite="trixie")
    folder.mkdir()
    for path in (*DEB.glob("*.dsc"), *DEB.glob("*.tar.xz")):
        shutil.copy(path, folder)
    done = minimal.run(tree, folder, """export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive; cd /tmp
        dpkg-source -x brig_*.dsc source >/dev/null; cd source
        dpkg-buildpackage --unsigned-changes --build=binary >/tmp/log 2>&1 || { tail -n 40 /tmp/log; exit 1; }
        dpkg -i ../brig_*.deb ../brig-rootfs-basic_*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
        brig run -c 'print(6 * 7)'""", 3600)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stdout + done.stderr
