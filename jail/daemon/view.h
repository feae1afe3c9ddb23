/*
 * view.h - the places of a service that root started by hand, where others can see them
 *
 * A clone below a closed directory, with files that only root can read, is what
 * developers have. Door and keeper are not root. So, in a mount namespace that
 * nobody else sees: profiles and configuration are copied byte by byte (nothing
 * is parsed here), rootfs stores are bound, all below PLACE_VIEW; and the device
 * nodes are new ones. Under systemd there is no need of it: everything is
 * installed for everybody, and PrivateDevices= makes nodes.
 */
#pragma once
#include "place.h"

/* Enters the namespace. places then name what is in the view; config likewise (a path of at most PLACE_MAX, may be empty). */
must_use int view_enter(struct places *places, char *config, struct err *e);
