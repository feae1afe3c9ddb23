/*
 * protocol.h - what PID 1 of a cell is executed with: no words, no environment, and these descriptors.
 *
 * It says one thing, that it is as hard as it gets, and hears one, the end of its socket.
 */
#pragma once

enum {
	INIT_FD_LIFE = 3, /* socket to the process that watches the cell: one byte when PID 1 is as hard as it gets; its end is the cell's */
	INIT_FD_SLOT = 4, /* held open, never used: the cell's ids stay taken while it lives */
};
