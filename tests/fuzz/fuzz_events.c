/* fuzz_events.c - the size of a piece, then any bytes as a stream of events: in pieces they are the same events as at once */
#include "events.h"
#include "fuzz.h"

#define LONGEST 64

struct found {
	char  *text;
	size_t len;
	bool   ok;
};

static void add(void *owner, const char *data, size_t len)
{
	struct found *f = owner;

	must(len && len <= LONGEST + 64);
	memcpy(f->text + f->len, data, len);
	f->len += len;
	f->text[f->len++] = '|';
}

static struct found read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
	struct found  f = { .text = malloc(2 * size + 2), .ok = true };
	struct events e = { .max = LONGEST, .event = add, .owner = &f };

	must(f.text);
	for (size_t take; size && f.ok; data += take, size -= take) {
		take = piece < size ? piece : size;
		f.ok = events_parse(&e, (const char *)data, take);
	}
	events_done(&e);
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct found whole = read_in_pieces(data + 1, size - 1, size), parts = read_in_pieces(data + 1, size - 1, data[0] ? data[0] : 1);

	must(whole.ok == parts.ok && (!whole.ok || (whole.len == parts.len && memcmp(whole.text, parts.text, whole.len) == 0)));
	free(whole.text);
	free(parts.text);
	return 0;
}
