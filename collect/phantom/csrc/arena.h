/* What arena.c and blocks.c share: the address space of a device, as offsets into its arena. Callers hold arena.c's
 * lock. */
#ifndef PHANTOM_ARENA_H
#define PHANTOM_ARENA_H

#include "phantom.h"

#define MIB (1ull << 20)
#define TIB (1ull << 40)
#define ARENA_BYTES (8 * TIB)
/* The policies use [MIDDLE, TOP) of an arena, reserved virtual ranges [GRANULE, MIDDLE). */
#define ARENA_MIDDLE (4 * TIB)
#define ARENA_TOP (ARENA_BYTES - 128 * MIB)
#define GRANULE (2 * MIB)
#define SMALL_GRANULE 512ull
#define NOWHERE UINT64_MAX

struct region {
    uint64_t offset, bytes;
};

/* By offset, but for the list of what was recorded. */
struct list {
    struct region *at;
    size_t count, room;
};

struct arena {
    char *base;
    struct list taken;
    /* blocks.c */
    struct list blocks;   /* the driver's */
    struct list reserved; /* those of them that hold their place in the process's addresses */
    uint64_t opened;      /* the block that is filled until a kernel is loaded */
    uint64_t origin;      /* the process's address that is offset 0 */
    uint64_t grid;        /* how far below the context's addresses the first block ends */
    bool laid;
};

static inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* False when the host has no memory left. */
bool phantom_list_insert(struct list *list, size_t index, struct region region);
void phantom_list_remove(struct list *list, size_t index);
/* Index of the first region that ends beyond offset. */
size_t phantom_list_beyond(const struct list *list, uint64_t offset);
/* The lowest and the highest offset in [from, to) at which none of the regions is in the way of bytes, or NOWHERE. */
uint64_t phantom_fit_up(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule);
uint64_t phantom_fit_down(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule);

/* ---- blocks.c: where the driver puts what is asked for */

/* What a context has taken before anything is asked for, as it was seen on an H200. False when the host has no memory
 * left. */
bool phantom_blocks_begin(struct arena *arena);
uint64_t phantom_blocks_fit(struct arena *arena, uint64_t bytes, uint64_t granule);
/* To be called when a region in a block was given back: a block that is empty then goes back too. */
void phantom_blocks_left(struct arena *arena, uint64_t offset);
/* What the driver takes for itself on a program's first use of it, as it was seen on an H200. */
void phantom_blocks_use(struct arena *arena, enum phantom_use use);

#endif
