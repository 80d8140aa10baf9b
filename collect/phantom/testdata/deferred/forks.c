/* Whoever asks for it is told of a fork, in the child too, and gives back memory then. */
#include "deferred.h"

static void *blocks[3];

static void nothing(uint64_t id) {}
static void before(void) { free(blocks[0]); }
static void after(void) { free(blocks[1]); }
static void in_child(void) {
    alarm(60); /* nobody else ends it */
    free(blocks[2]);
}

int main(void) {
    for (int i = 0; i < 3; i++)
        CHECK(!posix_memalign(&blocks[i], 64, MIB));
    pthread_atfork(before, after, in_child);
    phantom_defer_to(nothing);
    pid_t child = fork();
    void *more;
    CHECK(!posix_memalign(&more, 64, MIB));
    free(more);
    int status = 0;
    CHECK(!child || waitpid(child, &status, 0) == child && !status);
    return 0;
}
