/*
 * linked_list.h - lists whose links are in their elements: those of <sys/queue.h> that brig uses, by their names
 *
 * Not every C library has that header (musl). LIST: an element needs no head to be removed. SLIST: one link, from the
 * head alone. TAILQ: elements come to both ends. An element that is removed must be left by FOREACH at once.
 */
#pragma once

/* clang-format off */
#define LIST_HEAD(name, type)         struct name { struct type *lh_first; }
#define LIST_ENTRY(type)              struct { struct type *le_next, **le_prev; }
#define LIST_INIT(head)               ((void)((head)->lh_first = NULL))
#define LIST_EMPTY(head)              ((head)->lh_first == NULL)
#define LIST_FIRST(head)              ((head)->lh_first)
#define LIST_NEXT(at, field)          ((at)->field.le_next)
#define LIST_FOREACH(at, head, field) for ((at) = (head)->lh_first; (at); (at) = (at)->field.le_next)
#define LIST_INSERT_HEAD(head, at, field) do { \
	if (((at)->field.le_next = (head)->lh_first) != NULL) \
		(head)->lh_first->field.le_prev = &(at)->field.le_next; \
	(head)->lh_first   = (at); \
	(at)->field.le_prev = &(head)->lh_first; \
} while (0)
#define LIST_REMOVE(at, field) do { \
	if ((at)->field.le_next) \
		(at)->field.le_next->field.le_prev = (at)->field.le_prev; \
	*(at)->field.le_prev = (at)->field.le_next; \
} while (0)

#define SLIST_HEAD(name, type)         struct name { struct type *slh_first; }
#define SLIST_ENTRY(type)              struct { struct type *sle_next; }
#define SLIST_INIT(head)               ((void)((head)->slh_first = NULL))
#define SLIST_FIRST(head)              ((head)->slh_first)
#define SLIST_FOREACH(at, head, field) for ((at) = (head)->slh_first; (at); (at) = (at)->field.sle_next)
#define SLIST_INSERT_HEAD(head, at, field) do { \
	(at)->field.sle_next = (head)->slh_first; \
	(head)->slh_first    = (at); \
} while (0)
#define SLIST_REMOVE_HEAD(head, field) ((void)((head)->slh_first = (head)->slh_first->field.sle_next))

#define TAILQ_HEAD(name, type)         struct name { struct type *tqh_first, **tqh_last; }
#define TAILQ_ENTRY(type)              struct { struct type *tqe_next, **tqe_prev; }
#define TAILQ_INIT(head)               ((void)((head)->tqh_first = NULL, (head)->tqh_last = &(head)->tqh_first))
#define TAILQ_EMPTY(head)              ((head)->tqh_first == NULL)
#define TAILQ_FIRST(head)              ((head)->tqh_first)
#define TAILQ_NEXT(at, field)          ((at)->field.tqe_next)
#define TAILQ_FOREACH(at, head, field) for ((at) = (head)->tqh_first; (at); (at) = (at)->field.tqe_next)
/* Head and entry have the same two pointers: the link to an element is the first of a pair, whose second leads back. */
#define TAILQ_LAST(head, name)                (*((struct name *)(head)->tqh_last)->tqh_last)
#define TAILQ_PREV(at, name, field)           (*((struct name *)(at)->field.tqe_prev)->tqh_last)
#define TAILQ_FOREACH_REVERSE(at, head, name, field) \
	for ((at) = TAILQ_LAST(head, name); (at); (at) = TAILQ_PREV(at, name, field))
#define TAILQ_INSERT_HEAD(head, at, field) do { \
	if (((at)->field.tqe_next = (head)->tqh_first) != NULL) \
		(head)->tqh_first->field.tqe_prev = &(at)->field.tqe_next; \
	else \
		(head)->tqh_last = &(at)->field.tqe_next; \
	(head)->tqh_first    = (at); \
	(at)->field.tqe_prev = &(head)->tqh_first; \
} while (0)
#define TAILQ_INSERT_TAIL(head, at, field) do { \
	(at)->field.tqe_next = NULL; \
	(at)->field.tqe_prev = (head)->tqh_last; \
	*(head)->tqh_last    = (at); \
	(head)->tqh_last     = &(at)->field.tqe_next; \
} while (0)
#define TAILQ_INSERT_AFTER(head, before, at, field) do { \
	if (((at)->field.tqe_next = (before)->field.tqe_next) != NULL) \
		(at)->field.tqe_next->field.tqe_prev = &(at)->field.tqe_next; \
	else \
		(head)->tqh_last = &(at)->field.tqe_next; \
	(before)->field.tqe_next = (at); \
	(at)->field.tqe_prev     = &(before)->field.tqe_next; \
} while (0)
#define TAILQ_REMOVE(head, at, field) do { \
	if ((at)->field.tqe_next) \
		(at)->field.tqe_next->field.tqe_prev = (at)->field.tqe_prev; \
	else \
		(head)->tqh_last = (at)->field.tqe_prev; \
	*(at)->field.tqe_prev = (at)->field.tqe_next; \
} while (0)
/* clang-format on */
