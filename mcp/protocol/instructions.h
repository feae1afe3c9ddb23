/*
 * instructions.h - the profiles that a call may name, for the instructions of a handshake
 *
 * They are those whose rootfs is built on this host, as files say at each handshake. brigd is not asked: clients
 * start a server twice, or only to list its tools, and brigd is neither connected to nor started before a tool is
 * called. A service may still refuse one of these profiles then.
 */
#pragma once
#include "mcp.h"

/* The file of a profile, as a new reference; NULL: there is none that can be trusted and read. */
json_t *instructions_load_profile(const char *name);
/* How many bytes of a profile's description say what it has; details follow. */
int     instructions_brief_length(const char *description);

/* "The argument profile may name data-science (numpy, pandas), ... " or "". It contains no path of this host. */
json_t *instructions_profiles_sentence(const struct mcp *m);
