/*
 * keeper_check.h - checks what the door and the reader send. Pure.
 *
 * 0, or -1 with the reason. What passes here is within every bound; whether a
 * kernel object is what it should be is not asked here.
 */
#pragma once
#include "keeper_protocol.h"

must_use int keeper_check_setup(const struct keeper_setup *s, struct err *e);
must_use int keeper_check_profile(const struct keeper_profile *p, struct err *e);
must_use int keeper_check_run(const struct keeper_run *r, const struct keeper_profile *profile, struct err *e);

/* Does a run fit a cell that stands ready? What was mounted is as asked for, and no limit is above what was set. */
bool keeper_fits_ready(const struct limits *asked, const struct limits *ready);
/*
 * Does a run fit a warm cell that was made with these limits? What control groups and clocks see to may be lower; what a
 * ready fork has set already may not. missing: layers that the control groups do not give.
 */
bool keeper_fits_warm(const struct limits *asked, const struct limits *made, uint64_t missing);

/* How many descriptors of a run are its order's: client, arguments, program, tools. */
size_t keeper_order_fds(const struct keeper_run *r);
/* How many descriptors must come with it; -1: no such message. */
int keeper_word_fds(const struct keeper_message *w);
