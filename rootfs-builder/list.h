/* list.h - lists the trees of the store, as text or as JSON */
#pragma once
#include "tree_store.h"

#include <stdio.h>

must_use int list_print(const struct tree_store *s, bool json, FILE *out, struct err *e);
