"""A clone under 0700 and a umask of 077 are a developer's usual ones; nobody has to open up anything for a jail."""
import os
import subprocess


def test_a_private_program_runs_under_umask_077(jail, brig, tmp_path):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    program = folder / "program.py"
    program.write_text("import os\nprint(oct(os.stat('main.py').st_mode & 0o777), oct(os.umask(0)))\n")
    program.chmod(0o600)
    done = subprocess.run([brig, "run", program], capture_output=True, text=True, preexec_fn=lambda: os.umask(0o077))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0o444 0o22\n", "")
