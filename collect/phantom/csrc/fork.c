/* A process that forks once it has used CUDA has a child that cannot: every call fails there, as the real driver has
 * it, those that would give back what was inherited too. torch's destructors are not made for that and end the
 * child. */
#include "phantom.h"

#include <pthread.h>

static bool used, lost;

bool phantom_lost(void) {
    if (!__atomic_load_n(&used, __ATOMIC_RELAXED))
        __atomic_store_n(&used, true, __ATOMIC_RELAXED);
    return lost;
}

static void in_child(void) { lost = __atomic_load_n(&used, __ATOMIC_RELAXED); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }
