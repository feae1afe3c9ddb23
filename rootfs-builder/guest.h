/* guest.h - the program that runs others inside a jail: its source and its .pyc go into every tree that has a Python */
#pragma once
#include "file.h"
#include "recipe.h"

/* Reads it, and makes it a part of what the recipe is: another runner, another tree. */
must_use int guest_load(const char *path, struct recipe *r, struct bytes *source, struct err *e);
/* A tree without a Python gets nothing: nobody in it could run it. */
must_use int guest_apply(int root, const struct bytes *source, int log, int stop, struct err *e);
