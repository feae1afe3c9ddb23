#include "file_entries.h"

#include <string.h>

static size_t least_of(size_t a, uint64_t b)
{
	return b < a ? (size_t)b : a;
}

static bool has_name(uint32_t kind)
{
	return kind == FILE_REGULAR || kind == FILE_EXECUTABLE || kind == FILE_LEFT || kind == FILE_LIST;
}

static enum file_entries_answer broken(const char *what, struct err *e)
{
	err_set(e, ERR_PROTOCOL, "files: %s", what);
	return ENTRIES_BROKEN;
}

/* The header and the name are complete. */
static enum file_entries_answer take_entry(struct file_entries *f, const struct file_entries_reader *reader, void *owner, struct err *e)
{
	struct file_entry entry = f->entry;

	if (file_name_fault(f->name, entry.name_len))
		return broken("a name makes no sense", e);
	f->left      = entry.kind == FILE_REGULAR || entry.kind == FILE_EXECUTABLE ? entry.bytes : 0;
	f->header_at = f->name_at = 0;
	return reader->entry(owner, &entry, f->name) ? ENTRIES_GO_ON : ENTRIES_ENOUGH;
}

static enum file_entries_answer take_header(struct file_entries *f, const char *bytes, size_t n, struct err *e)
{
	memcpy((char *)&f->entry + f->header_at, bytes, n);
	f->header_at += n;
	if (f->header_at < sizeof f->entry)
		return ENTRIES_GO_ON;
	if (f->entry.kind == FILE_END)
		return f->entry.name_len ? broken("an end has a name", e) : ENTRIES_END;
	if (!has_name(f->entry.kind) || f->entry.name_len == 0 || f->entry.name_len > FILE_NAME_BYTES)
		return broken("a header makes no sense", e);
	return ENTRIES_GO_ON;
}

static enum file_entries_answer take_name(struct file_entries *f, const char *bytes, size_t n, const struct file_entries_reader *reader, void *owner, struct err *e)
{
	memcpy(f->name + f->name_at, bytes, n);
	f->name_at += n;
	f->name[f->name_at] = 0;
	return f->name_at < f->entry.name_len ? ENTRIES_GO_ON : take_entry(f, reader, owner, e);
}

static enum file_entries_answer take_bytes(struct file_entries *f, const char *bytes, size_t n, const struct file_entries_reader *reader, void *owner)
{
	f->left -= n;
	return reader->bytes(owner, bytes, n) ? ENTRIES_GO_ON : ENTRIES_ENOUGH;
}

enum file_entries_answer file_entries_take(struct file_entries *f, const char *bytes, size_t len, const struct file_entries_reader *reader, void *owner, struct err *e)
{
	enum file_entries_answer r = ENTRIES_GO_ON;

	while (len && r == ENTRIES_GO_ON) {
		bool   header = !f->left && f->header_at < sizeof f->entry;
		size_t n      = least_of(len, f->left ? f->left : header ? sizeof f->entry - f->header_at : f->entry.name_len - f->name_at);

		if (f->left)
			r = take_bytes(f, bytes, n, reader, owner);
		else
			r = header ? take_header(f, bytes, n, e) : take_name(f, bytes, n, reader, owner, e);
		bytes += n;
		len -= n;
	}
	return r;
}
