/*
 * revision.h - the revisions of the Model Context Protocol, and what differs between them.
 *
 * "Modern" is 2026-07-28: no handshake, every request has its revision in
 * _meta. "Legacy" are the four before it: initialize, then requests. Which of
 * the two a request is, is decided for each request alone, never for a
 * connection: clients exist that probe with one and go on with the other.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

enum revision { REVISION_2024_11_05, REVISION_2025_03_26, REVISION_2025_06_18, REVISION_2025_11_25, REVISION_2026_07_28, REVISION_COUNT };

#define REVISION_LEGACY_NEWEST REVISION_2025_11_25
#define REVISION_MODERN        REVISION_2026_07_28 /* the first one */

const char *revision_name(enum revision r);
/* false: not a revision that brig speaks. */
must_use bool revision_find(const char *name, enum revision *ret);

static inline bool revision_is_modern(enum revision r)
{
	return r >= REVISION_MODERN;
}

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
