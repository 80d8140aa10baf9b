/* Fourier transforms of whole padded images, for outputs and for gradients of weights, by engines that cuDNN withholds
 * without a device.
 *
 * The engine transforms and rearranges its two input tensors and its output tensor, in turns. First it turns the tensor
 * that acts as the filter around. */
#include "rules.h"

/* cuDNN's numbers of the engines. */
enum { FORWARD = 3, WEIGHT = 18 };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t phantom_fourier(const struct phantom_question *question) {
    const struct convolution *c = question->convolution;
    bool weight = c->operation == 'w', forward = c->operation == 'f';
    bool is_its_engine = (forward && question->engine == FORWARD) || (weight && question->engine == WEIGHT);
    if (!is_its_engine || !phantom_is_contiguous_fp32(c) || !c->dense)
        return PHANTOM_UNKNOWN;
    int64_t padded = larger(c->output[2] + c->weight[2], c->output[3] + c->weight[3]) - 1, side = 16;
    while (side < padded)
        side *= 2;
    if (side > 256)
        return PHANTOM_UNKNOWN;
    int64_t filters = weight ? output_planes(c) : weight_planes(c), out = weight ? weight_planes(c) : output_planes(c);
    return 2 * frequencies(side) * COMPLEX * larger(image_planes(c) + filters, out) +
           filters * phantom_product((weight ? c->output : c->weight) + 2, 2) * FLOAT;
}
