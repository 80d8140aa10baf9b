/* cuDNN's recurrent networks, CTC loss and dropout states. The real cuDNN needs a device to report their sizes. The
 * weights are packed as by cuDNN, without gaps: all matrices, then all biases. The workspace is estimated from what
 * each cell has to keep for backward. */
#include "phantom.h"
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

/* From cuDNN's interface. */
enum { SUCCESS = 0, BAD_PARAM = 2000, ALLOC_FAILED = 1003 };
enum { LSTM = 2, GRU = 3 };
enum { NO_BIAS = 0, DOUBLE_BIAS = 2 };
enum { DATA_FLOAT = 0, DATA_DOUBLE = 1, DATA_HALF = 2, DATA_BFLOAT16 = 9 };

struct network {
    int mode, biases, directions, type;
    int64_t input, hidden, projected, layers;
};

struct sequence {
    int64_t length, batch, vector;
};

static void note(void) {
    phantom_note("the workspace of cuDNN's recurrent networks was estimated without a device: a real GPU may use "
                 "another size");
}

static size_t bytes_of(int type) {
    return type == DATA_DOUBLE ? 8 : type == DATA_HALF || type == DATA_BFLOAT16 ? 2 : 4;
}

static int64_t gates(const struct network *n) { return n->mode == LSTM ? 4 : n->mode == GRU ? 3 : 1; }

static bool projects(const struct network *n) { return n->projected > 0 && n->projected < n->hidden; }

/* The size of a layer's output, which the next layer and this layer's next time step take. */
static int64_t output(const struct network *n) { return projects(n) ? n->projected : n->hidden; }

static int64_t biases(const struct network *n) {
    return n->biases == NO_BIAS ? 0 : n->biases == DOUBLE_BIAS ? 2 * gates(n) : gates(n);
}

/* The number of a layer's inputs. Here a layer is one direction of one of the network's layers. */
static int64_t inputs(const struct network *n, int64_t layer) {
    return layer < n->directions ? n->input : n->directions * output(n);
}

static int64_t matrices(const struct network *n, int64_t layer) {
    return gates(n) * n->hidden * (inputs(n, layer) + output(n)) + (projects(n) ? n->projected * n->hidden : 0);
}

static int64_t all_matrices(const struct network *n, int64_t layers) {
    int64_t elements = 0;
    for (int64_t layer = 0; layer < layers; layer++)
        elements += matrices(n, layer);
    return elements;
}

PHANTOM_API int cudnnCreateRNNDescriptor(void **descriptor) {
    *descriptor = calloc(1, sizeof(struct network));
    return *descriptor ? SUCCESS : ALLOC_FAILED;
}

PHANTOM_API int cudnnDestroyRNNDescriptor(void *descriptor) {
    free(descriptor);
    return SUCCESS;
}

PHANTOM_API int cudnnSetRNNDescriptor_v8(struct network *n, int algorithm, int mode, int bias, int direction,
                                         int input_mode, int type, int precision, int math, int input, int hidden,
                                         int projected, int layers, void *dropout, unsigned flags) {
    (void)algorithm, (void)input_mode, (void)precision, (void)math, (void)dropout, (void)flags;
    *n = (struct network){.mode = mode,
                          .biases = bias,
                          .directions = direction ? 2 : 1,
                          .type = type,
                          .input = input,
                          .hidden = hidden,
                          .projected = projected,
                          .layers = layers};
    return SUCCESS;
}

PHANTOM_API int cudnnCreateRNNDataDescriptor(void **descriptor) {
    *descriptor = calloc(1, sizeof(struct sequence));
    return *descriptor ? SUCCESS : ALLOC_FAILED;
}

PHANTOM_API int cudnnDestroyRNNDataDescriptor(void *descriptor) {
    free(descriptor);
    return SUCCESS;
}

PHANTOM_API int cudnnSetRNNDataDescriptor(struct sequence *s, int type, int layout, int length, int batch, int vector,
                                          const int *lengths, void *padding) {
    (void)type, (void)layout, (void)lengths, (void)padding;
    *s = (struct sequence){.length = length, .batch = batch, .vector = vector};
    return SUCCESS;
}

PHANTOM_API int cudnnGetRNNWeightSpaceSize(void *handle, const struct network *n, size_t *bytes) {
    (void)handle;
    note();
    int64_t layers = n->layers * n->directions;
    *bytes = bytes_of(n->type) * (size_t)(all_matrices(n, layers) + layers * biases(n) * n->hidden);
    return SUCCESS;
}

/* Fills a tensor's descriptor; does nothing if the caller passed none. */
static void describe(struct tensor *tensor, int type, int64_t rows, int64_t columns) {
    if (!tensor)
        return;
    *tensor = (struct tensor){.elements = rows * columns,
                              .channels = rows,
                              .type = type,
                              .dimensions = 3,
                              .sizes = {1, (int)rows, (int)columns},
                              .strides = {(int)(rows * columns), (int)columns, 1}};
}

PHANTOM_API int cudnnGetRNNWeightParams(void *handle, const struct network *n, int layer, size_t size,
                                        const void *weights, int id, struct tensor *matrix, void **matrix_at,
                                        struct tensor *bias, void **bias_at) {
    (void)handle, (void)size;
    int64_t all = gates(n), layers = n->layers * n->directions, own = inputs(n, layer), start = all_matrices(n, layer);
    if (id < 0 || id > 2 * all || (id == 2 * all && !projects(n)))
        return BAD_PARAM;
    char *begin = (char *)(uintptr_t)weights;
    size_t element = bytes_of(n->type);
    if (id < all) {
        start += id * n->hidden * own;
        describe(matrix, n->type, n->hidden, own);
    } else if (id < 2 * all) {
        start += all * n->hidden * own + (id - all) * n->hidden * output(n);
        describe(matrix, n->type, n->hidden, output(n));
    } else {
        start += all * n->hidden * (own + output(n));
        describe(matrix, n->type, n->projected, n->hidden);
    }
    if (matrix_at)
        *matrix_at = begin + element * (size_t)start;
    bool has_bias = id < biases(n);
    describe(bias, n->type, has_bias ? n->hidden : 0, has_bias);
    if (bias_at)
        *bias_at = has_bias ? begin + element * (size_t)(all_matrices(n, layers) + (layer * biases(n) + id) * n->hidden)
                        : NULL;
    return SUCCESS;
}

/* Estimates two sizes. A layer's workspace holds the inputs of all gates at once. For backward, each time step of each
 * layer keeps its gates, its state and its output. */
PHANTOM_API int cudnnGetRNNTempSpaceSizes(void *handle, const struct network *n, int mode, const struct sequence *x,
                                          size_t *work, size_t *reserve) {
    (void)handle;
    note();
    int64_t cells = x->length * x->batch * n->directions;
    if (work)
        *work = bytes_of(n->type) * (size_t)(cells * gates(n) * n->hidden + x->batch * n->directions * n->hidden);
    if (reserve)
        *reserve = !mode ? 0
                         : bytes_of(n->type) *
                               (size_t)(cells * n->layers * (gates(n) * n->hidden + n->hidden + output(n)));
    return SUCCESS;
}

PHANTOM_API int cudnnGetTensorNdDescriptor(const struct tensor *tensor, int wanted, int *type, int *dimensions,
                                           int *sizes, int *strides) {
    *type = tensor->type;
    *dimensions = tensor->dimensions;
    for (int i = 0; i < wanted && i < tensor->dimensions; i++) {
        sizes[i] = tensor->sizes[i];
        strides[i] = tensor->strides[i];
    }
    return SUCCESS;
}

/* The estimate is 16 bytes of random number state for each thread that can be resident on the device. */
PHANTOM_API int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) {
    (void)handle;
    phantom_note("the size of cuDNN's dropout states was estimated without a device: a real GPU may use another size");
    *bytes = 16 * (size_t)(phantom_profile()->multiprocessors * phantom_profile()->max_threads_per_multiprocessor);
    return SUCCESS;
}

/* The estimate is two arrays of fp32 with as many elements as the input, one for each pass over time. */
PHANTOM_API int cudnnGetCTCLossWorkspaceSize_v8(void *handle, int algorithm, void *loss, const struct tensor *x,
                                                const struct tensor *gradient, size_t *bytes) {
    (void)handle, (void)algorithm, (void)loss, (void)gradient;
    phantom_note("the workspace of cuDNN's CTC loss was estimated without a device: a real GPU may use another size");
    *bytes = 4 * 2 * (size_t)x->elements;
    return SUCCESS;
}
