/* Driver calls that have nothing to do and nothing to answer. */
#include "driver.h"

#define IGNORED(name)        \
    PHANTOM_API int name(void) { \
        return phantom_ignore ? phantom_ignore(#name, CUDA_SUCCESS) : CUDA_ERROR_NO_DEVICE; \
    }

IGNORED(cuCtxGetLimit)
IGNORED(cuCtxSetLimit)
IGNORED(cuCtxSynchronize)
IGNORED(cuDevicePrimaryCtxRelease_v2)
IGNORED(cuDeviceGetDevResource)
IGNORED(cuDevResourceGenerateDesc)
IGNORED(cuDevSmResourceSplitByCount)
IGNORED(cuCtxFromGreenCtx)
IGNORED(cuGreenCtxCreate)
IGNORED(cuGreenCtxDestroy)
IGNORED(cuGreenCtxStreamCreate)
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
