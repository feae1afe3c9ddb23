#define _GNU_SOURCE /* syscall */
#include "filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int filter_copy(struct filter *ret, const struct filter *from, struct err *e)
{
	struct sock_filter *insn = malloc(from->len * sizeof *insn);

	if (!insn)
		return err_sys(e, "memory for a filter");
	memcpy(insn, from->insn, from->len * sizeof *insn);
	*ret = (struct filter){ .insn = insn, .len = from->len, .block = insn };
	return 0;
}

void filter_free(struct filter *f)
{
	free(f->block);
	*f = (struct filter){ 0 };
}

int filter_install(const struct filter *f)
{
	struct sock_fprog program = { .len = f->len, .filter = f->insn };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

uint32_t filter_evaluate(const struct filter *f, const struct seccomp_data *data)
{
	return bpf_run(f->insn, f->len, data);
}
