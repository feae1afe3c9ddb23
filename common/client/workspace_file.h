/*
 * workspace_file.h - files of /workspace as models name them: their paths, and the files that a call puts there. Pure.
 */
#pragma once
#include "field_json.h"
#include "file_stream.h"

/*
 * "./a/b.csv" and "/workspace/a/b.csv" become a/b.csv. NULL with *e: not a plain path below /workspace. Borrowed from
 * path.
 */
must_use const char *workspace_file_parse_path(const char *path, struct err *e);

/*
 * A pattern that matches this path and nothing else; malloc'ed. NULL: memory is short, or the pattern would be too
 * long.
 */
char *workspace_file_exact_pattern(const char *path);

/*
 * What is sent for a transfer that puts nothing and makes one request: FILE_GET or FILE_LIST; malloc'ed. NULL: memory
 * is short.
 */
char *workspace_file_make_request(enum file_kind kind, const char *pattern, size_t *len);

/* Words after its name: why a file was left out. why: a code of file_stream.h. */
const char *workspace_file_left_out_text(uint64_t why);

/* The argument files: objects with a path and either content or base64. */
extern const struct field workspace_file_fields[];
enum { WORKSPACE_FILES_MAX = 64 };

/*
 * What is sent for a transfer that puts these files and requests none; malloc'ed. list: the argument files, checked
 * by its row, or one such object. NULL with *e, which begins with "files[2]: " if list is a list.
 */
must_use char *workspace_file_make_puts(const json_t *list, size_t *len, struct err *e);
