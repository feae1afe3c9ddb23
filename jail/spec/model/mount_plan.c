#include "mount_plan.h"

#include "text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
/* In this order: a later row may be mounted on an earlier one. */
static const struct mount_step of_every_cell[] = {
	/* kind           to              flags                        device            */
	{ MOUNT_ROOT,   "",             MF_RO | MF_NODEV,            .major = 0 },
	{ MOUNT_DEVICE, "dev/null",     MF_RO | MF_NOEXEC,           .major = 1, .minor = 3 },
	{ MOUNT_DEVICE, "dev/zero",     MF_RO | MF_NOEXEC,           .major = 1, .minor = 5 },
	{ MOUNT_DEVICE, "dev/full",     MF_RO | MF_NOEXEC,           .major = 1, .minor = 7 },
	{ MOUNT_DEVICE, "dev/random",   MF_RO | MF_NOEXEC,           .major = 1, .minor = 8 },
	{ MOUNT_DEVICE, "dev/urandom",  MF_RO | MF_NOEXEC,           .major = 1, .minor = 9 },
	{ MOUNT_PROC,   "proc",         MF_RO | MF_NODEV | MF_NOEXEC, .major = 0 }, /* the program owns its oom_score_adj: read-only */
	{ MOUNT_TMPFS,  "tmp",          MF_NODEV | MF_NOEXEC,        .major = 0 },
	{ MOUNT_TMPFS,  "dev/shm",      MF_NODEV | MF_NOEXEC,        .major = 0 },
	{ MOUNT_TMPFS,  "workspace",    MF_NODEV,                    .major = 0 },
};

/*
 * Without MF_NODEV, since its nodes are devices. Read-only, so no process can change mode or owner of a terminal; the kernel still
 * creates them.
 */
static const struct mount_step of_terminals = { MOUNT_TERMINALS, "dev/pts", MF_RO | MF_NOEXEC, .major = 0 };
/* clang-format on */

struct mount_options mount_options_from_limits(const struct limits *limits, bool workspace_exec)
{
	return (struct mount_options){
		.tmp_bytes       = limits->tmp_bytes,
		.workspace_bytes = limits->workspace_bytes,
		.inodes          = limits->inodes,
		.workspace_exec  = workspace_exec,
	};
}

/* The directory of NET_TRUST_PATH. */
static const struct mount_step of_trust = { MOUNT_TRUST, "etc/brig", MF_RO | MF_NODEV | MF_NOEXEC, .major = 0 };

static int plan_add_step(struct mount_plan *plan, struct mount_step step, struct err *e)
{
	if (plan->n == ARRAY_LEN(plan->step))
		return err_set(e, ERR_LIMIT, "more than %zu mounts", ARRAY_LEN(plan->step));
	plan->step[plan->n++] = step;
	return 0;
}

static const char under[] = "workspace/", layer_name[] = "/";

const char *mount_shown_name(const char *to)
{
	return strcmp(to, MOUNT_LAYER) == 0 ? layer_name : to + sizeof under - 1;
}

void mount_shown_to(const char *name, char to[SHOWN_TO_MAX])
{
	if (strcmp(name, layer_name) == 0)
		strcpy(to, MOUNT_LAYER);
	else
		snprintf(to, SHOWN_TO_MAX, "%s%s", under, name);
}

/* A layer is executed from, as libraries are, where the program could execute its own files anyway. */
static int plan_add_ro_bind(struct mount_plan *plan, const struct mount_options *mount_options, int i, struct err *e)
{
	const char *to       = mount_options->shown[i], *name = begins_with(to, under) ? to + sizeof under - 1 : "";
	bool        is_layer = strcmp(to, MOUNT_LAYER) == 0;
	unsigned    flags    = MF_RO | MF_NODEV | (is_layer && mount_options->workspace_exec ? 0 : MF_NOEXEC);

	if (is_layer)
		name = to + sizeof "opt";
	if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_BAD_SPEC, "%s: not a plain name under /workspace", to);
	for (int j = 0; j < i; j++)
		if (strcmp(mount_options->shown[j], to) == 0)
			return err_set(e, ERR_BAD_SPEC, "two of them would both be /%s", to);
	return plan_add_step(plan, (struct mount_step){ .kind = MOUNT_SHOWN, .to = to,
			     .flags = flags, .shown = i }, e);
}

int mount_plan_build(struct mount_plan *plan, const struct mount_options *mount_options, struct err *e)
{
	plan->n = 0;
	if (mount_options->shown_len > MOUNT_SHOWN_MAX)
		return err_set(e, ERR_LIMIT, "more than %d directories", MOUNT_SHOWN_MAX);
	for (size_t i = 0; i < ARRAY_LEN(of_every_cell); i++) {
		struct mount_step step      = of_every_cell[i];
		bool              workspace = strcmp(step.to, "workspace") == 0;

		if (step.kind == MOUNT_TMPFS) {
			step.bytes  = workspace ? mount_options->workspace_bytes : mount_options->tmp_bytes;
			step.inodes = mount_options->inodes;
		}
		if (workspace && !mount_options->workspace_exec)
			step.flags |= MF_NOEXEC;
		if (plan_add_step(plan, step, e) < 0)
			return -1;
	}
	if (mount_options->trust && plan_add_step(plan, of_trust, e) < 0)
		return -1;
	if (mount_options->terminals && plan_add_step(plan, of_terminals, e) < 0)
		return -1;
	for (size_t i = 0; i < mount_options->shown_len; i++)
		if (plan_add_ro_bind(plan, mount_options, (int)i, e) < 0)
			return -1;
	return 0;
}

const char *mount_kind_name(enum mount_kind kind)
{
	static const char *const names[] = {
		[MOUNT_ROOT] = "rootfs", [MOUNT_DEVICE] = "device", [MOUNT_PROC] = "proc",
		[MOUNT_TMPFS] = "tmpfs", [MOUNT_TRUST] = "certs", [MOUNT_TERMINALS] = "devpts", [MOUNT_SHOWN] = "shown",
	};

	return names[kind];
}

char *mount_print_flags(const struct mount_step *step, char *buf, size_t len)
{
	snprintf(buf, len, "%snosuid%s%s", step->flags & MF_RO ? "ro," : "", step->flags & MF_NODEV ? ",nodev" : "",
		 step->flags & MF_NOEXEC ? ",noexec" : "");
	return buf;
}

void mount_plan_print(const struct mount_plan *plan, FILE *out)
{
	char flags[64], size[32];

	for (size_t i = 0; i < plan->n; i++) {
		const struct mount_step *m = &plan->step[i];

		fprintf(out, "  %-7s /%-20s %s", mount_kind_name(m->kind), m->to, mount_print_flags(m, flags, sizeof flags));
		if (m->kind == MOUNT_TMPFS)
			fprintf(out, ",size=%s,inodes=%" PRIu64, text_from_size(m->bytes, size, sizeof size), m->inodes);
		if (m->kind == MOUNT_PROC)
			fputs(",hidepid=invisible,subset=pid", out);
		if (m->kind == MOUNT_TERMINALS)
			fprintf(out, ",max=%d", MOUNT_TERMINALS_MAX);
		fputc('\n', out);
	}
}

bool mount_can_ro_bind(unsigned mode)
{
	return S_ISDIR(mode) || S_ISREG(mode);
}
