/*
 * net.h - an empty network namespace with lo up.
 *
 * Half of the standard library's network modules need a loopback (m). The
 * namespace is made by the launcher and belongs to its user namespace, so that
 * nothing inside a cell has power over it.
 */
#pragma once
#include "err.h"

/* The calling process moves into the new namespace for good. */
must_use int net_enter_empty(struct err *e);
