/*
 * run_spec_file.h - what a cell is to run, as it reaches the fork that will run it
 *
 * A struct run_spec_head goes over the cell's order socket, the bytes into its order file: a memory file that was
 * made with the cell, so that no descriptor travels with an order. The exception is the socket of a run with tools,
 * which follows in a datagram of its own: a socket that was made with each ready cell would cost every run. In the
 * file the arguments come first, then, at the next multiple of 16, the text of the program.
 *
 * An order file is not sealed, and its writer may be a server that was taken over: the
 * fork takes a private copy before it looks at anything.
 */
#pragma once
#include "exec_args.h"

enum { RUN_SPEC_CODE_MAX = 8 * 1024 * 1024 };

struct run_spec_head {
	struct exec_args exec_args; /* fd: -1 */
	uint32_t         code_len; /* of /workspace/main.py; 0: a command */
	uint32_t         stdin_pipe, result_pipe;
	uint32_t         tools;    /* 1: a socket follows */
	uint32_t         executes; /* 1: executes one of the paths, even a zygote's fork; every command does */
};

/* What comes with a head before it is in an order file. */
struct run_spec_fds {
	int exec_args, code; /* sealed memory files; code: -1 when there is none */
	int tools;           /* the program's end of the socket to its tools; -1: it has none */
};
#define RUN_SPEC_FDS_NONE ((struct run_spec_fds){ -1, -1, -1 })

/* Looks at the numbers only: each is one of those that it may be. */
bool run_spec_head_is_bounded(const struct run_spec_head *o);

/* Makes an order file. -1 with *e. */
must_use int run_spec_file_open(struct err *e);
/* exec_args and code are as long as in *o. */
must_use int run_spec_file_write(int run_spec_file, const struct run_spec_head *o, const char *exec_args,
				 const char *code, struct err *e);
/* The same from memory files. */
must_use int run_spec_file_copy(int run_spec_file, const struct run_spec_head *o, const struct run_spec_fds *from,
				struct err *e);
/* Sends *o to the fork, without blocking. tools: the program's end of its socket, borrowed, or -1. 0 or -errno. */
must_use int run_spec_send_head(int orders, const struct run_spec_head *o, int tools);

/*
 * In the fork, after clone() and under the program's filter: calls only read, pread64, mmap and munmap. Waits for
 * the order. 0 or -errno; text and code are the caller's own memory then, and both end with a NUL that is not counted.
 * code: NULL when there is none. EPIPE: no order will come, because every other holder of the socket has closed it.
 */
must_use int run_spec_file_read(int orders, int run_spec_file, struct run_spec_head *ret, char **text, char **code);
/*
 * In the fork, after an order that has tools. Returns the socket, which a program that is executed inherits, or
 * -errno. Any other kind of descriptor, above all a directory, would be a way out of the jail. It is refused here,
 * because no other process has checked what the holder of a lease sent. Calls only recvmsg(), getsockopt() and
 * close().
 */
must_use int run_spec_receive_tools_socket(int orders);
