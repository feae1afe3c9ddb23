/*
 * order_file.h - what a cell is to run, as it reaches the fork that will run it
 *
 * The fixed size goes over the cell's order socket, the bytes into its order file: a
 * memory file that was made with the cell, so that no descriptor travels with an
 * order; but for the socket of a run with tools, which follows it in a datagram of its own: to make one for each cell that stands
 * ready would cost every run. Words first, the text of the program at the next multiple of 16.
 *
 * An order file is not sealed, and its writer may be a door that was taken over: the
 * reader takes a private copy before it looks at anything.
 */
#pragma once
#include "exec_args.h"

enum { ORDER_CODE_MAX = 8 * 1024 * 1024 };

struct order_head {
	struct exec_args exec_args; /* fd: without meaning */
	uint32_t         code_len;
	uint32_t         stdin_pipe, result_pipe;
	uint32_t         tools;    /* a socket follows */
	uint32_t         executes; /* the fork, which may be a zygote's, executes the first of the paths */
};

/* In numbers only. */
bool order_file_is_bounded(const struct order_head *o);

/* A new one. -1 with *e. */
must_use int order_file_make(struct err *e);
/* Both as long as the order says. */
must_use int order_file_write(int order_file, const struct order_head *o, const char *exec_args, const char *code, struct err *e);
/* The same from memory files; code: -1 when there is none. */
must_use int order_file_copy(int order_file, const struct order_head *o, int exec_args, int code, struct err *e);
/* Tells the fork that waits; tools: the program's end of the socket, if the order has one, and it stays the caller's. 0 or -errno; does not block. */
must_use int order_file_send(int orders, const struct order_head *o, int tools);

/*
 * In the fork, after clone() and under the program's filter: read, pread64, mmap and munmap are all it calls. Waits for
 * the order. 0 or -errno; text and code are the caller's own memory then, and both end with a NUL that is not counted.
 * code: NULL when there is none. EPIPE: no order will come, because every other holder of the socket has closed it.
 */
must_use int order_file_read(int orders, int order_file, struct order_head *ret, char **text, char **code);
/*
 * In the fork, after an order that has tools: the socket, which a program that is executed inherits. Anything else would be a way out of the jail, a
 * directory above all, and is refused here: of a ticket no other process has looked at it. recvmsg(), getsockopt() and close() are called. Or -errno.
 */
must_use int order_file_take_tools(int orders);
