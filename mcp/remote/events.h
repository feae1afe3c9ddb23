/*
 * events.h - splits the bytes of a text/event-stream into the data of its events. Pure.
 */
#pragma once
#include "defs.h"

struct events {
	size_t max;                    /* bytes of one event; set by the owner */
	void (*event)(void *owner, const char *data, size_t len); /* len > 0 */
	void  *owner;
	char  *line, *data;
	size_t line_len, line_room, data_len, data_room;
	bool   after_return;           /* the last line ended with \r: a \n belongs to it */
	bool   has_data;
	char   name[16];               /* of the event that is read or reported, cut to fit; "": it has none */
};

/* false: an event is too large, or memory is short; nothing more can be read. */
must_use bool events_parse(struct events *e, const char *bytes, size_t len);
void          events_done(struct events *e);
