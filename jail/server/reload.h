/*
 * reload.h - configuration and profiles are read again while the server serves
 *
 * By a signal, or by a request that waits for the outcome. One reading at a time;
 * a client that asks while one is under way gets the answer of the next, since the
 * files may have changed since it began. What cannot be used changes nothing.
 */
#pragma once
#include "connection.h"
#include "reader.h"

struct reload {
	struct server     *server;
	struct reader     *reader;
	struct loop_source source;
	int                notify;  /* notify.h */
	uint64_t           reading; /* number of the one under way, or of the last */
	bool               is_reading, is_asked_again;
};

/* All of these must outlive the server's loop. */
must_use int reload_open(struct reload *ret, struct server *d, struct reader *reader, int notify, struct err *e);
/* Asks for a reading. The number of the one that answers the caller; 0: the reader is gone. */
uint64_t     reload_request_reading(struct reload *r);
extern const char reload_reader_is_gone[];
