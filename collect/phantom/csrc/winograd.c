/* The workspaces of gradients of 3x3 weights, of convolutions of stride one in fp32. On an H200 cuDNN has some computed by Winograd's
 * algorithm, step by step, by an engine that it does not offer without a device: the images and the gradients of the outputs are
 * transformed to 6 by 6 numbers for each tile of 4 by 4 of the output, and their products are that for each filter before they are
 * transformed back. The workspace holds all three.
 *
 * The size was found among random convolutions that an H200 recorded under cuDNN 9.19 (testdata/convolutions.csv.gz): of the 16 of
 * this kind seven have it to the byte. Which ones it is used for is read off the engine that cuDNN chooses without a device:
 *
 *   - It is 40 or 50, of tensor cores, for six of the seven, and for none of the nine others.
 *   - For the seventh it is the one in clusters (68), which the H200 kept for the largest two of the 16, and in the recordings of
 *     scripts for `parallel`'s and for `private_conv`'s (0.98e9 multiply-adds and more, where one of the six has 1.04e9). What sets
 *     the seventh apart (32 images of 384 channels of 7 by 7, 256 channels of 5 by 5: 0.71e9) is not known, so it stays as it is.
 *   - It is 48 once, of tensor cores too, and 1 or 20, without, for six small ones: these the H200 chose as well.
 *   - The six have 4.0e6 to 1.04e9 multiply-adds. Nothing larger was seen of these two engines, and it is left as it is.
 *
 * Nor were 16-bit types, channels last, strides, dilations and groups seen to be computed so. With TF32 turned off cuDNN chooses 1, 20
 * or 67 for the 16 without a device; what an H200 does then was not recorded. */
#include "convolution.h"

#include <string.h>

/* Of cuDNN's engines for the gradient of a weight. */
enum { TENSOR_CORES = 40, MORE_TENSOR_CORES = 50 };

enum { TILE = 4, TRANSFORMED = 6 * 6 };

static const int64_t most_multiply_adds = 1100000000;

static bool is_of_this_kind(const struct convolution *c) {
    return c->operation == 'w' && c->dimensions == 4 && !c->channels_last && c->dense && c->weight[2] == 3 && c->weight[3] == 3 &&
           !strcmp(c->tensor_type, "CUDNN_DATA_FLOAT") && !strcmp(c->math, "CUDNN_DATA_FLOAT") &&
           phantom_product(c->weight, 4) * c->output[0] * phantom_product(c->output + 2, 2) <= most_multiply_adds;
}

static int64_t tiles(int64_t pixels) { return (pixels + TILE - 1) / TILE; }

int64_t phantom_winograd_workspace(const char *text, int64_t workspace) {
    struct convolution c;
    int64_t engine;
    if (!phantom_convolution_read(&c, text) || !is_of_this_kind(&c) || !phantom_json_number(c.engine, "\"engineId\":", &engine) ||
        (engine != TENSOR_CORES && engine != MORE_TENSOR_CORES))
        return workspace;
    int64_t images = c.image[1], outputs = c.output[1], of_all = c.output[0] * tiles(c.output[2]) * tiles(c.output[3]);
    return ((images + outputs) * of_all + images * outputs) * TRANSFORMED * (int64_t)sizeof(float);
}
