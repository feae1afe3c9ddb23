/*
 * run_activity.h - whether runs of a profile are under way, for its ready forks
 *
 * A memory file of one page that the supervisor alone can write (memfd_create_mapped()). A zygote and its forks map it
 * read-only, and a fork unmaps it before it takes its spec: no program finds it, and none could send through it.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct run_activity {
	_Atomic int64_t newest_ms; /* CLOCK_MONOTONIC: when the newest of the runs under way began; 0: none is */
	_Atomic bool    has_guest_runner; /* that run has; without one, the last that was there */
};
