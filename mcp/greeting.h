/*
 * greeting.h - the profiles that a call may name, for the instructions of a handshake: those whose rootfs is built here.
 *
 * From the files of this host, read once a handshake. brigd is not asked: clients start a server twice, or only to list its
 * tools, and nothing is connected to or started before a tool is called. A service that refuses one of these says so then.
 */
#pragma once
#include "mcp.h"

/* "The argument profile may name data-science (numpy, pandas), ... " or "". Without a path of this host. */
json_t *greeting_profiles(const struct mcp *m);
