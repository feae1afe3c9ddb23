/*
 * view.h - the places of a service that root started by hand, where others can see them
 *
 * A clone below a closed directory, with files that only root can read, is what
 * developers have. Door and keeper are not root. So, in a mount namespace of
 * the service's own: rootfs stores are bound, and profiles and configuration are
 * copied byte by byte (nothing is parsed here), all below PLACE_VIEW; and the
 * device nodes are new ones. Under systemd there is no need of it: everything is
 * installed for everybody, and PrivateDevices= makes nodes.
 */
#pragma once
#include "place.h"

/* Enters the namespace. The stores of places are in the view afterwards. */
must_use int view_enter(struct places *places, struct err *e);
/*
 * As they are now, in the place of those of the last time; as root in that namespace, with CAP_DAC_READ_SEARCH. The
 * profiles of places are in the view afterwards, and config likewise (a path of at most PLACE_MAX, may be empty).
 */
must_use int view_copy(struct places *places, char *config, struct err *e);
