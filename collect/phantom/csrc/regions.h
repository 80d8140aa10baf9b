/* Lists of regions of an address space, which arena.c and blocks.c keep. */
#ifndef PHANTOM_REGIONS_H
#define PHANTOM_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOWHERE UINT64_MAX

struct region {
    uint64_t offset, bytes;
};

/* The regions are ordered by offset, except in arena.c's list of recorded segments. */
struct list {
    struct region *at;
    size_t count, room;
};

static inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* Returns false if the host has no memory left. */
bool phantom_list_insert(struct list *list, size_t index, struct region region);
void phantom_list_remove(struct list *list, size_t index);
/* Index of the first region that ends beyond offset. */
size_t phantom_list_beyond(const struct list *list, uint64_t offset);
/* The lowest (_up) or the highest (_down) offset in [from, to) at which `bytes` bytes fit between the regions, or
 * NOWHERE. */
uint64_t phantom_fit_up(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule);
uint64_t phantom_fit_down(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule);

#endif
