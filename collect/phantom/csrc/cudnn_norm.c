/* cuDNN's older interface, as far as torch still uses it in training: tensor descriptors and the workspace of batch
 * normalisation. recurrent.c has recurrent networks. This library refuses, by name, every call that neither file
 * has. */
#include "corrections/corrections.h"
#include "tensor.h"

#include <stdlib.h>

enum { SUCCESS = 0, ALLOC_FAILED = 1003 };

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
    struct tensor *tensor = descriptor;
    tensor->type = type;
    tensor->dimensions = dimensions < 8 ? dimensions : 8;
    tensor->elements = 1;
    for (int i = 0; i < dimensions; i++)
        tensor->elements *= sizes[i];
    for (int i = 0; i < tensor->dimensions; i++) {
        tensor->sizes[i] = sizes[i];
        tensor->strides[i] = strides[i];
    }
    tensor->channels = dimensions > 1 ? sizes[1] : 1;
    return SUCCESS;
}

/* Answered by a correction or with 0, since cuDNN answers this question only on a device. */
static size_t workspace(bool backward, int mode, const struct tensor *x) {
    struct phantom_question question = {
        .topic = PHANTOM_NORM, .mode = mode, .backward = backward, .elements = x->elements, .channels = x->channels};
    int64_t bytes = phantom_correct(&question);
    return bytes == PHANTOM_UNKNOWN ? 0 : (size_t)bytes;
}

PHANTOM_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *handle, int mode, int operations,
                                                                         const struct tensor *x, void *z, void *y,
                                                                         void *scale, void *activation, size_t *bytes) {
    (void)handle, (void)operations, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = workspace(false, mode, x);
    return SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *handle, int mode, int operations,
                                                                  const struct tensor *x, void *y, void *dy, void *dz,
                                                                  void *dx, void *scale, void *activation,
                                                                  size_t *bytes) {
    (void)handle, (void)operations, (void)y, (void)dy, (void)dz, (void)dx, (void)scale, (void)activation;
    *bytes = workspace(true, mode, x);
    return SUCCESS;
}

PHANTOM_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int operations,
                                                                     void *activation, const struct tensor *x,
                                                                     size_t *bytes) {
    (void)handle, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = 0;
    return SUCCESS;
}
