/* last_word.h - a brigd that cannot serve tells its client why, before it goes */
#pragma once
#include "err.h"

void last_word(int sock, const struct err *why);
