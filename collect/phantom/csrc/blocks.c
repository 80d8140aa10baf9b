/* Where the driver puts what is asked for, as 54 recordings of an H200 under driver 580 (examples/) show it: where their 15
 * thousand segments lie follows from these rules, but for one to five in each, where something unseen had taken the place,
 * and for the gaps: the process's other mappings lie in some of them.
 *
 *   - It hands out parts of blocks. A request takes the lowest place in any block that has room for it.
 *   - Where none has, a new block is made: a multiple of 32 MiB, in the highest gap between blocks that holds it.
 *   - A block in which nothing is left is given back, and its place is a gap again.
 *   - A context begins with one block whose upper 24 MiB are free, and 64 MiB below it with one of 416 MiB that is taken up
 *     but for the last 2 MiB. What fills it (local memory, by its size) is given back when the second kernel is loaded. If
 *     anything lies in its last 2 MiB the block stays, and is filled from its lower end; otherwise its place becomes a gap.
 *   - The first kernel takes 2 MiB, the second 26 MiB, the third 10 MiB, a cuBLAS handle 64 MiB.
 *
 * Later kernels take 2, 8 or 10 MiB at times. Which, launches do not tell, so it is left out. */
#include "arena.h"

#include <string.h>

#define BLOCK (32 * MIB)

#define TOP_BLOCK (ARENA_TOP - BLOCK)
#define TOP_TAKEN (8 * MIB)
#define CLOSED_BLOCK (TOP_BLOCK - 64 * MIB)
#define OPENED_BLOCK (CLOSED_BLOCK - 416 * MIB)
#define OPENED_LATER (414 * MIB)

static bool add(struct list *list, struct region region) {
    return phantom_list_insert(list, phantom_list_beyond(list, region.offset), region);
}

bool phantom_blocks_begin(struct arena *arena) {
    return add(&arena->blocks, (struct region){TOP_BLOCK, BLOCK}) && add(&arena->taken, (struct region){TOP_BLOCK, TOP_TAKEN}) &&
           add(&arena->blocks, (struct region){CLOSED_BLOCK, 64 * MIB}) && add(&arena->taken, (struct region){CLOSED_BLOCK, 64 * MIB}) &&
           add(&arena->blocks, (struct region){OPENED_BLOCK, 416 * MIB}) && add(&arena->taken, (struct region){OPENED_BLOCK, OPENED_LATER});
}

uint64_t phantom_blocks_fit(struct arena *arena, uint64_t bytes, uint64_t granule) {
    for (size_t i = 0; i < arena->blocks.count; i++) {
        const struct region *block = &arena->blocks.at[i];
        uint64_t at = phantom_fit_up(&arena->taken, block->offset, block->offset + block->bytes, bytes, granule);
        if (at != NOWHERE)
            return at;
    }
    struct region block = {0, round_up(bytes, BLOCK)};
    block.offset = phantom_fit_down(&arena->blocks, ARENA_MIDDLE, ARENA_TOP, block.bytes, BLOCK);
    return block.offset != NOWHERE && add(&arena->blocks, block) ? block.offset : NOWHERE;
}

void phantom_blocks_left(struct arena *arena, uint64_t offset) {
    size_t i = phantom_list_beyond(&arena->blocks, offset);
    if (i == arena->blocks.count || arena->blocks.at[i].offset > offset)
        return;
    const struct region *block = &arena->blocks.at[i];
    if (phantom_fit_up(&arena->taken, block->offset, block->offset + block->bytes, block->bytes, 1) == block->offset)
        phantom_list_remove(&arena->blocks, i);
}

static void take(struct arena *arena, uint64_t bytes) {
    uint64_t at = phantom_blocks_fit(arena, bytes, GRANULE);
    if (at != NOWHERE)
        add(&arena->taken, (struct region){at, bytes});
}

void phantom_blocks_use(struct arena *arena, enum phantom_use use) {
    switch (use) {
    case PHANTOM_FIRST_KERNEL:
        take(arena, 2 * MIB);
        break;
    case PHANTOM_SECOND_KERNEL:
        take(arena, 26 * MIB);
        phantom_list_remove(&arena->taken, phantom_list_beyond(&arena->taken, OPENED_BLOCK));
        phantom_blocks_left(arena, OPENED_BLOCK);
        break;
    case PHANTOM_THIRD_KERNEL:
        take(arena, 10 * MIB);
        break;
    case PHANTOM_CUBLAS_HANDLE:
        take(arena, 64 * MIB);
    }
}
