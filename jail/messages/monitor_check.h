/*
 * monitor_check.h - checks what the server and the reader send. Pure.
 *
 * Returns 0, or -1 with the reason. What passes here is within every bound. The
 * descriptors that come with a message are not checked here.
 */
#pragma once
#include "monitor_protocol.h"

must_use int monitor_check_setup(const struct monitor_setup *s, struct err *e);
must_use int monitor_check_profile(const struct monitor_profile *p, struct err *e);
must_use int monitor_check_run(const struct monitor_run *r, const struct monitor_profile *profile, struct err *e);

/* How many descriptors of a run belong to its order: client, arguments, program, tools. */
size_t monitor_count_spec_fds(const struct monitor_run *r);
/* How many descriptors must come with a PROFILE, and with a RUN. */
size_t monitor_count_profile_fds(const struct monitor_message *m);
size_t monitor_count_run_fds(const struct monitor_message *m);
