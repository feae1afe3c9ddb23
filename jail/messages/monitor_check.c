#include "monitor_check.h"
#include "profile_warm.h"

#include "text.h"

#include <string.h>

static bool is_absolute_path(const char *path)
{
	return text_has_terminator(path, PATH_SIZE) && path[0] == '/';
}

/* Beyond INT32_MAX some programs read a negative number. */
static bool is_id_range_valid(uint32_t base, uint32_t count)
{
	return base >= MONITOR_ID_LEAST && count >= MONITOR_IDS_LEAST && count <= INT32_MAX && base <= INT32_MAX - count;
}

int monitor_check_setup(const struct monitor_setup *s, struct err *e)
{
	if (s->mode != MONITOR_SERVICE && s->mode != MONITOR_USER)
		return err_set(e, ERR_PROTOCOL, "setup: mode %u", s->mode);
	if (!is_absolute_path(s->store[0]) || !is_absolute_path(s->runtime) || !text_has_terminator(s->store[1], PATH_SIZE) ||
	    (s->store[1][0] && !is_absolute_path(s->store[1])))
		return err_set(e, ERR_PROTOCOL, "setup: a path is not absolute");
	if (s->mode == MONITOR_SERVICE && !is_id_range_valid(s->id_base, s->id_count))
		return err_set(e, ERR_PROTOCOL, "setup: ids from %u on, %u of them: at least %d are needed, from %d to %d", s->id_base,
			       s->id_count, MONITOR_IDS_LEAST, MONITOR_ID_LEAST, INT32_MAX);
	return 0;
}

/* Only the bounds in the table of limits are used here, not the presets. */
static int check_limit_bounds(const struct limits *l, struct err *e)
{
	for (const struct field *f = limits_fields; f->name; f++) {
		uint64_t value = limits_value(l, f);

		if (value < f->min || value > f->max)
			return err_set(e, ERR_PROTOCOL, "%s: %llu is out of range", f->name, (unsigned long long)value);
	}
	return 0;
}

static int check_limits_below_ceilings(const struct limits *l, const struct limits *ceilings, struct err *e)
{
	const struct field *above = limits_find_above_ceiling(l, ceilings);

	return above ? err_set(e, ERR_DENIED, "%s is above the ceiling of the profile", above->name) : 0;
}

/* The names become part of the code that the zygote executes: nothing but plain names of Python modules may pass. */
static bool are_module_names(const char *names)
{
	return strspn(names, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,") == strlen(names);
}

int monitor_check_profile(const struct monitor_profile *p, struct err *e)
{
	if (!text_has_terminator(p->name, sizeof p->name) || !text_is_name(p->name))
		return err_set(e, ERR_PROTOCOL, "profile: invalid name");
	if (!text_has_terminator(p->rootfs, sizeof p->rootfs) || !text_is_name(p->rootfs))
		return err_set(e, ERR_PROTOCOL, "profile %s: rootfs is no name", p->name);
	if (p->workspace_exec > 1 || p->require_all > 1 || p->warm > WARM_READY || p->ready > MONITOR_READY_MAX || p->zygote_cells == 0 ||
	    p->zygote_ms == 0 || !limits_layer_bits_are_valid(&p->limits))
		return err_set(e, ERR_PROTOCOL, "profile %s: a number is out of range", p->name);
	if (p->has_network > 1 || p->has_trust > p->has_network || !net_listeners_are_sound(&p->listeners) || (!p->has_network && p->listeners.ports))
		return err_set(e, ERR_PROTOCOL, "profile %s: invalid network", p->name);
	if (!text_has_terminator(p->preload, sizeof p->preload) || !are_module_names(p->preload))
		return err_set(e, ERR_PROTOCOL, "profile %s: preload has no plain names", p->name);
	if (check_limit_bounds(&p->limits, e) < 0 || check_limit_bounds(&p->ceilings, e) < 0 || check_limits_below_ceilings(&p->limits, &p->ceilings, e) < 0)
		return err_wrap(e, "profile %s", p->name);
	return 0;
}

/* One plain component: it becomes a directory of the cell. */
static bool is_path_component(const char *name)
{
	return text_has_terminator(name, SHOWN_NAME_MAX) && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strcmp(name, "main.py") != 0;
}

int monitor_check_run(const struct monitor_run *r, const struct monitor_profile *profile, struct err *e)
{
	if (check_limit_bounds(&r->order.limits, e) < 0 || check_limits_below_ceilings(&r->order.limits, &profile->ceilings, e) < 0)
		return err_wrap(e, "run");
	if (!run_spec_head_is_bounded(&r->order.head) || r->files > 1 || r->terminals > 1 ||
	    !limits_layer_bits_are_valid(&r->order.limits) ||
	    !(r->order.asked >= 0) /* or NaN */)
		return err_set(e, ERR_PROTOCOL, "run: a number is out of range");
	if (r->shown_len > MOUNT_SHOWN_MAX)
		return err_set(e, ERR_PROTOCOL, "run: more than %d directories to show", MOUNT_SHOWN_MAX);
	for (uint32_t i = 0; i < r->shown_len; i++)
		if (strcmp(r->shown[i], "/") != 0 && !is_path_component(r->shown[i]))
			return err_set(e, ERR_PROTOCOL, "run: directory %u has no plain name", i);
	return 0;
}

size_t monitor_count_spec_fds(const struct monitor_run *r)
{
	return (size_t)2 + (r->order.head.code_len != 0) + (r->order.head.tools != 0);
}

size_t monitor_count_profile_fds(const struct monitor_message *m)
{
	return 1 + (m->profile.has_network != 0) + (m->profile.has_trust != 0);
}

size_t monitor_count_run_fds(const struct monitor_message *m)
{
	return monitor_count_spec_fds(&m->run) + m->run.shown_len + (m->run.files != 0);
}
