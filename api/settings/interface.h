/*
 * interface.h - the interfaces that brig-api serves, by name. Pure.
 */
#pragma once
#include "err.h"

enum interface {
#define INTERFACE(name, doc) INTERFACE_##name,
#include "interface.def"
#undef INTERFACE
	INTERFACE_COUNT,
	INTERFACE_NONE = INTERFACE_COUNT, /* a page of brig-api's own */
};

/* A set has a bit for each. */
typedef unsigned interface_set;
#define INTERFACE_ALL ((1u << INTERFACE_COUNT) - 1)

static inline bool interface_set_has(interface_set set, enum interface one)
{
	return set >> one & 1;
}

const char *interface_name(enum interface one);
const char *interface_doc(enum interface one);
/* "run_code,piston"; an empty list is refused. */
must_use int interface_set_parse(const char *text, interface_set *ret, struct err *e);
/* The same the other way; returns buf. */
char *interface_set_print(interface_set set, char *buf, size_t len);
