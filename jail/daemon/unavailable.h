/* last_word.h - tells a client why brigd cannot serve, before brigd exits */
#pragma once
#include "err.h"

void last_word(int sock, const struct err *why);
