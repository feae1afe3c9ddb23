/* fuzz_mcp_line.c - the size of a piece, then any bytes as lines of stdio: in pieces they are the same lines as at once */
#include "fuzz.h"
#include "lines.h"

#define LONGEST 32

struct found {
	char  *text;
	size_t len, n;
};

static void add(struct found *f, enum lines_next kind, const char *line, size_t len)
{
	if (kind == LINES_LINE) {
		must(len && len <= LONGEST && !memchr(line, '\n', len));
		memcpy(f->text + f->len, line, len);
		f->len += len;
	}
	f->text[f->len++] = kind == LINES_LINE ? '\n' : '!';
	f->n++;
}

static struct found read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
	struct found    f = { .text = malloc(2 * size + 2) };
	struct lines    l = { .max = LONGEST };
	const char     *line;
	size_t          len;
	enum lines_next kind;

	must(f.text);
	for (size_t take; size; data += take, size -= take) {
		take = piece < size ? piece : size;
		char *room = lines_reserve(&l, take);

		must(room);
		memcpy(room, data, take);
		lines_add_filled(&l, take);
		while ((kind = lines_next(&l, &line, &len)) != LINES_NONE)
			add(&f, kind, line, len);
		must(l.end - l.begin <= LONGEST + 4);
	}
	if ((kind = lines_take_rest(&l, &line, &len)) != LINES_NONE)
		add(&f, kind, line, len);
	lines_done(&l);
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct found whole = read_in_pieces(data + 1, size - 1, size), parts = read_in_pieces(data + 1, size - 1, data[0] ? data[0] : 1);

	must(whole.n == parts.n && whole.len == parts.len && memcmp(whole.text, parts.text, whole.len) == 0);
	free(whole.text);
	free(parts.text);
	return 0;
}
