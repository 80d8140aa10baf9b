/* Reports what unknown kernels may write to the code that tracks the contents of the device's memory: everything that
 * the kernel's arguments point to. A launch does not pass the number of arguments, so arguments are read until one is
 * no address. process_vm_readv fails on a bad address where a plain read would crash the process. To read beyond the
 * last argument does no harm: more is reported than was written. */
#define _GNU_SOURCE
#include "phantom.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64, WORDS = 16 /* of an argument: a tensor map has its address somewhere in 128 bytes */ };

static void (*listener)(const void *const *addresses, size_t count);

void phantom_on_written(void (*call)(const void *const *addresses, size_t count)) {
    __atomic_store_n(&listener, call, __ATOMIC_RELEASE);
}

static ssize_t read_memory(void *to, size_t bytes, const struct iovec *from, size_t count) {
    ssize_t got = process_vm_readv(getpid(), &(struct iovec){to, bytes}, 1, from, count, 0);
    return got < 0 && errno == EFAULT ? 0 : got;
}

/* Reports the device addresses that the arguments contain, or all memory if they cannot be read. */
static void tell(void *const *arguments, size_t count) {
    void (*call)(const void *const *, size_t) = __atomic_load_n(&listener, __ATOMIC_ACQUIRE);
    const void *words[MOST_ARGUMENTS * WORDS];
    struct iovec from[MOST_ARGUMENTS];
    size_t n = 0, found = 0;
    for (; n < count && arguments[n]; n++) {
        size_t in_page = 4096 - ((uintptr_t)arguments[n] & 4095), most = sizeof(void *) * WORDS;
        from[n] = (struct iovec){arguments[n], (in_page < most ? in_page : most) & ~(sizeof(void *) - 1)};
    }
    ssize_t bytes = n ? read_memory(words, sizeof words, from, n) : 0;
    for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof *words; i++)
        if (phantom_device_of(words[i]) >= 0)
            words[found++] = words[i];
    if (bytes < 0 || found)
        call(bytes < 0 ? NULL : words, found);
}

void phantom_launched_with(void *const *arguments, void *const *packed) {
    if (!__atomic_load_n(&listener, __ATOMIC_ACQUIRE))
        return;
    void *addresses[MOST_ARGUMENTS] = {NULL};
    if (arguments) {
        size_t in_page = (4096 - ((uintptr_t)arguments & 4095)) / sizeof(void *),
               first = in_page < MOST_ARGUMENTS ? in_page : MOST_ARGUMENTS;
        struct iovec from[] = {{(void *)arguments, first * sizeof(void *)},
                               {(void *)(arguments + first), (MOST_ARGUMENTS - first) * sizeof(void *)}};
        /* If process_vm_readv fails here, for example because it is not permitted, it fails in tell() too, which then
         * reports all memory. */
        ssize_t bytes = read_memory(addresses, sizeof addresses, from, 2);
        tell(bytes < 0 ? (void *const[]){addresses} : addresses, bytes < 0 ? 1 : (size_t)bytes / sizeof(void *));
    }
    /* `packed` is a list of pairs that ends with CU_LAUNCH_PARAM_END. The pair that begins with
     * CU_LAUNCH_PARAM_BUFFER_POINTER, which is 1, has the address of all arguments in one piece. */
    for (; packed && *packed; packed += 2)
        if (*packed == (void *)1) {
            for (size_t i = 0; i < MOST_ARGUMENTS; i++)
                addresses[i] = (char *)packed[1] + i * WORDS * sizeof(void *);
            tell(addresses, MOST_ARGUMENTS);
        }
}
