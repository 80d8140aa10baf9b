/* The workspaces of cuFFT and cuSOLVER, which these libraries report only on a device. They are estimates, of the
 * order of what the published algorithms need (blocks of 32 columns, a copy of the data). A prediction that uses
 * one says so. */
#include "phantom.h"

#include <stdlib.h>

enum { SUCCESS = 0 };
enum { BLOCK = 32, LEAST = 1024 };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- cuFFT */

/* The workspace of a transform is estimated as one copy of the data. cudaDataType of complex numbers: C_32F is 4, C_64F
 * is 5, C_16F is 6. */
PHANTOM_API int cufftXtMakePlanMany(int plan, int rank, const long long *n, const long long *embedded,
                                    long long stride, long long distance, int input, const long long *out_embedded,
                                    long long out_stride, long long out_distance, int output, long long batch,
                                    size_t *bytes, int execution) {
    (void)plan, (void)embedded, (void)stride, (void)distance, (void)input;
    (void)out_embedded, (void)out_stride, (void)out_distance, (void)output;
    phantom_note("the work area of a Fourier transform (cuFFT) was estimated without a device: a real GPU may use "
                 "another size");
    size_t elements = (size_t)batch;
    for (int i = 0; i < rank; i++)
        elements *= (size_t)n[i];
    *bytes = elements * (execution == 5 ? 16 : execution == 6 ? 4 : 8);
    return SUCCESS;
}

/* ---- cuSOLVER */

static void note_solver(void) {
    phantom_note("the workspace of a matrix decomposition (cuSOLVER) was estimated without a device: a real GPU may "
                 "use another size");
}

/* The estimate for a blocked factorisation: BLOCK columns of the matrix, and one block. */
static int64_t blocked(int64_t m, int64_t n) { return larger(LEAST, BLOCK * larger(m, n) + BLOCK * BLOCK); }

/* The estimate for eigenvalues and singular values: two square matrices of the smaller side, and blocks. */
static int64_t spectral(int64_t m, int64_t n) { return 2 * smaller(m, n) * smaller(m, n) + blocked(m, n); }

static int told(int *elements, int64_t count) {
    note_solver();
    *elements = (int)smaller(count, INT32_MAX);
    return SUCCESS;
}

#define UNUSED (void)handle
#define EACH(F) F(S) F(D) F(C) F(Z)

#define GENERAL(T)                                                                                              \
    PHANTOM_API int cusolverDn##T##geqrf_bufferSize(void *handle, int m, int n, void *a, int lda, int *work) {   \
        UNUSED, (void)a, (void)lda;                                                                              \
        return told(work, blocked(m, n));                                                                        \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##getrf_bufferSize(void *handle, int m, int n, void *a, int lda, int *work) {   \
        UNUSED, (void)a, (void)lda;                                                                              \
        return told(work, blocked(m, n));                                                                        \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##potrf_bufferSize(void *handle, int uplo, int n, void *a, int lda,             \
                                                    int *work) {                                                 \
        UNUSED, (void)uplo, (void)a, (void)lda;                                                                  \
        return told(work, blocked(n, n));                                                                        \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##sytrf_bufferSize(void *handle, int n, void *a, int lda, int *work) {          \
        UNUSED, (void)a, (void)lda;                                                                              \
        return told(work, blocked(n, n));                                                                        \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##gesvd_bufferSize(void *handle, int m, int n, int *work) {                     \
        UNUSED;                                                                                                  \
        return told(work, spectral(m, n));                                                                       \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##gesvdj_bufferSize(void *handle, int jobz, int econ, int m, int n, void *a,    \
                                                     int lda, void *s, void *u, int ldu, void *v, int ldv,       \
                                                     int *work, void *parameters) {                              \
        UNUSED, (void)jobz, (void)econ, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv;     \
        (void)parameters;                                                                                        \
        return told(work, spectral(m, n));                                                                       \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##gesvdjBatched_bufferSize(void *handle, int jobz, int m, int n, void *a,       \
                                                            int lda, void *s, void *u, int ldu, void *v,         \
                                                            int ldv, int *work, void *parameters, int batch) {   \
        UNUSED, (void)jobz, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv;                 \
        (void)parameters;                                                                                        \
        return told(work, batch * ((int64_t)m * n + m + n) + LEAST);                                             \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##T##gesvdaStridedBatched_bufferSize(                                              \
        void *handle, int jobz, int rank, int m, int n, void *a, int lda, long long stride, void *s,             \
        long long stride_s, void *u, int ldu, long long stride_u, void *v, int ldv, long long stride_v,          \
        int *work, int batch) {                                                                                  \
        UNUSED, (void)jobz, (void)rank, (void)a, (void)lda, (void)stride, (void)s, (void)stride_s, (void)u;      \
        (void)ldu, (void)stride_u, (void)v, (void)ldv, (void)stride_v;                                           \
        return told(work, batch * spectral(m, n));                                                               \
    }
EACH(GENERAL)

#define ORTHOGONAL(NAME, TIMES)                                                                                  \
    PHANTOM_API int cusolverDn##NAME##gqr_bufferSize(void *handle, int m, int n, int k, void *a, int lda,        \
                                                     void *tau, int *work) {                                     \
        UNUSED, (void)k, (void)a, (void)lda, (void)tau;                                                          \
        return told(work, blocked(m, n));                                                                        \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##TIMES##mqr_bufferSize(void *handle, int side, int trans, int m, int n, int k,    \
                                                      void *a, int lda, void *tau, void *c, int ldc,             \
                                                      int *work) {                                               \
        UNUSED, (void)side, (void)trans, (void)k, (void)a, (void)lda, (void)tau, (void)c, (void)ldc;             \
        return told(work, blocked(m, n));                                                                        \
    }
ORTHOGONAL(Sor, Sor)
ORTHOGONAL(Dor, Dor)
ORTHOGONAL(Cun, Cun)
ORTHOGONAL(Zun, Zun)

#define SYMMETRIC(NAME)                                                                                          \
    PHANTOM_API int cusolverDn##NAME##evd_bufferSize(void *handle, int jobz, int uplo, int n, void *a, int lda,  \
                                                     void *w, int *work) {                                       \
        UNUSED, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w;                                             \
        return told(work, spectral(n, n));                                                                       \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##NAME##evj_bufferSize(void *handle, int jobz, int uplo, int n, void *a, int lda,  \
                                                     void *w, int *work, void *parameters) {                     \
        UNUSED, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w, (void)parameters;                           \
        return told(work, spectral(n, n));                                                                       \
    }                                                                                                            \
    PHANTOM_API int cusolverDn##NAME##evjBatched_bufferSize(void *handle, int jobz, int uplo, int n, void *a,    \
                                                            int lda, void *w, int *work, void *parameters,       \
                                                            int batch) {                                         \
        UNUSED, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w, (void)parameters;                           \
        return told(work, batch * ((int64_t)n * n + 2 * n) + LEAST);                                             \
    }
SYMMETRIC(Ssy)
SYMMETRIC(Dsy)
SYMMETRIC(Che)
SYMMETRIC(Zhe)

/* For functions that take any type, given as a cudaDataType, and so report their workspaces in bytes. */
static int told_bytes(size_t *device, size_t *host, int64_t elements, int type) {
    note_solver();
    *device = (size_t)elements * (type == 5 ? 16 : type == 1 || type == 4 ? 8 : 4);
    *host = LEAST;
    return SUCCESS;
}

PHANTOM_API int cusolverDnXgeqrf_bufferSize(void *handle, void *parameters, int64_t m, int64_t n, int type, void *a,
                                            int64_t lda, int type_tau, void *tau, int compute, size_t *device,
                                            size_t *host) {
    UNUSED, (void)parameters, (void)a, (void)lda, (void)type_tau, (void)tau, (void)compute;
    return told_bytes(device, host, blocked(m, n), type);
}

PHANTOM_API int cusolverDnXpotrf_bufferSize(void *handle, void *parameters, int uplo, int64_t n, int type, void *a,
                                            int64_t lda, int compute, size_t *device, size_t *host) {
    UNUSED, (void)parameters, (void)uplo, (void)a, (void)lda, (void)compute;
    return told_bytes(device, host, blocked(n, n), type);
}

PHANTOM_API int cusolverDnXsyevd_bufferSize(void *handle, void *parameters, int jobz, int uplo, int64_t n, int type,
                                            void *a, int64_t lda, int type_w, void *w, int compute, size_t *device,
                                            size_t *host) {
    UNUSED, (void)parameters, (void)jobz, (void)uplo, (void)a, (void)lda, (void)type_w, (void)w, (void)compute;
    return told_bytes(device, host, spectral(n, n), type);
}

PHANTOM_API int cusolverDnXsyevBatched_bufferSize(void *handle, void *parameters, int jobz, int uplo, int64_t n,
                                                  int type, void *a, int64_t lda, int type_w, void *w, int compute,
                                                  size_t *device, size_t *host, int64_t batch) {
    UNUSED, (void)parameters, (void)jobz, (void)uplo, (void)a, (void)lda, (void)type_w, (void)w, (void)compute;
    return told_bytes(device, host, batch * (n * n + 2 * n) + LEAST, type);
}

PHANTOM_API int cusolverDnXgeev_bufferSize(void *handle, void *parameters, int left, int right, int64_t n, int type,
                                           void *a, int64_t lda, int type_w, void *w, int type_vl, void *vl,
                                           int64_t ldvl, int type_vr, void *vr, int64_t ldvr, int compute,
                                           size_t *device, size_t *host) {
    UNUSED, (void)parameters, (void)left, (void)right, (void)a, (void)lda, (void)type_w, (void)w, (void)type_vl;
    (void)vl, (void)ldvl, (void)type_vr, (void)vr, (void)ldvr, (void)compute;
    return told_bytes(device, host, spectral(n, n), type);
}

PHANTOM_API int cusolverDnXsytrs_bufferSize(void *handle, int uplo, int64_t n, int64_t columns, int type, void *a,
                                            int64_t lda, void *pivots, int type_b, void *b, int64_t ldb,
                                            size_t *device, size_t *host) {
    UNUSED, (void)uplo, (void)a, (void)lda, (void)pivots, (void)type_b, (void)b, (void)ldb;
    return told_bytes(device, host, larger(LEAST, n * columns), type);
}
