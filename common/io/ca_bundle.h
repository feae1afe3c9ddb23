/* ca_bundle.h - the certificates of authorities that this host trusts */
#pragma once

/* Where distributions have the file with all of them; the last one is NULL. */
extern const char *const ca_bundles[];

/* The file that has all of them, on whatever distribution this is; NULL if there is none that can be read. */
const char *ca_bundle_find(void);
