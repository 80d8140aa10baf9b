/* cuDNN's older interface, as far as torch still uses it in training: tensor descriptors, batch normalisation's
 * workspace and dropout's states. What is not here is refused by name (recurrent networks among it). */
#include "phantom.h"

#include <stdlib.h>

enum { SUCCESS = 0, ALLOC_FAILED = 1003 };

struct tensor {
    int64_t elements, channels;
};

PHANTOM_API int cudnnCreateTensorDescriptor(void **descriptor) {
    *descriptor = calloc(1, sizeof(struct tensor));
    return *descriptor ? SUCCESS : ALLOC_FAILED;
}

PHANTOM_API int cudnnDestroyTensorDescriptor(void *descriptor) {
    free(descriptor);
    return SUCCESS;
}

PHANTOM_API int cudnnSetTensorNdDescriptor(void *descriptor, int type, int dimensions, const int *sizes,
                                           const int *strides) {
    (void)type, (void)strides;
    struct tensor *tensor = descriptor;
    tensor->elements = 1;
    for (int i = 0; i < dimensions; i++)
        tensor->elements *= sizes[i];
    tensor->channels = dimensions > 1 ? sizes[1] : 1;
    return SUCCESS;
}

/* cudnnBatchNormMode_t; torch asks for it where tensors are channels-last. */
enum { SPATIAL_PERSISTENT = 2 };

/* cuDNN's own answer needs a device. In a recording of ResNet-50 (AMP, channels-last) on an H200 all 25 sizes, of 13
 * shapes, are to the byte these: tiles of 64 channels, for each of them so many 4-byte words for so many rows (batch x
 * height x width) and one more, and 8 bytes a multiprocessor. That other devices and types do the same is assumed, and
 * noted. The other modes were seen to take none (DCGAN, fp32, on the same). */
static void estimate(int mode, const struct tensor *x, int64_t words, int64_t rows, size_t *bytes) {
    *bytes = 0;
    if (mode != SPATIAL_PERSISTENT || !x->channels)
        return;
    phantom_note("cuDNN batch normalisation: the workspace is an estimate");
    int64_t all_rows = x->elements / x->channels, chunks = (all_rows + rows - 1) / rows,
            tiles = (x->channels + 63) / 64;
    *bytes = (size_t)(tiles * 4 * (words * chunks + 1) + 8 * phantom_profile()->multiprocessors);
}

PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *handle, int mode, int operations,
                                                                         const struct tensor *x, void *z, void *y,
                                                                         void *scale, void *activation, size_t *bytes) {
    (void)handle, (void)operations, (void)z, (void)y, (void)scale, (void)activation;
    estimate(mode, x, 129, 160, bytes);
    *bytes += *bytes ? 16 : 0;
    return SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *handle, int mode, int operations,
                                                                  const struct tensor *x, void *y, void *dy, void *dz,
                                                                  void *dx, void *scale, void *activation,
                                                                  size_t *bytes) {
    (void)handle, (void)operations, (void)y, (void)dy, (void)dz, (void)dx, (void)scale, (void)activation;
    estimate(mode, x, 128, 96, bytes);
    return SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int operations,
                                                                     void *activation, const struct tensor *x,
                                                                     size_t *bytes) {
    (void)handle, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = 0;
    return SUCCESS;
}

PHANTOM_API int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) {
    (void)handle;
    /* One random state of 16 bytes a thread that fits on the device. */
    *bytes = (size_t)(phantom_profile()->multiprocessors * phantom_profile()->max_threads_per_multiprocessor * 16);
    return SUCCESS;
}
