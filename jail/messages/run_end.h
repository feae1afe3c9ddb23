/* run_end.h - what is known of a run when it has ended */
#pragma once
#include "err.h"
#include "limits.h"
#include "record.h"
#include "refused_call.h"

/* A limit that refused something, by its row in limits_fields. */
struct run_hit {
	enum limit_id limit;
	int64_t       value, peak, times;
};

struct run_end {
	enum exit_reason reason;
	int              wait_status; /* as from wait4(); -1 when there is none */
	double           wall_ms, cpu_ms, setup_ms, started_at;
	int64_t          memory_peak_bytes, pids_peak, io_read_bytes, io_write_bytes;
	struct run_hit   hit[8];
	unsigned         hits;
	struct refused_calls refused;
	uint32_t         refused_known; /* 0 or 1: there was a seccomp listener */
	uint64_t         layers, missing;
	char             missing_why[2][200]; /* [0]: of the layers own-ids and no-groups; [1]: of the limits; "": not known, or none is missing */
	uint32_t         warm; /* 0 or 1 */
	int              exec_errno; /* why the program itself could not be executed: status 126 or 127, as in the shell; else 0 */
	char             rootfs_digest[65]; /* hex; "": the run did not come that far */
	struct err       why;
	struct err       left;       /* what could not be cleaned up; kind NONE when all was */
};

/* Nothing is known: every figure becomes null. */
#define RUN_END_NONE                                                                                                                   \
	((struct run_end){ .wait_status = -1, .wall_ms = -1, .cpu_ms = -1, .setup_ms = -1, .started_at = -1, .memory_peak_bytes = -1, \
			   .pids_peak = -1, .io_read_bytes = -1, .io_write_bytes = -1 })
