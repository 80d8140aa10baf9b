/* Winograd's algorithm, step by step, for the gradient of a weight, by an engine that cuDNN withholds without a device.
 *
 * The engine cuts the images and the gradients of the outputs into tiles and transforms them. It also transforms their
 * products, one for each filter. */
#include "rules.h"

/* cuDNN's number of the engine. */
enum { WEIGHT = 17 };

int64_t phantom_winograd(const struct phantom_question *question) {
    const struct convolution *c = question->convolution;
    if (question->engine != WEIGHT || c->operation != 'w' || !phantom_is_contiguous_fp32(c) || !c->dense)
        return PHANTOM_UNKNOWN;
    bool three = c->weight[2] == 3 && c->weight[3] == 3, five = c->weight[2] == 5 && c->weight[3] == 5;
    if (!three && !five)
        return PHANTOM_UNKNOWN;
    int64_t tile = three ? 4 : 9, transformed = tile + c->weight[2] - 1, several = three ? 1 : 16;
    int64_t tiles = over(c->output[0] * over(c->output[2], tile) * over(c->output[3], tile), several) * several;
    return ((c->image[1] + c->output[1]) * tiles + weight_planes(c)) * transformed * transformed * FLOAT;
}
