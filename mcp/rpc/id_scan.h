/*
 * id_scan.h - finds the id of a message that is not read: it is too long, too deep, or no JSON
 *
 * Pure, and in constant memory: bytes are passed over as they come. What counts are the keys of the outermost object; a key that comes
 * twice is as good as none.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

#define ID_SCAN_TEXT 256 /* of the id, as it is written */

struct id_scan {
	size_t depth;
	char   before;      /* the last structural byte at depth 1: {, comma or colon */
	bool   in_text, escaped, is_dead;
	char   key[8], id[ID_SCAN_TEXT];
	size_t key_len, id_len;
	int    ids, methods; /* how many there were of these keys */
};

void id_scan_feed(struct id_scan *s, const char *bytes, size_t len); /* s is zeroed at first */
/* A text or a whole number, a new reference; NULL: there is none yet. is_request: of a message with a method only. */
json_t *id_scan_result(const struct id_scan *s, bool is_request);
json_t *id_scan_find(const char *bytes, size_t len, bool is_request); /* all at once */
