#define _GNU_SOURCE
#include "privilege.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static int keep_only_kill(void)
{
	static const cap_value_t kill_only[] = { CAP_KILL };
	cap_t                    caps        = cap_init();
	int                      r           = -1;

	if (caps && cap_set_flag(caps, CAP_PERMITTED, 1, kill_only, CAP_SET) == 0 &&
	    cap_set_flag(caps, CAP_EFFECTIVE, 1, kill_only, CAP_SET) == 0)
		r = cap_set_proc(caps);
	cap_free(caps);
	return r;
}

int privilege_drop(struct err *e)
{
	if (keep_only_kill() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "set-up step drop-privilege");
	return 0;
}

/* At -1000 a cell could not be killed for its own memory limit (crun#1357). */
static int raise_oom_score(struct err *e)
{
	scoped_fd fd   = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char      sign = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "set-up step forget-caller: oom_score_adj");
	if (read(fd, &sign, 1) == 1 && sign == '-' && pwrite(fd, "0", 1, 0) != 1)
		return err_sys(e, "set-up step forget-caller: oom_score_adj");
	return 0;
}

int privilege_forget_caller(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) /* nobody traces the set-up (CVE-2026-41163) */
		return err_sys(e, "set-up step forget-caller: dumpable");
	if (setgroups(0, NULL) < 0)
		return err_sys(e, "set-up step forget-caller: setgroups");
	return raise_oom_score(e);
}
