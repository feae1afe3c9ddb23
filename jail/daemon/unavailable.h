/* unavailable.h - sends a client the reason why brigd cannot serve, before brigd exits */
#pragma once
#include "err.h"

void unavailable_send_error(int sock, const struct err *why);
