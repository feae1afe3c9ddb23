/*
 * view.h - makes stores and rules visible to server and monitor when root started the service by hand
 *
 * Developers have a clone below a closed directory, with files that only root can read,
 * and server and monitor are not root. So the service gets a mount namespace of its own:
 * below PLACE_VIEW, rootfs stores are bind-mounted, and profiles and configuration are
 * copied byte by byte (nothing is parsed here); the device nodes are new ones. Under
 * systemd this is not needed: everything is installed so that all users can read it, and
 * PrivateDevices= makes nodes.
 */
#pragma once
#include "paths.h"

/* Enters the namespace. The stores in places are paths in the view afterwards. */
must_use int view_enter(struct brig_paths *places, struct err *e);
/*
 * Replaces the copies by the files as they are now. The caller is root in that namespace, with CAP_DAC_READ_SEARCH. The
 * profiles in places, and config (a buffer of PATH_SIZE bytes, may be empty), are paths in the view afterwards.
 */
must_use int view_copy_files(struct brig_paths *places, char *config, struct err *e);
