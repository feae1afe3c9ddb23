/*
 * name_table.h - the addresses that stand for names in the cell of one run
 *
 * 198.18.1.0 and up, in the order in which names were asked for. An address
 * keeps its name as long as the run is: programs keep addresses.
 */
#pragma once
#include "net_listeners.h"

struct name_table {
	uint32_t  n;
	char    **name;   /* NET_NAMES_MAX; made with the first one */
	uint16_t *places; /* of a hash: index + 1; 0: free */
};

/* Host order; 0: the table is full, or there is no memory. name is canonical. */
must_use uint32_t name_table_address(struct name_table *t, const char *name);
/* NULL: it stands for none. */
must_use const char *name_table_name(const struct name_table *t, uint32_t address);
void                 name_table_free(struct name_table *t);
