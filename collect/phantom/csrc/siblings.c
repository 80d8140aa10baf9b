/* Takes the sonames of the driver and of NVML before any other library asks for them. The loader answers later requests
 * with the library that is loaded under the soname, whatever LD_LIBRARY_PATH says. A real driver under a phantom
 * runtime, or a real NVML that counts eight devices where CUDA has one, makes torch fail in ways that are hard to
 * understand. */
#include "phantom.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_beside(const char *library, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(library, '/') - library), library, name);
    if (dlopen(path, RTLD_NOW | RTLD_GLOBAL))
        return;
    fprintf(stderr, "phantom: %s\n", dlerror());
    exit(2);
}

__attribute__((constructor)) static void open_siblings(void) {
    Dl_info self;
    if (!dladdr((void *)open_siblings, &self) || !strchr(self.dli_fname, '/')) {
        fprintf(stderr, "phantom: libphantom.so must be preloaded by its full path\n");
        exit(2);
    }
    open_beside(self.dli_fname, "libcuda.so.1");
    open_beside(self.dli_fname, "libnvidia-ml.so.1");
}
