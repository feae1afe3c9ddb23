/* tls_error.h - OpenSSL's queue of errors, which must be empty before each call whose error is looked at */
#pragma once

#ifndef INT_MAX /* openssl/err.h includes <limits.h> for it, and would find limits.h of jail/spec */
#define INT_MAX __INT_MAX__
#endif
#include <openssl/err.h>
