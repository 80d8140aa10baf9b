/* Replaces CUPTI, since the real CUPTI would look for a real device. With this one Kineto records CPU events only. */
#include "phantom.h"

PHANTOM_API int cuptiGetVersion(unsigned *version) {
    *version = 0;
    return 0;
}

PHANTOM_API int cuptiGetResultString(int result, const char **text) {
    (void)result;
    *text = "phantom CUPTI";
    return 0;
}

PHANTOM_API int cuptiActivityGetNextRecord(void) { return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED: no more records */ }
