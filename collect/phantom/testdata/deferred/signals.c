/* A handler writes, again and again, whatever its thread is stopped at. */
#include "deferred.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

static int out;

static void nothing(uint64_t id) {}

static void note(int signal) { write(out, "", 1); }

int main(void) {
    void *deferred, *block;
    out = open("/dev/null", O_WRONLY);
    phantom_defer_to(nothing);
    CHECK(!posix_memalign(&deferred, 64, MIB) && phantom_defer(deferred, MIB, 1));
    signal(SIGALRM, note);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 100}, {0, 100}}, NULL);
    for (int i = 0; i < 100000; i++) {
        CHECK(!posix_memalign(&block, 64, MIB));
        free(block);
    }
    return 0;
}
