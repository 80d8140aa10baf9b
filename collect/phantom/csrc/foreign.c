/* Finds the library that launches a kernel. Kernels of torch and of NVIDIA's libraries are the purpose of the phantom
 * GPU. An extension's kernels also run as no-ops, but their effects are unknown. So a note names the extension, and
 * written.c reports what its kernels may have written. */
#include "phantom.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct module {
    uintptr_t first, end;
    bool unknown; /* torch's dispatcher does not show what the kernels of this module write */
};

/* The modules for which this file has already decided whether their kernels are known. */
static struct module seen[64];
static int seen_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct module *find(uintptr_t code) {
    for (int i = __atomic_load_n(&seen_count, __ATOMIC_ACQUIRE) - 1; i >= 0; i--)
        if (code >= seen[i].first && code < seen[i].end)
            return &seen[i];
    return NULL;
}

static bool is_expected(const char *path) {
    static const char *const prefixes[] = {"libtorch", "libc10",       "libcaffe2", "libcublas",   "libcudnn",
                                           "libcufft", "libcupti",     "libcurand", "libcusolver", "libcusparse",
                                           "libnccl",  "libnvJitLink", "libnvrtc",  "libnvshmem",  "libphantom"};
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

/* Small libraries that Triton compiles launch its kernels. Python packages launch theirs through ctypes. */
static void name_launcher(const char *path) {
    /* torch.compile generated these kernels. Another part of dpsight reports the use of torch.compile. */
    if (strstr(path, "/torchinductor"))
        return;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : *path ? path : "the program";
    char text[512];
    if (strstr(path, "triton"))
        snprintf(text, sizeof text, "Triton kernels ran as no-ops: the values that they compute are unknown");
    else if (!strncmp(name, "libffi", 6))
        snprintf(text, sizeof text,
                 "kernels that Python launched ran as no-ops: the values that they compute are unknown");
    else
        snprintf(text, sizeof text, "kernels of %s ran as no-ops: the values that they compute are unknown",
                 name);
    phantom_note(text);
}

struct search {
    uintptr_t code;
    struct module found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    uintptr_t code = search->code;
    struct module module = {UINTPTR_MAX, 0, false};
    bool inside = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = first + info->dlpi_phdr[i].p_memsz;
        module.first = first < module.first ? first : module.first;
        module.end = end > module.end ? end : module.end;
        inside |= code >= first && code < end;
    }
    if (!inside)
        return 0;
    module.unknown = !is_expected(info->dlpi_name);
    if (module.unknown)
        name_launcher(info->dlpi_name);
    search->found = module;
    pthread_mutex_lock(&lock);
    if (seen_count < (int)(sizeof seen / sizeof *seen) && !find(code)) {
        seen[seen_count] = module;
        __atomic_store_n(&seen_count, seen_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return 1;
}

bool phantom_launched_from(const void *code) {
    const struct module *module = find((uintptr_t)code);
    if (module)
        return module->unknown;
    struct search search = {(uintptr_t)code, {0, 0, true}}; /* generated code belongs to no library */
    dl_iterate_phdr(look, &search);
    return search.found.unknown;
}
