/* libnvidia-ml.so.1: describes the phantom devices, so that no call reaches a real one. It reports temperatures, powers
 * and other measurements as "not supported", never as zeros. */
#include "../driver/driver.h"

#include <stdio.h>
#include <string.h>

extern int cudaDriverGetVersion(int *version) __attribute__((weak));

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int physical_count(void) { return phantom_physical_device_count ? phantom_physical_device_count() : 0; }

static int device_of(void *handle) { return (int)(uintptr_t)handle - 1; }

static int valid(int device) { return device >= 0 && device < physical_count(); }

PHANTOM_API int nvmlInit_v2(void) { return SUCCESS; }

PHANTOM_API int nvmlInit(void) { return SUCCESS; }

PHANTOM_API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return SUCCESS;
}

PHANTOM_API int nvmlShutdown(void) { return SUCCESS; }

PHANTOM_API int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)physical_count();
    return SUCCESS;
}

PHANTOM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(uintptr_t)(index + 1);
    return valid((int)index) ? SUCCESS : INVALID_ARGUMENT;
}

PHANTOM_API int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **handle) {
    unsigned domain, bus;
    if (sscanf(text, "%x:%x", &domain, &bus) != 2 || !valid((int)bus - 1))
        return NOT_FOUND;
    *handle = (void *)(uintptr_t)bus;
    return SUCCESS;
}

static void uuid_text(int device, char text[48]) {
    unsigned char uuid[16];
    phantom_device_uuid(device, uuid);
    char *at = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

PHANTOM_API int nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
    char uuid[48];
    if (!valid(device_of(handle)))
        return INVALID_ARGUMENT;
    uuid_text(device_of(handle), uuid);
    snprintf(text, size, "%s", uuid);
    return SUCCESS;
}

PHANTOM_API int nvmlDeviceGetHandleByUUID(const char *text, void **handle) {
    for (int device = 0; device < physical_count(); device++) {
        char uuid[48];
        uuid_text(device, uuid);
        if (strcmp(text, uuid))
            continue;
        *handle = (void *)(uintptr_t)(device + 1);
        return SUCCESS;
    }
    return NOT_FOUND;
}

PHANTOM_API int nvmlDeviceGetIndex(void *handle, unsigned *index) {
    *index = (unsigned)device_of(handle);
    return valid(device_of(handle)) ? SUCCESS : INVALID_ARGUMENT;
}

PHANTOM_API int nvmlDeviceGetName(void *handle, char *name, unsigned size) {
    if (!valid(device_of(handle)))
        return INVALID_ARGUMENT;
    snprintf(name, size, "%s", phantom_profile()->name);
    return SUCCESS;
}

PHANTOM_API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return cudaDriverGetVersion && !cudaDriverGetVersion(version) ? SUCCESS : UNINITIALIZED;
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses(void *handle, unsigned *count, void *processes) {
    (void)handle, (void)processes;
    *count = 0;
    return SUCCESS;
}

PHANTOM_API int nvmlDeviceGetP2PStatus(void *one, void *other, int index, int *status) {
    (void)one, (void)other, (void)index;
    *status = 0; /* NVML_P2P_STATUS_OK */
    return SUCCESS;
}

/* The members that all versions of nvmlGpuFabricInfoV_t begin with. The phantom GPU is in no fabric. It must say so,
 * since torch 2.13 asks before its first expandable segment and takes a refusal for an internal error. */
struct fabric_info {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

PHANTOM_API int nvmlDeviceGetGpuFabricInfoV(void *handle, struct fabric_info *info) {
    if (!valid(device_of(handle)))
        return INVALID_ARGUMENT;
    memset(info->cluster, 0, sizeof info->cluster);
    info->status = SUCCESS;
    info->clique = 0;
    info->state = 0; /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */
    return SUCCESS;
}

#define UNSUPPORTED(name) \
    PHANTOM_API int name(void) { return NOT_SUPPORTED; }

UNSUPPORTED(nvmlDeviceGetMemoryInfo)
UNSUPPORTED(nvmlDeviceGetMemoryInfo_v2)
UNSUPPORTED(nvmlDeviceGetUtilizationRates)
UNSUPPORTED(nvmlDeviceGetTemperature)
UNSUPPORTED(nvmlDeviceGetPowerUsage)
UNSUPPORTED(nvmlDeviceGetClockInfo)
UNSUPPORTED(nvmlDeviceGetNvLinkState)
UNSUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)

PHANTOM_API const char *nvmlErrorString(int error) {
    static const char *const texts[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported"};
    return error >= 0 && error < 4 ? texts[error] : error == NOT_FOUND ? "Not Found" : "Unknown Error";
}
