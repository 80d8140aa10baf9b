/* cuBLAS and cuBLASLt: handles and descriptors are addresses, multiplications do nothing. Their workspaces are torch's
 * own allocations, whose sizes torch takes from the device's properties, so there is nothing to model. */
#include "phantom.h"

#include <dlfcn.h>
#include <stdlib.h>

static int make(void **handle) {
    *handle = malloc(1);
    return *handle ? 0 : 3; /* CUBLAS_STATUS_ALLOC_FAILED */
}

static int drop(void *handle) {
    free(handle);
    return 0;
}

PHANTOM_API int cublasCreate_v2(void **handle) {
    phantom_arena_used(phantom_current_device(), PHANTOM_CUBLAS_HANDLE);
    return make(handle);
}

PHANTOM_API int cublasDestroy_v2(void *handle) { return drop(handle); }

PHANTOM_API int cublasGetMathMode(void *handle, int *mode) {
    (void)handle;
    *mode = 0; /* CUBLAS_DEFAULT_MATH */
    return 0;
}

PHANTOM_API int cublasGetPointerMode_v2(void *handle, int *mode) {
    (void)handle;
    *mode = 0; /* CUBLAS_POINTER_MODE_HOST */
    return 0;
}

PHANTOM_API int cublasLtCreate(void **handle) { return make(handle); }

PHANTOM_API int cublasLtDestroy(void *handle) { return drop(handle); }

PHANTOM_API int cublasLtMatmulDescCreate(void **descriptor) { return make(descriptor); }

PHANTOM_API int cublasLtMatmulDescDestroy(void *descriptor) { return drop(descriptor); }

PHANTOM_API int cublasLtMatmulPreferenceCreate(void **preference) { return make(preference); }

PHANTOM_API int cublasLtMatmulPreferenceDestroy(void *preference) { return drop(preference); }

PHANTOM_API int cublasLtMatrixLayoutCreate(void **layout) { return make(layout); }

PHANTOM_API int cublasLtMatrixLayoutDestroy(void *layout) { return drop(layout); }

/* Reports one algorithm for any multiplication and does not write it to `results`, which torch has set to zeros. */
PHANTOM_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                               void *preference, int wanted, void *results, int *found) {
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)results;
    *found = wanted > 0;
    return 0;
}

/* The real library answers without a device, and torch picks code paths by its version. */
PHANTOM_API size_t cublasLtGetVersion(void) {
    void *real =
        dlopen(PHANTOM_CUDART_VERSION >= 13000 ? "libcublasLt.so.13" : "libcublasLt.so.12", RTLD_NOW | RTLD_NOLOAD);
    size_t (*version)(void) = real ? (size_t(*)(void))dlsym(real, "cublasLtGetVersion") : NULL;
    return version ? version() : 10 * (size_t)PHANTOM_CUDART_VERSION;
}

/* These functions report through *info that all their arguments are valid. */
#define INFORMED(T)                                                                                              \
    PHANTOM_API int cublas##T##geqrfBatched(void *handle, int m, int n, void *a, int lda, void *tau, int *info,  \
                                            int batch) {                                                         \
        (void)handle, (void)m, (void)n, (void)a, (void)lda, (void)tau, (void)batch;                              \
        *info = 0;                                                                                               \
        return 0;                                                                                                \
    }                                                                                                            \
    PHANTOM_API int cublas##T##gelsBatched(void *handle, int op, int m, int n, int columns, void *a, int lda,    \
                                           void *c, int ldc, int *info, void *of_each, int batch) {              \
        (void)handle, (void)op, (void)m, (void)n, (void)columns, (void)a, (void)lda, (void)c, (void)ldc;         \
        (void)of_each, (void)batch;                                                                              \
        *info = 0;                                                                                               \
        return 0;                                                                                                \
    }
INFORMED(S)
INFORMED(D)
INFORMED(C)
INFORMED(Z)
