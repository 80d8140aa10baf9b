/* Fourier transforms of tiles of 32 by 32 pixels, two tiles at a time, for the gradient of an image, by an engine that
 * cuDNN withholds without a device. */
#include "rules.h"

enum { SIDE = 32, AT_A_TIME = 2 };

/* cuDNN's number of the engine. */
enum { DATA = 50 };

int64_t phantom_fourier_tiles(const struct phantom_question *question) {
    const struct convolution *c = question->convolution;
    if (question->engine != DATA || c->operation != 'd' || !phantom_is_contiguous_fp32(c) || !c->dense)
        return PHANTOM_UNKNOWN;
    if (c->weight[2] > SIDE || c->weight[3] > SIDE)
        return PHANTOM_UNKNOWN;
    int64_t tiles = over(c->image[2], SIDE + 1 - c->weight[2]) * over(c->image[3], SIDE + 1 - c->weight[3]);
    int64_t at_a_time = tiles < AT_A_TIME ? tiles : AT_A_TIME;
    return frequencies(SIDE) * COMPLEX * (weight_planes(c) + at_a_time * (image_planes(c) + output_planes(c)));
}
