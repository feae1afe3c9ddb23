/* list.h - what the store holds, for people and for programs */
#pragma once
#include "shelf.h"

#include <stdio.h>

must_use int list_print(const struct shelf *s, bool json, FILE *out, struct err *e);
