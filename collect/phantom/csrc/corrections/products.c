/* 1x1 convolutions by an engine that cuDNN withholds without a device, because cuBLASLt multiplies for it.
 *
 * The forward pass and the image's gradient need only what cuBLASLt asks for: nothing for three in four convolutions,
 * else mostly less than a block of 512 bytes. Which algorithm cuBLASLt takes is not known without a device, so its
 * bytes are left out. The gradient of a weight is one product for each image of the batch, each with a copy in fp32;
 * the copies are then added up. With channels last the gradient is a single product, which cuBLASLt may cut. For it the
 * workspace stays what cuDNN reports for the engine that it offers. */
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
