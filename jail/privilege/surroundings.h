/*
 * surroundings.h - what kind of place this is, for the wording of advice.
 *
 * Read once, before the probes. A file that cannot be read leaves "unknown" behind.
 */
#pragma once
#include "refusal.h"

void surroundings_detect(struct surroundings *ret);

/* A kernel file with one number, like /proc/sys/user/max_user_namespaces; -1 when it cannot be read or is not a number. */
long long read_number_file(const char *path);
/* At most len - 1 bytes, the trailing newline removed; false when it cannot be read. */
bool read_first_line(const char *path, char *buf, size_t len);
