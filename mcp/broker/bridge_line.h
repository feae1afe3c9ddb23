/*
 * bridge_line.h - requests of a program on its bridge, and their answers: JSON, a line each. Pure.
 *
 * A line of a program is hostile. It has at most BRIDGE_LINE_MAX bytes, nests at most 64 deep, and has every key of its op and
 * no other. The bridge is closed at a line that does not comply.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define BRIDGE_LINE_MAX  (1 * MIB)
enum { BRIDGE_DEPTH = 64, BRIDGE_FOUND = 20, BRIDGE_FOUND_MAX = 100, BRIDGE_NAME_MAX = 512 };

enum bridge_op { BRIDGE_CALL, BRIDGE_CANCEL, BRIDGE_FIND, BRIDGE_DESCRIBE, BRIDGE_NAMES, BRIDGE_OPS };

struct bridge_request {
	int64_t        id;
	enum bridge_op op;
	const char    *text;  /* the value of name, words or under; "" for cancel */
	const json_t  *args;  /* an object, of a call */
	size_t         max;   /* of find */
	json_t        *source;
};

/* After a failure, too, bridge_request_done() must be called. */
must_use int bridge_request_parse(struct bridge_request *ret, const char *line, size_t len, struct err *e);
void         bridge_request_done(struct bridge_request *r);
#define scoped_bridge_request scoped(bridge_request_done) struct bridge_request

enum tool_outcome {
#define OUTCOME(id, doc) TOOL_OUTCOME_##id,
#include "tool_outcome.def"
	TOOL_OUTCOMES,
};
const char *tool_outcome_name(enum tool_outcome o);

/* Bodies of answers; new references. key: result, tools, tool, names; takes value over. */
json_t *bridge_answer_body(const char *key, json_t *value);
json_t *bridge_error_body(enum tool_outcome kind, const char *fmt, ...) printf_like(2, 3);

/*
 * The line of an answer, with its id and without a newline, malloc'ed; takes body over. If it is too long it becomes an error,
 * and *outcome TOOL_OUTCOME_limit.
 */
char *bridge_dump_line(int64_t id, json_t *body, size_t *len, enum tool_outcome *outcome);
