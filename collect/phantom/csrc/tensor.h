/* The tensor descriptor of cuDNN's older interface. */
#ifndef PHANTOM_TENSOR_H
#define PHANTOM_TENSOR_H

#include <stdint.h>

struct tensor {
    int64_t elements, channels;
    int type, dimensions, sizes[8], strides[8];
};

#endif
