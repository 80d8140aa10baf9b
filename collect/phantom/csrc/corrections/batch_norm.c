/* The workspace of cuDNN's batch normalisation, of which cuDNN itself says nothing without a device.
 *
 * In a recording of ResNet-50 (AMP, channels last) on an H200 all 25 sizes, of 13 shapes, are to the byte these: tiles
 * of 64 channels, for each of them so many 4-byte words for so many rows (batch x height x width) and one more, and 8
 * bytes a multiprocessor. That other devices and types do the same is assumed, and noted. The other modes were seen to
 * take none (DCGAN, fp32, on the same). */
#include "rules.h"

/* cudnnBatchNormMode_t; torch asks for it where tensors are channels last. */
enum { SPATIAL_PERSISTENT = 2 };

int64_t phantom_batch_norm(const struct phantom_question *question) {
    if (question->mode != SPATIAL_PERSISTENT || !question->channels)
        return PHANTOM_UNKNOWN;
    phantom_note("cuDNN batch normalisation: the workspace is an estimate");
    int64_t words = question->backward ? 128 : 129, rows_each = question->backward ? 96 : 160;
    int64_t rows = question->elements / question->channels;
    int64_t bytes = over(question->channels, 64) * 4 * (words * over(rows, rows_each) + 1);
    return bytes + 8 * phantom_profile()->multiprocessors + (question->backward ? 0 : 16);
}
