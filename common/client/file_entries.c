#include "file_entries.h"

#include <string.h>

static enum file_entries_answer entries_set_error(const char *what, struct err *e)
{
	err_set(e, ERR_PROTOCOL, "files: %s", what);
	return ENTRIES_BROKEN;
}

static bool kind_has_name(uint32_t kind)
{
	return kind == FILE_REGULAR || kind == FILE_EXECUTABLE || kind == FILE_LEFT || kind == FILE_LIST;
}

/* The header and the name are complete. */
static enum file_entries_answer report_entry(struct file_entries *f, const struct file_entries_reader *reader,
					   void *owner, struct err *e)
{
	struct file_entry entry = f->entry;

	if (file_name_find_fault(f->name, entry.name_len))
		return entries_set_error("invalid file name", e);
	f->left      = entry.kind == FILE_REGULAR || entry.kind == FILE_EXECUTABLE ? entry.bytes : 0;
	f->header_at = f->name_at = 0;
	return !reader->entry || reader->entry(owner, &entry, f->name) ? ENTRIES_GO_ON : ENTRIES_ENOUGH;
}

static enum file_entries_answer parse_header_bytes(struct file_entries *f, const char *bytes, size_t n, struct err *e)
{
	memcpy((char *)&f->entry + f->header_at, bytes, n);
	f->header_at += n;
	if (f->header_at < sizeof f->entry)
		return ENTRIES_GO_ON;
	if (f->entry.kind == FILE_END)
		return f->entry.name_len ? entries_set_error("an end has a name", e) : ENTRIES_END;
	if (!kind_has_name(f->entry.kind) || f->entry.name_len == 0 || f->entry.name_len > FILE_NAME_BYTES)
		return entries_set_error("invalid header", e);
	return ENTRIES_GO_ON;
}

enum file_entries_answer file_entries_parse(struct file_entries *f, const char *bytes, size_t len,
					   const struct file_entries_reader *reader, void *owner, struct err *e)
{
	enum file_entries_answer r = ENTRIES_GO_ON;

	while (len && r == ENTRIES_GO_ON) {
		bool   header = !f->left && f->header_at < sizeof f->entry;
		size_t wants  = header ? sizeof f->entry - f->header_at : f->entry.name_len - f->name_at;
		size_t n      = f->left ? (f->left < len ? f->left : len) : wants < len ? wants : len;

		if (f->left) {
			f->left -= n;
			r = !reader->bytes || reader->bytes(owner, bytes, n) ? ENTRIES_GO_ON : ENTRIES_ENOUGH;
		} else if (header) {
			r = parse_header_bytes(f, bytes, n, e);
		} else {
			memcpy(f->name + f->name_at, bytes, n);
			f->name_at += n;
			f->name[f->name_at] = 0;
			if (f->name_at == f->entry.name_len)
				r = report_entry(f, reader, owner, e);
		}
		bytes += n;
		len -= n;
	}
	return r;
}
