/* The workspaces of cuDNN's engines that it withholds without a device (withheld.c says when they are chosen). An H200
 * recorded 3,777 random convolutions under cuDNN 9.19, with their plans; Winograd's algorithm and Fourier transforms
 * computed 518 of them, and the rules here give the workspaces of all 518 to the byte. Products by cuBLASLt are told
 * less surely (TestWorkspacesOfRandomConvolutions). */
#include "plans.h"

#include <string.h>

/* cuDNN's numbers of engines are those of an operation; cuDNN 9.26 passes over ones of the same numbers. */
enum { FORWARD_PRODUCT = 58, FORWARD_FOURIER = 3 };
enum { DATA_PRODUCT = 63, DATA_FOURIER_TILES = 50 };
enum { WEIGHT_PRODUCT = 62, WEIGHT_FOURIER = 18, WEIGHT_WINOGRAD = 17 };

enum { FLOAT = sizeof(float), COMPLEX = 2 * sizeof(float) };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Images of a batch and a layer, planes of pixels: of the image, of the output, and of the weight. */
static int64_t image_planes(const struct convolution *c) { return phantom_product(c->image, 2); }
static int64_t output_planes(const struct convolution *c) { return phantom_product(c->output, 2); }
static int64_t weight_planes(const struct convolution *c) { return phantom_product(c->weight, 2); }

/* ---- 1x1 convolutions, which are products of matrices
 *
 * Forward and backward to the image need nothing beyond what cuBLASLt asks for: nothing for three in four, else mostly
 * less than a block of 512 bytes. By which algorithm it multiplies is not known here, so nothing is said. The gradient
 * of a weight is a product for each image of the batch, each with a copy in fp32, which are then added up; with the
 * channels last it is one product, which cuBLASLt cuts or does not cut: that stays as cuDNN says of the engine that it
 * offers. */

static int64_t product(const struct convolution *c) {
    if (!c->plain || phantom_product(c->weight + 2, c->dimensions - 2) != 1)
        return -1;
    if (c->operation != 'w')
        return 0;
    return c->channels_last ? -1 : weight_planes(c) * c->image[0] * FLOAT;
}

/* ---- Winograd's algorithm, step by step, for the gradient of a weight
 *
 * The images and the gradients of the outputs are cut into tiles and transformed, and so are their products, one for
 * each filter. */

static int64_t winograd(const struct convolution *c) {
    bool three = c->weight[2] == 3 && c->weight[3] == 3, five = c->weight[2] == 5 && c->weight[3] == 5;
    if (!c->dense || (!three && !five))
        return -1;
    int64_t tile = three ? 4 : 9, transformed = tile + c->weight[2] - 1, several = three ? 1 : 16;
    int64_t tiles = over(c->output[0] * over(c->output[2], tile) * over(c->output[3], tile), several) * several;
    return ((c->image[1] + c->output[1]) * tiles + weight_planes(c)) * transformed * transformed * FLOAT;
}

/* ---- Fourier transforms */

/* Of real numbers, side by side: half of the frequencies say it all. */
static int64_t frequencies(int64_t side) { return side * (side / 2 + 1); }

/* The whole padded image at once: the two tensors that go in and the one that comes out are transformed and laid out
 * anew, in turns, and what plays the filter is turned around first. */
static int64_t fourier(const struct convolution *c) {
    if (!c->dense)
        return -1;
    int64_t padded = larger(c->output[2] + c->weight[2], c->output[3] + c->weight[3]) - 1, side = 16;
    while (side < padded)
        side *= 2;
    if (side > 256)
        return -1;
    bool weight = c->operation == 'w';
    int64_t filters = weight ? output_planes(c) : weight_planes(c), out = weight ? weight_planes(c) : output_planes(c);
    return 2 * frequencies(side) * COMPLEX * larger(image_planes(c) + filters, out) +
           filters * phantom_product((weight ? c->output : c->weight) + 2, 2) * FLOAT;
}

/* Tiles of 32 by 32, two of them at a time. */
static int64_t fourier_tiles(const struct convolution *c) {
    enum { SIDE = 32, AT_A_TIME = 2 };
    if (!c->dense || c->weight[2] > SIDE || c->weight[3] > SIDE)
        return -1;
    int64_t tiles = over(c->image[2], SIDE + 1 - c->weight[2]) * over(c->image[3], SIDE + 1 - c->weight[3]);
    return frequencies(SIDE) * COMPLEX *
           (weight_planes(c) + (tiles < AT_A_TIME ? tiles : AT_A_TIME) * (image_planes(c) + output_planes(c)));
}

int64_t phantom_engine_workspace(const struct convolution *c, int engine) {
    bool floats = !strcmp(c->tensor_type, "CUDNN_DATA_FLOAT"), flat = c->dimensions == 4;
    bool halves = !strcmp(c->tensor_type, "CUDNN_DATA_HALF") || !strcmp(c->tensor_type, "CUDNN_DATA_BFLOAT16");
    if (!flat || strcmp(c->math, "CUDNN_DATA_FLOAT") || (!floats && !halves))
        return -1;
    char of = c->operation;
    if ((of == 'f' && engine == FORWARD_PRODUCT) || (of == 'd' && engine == DATA_PRODUCT) ||
        (of == 'w' && engine == WEIGHT_PRODUCT))
        return product(c);
    /* Of the others only contiguous tensors in fp32 were seen. */
    if (!floats || c->channels_last)
        return -1;
    if ((of == 'f' && engine == FORWARD_FOURIER) || (of == 'w' && engine == WEIGHT_FOURIER))
        return fourier(c);
    if (of == 'd' && engine == DATA_FOURIER_TILES)
        return fourier_tiles(c);
    return of == 'w' && engine == WEIGHT_WINOGRAD ? winograd(c) : -1;
}
