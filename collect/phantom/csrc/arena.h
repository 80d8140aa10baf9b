/* What arena.c and blocks.c share: the address space of a device, as offsets into its arena. Callers hold arena.c's
 * lock. */
#ifndef PHANTOM_ARENA_H
#define PHANTOM_ARENA_H

#include "phantom.h"
#include "regions.h"

#define MIB (1ull << 20)
#define TIB (1ull << 40)
#define ARENA_BYTES (8 * TIB)
/* The policies use [MIDDLE, TOP) of an arena, reserved virtual ranges [GRANULE, MIDDLE). */
#define ARENA_MIDDLE (4 * TIB)
#define ARENA_TOP (ARENA_BYTES - 128 * MIB)
#define GRANULE (2 * MIB)
#define SMALL_GRANULE 512ull

struct arena {
    char *base;
    struct list taken;
    /* blocks.c */
    struct list blocks;    /* the driver's */
    struct list reserved;  /* blocks that hold their place in the process's addresses */
    uint64_t local_memory; /* the block that local memory fills until a kernel is loaded; 0 = there is none */
    uint64_t origin;       /* the process's address that is offset 0 */
    uint64_t grid;         /* how far below the context's addresses the first block ends */
    bool laid;
};

/* ---- blocks.c: where the driver puts what is asked for */

uint64_t phantom_blocks_fit(struct arena *arena, uint64_t bytes, uint64_t granule);
/* To be called when a region in a block was given back: a block that is empty then goes back too. */
void phantom_blocks_left(struct arena *arena, uint64_t offset);
/* For memory that the driver takes for itself. The functions make a new block with so many bytes taken, take a
 * place in any block, and give back the region at an offset. The first returns false if there is no place, or no
 * memory on the host. */
bool phantom_blocks_add(struct arena *arena, uint64_t *offset, uint64_t bytes, uint64_t taken);
void phantom_blocks_take(struct arena *arena, uint64_t bytes);
void phantom_blocks_give(struct arena *arena, uint64_t offset);

#endif
