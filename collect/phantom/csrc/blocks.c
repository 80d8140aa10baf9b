/* Where the driver places requests, according to 80 recordings of an H200 under driver 580.
 *
 *   - - The driver hands out parts of blocks. A request takes the lowest place in any block that has room for it.
 *   - - If no block has room, the driver makes a new block: a multiple of 32 MiB on a grid of 32 MiB. Host and device
 *     share one address space, so the block takes a place of the process: the highest place in the highest gap that
 *     surely contains a place on the grid (a page less than 32 MiB beyond its size). The script's own mappings are
 *     never in such a gap. Blocks fill gaps that the script left: parameters that went to the device leave gaps on the
 *     host, above all that a context has, and the next segments lie there.
 *   - - The driver gives an empty block back, and its place is a gap again.
 *   - - A context begins with more than 8 GiB of addresses that hold no segment. corrections/context.c has what it
 *     takes beyond them.
 *
 * The script runs on the phantom GPU as on a machine with a device, so its mappings need no model. Each block reserves
 * its place in this process (PROT_NONE, which costs nothing), and gaps, libraries and tensors on the host are real. An
 * arena's offsets lie over these addresses at a fixed distance. Mappings of the driver and its libraries are missing.
 *
 * On a real device the position of the grid relative to the process's mappings is random, since the system moves the
 * mappings from run to run: a gap holds a block in one run and not in the next. On the phantom GPU the position is
 * fixed, so that a prediction can be repeated, and the policy can name another position (arena.c). */
#include "arena.h"

#include <string.h>
#include <sys/mman.h>

#define BLOCK (32 * MIB)

/* The recordings have 8,480 MiB or more between the host's mappings and the first block. The grid accounts for up to 32
 * MiB of them. */
#define CONTEXT_ADDRESSES (8448 * MIB)

/* The arena's offset below which a context's blocks lie. Blocks in gaps above the context's addresses have larger
 * offsets. */
#define FIRST_END (ARENA_TOP - TIB)

static bool add(struct list *list, struct region region) {
    return phantom_list_insert(list, phantom_list_beyond(list, region.offset), region);
}

static void *addresses(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Lays the arena's offsets over the process's addresses. If the process has no room for a context's addresses, the
 * origin stays 0 and blocks get places inside the arena alone. */
static void lay(struct arena *arena) {
    uint64_t context = (uint64_t)addresses(CONTEXT_ADDRESSES);
    arena->laid = true;
    arena->origin = context ? context - arena->grid - FIRST_END : 0;
}

static uint64_t fit_in_process(struct arena *arena, uint64_t bytes) {
    if (!arena->laid)
        lay(arena);
    /* So many bytes contain a place on the grid wherever they begin. They are no multiple of 2 MiB: Linux would align
     * such a request, in a larger gap. */
    uint64_t enough = bytes + BLOCK - 4096, from = arena->origin ? (uint64_t)addresses(enough) : 0, end = from + enough;
    if (!from)
        return NOWHERE;
    uint64_t offset = (end - bytes - arena->origin) / BLOCK * BLOCK, at = arena->origin + offset;
    bool inside = at >= from && offset >= ARENA_MIDDLE && offset + bytes <= ARENA_TOP &&
                  phantom_fit_up(&arena->blocks, offset, offset + bytes, bytes, BLOCK) == offset &&
                  add(&arena->reserved, (struct region){offset, bytes});
    if (!inside) {
        munmap((void *)from, end - from);
        return NOWHERE;
    }
    if (at > from)
        munmap((void *)from, at - from);
    if (end > at + bytes)
        munmap((void *)(at + bytes), end - at - bytes);
    return offset;
}

static uint64_t new_block(struct arena *arena, uint64_t bytes) {
    struct region block = {fit_in_process(arena, bytes), bytes};
    if (block.offset == NOWHERE)
        block.offset = phantom_fit_down(&arena->blocks, ARENA_MIDDLE, FIRST_END, bytes, BLOCK);
    return block.offset != NOWHERE && add(&arena->blocks, block) ? block.offset : NOWHERE;
}

bool phantom_blocks_add(struct arena *arena, uint64_t *offset, uint64_t bytes, uint64_t taken) {
    *offset = new_block(arena, bytes);
    return *offset != NOWHERE && add(&arena->taken, (struct region){*offset, taken});
}

uint64_t phantom_blocks_fit(struct arena *arena, uint64_t bytes, uint64_t granule) {
    for (size_t i = 0; i < arena->blocks.count; i++) {
        const struct region *block = &arena->blocks.at[i];
        uint64_t at = phantom_fit_up(&arena->taken, block->offset, block->offset + block->bytes, bytes, granule);
        if (at != NOWHERE)
            return at;
    }
    return new_block(arena, round_up(bytes, BLOCK));
}

void phantom_blocks_left(struct arena *arena, uint64_t offset) {
    size_t i = phantom_list_beyond(&arena->blocks, offset);
    if (i == arena->blocks.count || arena->blocks.at[i].offset > offset)
        return;
    const struct region *block = &arena->blocks.at[i];
    if (phantom_fit_up(&arena->taken, block->offset, block->offset + block->bytes, block->bytes, 1) != block->offset)
        return;
    size_t place = phantom_list_beyond(&arena->reserved, block->offset);
    if (place < arena->reserved.count && arena->reserved.at[place].offset == block->offset) {
        munmap((void *)(arena->origin + block->offset), block->bytes);
        phantom_list_remove(&arena->reserved, place);
    }
    phantom_list_remove(&arena->blocks, i);
}

void phantom_blocks_take(struct arena *arena, uint64_t bytes) {
    uint64_t at = phantom_blocks_fit(arena, bytes, GRANULE);
    if (at != NOWHERE)
        add(&arena->taken, (struct region){at, bytes});
}

void phantom_blocks_give(struct arena *arena, uint64_t offset) {
    phantom_list_remove(&arena->taken, phantom_list_beyond(&arena->taken, offset));
    phantom_blocks_left(arena, offset);
}
