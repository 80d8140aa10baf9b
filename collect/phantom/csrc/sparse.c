/* cuSPARSE and cuSPARSELt: their workspaces, and the number of elements that they return. The real libraries report
 * them only on a device. These numbers are estimates, except bounds and compressed sizes, which follow from the format.
 * A prediction that uses an estimate says so. */
#include "phantom.h"

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, ALLOC_FAILED = 2 };
enum { LEAST = 1024 };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

#define UNUSED (void)handle

static int told_sparse(size_t *bytes, int64_t elements) {
    phantom_note("the buffer of a sparse product (cuSPARSE) was estimated without a device: a real GPU may use another "
                 "size");
    *bytes = (size_t)larger(LEAST, 8 * elements);
    return SUCCESS;
}

struct sparse {
    int64_t rows, columns, elements;
};

static int make_sparse(struct sparse **made, int64_t rows, int64_t columns, int64_t elements) {
    struct sparse *s = calloc(1, sizeof *s);
    if (!s)
        return ALLOC_FAILED;
    *s = (struct sparse){rows, columns, elements};
    *made = s;
    return SUCCESS;
}

PHANTOM_API int cusparseCreateCsr(struct sparse **made, int64_t rows, int64_t columns, int64_t elements) {
    return make_sparse(made, rows, columns, elements); /* the other arguments are addresses */
}

PHANTOM_API int cusparseCreateCoo(struct sparse **made, int64_t rows, int64_t columns, int64_t elements) {
    return make_sparse(made, rows, columns, elements);
}

PHANTOM_API int cusparseDestroySpMat(struct sparse *s) {
    free(s);
    return SUCCESS;
}

PHANTOM_API int cusparseSpMM_bufferSize(void *handle, int op_a, int op_b, void *alpha, const struct sparse *a, void *b,
                                        void *beta, void *c, int compute, int algorithm, size_t *bytes) {
    UNUSED, (void)op_a, (void)op_b, (void)alpha, (void)b, (void)beta, (void)c, (void)compute, (void)algorithm;
    return told_sparse(bytes, a->rows + a->elements);
}

PHANTOM_API int cusparseSpMV_bufferSize(void *handle, int op_a, void *alpha, const struct sparse *a, void *x,
                                        void *beta, void *y, int compute, int algorithm, size_t *bytes) {
    UNUSED, (void)op_a, (void)alpha, (void)x, (void)beta, (void)y, (void)compute, (void)algorithm;
    return told_sparse(bytes, a->rows + a->elements);
}

PHANTOM_API int cusparseSDDMM_bufferSize(void *handle, int op_a, int op_b, void *alpha, void *a, void *b, void *beta,
                                         const struct sparse *c, int compute, int algorithm, size_t *bytes) {
    UNUSED, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)compute, (void)algorithm;
    return told_sparse(bytes, c->rows + c->elements);
}

PHANTOM_API int cusparseSpSM_bufferSize(void *handle, int op_a, int op_b, void *alpha, const struct sparse *a, void *b,
                                        void *c, int compute, int algorithm, void *description, size_t *bytes) {
    UNUSED, (void)op_a, (void)op_b, (void)alpha, (void)b, (void)c, (void)compute, (void)algorithm, (void)description;
    return told_sparse(bytes, a->rows + a->elements);
}

PHANTOM_API int cusparseSpSV_bufferSize(void *handle, int op_a, void *alpha, const struct sparse *a, void *x, void *y,
                                        int compute, int algorithm, void *description, size_t *bytes) {
    UNUSED, (void)op_a, (void)alpha, (void)x, (void)y, (void)compute, (void)algorithm, (void)description;
    return told_sparse(bytes, a->rows + a->elements);
}

PHANTOM_API int cusparseXcoosort_bufferSizeExt(void *handle, int m, int n, int elements, const int *rows,
                                               const int *columns, size_t *bytes) {
    UNUSED, (void)m, (void)n, (void)rows, (void)columns;
    return told_sparse(bytes, 2 * (int64_t)elements);
}

PHANTOM_API int cusparseXcsrsort_bufferSizeExt(void *handle, int m, int n, int elements, const int *rows,
                                               const int *columns, size_t *bytes) {
    UNUSED, (void)m, (void)n, (void)rows, (void)columns;
    return told_sparse(bytes, 2 * (int64_t)elements);
}

/* ---- products and sums of two sparse matrices */

/* Estimates the elements of a product of two sparse matrices. It assumes that the elements of both are spread evenly,
 * and counts elements that meet at the same place of the product separately. */
static int64_t product_elements(const struct sparse *a, const struct sparse *b, const struct sparse *c) {
    double met = (double)a->elements * (double)b->elements / (double)larger(1, b->rows),
           most = (double)c->rows * (double)c->columns;
    return larger(smaller(1, a->elements), (int64_t)(met < most ? met : most));
}

PHANTOM_API int cusparseSpGEMM_workEstimation(void *handle, int op_a, int op_b, void *alpha, const struct sparse *a,
                                              const struct sparse *b, void *beta, struct sparse *c, int compute,
                                              int algorithm, void *description, size_t *bytes, void *buffer) {
    UNUSED, (void)op_a, (void)op_b, (void)alpha, (void)beta, (void)compute, (void)algorithm, (void)description;
    c->elements = product_elements(a, b, c);
    return buffer ? SUCCESS : told_sparse(bytes, a->rows + a->elements);
}

PHANTOM_API int cusparseSpGEMM_compute(void *handle, int op_a, int op_b, void *alpha, const struct sparse *a,
                                       const struct sparse *b, void *beta, struct sparse *c, int compute,
                                       int algorithm, void *description, size_t *bytes, void *buffer) {
    UNUSED, (void)op_a, (void)op_b, (void)alpha, (void)beta, (void)compute, (void)algorithm, (void)description;
    c->elements = product_elements(a, b, c);
    return buffer ? SUCCESS : told_sparse(bytes, c->rows + 2 * c->elements);
}

PHANTOM_API int cusparseSpMatGetSize(const struct sparse *s, int64_t *rows, int64_t *columns, int64_t *elements) {
    phantom_note("the number of elements in a product of two sparse matrices (cuSPARSE) was estimated without a "
                 "device: a real GPU may use another number");
    *rows = s->rows, *columns = s->columns, *elements = s->elements;
    return SUCCESS;
}

/* The number of elements of a sum of two sparse matrices, as an upper bound: no two elements lie at one place. */
PHANTOM_API int cusparseXcsrgeam2Nnz(void *handle, int m, int n, void *a, int elements_a, const int *rows_a,
                                     const int *columns_a, void *b, int elements_b, const int *rows_b,
                                     const int *columns_b, void *c, int *rows_c, int *elements, void *workspace) {
    UNUSED, (void)a, (void)rows_a, (void)columns_a, (void)b, (void)rows_b, (void)columns_b, (void)c, (void)rows_c;
    (void)workspace;
    phantom_note("the number of elements in a sum of two sparse matrices (cuSPARSE) was estimated without a device: "
                 "a real GPU may use another number");
    *elements = (int)smaller((int64_t)m * n, (int64_t)elements_a + elements_b);
    return SUCCESS;
}

/* ---- solutions by blocks, and sums: functions for each type */

static int told_small(int *bytes, int64_t elements) {
    size_t all;
    told_sparse(&all, elements);
    *bytes = (int)smaller((int64_t)all, INT32_MAX);
    return SUCCESS;
}

#define TYPED(T)                                                                                                 \
    PHANTOM_API int cusparse##T##csrgeam2_bufferSizeExt(                                                         \
        void *handle, int m, int n, void *alpha, void *a, int elements_a, void *values_a, void *rows_a,          \
        void *columns_a, void *beta, void *b, int elements_b, void *values_b, void *rows_b, void *columns_b,     \
        void *c, void *values_c, void *rows_c, void *columns_c, size_t *bytes) {                                 \
        UNUSED, (void)n, (void)alpha, (void)a, (void)elements_a, (void)values_a, (void)rows_a, (void)columns_a;  \
        (void)beta, (void)b, (void)elements_b, (void)values_b, (void)rows_b, (void)columns_b, (void)c;           \
        (void)values_c, (void)rows_c, (void)columns_c;                                                           \
        return told_sparse(bytes, m);                                                                            \
    }                                                                                                            \
    PHANTOM_API int cusparse##T##bsrsv2_bufferSize(void *handle, int direction, int op, int rows, int blocks,    \
                                                   void *a, void *values, void *row, void *column, int block,    \
                                                   void *info, int *bytes) {                                     \
        UNUSED, (void)direction, (void)op, (void)a, (void)values, (void)row, (void)column, (void)info;           \
        return told_small(bytes, (int64_t)rows * block + blocks);                                                \
    }                                                                                                            \
    PHANTOM_API int cusparse##T##bsrsm2_bufferSize(void *handle, int direction, int op, int op_x, int rows,      \
                                                   int columns, int blocks, void *a, void *values, void *row,    \
                                                   void *column, int block, void *info, int *bytes) {            \
        UNUSED, (void)direction, (void)op, (void)op_x, (void)a, (void)values, (void)row, (void)column;           \
        (void)info;                                                                                              \
        return told_small(bytes, (int64_t)rows * block * larger(1, columns) + blocks);                           \
    }
TYPED(S)
TYPED(D)
TYPED(C)
TYPED(Z)

/* Reports that no pivot is zero. */
static int no_pivot(int *position) {
    *position = -1;
    return SUCCESS;
}

PHANTOM_API int cusparseXbsrsv2_zeroPivot(void *handle, void *info, int *position) {
    UNUSED, (void)info;
    return no_pivot(position);
}

PHANTOM_API int cusparseXbsrsm2_zeroPivot(void *handle, void *info, int *position) {
    UNUSED, (void)info;
    return no_pivot(position);
}

/* ---- cuSPARSELt, which keeps two of each four elements */

/* What this file keeps in the 512 bytes of a caller's descriptor. */
struct structured {
    int64_t elements;
    int type;
};

PHANTOM_API int cusparseLtStructuredDescriptorInit(void *handle, struct structured *matrix, int64_t rows,
                                                   int64_t columns, int64_t leading, uint32_t alignment, int type,
                                                   int order, int sparsity) {
    UNUSED, (void)leading, (void)alignment, (void)order, (void)sparsity;
    *matrix = (struct structured){rows * columns, type};
    return SUCCESS;
}

/* The compressed size: half of the elements, and two bits of place for each kept element. torch computes the same size
 * itself. */
PHANTOM_API int cusparseLtSpMMACompressedSize2(void *handle, const struct structured *matrix, size_t *bytes,
                                               size_t *buffer) {
    UNUSED;
    enum { R_32F = 0, R_16F = 2, R_16BF = 14 }; /* cudaDataType; all others have 8 bits */
    int64_t element = matrix->type == R_32F ? 4 : matrix->type == R_16F || matrix->type == R_16BF ? 2 : 1;
    *bytes = (size_t)(matrix->elements / 2 * element + matrix->elements / 8);
    return told_sparse(buffer, 0);
}

PHANTOM_API int cusparseLtMatmulGetWorkspace(void *handle, void *plan, size_t *bytes) {
    UNUSED, (void)plan;
    return told_sparse(bytes, 0);
}

PHANTOM_API int cusparseLtMatmulAlgGetAttribute(void *handle, void *selection, int attribute, void *data,
                                                size_t bytes) {
    UNUSED, (void)selection, (void)attribute;
    memset(data, 0, bytes);
    return SUCCESS;
}
