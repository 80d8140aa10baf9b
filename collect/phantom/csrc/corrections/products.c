/* 1x1 convolutions by an engine that cuDNN withholds without a device, because cuBLASLt multiplies for it.
 *
 * Forward and backward to the image need nothing beyond what cuBLASLt asks for: nothing for three in four, else mostly
 * less than a block of 512 bytes. Which algorithm cuBLASLt takes is not known without a device, so its bytes are left
 * out. The gradient of a weight is a product for each image of the batch, each with a copy in fp32; the copies are then
 * added up. With the channels last it is one product, which cuBLASLt cuts or does not cut: there the workspace stays
 * what cuDNN says of the engine that it offers. */
#include "rules.h"

/* cuDNN's numbers of the engine, for each operation. */
enum { FORWARD = 58, DATA = 63, WEIGHT = 62 };

int64_t phantom_products(const struct phantom_question *question) {
    const struct convolution *c = question->convolution;
    int engine = c->operation == 'f' ? FORWARD : c->operation == 'd' ? DATA : WEIGHT;
    bool is_product = c->plain && phantom_product(c->weight + 2, c->dimensions - 2) == 1;
    if (question->engine != engine || !phantom_sums_in_fp32(c) || !is_product)
        return PHANTOM_UNKNOWN;
    if (c->operation != 'w')
        return 0;
    return c->channels_last ? PHANTOM_UNKNOWN : weight_planes(c) * c->image[0] * FLOAT;
}
