"""A minimal Debian tree as the root of a host of its own: what a container of CI would be."""
import subprocess

from support import host

# Not chroot: the kernel refuses user namespaces in one. FOLDER is what the script finds in /tmp.
INSIDE = r"""
set -e
tree=$1; folder=$2; shift 2
mount --bind "$tree" "$tree"
mount --rbind /sys/fs/cgroup "$tree/sys/fs/cgroup" 2>/dev/null || { mount -t sysfs none "$tree/sys" && mount --rbind /sys/fs/cgroup "$tree/sys/fs/cgroup"; }
mount -t proc none "$tree/proc"
mount -t tmpfs -o mode=755 none "$tree/dev"
for node in null zero full random urandom; do touch "$tree/dev/$node" && mount --bind "/dev/$node" "$tree/dev/$node"; done
ln -s /proc/self/fd "$tree/dev/fd"
mkdir "$tree/dev/shm" && mount -t tmpfs none "$tree/dev/shm"
mount -t tmpfs -o mode=755 none "$tree/run"
mount -t tmpfs -o mode=1777 none "$tree/tmp"
cp -r "$folder/." "$tree/tmp/"
mkdir -p "$tree/mnt/host"
cd "$tree"
pivot_root . mnt/host
cd /
umount -l /mnt/host
rmdir /mnt/host
exec /bin/sh -e -c "$1"
"""


def make(tree, variant, packages=(), suite=None, mirror=()):
    words = [f"--variant={variant}", *[f"--include={name}" for name in sorted(packages)], suite or host.debian(), tree, *mirror]
    done = subprocess.run(["mmdebstrap", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def run(tree, folder, script, timeout, network=False):
    """As root of the tree, with a copy of the folder in /tmp: the exit status and output of the script."""
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=slave", *([] if network else ["--net"])]
    return subprocess.run([*words, "sh", "-c", INSIDE, "sh", tree, folder, script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
