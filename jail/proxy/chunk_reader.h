/*
 * chunk_reader.h - what is around the bytes of a chunked HTTP/1 body (RFC 9112, 7.1), read strictly, one byte after the
 * other
 *
 * The caller passes every byte but those of CHUNK_DATA, which it takes itself and counts off left.
 */
#pragma once
#include "defs.h"

enum chunk_state {
	CHUNK_SIZE,      /* digits */
	CHUNK_EXTENSION, /* behind the digits */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR, /* behind the bytes of a chunk */
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* the beginning of a line behind the last chunk */
	CHUNK_TRAILER_NAME,
	CHUNK_TRAILER_VALUE,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_OVER,
};

struct chunk_reader {
	enum chunk_state state;
	/* otherwise extensions are refused: two parsers might find their ends at different places */
	bool             may_extend;
	uint64_t         left;       /* bytes of this chunk */
	unsigned         digits, extra; /* extra: bytes of extensions and trailers */
};

/* False: malformed. */
must_use bool chunk_reader_read_byte(struct chunk_reader *r, char c);
/* The caller has taken n bytes of CHUNK_DATA. */
void chunk_reader_skip_data(struct chunk_reader *r, uint64_t n);
