/*
 * session_message.h - what the session server in the jail sends to the server
 *
 * A process of a jail sends it, so it is hostile: a message of another size, of a kind that does not fit, or of a call
 * that is not under way ends the session. The numbers are in the byte order of the machine; jail/guest/session.py packs
 * them.
 *
 * What the server sends to the session server is JSON, an object a datagram, with descriptors. Its keys are where
 * session_send_message() is called: session.c, session_call.c, gate_session.c.
 *
 * STARTED brings the read ends of stdout and stderr; then, for a context, the read end of result, or for a command that
 * has a stdin its write end. BACKGROUND comes after each request for files and when the number changes: at most twice
 * for each request for files or with detach.
 */
#pragma once
#include <stdint.h>

enum session_message_kind {
	SESSION_READY = 1, /* it takes calls */
	SESSION_STARTED,   /* call, and pipes (see above). FRESH: a new interpreter */
	SESSION_ENDED,     /* call; value as from wait4(), cpu_ns. GONE: its interpreter has ended */
	/*
	 * call; value: the errno with which it could not be started. NO_EXEC: of a command, before it was executed;
	 * NO_CWD: of a call in a context, whose directory could not be opened
	 */
	SESSION_FAILED,
	SESSION_LOST,      /* value: number of a context whose interpreter has ended between two calls */
	SESSION_CPU,       /* call: its CPU time is used up */
	SESSION_BACKGROUND, /* value: number of files helpers and detached commands (see above) */
};

enum { SESSION_FRESH = 1, SESSION_GONE = 2, SESSION_NO_EXEC = 4, SESSION_NO_CWD = 8 };

enum { SESSION_FDS_MAX = 3 };

struct session_message {
	uint32_t kind, call;
	int32_t  value;
	uint32_t flags;
	uint64_t cpu_ns;
};
