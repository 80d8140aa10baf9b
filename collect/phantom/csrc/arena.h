/* What arena.c and blocks.c share: the address space of a device (its arena), in which an address is an offset. Callers
 * hold arena.c's lock. */
#ifndef PHANTOM_ARENA_H
#define PHANTOM_ARENA_H

#include "phantom.h"
#include "regions.h"

#define MIB (1ull << 20)
#define TIB (1ull << 40)
#define ARENA_BYTES (8 * TIB)
/* Address policies place segments in [ARENA_MIDDLE, ARENA_TOP) of an arena. Virtual ranges that a program reserves lie
 * in [GRANULE, ARENA_MIDDLE). */
#define ARENA_MIDDLE (4 * TIB)
#define ARENA_TOP (ARENA_BYTES - 128 * MIB)
#define GRANULE (2 * MIB)
#define SMALL_GRANULE 512ull

struct arena {
    char *base;
    struct list taken;
    /* blocks.c */
    struct list blocks;    /* blocks that the driver has made */
    struct list reserved;  /* the blocks that have reserved their place in the process */
    uint64_t local_memory; /* the block that local memory fills until it is freed; 0 = none */
    uint64_t origin;       /* the address in the process that offset 0 stands for */
    uint64_t grid;         /* how far the first block ends below the context's addresses */
    bool laid;
};

/* ---- blocks.c: where the driver places requests */

uint64_t phantom_blocks_fit(struct arena *arena, uint64_t bytes, uint64_t granule);
/* To be called after a region in a block was given back. If the block is now empty, the function gives it back too. */
void phantom_blocks_left(struct arena *arena, uint64_t offset);
/* These three functions are for memory that the driver takes for itself. The first makes a new block of `bytes` bytes
 * with `taken` bytes in use; it returns false if there is no place, or no memory on the host. The second takes a place
 * in any block. The third gives back the region at an offset. */
bool phantom_blocks_add(struct arena *arena, uint64_t *offset, uint64_t bytes, uint64_t taken);
void phantom_blocks_take(struct arena *arena, uint64_t bytes);
void phantom_blocks_give(struct arena *arena, uint64_t offset);

#endif
