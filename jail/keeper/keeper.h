/*
 * keeper.h - the service's process with privilege: ids, control groups, namespaces of profiles
 *
 * It parses no text of a stranger, opens no path that it was sent by one, and
 * holds two capabilities: CAP_SETUID and CAP_SETGID, for the id maps of the
 * profiles' namespaces. It ends with the door, and every cell ends with it.
 */
#pragma once
#include "defs.h"

/* Serves the door on KEEPER_FD until it is gone. The exit status. */
int keeper_main(void);
