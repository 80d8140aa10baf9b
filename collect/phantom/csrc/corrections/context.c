/* The device addresses that a context takes before any request. Most of them are for local memory. They decide where
 * the first segments lie.
 *
 * Recordings of an H200 begin with one block whose upper 24 MiB are free, one block of 64 MiB that is full, and one
 * of 416 MiB that is full except for its last 2 MiB. By its size, local memory fills the last block. The driver gives
 * local memory back when a kernel of most kinds is loaded (kernel.c), and then takes 26 MiB elsewhere. If anything lies
 * in the block's last 2 MiB, the block stays and is filled from its lower end. Otherwise its place becomes a gap. */
#include "../arena.h"
#include "rules.h"

int64_t phantom_context(const struct phantom_question *question) {
    struct arena *arena = question->arena;
    uint64_t first, second;
    if (question->use != PHANTOM_CONTEXT)
        return PHANTOM_UNKNOWN;
    bool added = phantom_blocks_add(arena, &first, 32 * MIB, 8 * MIB) &&
                 phantom_blocks_add(arena, &second, 64 * MIB, 64 * MIB) &&
                 phantom_blocks_add(arena, &arena->local_memory, 416 * MIB, 414 * MIB);
    return added ? (int64_t)((8 + 64 + 414) * MIB) : PHANTOM_UNKNOWN;
}

int64_t phantom_local_memory(const struct phantom_question *question) {
    struct arena *arena = question->arena;
    if (question->use != PHANTOM_LOCAL_MEMORY_FREED)
        return PHANTOM_UNKNOWN;
    phantom_blocks_take(arena, 26 * MIB);
    if (arena->local_memory)
        phantom_blocks_give(arena, arena->local_memory);
    return (int64_t)(26 * MIB);
}
