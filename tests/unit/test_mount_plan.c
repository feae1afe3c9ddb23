#include "mount_plan.h"
#include "tap.h"

#include <string.h>

static const struct mount_step *find(const struct mount_plan *p, const char *to)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->step[i].to, to) == 0)
			return &p->step[i];
	return NULL;
}

static int build(struct mount_plan *p, const char *const *shown, size_t n, bool exec, struct err *e)
{
	struct mount_options w = { .tmp_bytes = 1, .workspace_bytes = 2, .inodes = 3, .workspace_exec = exec, .shown = shown, .shown_len = n };

	return mount_plan_build(p, &w, e);
}

static const struct {
	const char *name, *to;
	bool        says;
} shown_rows[] = {
	{ "a directory is shown below the workspace", "workspace/data", true },
	{ "a name with dots inside is fine", "workspace/v1.2", true },
	{ "nothing is shown elsewhere", "etc", false },
	{ "nothing is shown two levels down", "workspace/a/b", false },
	{ "the workspace itself cannot be covered", "workspace/", false },
	{ "dot is no name", "workspace/.", false },
	{ "dot-dot is no name", "workspace/..", false },
	{ "packages have a place of their own", MOUNT_LAYER, true },
	{ "and nothing is shown beside it or below", MOUNT_LAYER "/x", false },
};

int main(void)
{
	struct mount_plan p;
	struct err        e = { 0 };
	const char       *layer = MOUNT_LAYER, *named[] = { "workspace/a", "workspace/packages", MOUNT_LAYER };
	const char       *twice[] = { "workspace/a", "workspace/a" };
	const char       *many[MOUNT_SHOWN_MAX + 1];

	tap_ok(build(&p, NULL, 0, true, &e) == 0, "the plain plan is built");
	tap_ok(p.step[0].kind == MOUNT_ROOT && p.step[0].flags & MF_RO, "the rootfs comes first, read-only");
	tap_ok(find(&p, "tmp")->flags & MF_NOEXEC && find(&p, "dev/shm")->flags & MF_NOEXEC, "/tmp and /dev/shm never execute");
	tap_ok(!(find(&p, "workspace")->flags & MF_NOEXEC), "/workspace executes when the profile says so");
	tap_ok(find(&p, "tmp")->bytes == 1 && find(&p, "workspace")->bytes == 2 && find(&p, "tmp")->inodes == 3, "each tmpfs has its own bounds");
	for (size_t i = 0; i < p.n; i++)
		tap_ok(p.step[i].kind == MOUNT_DEVICE || p.step[i].flags & MF_NODEV, "/%s: device nodes work in device mounts only", p.step[i].to);
	tap_ok(build(&p, NULL, 0, false, &e) == 0 && find(&p, "workspace")->flags & MF_NOEXEC, "/workspace does not execute when the profile says no");
	for (size_t i = 0; i < ARRAY_LEN(shown_rows); i++) {
		bool ok = build(&p, &shown_rows[i].to, 1, true, &e) == 0;

		tap_ok(ok == shown_rows[i].says, "%s", shown_rows[i].name);
	}
	tap_ok(build(&p, &layer, 1, true, &e) == 0 && find(&p, MOUNT_LAYER)->flags == (MF_RO | MF_NODEV), "libraries are loaded from packages, where /workspace executes");
	tap_ok(build(&p, &layer, 1, false, &e) == 0 && find(&p, MOUNT_LAYER)->flags == (MF_RO | MF_NODEV | MF_NOEXEC), "and not where it does not");
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		char to[SHOWN_TO_MAX];

		mount_shown_to(mount_shown_name(named[i]), to);
		tap_ok(strcmp(to, named[i]) == 0, "%s has a name that leads back to it", named[i]);
	}
	tap_ok(build(&p, twice, 2, true, &e) < 0, "two directories of the same name are refused");
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = "workspace/x";
	tap_ok(build(&p, many, ARRAY_LEN(many), true, &e) < 0 && e.kind == ERR_LIMIT, "too many directories are refused");
	return tap_done();
}
