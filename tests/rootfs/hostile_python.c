/* hostile_python.c - what a package may bring as python3: tells what it could do with the builder's rights, and fails */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void tell(const char *what, int result)
{
	printf("python: %s: %s\n", what, result < 0 ? strerror(errno) : "did");
}

static unsigned capabilities(void)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   data[2] = { 0 };

	return syscall(SYS_capget, &head, data) < 0 ? 1 : data[0].permitted | data[0].effective | data[1].permitted | data[1].effective;
}

/* What is above the root; only a process outside of it could say more than "..". */
static const char *parent(void)
{
	struct stat here, above;

	return stat("/", &here) == 0 && stat("/../../..", &above) == 0 && here.st_ino == above.st_ino && here.st_dev == above.st_dev ? "none" : "there is one";
}

static int directories(void)
{
	struct stat st;
	int         n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	return n;
}

static int talk(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xc0000201) }; /* 192.0.2.1 */

	return connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), (struct sockaddr *)&to, sizeof to);
}

int main(void)
{
	printf("python: capabilities %x\npython: new privileges %d\n", capabilities(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	tell("mknod", mknod("/usr/device", S_IFBLK | 0666, makedev(8, 0)));
	tell("mount", mount("none", "/usr", "tmpfs", 0, NULL));
	tell("chroot", chroot("/usr"));
	tell("unshare", unshare(CLONE_NEWNS));
	tell("user namespace", unshare(CLONE_NEWUSER));
	printf("python: parent: %s\n", parent());
	tell("proc", open("/proc/1/root", O_RDONLY));
	printf("python: descriptors: %d directories\n", directories());
	tell("network", talk());
	puts("python: \033[2Jfrom a terminal's view");
	return 3;
}
