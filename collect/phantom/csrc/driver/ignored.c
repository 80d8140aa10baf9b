/* Driver calls that do nothing and succeed, and driver calls that are refused. */
#include "driver.h"

#define IGNORED(name)        \
    PHANTOM_API int name(void) { \
        return phantom_ignore ? phantom_ignore(#name, CUDA_SUCCESS) : CUDA_ERROR_NO_DEVICE; \
    }

IGNORED(cuCtxGetLimit)
IGNORED(cuCtxSetLimit)
IGNORED(cuCtxSynchronize)
IGNORED(cuDevicePrimaryCtxRelease_v2)
IGNORED(cuFuncSetAttribute)
IGNORED(cuFuncSetCacheConfig)
IGNORED(cuKernelSetAttribute)
IGNORED(cuLaunchKernelExHandle)
IGNORED(cuLibraryUnload)
IGNORED(cuLinkAddData)
IGNORED(cuLinkAddData_v2)
IGNORED(cuLinkDestroy)
IGNORED(cuLogsRegisterCallback)
IGNORED(cuLogsUnregisterCallback)
IGNORED(cuMemExportToShareableHandle)
IGNORED(cuMemSetAccess)
IGNORED(cuMemsetD32Async)
IGNORED(cuMemsetD8Async)
IGNORED(cuModuleUnload)
IGNORED(cuMulticastAddDevice)
IGNORED(cuMulticastBindMem)
IGNORED(cuMulticastCreate)
IGNORED(cuMulticastUnbind)
IGNORED(cuStreamSynchronize)
IGNORED(cuStreamWriteValue32)
IGNORED(cuTensorMapEncodeIm2col)
IGNORED(cuTensorMapEncodeTiled)

/* A green context is a subset of the multiprocessors, with streams of its own. The phantom GPU does not model it: a
 * caller that got success would go on with counts and handles that were never written. */
#define REFUSED(name)            \
    PHANTOM_API int name(void) { \
        return phantom_refuse ? phantom_refuse(#name, CUDA_ERROR_NOT_SUPPORTED) : CUDA_ERROR_NO_DEVICE; \
    }

REFUSED(cuCtxFromGreenCtx)
REFUSED(cuDevResourceGenerateDesc)
REFUSED(cuDevSmResourceSplitByCount)
REFUSED(cuDeviceGetDevResource)
REFUSED(cuGreenCtxCreate)
REFUSED(cuGreenCtxDestroy)
REFUSED(cuGreenCtxStreamCreate)
