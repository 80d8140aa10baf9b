/* The workspaces of 1x1 convolutions, which are products of matrices. On an H200 cuDNN mostly hands them to cuBLASLt, by engines
 * that it does not offer without a device; and what it offers in their place first lays the image out anew, in a workspace of its
 * size. Which ones it hands over was found by asking cuDNN 9.19 for 640 convolutions of random sizes on an H200, forward, backward
 * to the image and to the weight each, beside what it says of them without a device: 93, 94 and 90 of 100 are told right here,
 * and where none is handed over the answers are the same but for 5 of 1,920 (TestPointwiseConvolutions has others).
 *
 *   - Forward and backward to the image need nothing beyond what cuBLASLt asks for: nothing for three in four, else mostly less
 *     than a block of 512 bytes. By which algorithm it multiplies is not known here, so nothing is said.
 *   - The gradient of a weight is a product for each image of the batch, each with a copy in fp32, which are then added up. That
 *     does not pay where the copies are as large as the images that would be laid out.
 *   - With the channels last it is one product, which cuBLASLt cuts or does not cut: that stays as cuDNN says it.
 *   - The engine that cuDNN prefers among the others tells where another is better still: the direct one for tiny sums (0), and
 *     22 for a gradient of few channels. */
#include "convolution.h"

#include <string.h>

/* Of cuDNN's engines, by operation; the numbers have stayed from 9.19 to 9.26. */
enum { WEIGHT_DIRECT = 0, WEIGHT_CLUSTERS = 65, DATA_FEW_CHANNELS = 22 };

static bool is_pointwise(const struct convolution *c) {
    return c->dimensions == 4 && c->plain && phantom_product(c->weight + 2, 2) == 1 && !strcmp(c->math, "CUDNN_DATA_FLOAT") &&
           (!strcmp(c->tensor_type, "CUDNN_DATA_FLOAT") || !strcmp(c->tensor_type, "CUDNN_DATA_HALF") ||
            !strcmp(c->tensor_type, "CUDNN_DATA_BFLOAT16"));
}

int64_t phantom_pointwise_workspace(const char *text, int64_t workspace) {
    struct convolution c;
    int64_t engine;
    if (!phantom_convolution_read(&c, text) || !is_pointwise(&c) || !phantom_json_number(c.engine, "\"engineId\":", &engine))
        return workspace;
    if (c.operation == 'f')
        return 0;
    if (c.operation == 'd')
        return engine == DATA_FEW_CHANNELS ? workspace : 0;
    if (c.channels_last || engine == WEIGHT_DIRECT)
        return workspace;
    int64_t copies = phantom_product(c.weight, 2) * c.image[0] * (int64_t)sizeof(float);
    return engine == WEIGHT_CLUSTERS && copies > workspace / 4 * 3 ? workspace : copies;
}
