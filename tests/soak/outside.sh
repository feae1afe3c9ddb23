#!/bin/sh
# outside.sh TREE ROOT PROGRAM [ARG]... - python3 -I PROGRAM in a rootfs as a plain user, without a jail
#
# What the kernel gives any user is there: all devices, terminals, a whole /proc, a loopback. Limits and filter are those of who
# calls. To be started by `unshare --mount --propagation private --pid --fork --net --ipc --uts`.
set -eu
tree=$1 root=$2 program=$3
shift 3
mount --bind "$tree" "$root"
mount -o remount,bind,nosuid,nodev "$root" # the files are root's, as on any host
mount -t proc proc "$root/proc"
mount -t tmpfs -o nosuid,mode=755 dev "$root/dev"
for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
	# shellcheck disable=SC2086 # three words
	set -- $node -- "$@"
	mknod -m 666 "$root/dev/$1" c "$2" "$3"
	shift 4
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in '0 stdin' '1 stdout' '2 stderr'; do
	ln -s "/proc/self/fd/${n% *}" "$root/dev/${n#* }"
done
for place in /tmp /dev/shm; do
	mount -t tmpfs -o nosuid,nodev,mode=1777,size=1G tmp "$root$place"
done
mount -t tmpfs -o nosuid,nodev,mode=755,uid=1000,gid=1000,size=1G workspace "$root/workspace"
cp "$program" "$root/workspace/main.py"
chmod 444 "$root/workspace/main.py"
ip link set lo up
hostname brig
umask 022
ulimit -S -n 1024 # what a login has: some tests look for the end of it
setsid -w chroot --userspec=1000:1000 --groups= "$root" /usr/bin/env -i -C /workspace PATH=/usr/local/bin:/usr/bin:/bin HOME=/workspace LANG=C.UTF-8 \
	OMP_NUM_THREADS="$BRIG_THREADS" OPENBLAS_NUM_THREADS="$BRIG_THREADS" \
	MKL_NUM_THREADS="$BRIG_THREADS" NUMEXPR_NUM_THREADS="$BRIG_THREADS" LOKY_MAX_CPU_COUNT="$BRIG_THREADS" python3 -I main.py "$@"
