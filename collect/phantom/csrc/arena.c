/* Addresses. Each device has one range of the process's address space, reserved and never touched by this library, so
 * a phantom of 140 GB costs nothing. Where a new segment lands decides which of several equally good free blocks torch's
 * best fit takes, so the policy is selectable (PHANTOM_ADDR): a prediction's reserved bytes are a band over policies.
 *
 *   chunks  (default) 32 MiB chunks handed out downwards, filled upwards: what the driver was seen to do
 *   up, down          first fit from the bottom or the top
 *   a number          a seed: random places
 */
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1ull << 20)
#define TIB (1ull << 40)
#define ARENA_BYTES (8 * TIB)
/* The policies use [MIDDLE, TOP) of an arena, reserved virtual ranges [GRANULE, MIDDLE). */
#define ARENA_MIDDLE (4 * TIB)
#define ARENA_TOP (ARENA_BYTES - 128 * MIB)
#define GRANULE (2 * MIB)
#define SMALL_GRANULE 512ull
#define CHUNK (32 * MIB)
#define NOWHERE UINT64_MAX

struct region {
    uint64_t offset, bytes;
};

struct list {
    struct region *at;
    size_t count, room;
};

static struct arena {
    char *base;
    struct list taken;  /* by offset */
    struct list chunks; /* in the order they were made */
    uint64_t lowest_chunk;
} arenas[PHANTOM_MAX_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum policy { CHUNKS, UP, DOWN, RANDOM };

static enum policy policy_of(uint64_t *seed) {
    const char *text = getenv("PHANTOM_ADDR");
    if (!text || !*text || !strcmp(text, "chunks"))
        return CHUNKS;
    if (!strcmp(text, "up"))
        return UP;
    if (!strcmp(text, "down"))
        return DOWN;
    char *end;
    *seed = strtoull(text, &end, 10);
    if (*end) {
        fprintf(stderr, "phantom: PHANTOM_ADDR=%s: chunks, up, down or a seed\n", text);
        exit(2);
    }
    return RANDOM;
}

static bool insert(struct list *list, size_t index, struct region region) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 256;
        struct region *grown = realloc(list->at, room * sizeof *grown);
        if (!grown)
            return false;
        list->at = grown;
        list->room = room;
    }
    memmove(list->at + index + 1, list->at + index, (list->count - index) * sizeof region);
    list->at[index] = region;
    list->count++;
    return true;
}

/* Index of the first taken region that ends beyond offset. */
static size_t first_beyond(const struct arena *arena, uint64_t offset) {
    size_t low = 0, high = arena->taken.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena->taken.at[middle].offset + arena->taken.at[middle].bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* The lowest free offset in [from, to) that holds bytes. */
static uint64_t fit_up(const struct arena *arena, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule) {
    uint64_t at = round_up(from, granule);
    for (size_t i = first_beyond(arena, at); i < arena->taken.count; i++) {
        const struct region *taken = &arena->taken.at[i];
        if (taken->offset >= at + bytes)
            break;
        at = round_up(taken->offset + taken->bytes, granule);
    }
    return at + bytes <= to ? at : NOWHERE;
}

/* The highest free offset in [from, to) that holds bytes. */
static uint64_t fit_down(const struct arena *arena, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule) {
    size_t i = arena->taken.count;
    for (;;) {
        uint64_t floor = i ? arena->taken.at[i - 1].offset + arena->taken.at[i - 1].bytes : 0;
        if (floor < from)
            floor = from;
        if (to >= floor + bytes && (to - bytes) / granule * granule >= floor)
            return (to - bytes) / granule * granule;
        if (!i || arena->taken.at[i - 1].offset <= from)
            return NOWHERE;
        to = arena->taken.at[--i].offset;
    }
}

static uint64_t fit_in_chunks(struct arena *arena, uint64_t bytes, uint64_t granule) {
    for (size_t i = 0; i < arena->chunks.count; i++) {
        const struct region *chunk = &arena->chunks.at[i];
        uint64_t at = fit_up(arena, chunk->offset, chunk->offset + chunk->bytes, bytes, granule);
        if (at != NOWHERE)
            return at;
    }
    uint64_t size = round_up(bytes, CHUNK);
    if (arena->lowest_chunk - ARENA_MIDDLE < size)
        return fit_up(arena, ARENA_MIDDLE, ARENA_TOP, bytes, granule);
    struct region chunk = {arena->lowest_chunk - size, size};
    if (!insert(&arena->chunks, arena->chunks.count, chunk))
        return NOWHERE;
    arena->lowest_chunk = chunk.offset;
    return chunk.offset;
}

static uint64_t fit_anywhere(struct arena *arena, uint64_t bytes, uint64_t *random) {
    for (int tries = 0; tries < 64; tries++) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        uint64_t places = (ARENA_TOP - ARENA_MIDDLE) / GRANULE;
        uint64_t at = ARENA_MIDDLE + *random % places * GRANULE;
        if (fit_up(arena, at, ARENA_TOP, bytes, GRANULE) == at)
            return at;
    }
    return fit_up(arena, ARENA_MIDDLE, ARENA_TOP, bytes, GRANULE);
}

static struct arena *arena_of(int device) {
    struct arena *arena = &arenas[device];
    if (arena->base)
        return arena;
    /* Well below where the kernel puts programs, libraries and stacks. Only a hint: another place does as well. */
    char *wish = (char *)(8 * TIB + (uint64_t)device * ARENA_BYTES);
    char *base = mmap(wish, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        perror("phantom: cannot reserve address space for a device (a limit on virtual memory: ulimit -v, vm.overcommit_memory=2?)");
        exit(2);
    }
    madvise(base, ARENA_BYTES, MADV_DONTDUMP);
    madvise(base, ARENA_BYTES, MADV_NOHUGEPAGE);
    arena->lowest_chunk = ARENA_TOP;
    __atomic_store_n(&arena->base, base, __ATOMIC_RELEASE);
    return arena;
}

static void *take(struct arena *arena, uint64_t at, uint64_t bytes) {
    struct region region = {at, bytes};
    if (at == NOWHERE || !insert(&arena->taken, first_beyond(arena, at), region))
        return NULL;
    return arena->base + at;
}

void *phantom_arena_take(int device, uint64_t bytes) {
    static bool known;
    static enum policy policy;
    static uint64_t random = 88172645463325252ull;
    uint64_t granule = bytes < MIB ? SMALL_GRANULE : GRANULE;
    uint64_t size = round_up(bytes, granule), at;
    pthread_mutex_lock(&lock);
    if (!known) {
        uint64_t seed = 0;
        policy = policy_of(&seed);
        random += seed * 0x9E3779B97F4A7C15ull;
        known = true;
    }
    struct arena *arena = arena_of(device);
    switch (policy) {
    case UP:
        at = fit_up(arena, ARENA_MIDDLE, ARENA_TOP, size, granule);
        break;
    case DOWN:
        at = fit_down(arena, ARENA_MIDDLE, ARENA_TOP, size, granule);
        break;
    case RANDOM:
        at = fit_anywhere(arena, size, &random);
        break;
    default:
        at = fit_in_chunks(arena, size, granule);
    }
    void *address = take(arena, at, size);
    pthread_mutex_unlock(&lock);
    return address;
}

void *phantom_arena_reserve(int device, uint64_t bytes) {
    uint64_t size = round_up(bytes, GRANULE);
    pthread_mutex_lock(&lock);
    struct arena *arena = arena_of(device);
    void *address = take(arena, fit_up(arena, GRANULE, ARENA_MIDDLE, size, GRANULE), size);
    pthread_mutex_unlock(&lock);
    return address;
}

int phantom_device_of(const void *address) {
    for (int device = 0; device < PHANTOM_MAX_DEVICES; device++) {
        const char *base = __atomic_load_n(&arenas[device].base, __ATOMIC_ACQUIRE);
        if (base && (const char *)address >= base && (const char *)address < base + ARENA_BYTES)
            return device;
    }
    return -1;
}

bool phantom_arena_region(const void *address, void **start, uint64_t *bytes) {
    int device = phantom_device_of(address);
    if (device < 0)
        return false;
    struct arena *arena = &arenas[device];
    uint64_t offset = (uint64_t)((const char *)address - arena->base);
    pthread_mutex_lock(&lock);
    size_t i = first_beyond(arena, offset);
    bool found = i < arena->taken.count && arena->taken.at[i].offset <= offset;
    if (found) {
        *start = arena->base + arena->taken.at[i].offset;
        *bytes = arena->taken.at[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void phantom_drop_pages(void *address, uint64_t bytes) { madvise(address, bytes, MADV_DONTNEED); }

uint64_t phantom_arena_give(void *address) {
    int device = phantom_device_of(address);
    if (device < 0)
        return 0;
    struct arena *arena = &arenas[device];
    uint64_t offset = (uint64_t)((char *)address - arena->base), bytes = 0;
    pthread_mutex_lock(&lock);
    size_t i = first_beyond(arena, offset);
    if (i < arena->taken.count && arena->taken.at[i].offset == offset) {
        bytes = arena->taken.at[i].bytes;
        /* Dropped under the lock, or the address could be another's already. madvise wants whole pages; what shares a
         * page with a neighbour is cleared by hand. */
        char *from = address, *to = from + bytes;
        char *first = (char *)round_up((uint64_t)from, 4096), *end = (char *)((uint64_t)to & ~4095ull);
        if (first < end) {
            phantom_drop_pages(first, (uint64_t)(end - first));
            memset(from, 0, (size_t)(first - from));
            memset(end, 0, (size_t)(to - end));
        } else {
            memset(from, 0, bytes);
        }
        arena->taken.count--;
        memmove(arena->taken.at + i, arena->taken.at + i + 1, (arena->taken.count - i) * sizeof *arena->taken.at);
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}
