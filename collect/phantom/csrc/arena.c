/* Device addresses. This library reserves one range of the process's address space for each device and touches no page
 * of it by itself, so a phantom GPU with 140 GB costs no host memory. The address of a new segment decides which of
 * several equally large free blocks torch's best fit takes. So the policy for addresses is selectable (PHANTOM_ADDR),
 * and a prediction's reserved bytes are a band over policies.
 *
 *   h200    as an H200's driver: blocks of 32 MiB in the gaps that the process's own mappings leave, filled upwards,
 *           around what a context takes (blocks.c)
 *   blocks  the same without what a context takes, since other devices' contexts may differ
 *   either with +N: the grid of blocks lies N MiB lower, from 0 to 31; default 16
 *   up, down          first fit from the bottom or the top
 *   a number          a seed: random places
 *   @PATH             where a recording's segments were, one per line: its bytes and its address, in hexadecimal */
#include "arena.h"
#include "corrections/corrections.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct arena arenas[PHANTOM_MAX_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static enum policy { UNKNOWN, H200, BLOCKS, UP, DOWN, RANDOM, RECORDED } policy;
static uint64_t seeded = 88172645463325252ull;
static struct list recorded; /* their offsets are relative to the arena's begin */
static uint64_t grid = 16 * MIB;

static void read_recorded(const char *path) {
    FILE *file = fopen(path, "r");
    unsigned long long bytes, address, lowest = UINT64_MAX;
    while (file && fscanf(file, "%llx %llx", &bytes, &address) == 2 &&
           phantom_list_insert(&recorded, recorded.count, (struct region){address, bytes}))
        lowest = address < lowest ? address : lowest;
    if (!file || !recorded.count) {
        fprintf(stderr, "phantom: PHANTOM_ADDR=@%s: the file lists no segments\n", path);
        exit(2);
    }
    fclose(file);
    for (size_t i = 0; i < recorded.count; i++)
        recorded.at[i].offset += ARENA_MIDDLE - lowest / GRANULE * GRANULE;
}

/* Whether text names the policy `name`, alone or with +N, which then sets the grid. */
static bool is_blocks(const char *text, const char *name) {
    size_t length = strlen(name);
    if (strncmp(text, name, length))
        return false;
    if (!text[length])
        return true;
    char *end = NULL;
    unsigned long long lower = text[length] == '+' ? strtoull(text + length + 1, &end, 10) : 0;
    if (!end || end == text + length + 1 || *end || lower > 31)
        return false;
    grid = lower * MIB;
    return true;
}

static enum policy read_policy(void) {
    const char *text = getenv("PHANTOM_ADDR");
    if (!text || !*text)
        text = phantom_profile()->addresses;
    if (is_blocks(text, "h200"))
        return H200;
    if (is_blocks(text, "blocks"))
        return BLOCKS;
    if (!strcmp(text, "up"))
        return UP;
    if (!strcmp(text, "down"))
        return DOWN;
    if (*text == '@') {
        read_recorded(text + 1);
        return RECORDED;
    }
    char *end;
    seeded += strtoull(text, &end, 10) * 0x9E3779B97F4A7C15ull;
    if (*end) {
        fprintf(stderr, "phantom: PHANTOM_ADDR=%s: h200, blocks, either with +0 to +31, up, down, @PATH or a seed\n",
                text);
        exit(2);
    }
    return RANDOM;
}

static uint64_t fit_anywhere(const struct arena *arena, uint64_t bytes) {
    for (int tries = 0; tries < 64; tries++) {
        seeded ^= seeded << 13;
        seeded ^= seeded >> 7;
        seeded ^= seeded << 17;
        uint64_t places = (ARENA_TOP - ARENA_MIDDLE) / GRANULE;
        uint64_t at = ARENA_MIDDLE + seeded % places * GRANULE;
        if (phantom_fit_up(&arena->taken, at, ARENA_TOP, bytes, GRANULE) == at)
            return at;
    }
    return phantom_fit_up(&arena->taken, ARENA_MIDDLE, ARENA_TOP, bytes, GRANULE);
}

/* The place of the next segment in the PHANTOM_ADDR recording, if that segment has this size and its place is free.
   From the first mismatch on, requests get places as under the policy "blocks". */
static uint64_t fit_recorded(struct arena *arena, uint64_t bytes, uint64_t granule) {
    static size_t next;
    if (next < recorded.count && recorded.at[next].bytes == bytes) {
        uint64_t at = recorded.at[next++].offset;
        if (phantom_fit_up(&arena->taken, at, at + bytes, bytes, granule) == at)
            return at;
    }
    next = recorded.count;
    return phantom_blocks_fit(arena, bytes, granule);
}

/* Takes the addresses that the driver uses for itself. Rules in corrections/ know them only for the H200, so only the
 * policy "h200" asks for them. */
static void driver_uses(struct arena *arena, enum phantom_use use) {
    struct phantom_question question = {.topic = PHANTOM_DRIVER, .arena = arena, .use = use};
    if (policy == H200)
        phantom_correct(&question);
}

static struct arena *arena_of(int device) {
    struct arena *arena = &arenas[device];
    if (arena->base)
        return arena;
    if (policy == UNKNOWN)
        policy = read_policy();
    /* The wished address lies well below where the kernel puts programs, libraries and stacks. mmap may choose another
     * address, which does as well. */
    char *wish = (char *)(8 * TIB + (uint64_t)device * ARENA_BYTES);
    char *base = mmap(wish, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        perror("phantom: cannot reserve address space for a device (a limit on virtual memory: ulimit -v, "
               "vm.overcommit_memory=2?)");
        exit(2);
    }
    madvise(base, ARENA_BYTES, MADV_DONTDUMP);
    madvise(base, ARENA_BYTES, MADV_NOHUGEPAGE);
    arena->grid = grid;
    driver_uses(arena, PHANTOM_CONTEXT);
    __atomic_store_n(&arena->base, base, __ATOMIC_RELEASE);
    return arena;
}

static void *take(struct arena *arena, uint64_t at, uint64_t bytes) {
    struct region region = {at, bytes};
    if (at == NOWHERE || !phantom_list_insert(&arena->taken, phantom_list_beyond(&arena->taken, at), region))
        return NULL;
    return arena->base + at;
}

void *phantom_arena_take(int device, uint64_t bytes) {
    uint64_t granule = bytes < MIB ? SMALL_GRANULE : GRANULE;
    uint64_t size = round_up(bytes, granule), at;
    pthread_mutex_lock(&lock);
    struct arena *arena = arena_of(device);
    switch (policy) {
    case UP:
        at = phantom_fit_up(&arena->taken, ARENA_MIDDLE, ARENA_TOP, size, granule);
        break;
    case DOWN:
        at = phantom_fit_down(&arena->taken, ARENA_MIDDLE, ARENA_TOP, size, granule);
        break;
    case RANDOM:
        at = fit_anywhere(arena, size);
        break;
    case RECORDED:
        at = fit_recorded(arena, size, granule);
        break;
    default:
        at = phantom_blocks_fit(arena, size, granule);
    }
    void *address = take(arena, at, size);
    pthread_mutex_unlock(&lock);
    return address;
}

void phantom_arena_used(int device, enum phantom_use use) {
    pthread_mutex_lock(&lock);
    struct arena *arena = arena_of(device);
    driver_uses(arena, use);
    pthread_mutex_unlock(&lock);
}

void *phantom_arena_reserve(int device, uint64_t bytes) {
    uint64_t size = round_up(bytes, GRANULE);
    pthread_mutex_lock(&lock);
    struct arena *arena = arena_of(device);
    void *address = take(arena, phantom_fit_up(&arena->taken, GRANULE, ARENA_MIDDLE, size, GRANULE), size);
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
    size_t i = phantom_list_beyond(&arena->taken, offset);
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
    size_t i = phantom_list_beyond(&arena->taken, offset);
    if (i < arena->taken.count && arena->taken.at[i].offset == offset) {
        bytes = arena->taken.at[i].bytes;
        /* The pages are dropped under the lock: without it another thread could already have been given the address.
         * madvise drops whole pages only, so the bytes that share a page with a neighbour are set to zero by memset. */
        char *from = address, *to = from + bytes;
        char *first = (char *)round_up((uint64_t)from, 4096), *end = (char *)((uint64_t)to & ~4095ull);
        if (first < end) {
            phantom_drop_pages(first, (uint64_t)(end - first));
            memset(from, 0, (size_t)(first - from));
            memset(end, 0, (size_t)(to - end));
        } else {
            memset(from, 0, bytes);
        }
        phantom_list_remove(&arena->taken, i);
        phantom_blocks_left(arena, offset);
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}
