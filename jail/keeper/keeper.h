/*
 * keeper.h - the service's process with privilege: ids, control groups, namespaces of profiles
 *
 * The keeper parses no text of a client, opens no path that a client sent, and
 * holds two capabilities: CAP_SETUID and CAP_SETGID, for the id maps of the
 * profiles' namespaces. It ends with the door, and every cell ends with the keeper.
 */
#pragma once
#include "defs.h"

/* Serves the door on KEEPER_FD until the door is gone. Returns the exit status. */
int keeper_main(void);
