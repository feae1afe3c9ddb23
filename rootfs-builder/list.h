/* list.h - lists the trees of the store, as text or as JSON */
#pragma once
#include "shelf.h"

#include <stdio.h>

must_use int list_print(const struct shelf *s, bool json, FILE *out, struct err *e);
