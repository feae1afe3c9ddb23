/*
 * filter_cache.h - compiled filters, kept from run to run.
 *
 *   RUNTIME/filters/HASH.bpf     a header, the key of the bundle, the program
 *
 * A hit means that the whole key is equal: every byte of every text, brig's
 * version, the machine and the tables of floor and values. So the same words
 * that would be compiled now were compiled then, floor included, by a program
 * with our uid: folder and file must belong to us (or root) and be writable by
 * nobody else, and have no second name. Whoever can forge a file there can
 * replace the program that reads it too. bpf_check() guards against torn
 * files, not against enemies.
 *
 * A hit calls neither parser nor libseccomp.
 */
#pragma once
#include "filter.h"

/* From the cache, or compiled and then kept; a cache that cannot be read or written is no failure. */
must_use int filter_open(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret, struct err *e);

/* NULL: found. Else why not, in words for `brig doctor`. *ret is written on a hit only. */
const char *filter_cache_find(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret);
/* NULL: kept. */
const char *filter_cache_keep(const struct policy_bundle *b, const char *runtime_dir, const struct filter *f);
