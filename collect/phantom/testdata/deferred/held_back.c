/* The thread holds all signals back from before there is anything deferred, as what it was started by did. */
#include "deferred.h"
#include <signal.h>

static void make(uint64_t id) {
    char *pages = phantom_deferred_pages(MIB);
    memset(pages, 7, MIB);
    phantom_deferred_made(id, pages, MIB);
}

int main(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    char *block;
    phantom_defer_to(make);
    CHECK(!posix_memalign((void **)&block, 64, MIB) && phantom_defer(block, MIB, 1));
    CHECK(block[5000] == 7);
    return 0;
}
