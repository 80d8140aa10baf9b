/* Lists of regions of an address space: insertion, removal, and the search for room between regions. */
#include "regions.h"

#include <stdlib.h>
#include <string.h>

bool phantom_list_insert(struct list *list, size_t index, struct region region) {
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

void phantom_list_remove(struct list *list, size_t index) {
    list->count--;
    memmove(list->at + index, list->at + index + 1, (list->count - index) * sizeof *list->at);
}

size_t phantom_list_beyond(const struct list *list, uint64_t offset) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->at[middle].offset + list->at[middle].bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t phantom_fit_up(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule) {
    uint64_t at = round_up(from, granule);
    for (size_t i = phantom_list_beyond(list, at); i < list->count; i++) {
        const struct region *taken = &list->at[i];
        if (taken->offset >= at + bytes)
            break;
        at = round_up(taken->offset + taken->bytes, granule);
    }
    return at + bytes <= to ? at : NOWHERE;
}

uint64_t phantom_fit_down(const struct list *list, uint64_t from, uint64_t to, uint64_t bytes, uint64_t granule) {
    size_t i = list->count;
    for (;;) {
        uint64_t floor = i ? list->at[i - 1].offset + list->at[i - 1].bytes : 0;
        if (floor < from)
            floor = from;
        if (to >= floor + bytes && (to - bytes) / granule * granule >= floor)
            return (to - bytes) / granule * granule;
        if (!i || list->at[i - 1].offset <= from)
            return NOWHERE;
        to = list->at[--i].offset;
    }
}
