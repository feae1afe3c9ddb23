#include "buffer.h"

enum { FIRST = 4096 };

bool buffer_grow(struct buffer *b, size_t max)
{
	size_t room = b->room ? 2 * b->room : FIRST;
	char  *at;

	if (b->len < b->room)
		return true;
	if (b->from > 0) {
		memmove(b->at, buffer_at(b), buffer_left(b));
		b->len -= b->from;
		b->from = 0;
		return true;
	}
	room = room < max ? room : max;
	at   = room > b->len ? realloc(b->at, room) : NULL;
	if (!at)
		return false;
	b->at   = at;
	b->room = room;
	return true;
}

bool buffer_make(struct buffer *b, size_t size)
{
	buffer_free(b);
	b->at   = malloc(size);
	b->room = b->at ? size : 0;
	return b->at != NULL;
}
