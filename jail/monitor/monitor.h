/*
 * monitor.h - the service's process with privilege: ids, control groups, namespaces of profiles
 *
 * The monitor parses no text of a client, opens no path that a client sent, and
 * holds two capabilities: CAP_SETUID and CAP_SETGID, for the id maps of the
 * profiles' namespaces. It ends with the server, and every cell ends with the monitor.
 */
#pragma once
#include "defs.h"

/* Serves the server on MONITOR_FD until the server is gone. Returns the exit status. */
int monitor_main(void);
