/*
 * filter_cache.h - compiled filters, kept from run to run.
 *
 *   RUNTIME/filters/HASH.bpf     a header, the program, the key of the bundle
 *
 * A hit means that the whole key is equal: every byte of every text, brig's
 * version, the machine and the tables of floor and values. So compiling now
 * would give the same program. The cached one was compiled under our uid or
 * root's: folder and file must belong to one of them, no other user may write
 * to them, and the file must have one hard link. An attacker who can forge a
 * file there could replace brig itself as well. bpf_check() guards against
 * torn files, not against attackers.
 *
 * A hit calls neither parser nor libseccomp.
 */
#pragma once
#include "filter.h"

/* Takes the filter from the cache, or compiles and caches it. A cache that cannot be read or written is no failure. */
must_use int filter_load_or_compile(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret,
				    struct err *e);

/* NULL on a hit, otherwise the reason for the miss, as text for `brig doctor`. *ret is written on a hit only. */
const char *filter_cache_load(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret);
/* NULL: cached. Otherwise the reason why it is not. */
const char *filter_cache_store(const struct policy_bundle *b, const char *runtime_dir, const struct filter *f);
