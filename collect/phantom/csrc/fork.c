/* If a process forks after it has used CUDA, the child cannot use it. As with the real driver, every call fails
 * there, including calls that would release what was inherited. torch's destructors do not expect that and crash
 * the child. */
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
