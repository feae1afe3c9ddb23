/* defs.h - macros and types that every file may use */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define must_use          __attribute__((warn_unused_result))
#define scoped(fn)        __attribute__((cleanup(fn)))

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
