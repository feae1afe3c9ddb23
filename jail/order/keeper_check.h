/*
 * keeper_check.h - checks what the door and the reader send. Pure.
 *
 * Returns 0, or -1 with the reason. What passes here is within every bound. The
 * descriptors that come with a message are not checked here.
 */
#pragma once
#include "keeper_protocol.h"

must_use int keeper_check_setup(const struct keeper_setup *s, struct err *e);
must_use int keeper_check_profile(const struct keeper_profile *p, struct err *e);
must_use int keeper_check_run(const struct keeper_run *r, const struct keeper_profile *profile, struct err *e);

/* How many descriptors of a run belong to its order: client, arguments, program, tools. */
size_t keeper_order_fds(const struct keeper_run *r);
/* How many descriptors must come with a PROFILE, and with a RUN. */
size_t keeper_profile_fds(const struct keeper_message *m);
size_t keeper_run_fds(const struct keeper_message *m);
