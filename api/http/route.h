/*
 * route.h - what is served where: a row for each method and path of each interface.
 *
 * No two rows have the same method and path (tests/unit/test_route.c). An interface that shares one with another needs
 * a column here that decides by a header, the host name or the body.
 */
#pragma once
#include "interface.h"

struct exchange;

enum route_access {
	ROUTE_OPEN,  /* without a token */
	ROUTE_TOKEN,
};

struct route {
	const char       *method, *path; /* {...} at the end of a path stands for one component */
	enum interface    api;
	enum route_access access;
	void            (*handle)(struct exchange *x);
	const char       *shape;         /* the operationId of openapi.json, which has the form of its answers */
};

/* Ends with a NULL method. */
extern const struct route routes[];

static inline bool route_has_body(const struct route *r)
{
	return r->method[0] == 'P'; /* POST, PUT */
}

/*
 * NULL: nothing is served there. Then *allow has the methods of that path, "" if there is no such path. argument: the
 * rest of path for {...}, borrowed from it; "" if there is none.
 */
const struct route *route_find(const char *method, const char *path, interface_set served, const char **argument,
			       char *allow, size_t allow_len);
