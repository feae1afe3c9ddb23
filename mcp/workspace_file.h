/*
 * workspace_file.h - files of /workspace as models name them: their paths, and what a call wants to put there. Pure.
 */
#pragma once
#include "field_json.h"

/* "./a/b.csv" and "/workspace/a/b.csv" are a/b.csv. NULL with *e: no plain path below /workspace. Borrowed from path. */
must_use const char *workspace_file_path(const char *path, struct err *e);

/* As a pattern that matches this path and nothing else; malloc'ed, NULL: memory is short, or it is too long for one. */
char *workspace_file_pattern(const char *path);

/* Why a file was left out (file_stream.h), behind its name. */
const char *workspace_file_left_out(uint64_t why);

/* The argument files: objects with a path and either content or base64. */
extern const struct field workspace_file_fields[];
enum { WORKSPACE_FILES_MAX = 64 };

/*
 * Both lists of a transfer that puts them and wants nothing; malloc'ed. list: checked by an argument's row, or one such object.
 * NULL with *e, which begins with "files[2]: " unless it is one.
 */
must_use char *workspace_file_puts(const json_t *list, size_t *len, struct err *e);
