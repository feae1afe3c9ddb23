/* fuzz_file_entries.c - the size of a piece, then any bytes as files that come from a jail: names are plain paths, and in pieces they are the same as at once */
#include "file_entries.h"
#include "fuzz.h"

struct found {
	uint64_t sum, bytes; /* of what was told; of what the last file still is to have */
	size_t   entries;
};

static void add(struct found *f, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		f->sum = f->sum * 31 + ((const unsigned char *)data)[i];
}

static bool on_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct found *f       = owner;
	bool          is_file = entry->kind == FILE_REGULAR || entry->kind == FILE_EXECUTABLE;

	must(f->bytes == 0 && strlen(name) == entry->name_len && !file_name_find_fault(name, entry->name_len));
	must(is_file || entry->kind == FILE_LEFT || entry->kind == FILE_LIST);
	add(f, entry, sizeof *entry);
	add(f, name, entry->name_len);
	f->bytes = is_file ? entry->bytes : 0;
	return ++f->entries < 100;
}

static bool on_bytes(void *owner, const char *bytes, size_t len)
{
	struct found *f = owner;

	must(len && len <= f->bytes);
	f->bytes -= len;
	add(f, bytes, len);
	return true;
}

static enum file_entries_answer read_in_pieces(const uint8_t *data, size_t size, size_t piece, struct found *f)
{
	static const struct file_entries_reader reader = { on_entry, on_bytes };
	struct file_entries                     entries = { .left = 0 };
	enum file_entries_answer                r = ENTRIES_GO_ON;
	struct err                              e = { 0 };

	for (size_t take; size && r == ENTRIES_GO_ON; data += take, size -= take) {
		take = piece < size ? piece : size;
		r    = file_entries_parse(&entries, (const char *)data, take, &reader, f, &e);
	}
	must(r != ENTRIES_BROKEN || *e.text);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct found whole = { 0 }, parts = { 0 };

	if (size < 2)
		return 0;
	must(read_in_pieces(data + 1, size - 1, size, &whole) == read_in_pieces(data + 1, size - 1, data[0] ? data[0] : 1, &parts));
	must(whole.sum == parts.sum && whole.entries == parts.entries && whole.bytes == parts.bytes);
	return 0;
}
