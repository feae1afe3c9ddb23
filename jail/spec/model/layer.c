#include "layer.h"

static const struct {
	const char     *name;
	enum layer_need need;
	const char     *doc;
} layers[] = {
#define LAYER(id, name, need, doc) { name, need, doc },
#include "layer.def"
#undef LAYER
};

const char *layer_name(enum layer layer)
{
	return layers[layer].name;
}

const char *layer_doc(enum layer layer)
{
	return layers[layer].doc;
}

enum layer_need layer_need(enum layer layer)
{
	return layers[layer].need;
}
