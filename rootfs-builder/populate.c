#include "populate.h"

#include "cell_path.h"
#include "generate.h"
#include "tree.h"

int populate_apply(int root, const struct recipe *r, int log, int stop, struct err *e)
{
	struct recipe_row row;
	size_t            i;

	if (cell_paths_make(root, e) < 0)
		return -1;
	recipe_foreach(r->dirs, row, i) {
		if (tree_make_dir(root, row.key, e) < 0)
			return -1;
	}
	recipe_foreach(r->links, row, i) {
		if (tree_link(root, row.key, row.value, e) < 0)
			return -1;
	}
	recipe_foreach(r->generate, row, i) {
		const struct generator *g = generator_find(row.value);

		if (g->make(&(struct generator_use){ root, log, stop, row.key }, g->text, e) < 0)
			return -1;
	}
	return 0;
}
