/*
 * cell_fit.h - may a run use a cell that was built before it was asked for?
 *
 * The one answer to that question. The server asks it for a lease, the monitor for a cell that it is about to give
 * away, and the supervisor when an order comes by lease: a server that was taken over gets no more out of a lease
 * than the cell was built with.
 */
#pragma once
#include "limits.h"

enum cell_fit {
	CELL_FIT_NONE,
	CELL_FIT_LOWERED, /* once the monitor has set the cell's control groups to the limits of the run */
	CELL_FIT_AS_IT_IS,
};

/*
 * built: the limits with which the cell was built. warm: it has a fork of a zygote, or gets one, whose rlimits cannot
 * be raised any more. missing: layers that its control groups do not give; the fork enforces them instead.
 */
enum cell_fit cell_fit_of_limits(const struct limits *asked, const struct limits *built, bool warm, uint64_t missing);
