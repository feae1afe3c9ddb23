#include "chunk_reader.h"

#include "http_line.h"
#include "text.h"

enum { DIGITS_MAX = 15, EXTRA_MAX = 8192 };

static bool chunk_enter_state(struct chunk_reader *r, enum chunk_state state, bool is_sound)
{
	r->state = state;
	return is_sound;
}

static bool read_size_digit(struct chunk_reader *r, char c)
{
	int digit = text_hex_digit(c);

	if (r->digits && c == '\r')
		return chunk_enter_state(r, CHUNK_SIZE_LF, true);
	if (r->digits && (c == ';' || c == ' ' || c == '\t'))
		return chunk_enter_state(r, CHUNK_EXTENSION, r->may_extend);
	if (digit < 0 || ++r->digits > DIGITS_MAX)
		return false;
	r->left = r->left << 4 | (unsigned)digit;
	return true;
}

bool chunk_reader_read_byte(struct chunk_reader *r, char c)
{
	bool is_extra = r->state == CHUNK_EXTENSION || (r->state >= CHUNK_TRAILER && r->state <= CHUNK_TRAILER_VALUE);

	if (is_extra && ++r->extra > EXTRA_MAX)
		return false;
	switch (r->state) {
	case CHUNK_SIZE:
		return read_size_digit(r, c);
	case CHUNK_EXTENSION:
		return c == '\r' ? chunk_enter_state(r, CHUNK_SIZE_LF, true) : c != '\n';
	case CHUNK_SIZE_LF:
		r->digits = 0;
		return chunk_enter_state(r, r->left ? CHUNK_DATA : CHUNK_TRAILER, c == '\n');
	case CHUNK_DATA_CR:
		return chunk_enter_state(r, CHUNK_DATA_LF, c == '\r');
	case CHUNK_DATA_LF:
		return chunk_enter_state(r, CHUNK_SIZE, c == '\n');
	case CHUNK_TRAILER:
		return c == '\r' ? chunk_enter_state(r, CHUNK_LAST_LF, true)
				 : chunk_enter_state(r, CHUNK_TRAILER_NAME, http_is_token((struct span){ &c, 1 }));
	case CHUNK_TRAILER_NAME:
		return c == ':' ? chunk_enter_state(r, CHUNK_TRAILER_VALUE, true)
				: http_is_token((struct span){ &c, 1 });
	case CHUNK_TRAILER_VALUE:
		return c == '\r' ? chunk_enter_state(r, CHUNK_TRAILER_LF, true) : http_is_value((struct span){ &c, 1 });
	case CHUNK_TRAILER_LF:
		return chunk_enter_state(r, CHUNK_TRAILER, c == '\n');
	case CHUNK_LAST_LF:
		return chunk_enter_state(r, CHUNK_OVER, c == '\n');
	case CHUNK_DATA:
	case CHUNK_OVER:
		break;
	}
	return false;
}

void chunk_reader_skip_data(struct chunk_reader *r, uint64_t n)
{
	r->left -= n;
	if (r->left == 0)
		r->state = CHUNK_DATA_CR;
}
