/* Works around a race in torch at the end of a process, which is likely on a device that takes no time. After
 * backward() has returned, the script ends while the autograd engine's thread still drops the graph's Python objects.
 * That thread asks for the interpreter's lock while the interpreter is shutting down. CPython before 3.14 ends such a
 * thread with pthread_exit. The unwinding of the thread's stack meets a noexcept function of torch, and the process
 * dies with "terminate called without an active exception", after the work is done. From 3.14 on CPython lets the
 * thread wait for the process to end. This file makes the thread wait in older versions, too. */
#include "phantom.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static bool finalizing(void) {
    /* The first name is public since 3.13, the second what older ones export. */
    int (*is)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!is)
        is = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return is && is();
}

PHANTOM_API void pthread_exit(void *value) {
    while (finalizing())
        pause();
    void (*real)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit");
    real(value);
    __builtin_unreachable();
}
