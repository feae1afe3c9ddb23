/*
 * run.h - one program in one cell, from order to end.
 *
 * run_start_launcher() forks a launcher and returns at once. The launcher builds the
 * cell, watches the clocks and the control groups, tears everything down and
 * says how it ended; the caller reads the program's pipes and may ask for an
 * early end. Either one cleans up when the other dies:
 *
 *   the caller's death closes the socket: the launcher kills the cell;
 *   the launcher's death kills PID 1 of the cell, which the caller inherits
 *   (it becomes a child subreaper); run_receive_event() reaps it, removes the control
 *   groups and says that the launcher was killed.
 *
 * The two exchange fixed-size structs over a socket (run_spec.h). In a service, a supervisor is at the other end of it.
 */
#pragma once
#include "pipes.h"
#include "paths.h"
#include "launch_args.h"

#include <sys/types.h>

struct run {
	int      sock;
	pid_t    launcher;
	uint32_t slot;
	bool     has_slot, started;
	uint32_t victims; /* of a session: processes that were ended because it had no memory */
	bool     is_frozen; /* of a session */
	size_t   pipes; /* how many come with STARTED */
	const char *runtime_dir;
};

enum run_event { RUN_GOES_ON, RUN_STARTED, RUN_SESSION, RUN_LIMIT, RUN_ENDED };

/* Starts a private run. args->exec_args is sealed. */
must_use int run_start_launcher(struct run *ret, const struct launch_args *args, const struct brig_paths *paths,
				struct err *e);

/*
 * Waits for one message: poll run->sock to know when one is there. GOES_ON: nothing that the caller has to know.
 * STARTED: streams has as many ends as were asked for, in the order of pipes.h, and the caller owns them; the others
 * are -1. SESSION: the state of a session, in end->layers, ->missing and ->rootfs_digest, in run->victims and
 * run->is_frozen. LIMIT: end->hit[0] is the limit that is about to end the run; nothing else of *end is set. ENDED
 * comes exactly once, also when the launcher died, and nothing of the cell is left then.
 */
must_use enum run_event run_receive_event(struct run *run, int streams[PIPES_MAX], struct run_result *end);

/* Asks for the end of the run; more than once does no harm. */
void run_request_cancel(const struct run *run, enum exit_reason reason);
/* Stops the wall clock (waits) while a call of a tool takes long, and starts it again. */
void run_set_wall_clock_paused(const struct run *run, bool waits);
/* The run is a session: it lasts ms from its start, CPU time does not end it, a lack of memory its largest process. */
bool run_set_session_lifetime(const struct run *run, uint64_t ms);
/* Freezes a session that has nothing to do. To thaw it, call this before anything is sent to its program. */
void run_set_frozen(const struct run *run, bool is);
/*
 * Asks for the cell's listening sockets. sock: one end of a SOCK_SEQPACKET pair; it stays the caller's. When the
 * program first uses one of the sockets, the other end of the pair gets one struct net_listeners with all of them
 * (net_listeners.h), or one byte if they could not be sent; end of file, when there are none or the run is over. If
 * that end is closed, the sockets are closed. At any time after the start, once.
 */
void run_request_network_sockets(const struct run *run, int sock);
void run_close(struct run *run);
