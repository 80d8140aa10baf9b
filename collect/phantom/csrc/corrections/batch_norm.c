/* The workspace of cuDNN's batch normalisation. Without a device cuDNN does not report it.
 *
 * All 25 sizes in a recording of ResNet-50 (AMP, channels last) on an H200, of 13 shapes, equal this formula to the
 * byte. The channels are cut into tiles of 64. A tile takes a fixed number of 4-byte words for each group of rows
 * (batch x height x width), and one word more. 8 bytes are added per multiprocessor. For other devices and types a note
 * says that this is an assumption. In other modes batch normalisation took no workspace (DCGAN, fp32, H200). */
#include "rules.h"

/* A value of cudnnBatchNormMode_t. torch asks for this mode if tensors are channels last. */
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
