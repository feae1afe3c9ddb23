/*
 * protocol.h - what PID 1 of a cell is executed with: no arguments, no environment, and these descriptors.
 *
 * It sends one byte when it is hardened: not dumpable, without capabilities, with its filter on. Then it waits for
 * the end of file of its socket.
 */
#pragma once

enum {
	INIT_FD_LIFE = 3, /* socket to the runner; at end of file PID 1 exits, and the cell ends */
	INIT_FD_SLOT = 4, /* held open, never used: the cell's ids stay taken while it lives */
};
