/* Recipes are dropped, one after another and with malloc about to hand out a block that begins a page, and asked for. */
#include "deferred.h"

enum { BLOCKS = 200 };

static void nothing(uint64_t id) {}

int main(void) {
    void *blocks[BLOCKS], *volatile last = malloc(100);
    free(last);
    phantom_defer_to(nothing);
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(!posix_memalign(&blocks[i], 64, MIB));
        CHECK(phantom_defer(blocks[i], MIB, i + 1));
    }
    do
        last = malloc(512);
    while ((uintptr_t)last % 4096);
    free(last); /* the next of this size */
    CHECK(phantom_defer(blocks[0], MIB, BLOCKS + 1));
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    uint64_t ids[64];
    char seen[BLOCKS + 2] = {0};
    size_t n, all = 0;
    while ((n = phantom_deferred_dropped(ids, 64)))
        for (all += n; n; n--)
            seen[ids[n - 1]]++;
    CHECK(all == BLOCKS + 1);
    for (int id = 1; id <= BLOCKS + 1; id++)
        CHECK(seen[id] == 1);
    return 0;
}
