/* layer.h - what stands between a program and the host, by name */
#pragma once
#include "defs.h"

enum layer {
#define LAYER(id, name, need, doc) LAYER_##id,
#include "layer.def"
#undef LAYER
	LAYER_COUNT,
};

enum layer_need { NEED_ALWAYS = 1, NEED_ROOT = 2, NEED_WHERE_PRESENT = 3 };

#define LAYER_BIT(id) (1ull << LAYER_##id)

const char     *layer_name(enum layer layer);
const char     *layer_doc(enum layer layer);
enum layer_need layer_need(enum layer layer);
