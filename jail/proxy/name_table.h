/*
 * name_table.h - the addresses that stand for names in the cell of one run
 *
 * From 198.18.1.0 up, in the order in which names were asked for. An address
 * keeps its name until the run ends, because programs keep addresses.
 */
#pragma once
#include "net_listeners.h"

struct name_table {
	uint32_t  n, seed; /* drawn with the first name, so that a program cannot choose names that collide */
	char    **name;   /* NET_NAMES_MAX entries; allocated with the first name */
	uint16_t *places; /* of a hash table: index of the name + 1; 0: free */
};

/* The address of a name, in host order; a new name gets the next one. 0: the table is full, or no memory. name is
 * canonical. */
must_use uint32_t name_table_address_of_name(struct name_table *t, const char *name);
/* NULL: the address stands for no name. */
must_use const char *name_table_name_of_address(const struct name_table *t, uint32_t address);
void                 name_table_free(struct name_table *t);
