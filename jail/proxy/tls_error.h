/* tls_error.h - OpenSSL's queue of errors, which is to be empty before each call whose error is looked at */
#pragma once

#ifndef INT_MAX /* openssl/err.h asks <limits.h> for it, and would find the one of jail/spec */
#define INT_MAX __INT_MAX__
#endif
#include <openssl/err.h>
