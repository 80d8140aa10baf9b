/* The PHANTOM_* variables and CUDA_VISIBLE_DEVICES, each read once. */
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static uint64_t number(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    if (!text || !*text)
        return fallback;
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*end) {
        fprintf(stderr, "phantom: %s=%s is not a whole number\n", name, text);
        exit(2);
    }
    return value;
}

static struct {
    bool debug;
    int physical, visible;
    int order[PHANTOM_MAX_DEVICES];
    uint64_t memory;
    size_t copy;
} settings;

void phantom_device_uuid(int physical, unsigned char uuid[16]) {
    memcpy(uuid, "phantom-gpu", 11);
    memset(uuid + 11, 0, 4);
    uuid[15] = (unsigned char)(physical + 1);
}

static int device_named(const char *entry, size_t length) {
    if (length > 4 && !strncasecmp(entry, "GPU-", 4)) {
        for (int d = 0; d < settings.physical; d++) {
            unsigned char uuid[16];
            char text[40], *at = text;
            phantom_device_uuid(d, uuid);
            for (int i = 0; i < 16; i++)
                at += sprintf(at, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
            if (length - 4 <= strlen(text) && !strncasecmp(entry + 4, text, length - 4))
                return d;
        }
        return -1;
    }
    char *end;
    long index = strtol(entry, &end, 10);
    return end != entry && index >= 0 && index < settings.physical ? (int)index : -1;
}

/* Reads the list as the driver does: it takes the entries before the first that names no device. If the list names a
 * device twice, no device is visible. */
static void read_visible(const char *list) {
    if (!list) {
        for (int d = 0; d < settings.physical; d++)
            settings.order[d] = d;
        settings.visible = settings.physical;
        return;
    }
    while (*list) {
        size_t length = strcspn(list, ",");
        int device = device_named(list, length);
        if (device < 0 || settings.visible == PHANTOM_MAX_DEVICES)
            return;
        for (int i = 0; i < settings.visible; i++) {
            if (settings.order[i] == device) {
                settings.visible = 0;
                return;
            }
        }
        settings.order[settings.visible++] = device;
        list += length + (list[length] == ',');
    }
}

static void read_settings(void) {
    settings.debug = getenv("PHANTOM_DEBUG") != NULL;
    uint64_t devices = number("PHANTOM_DEVICES", 1);
    if (devices > PHANTOM_MAX_DEVICES) {
        fprintf(stderr, "phantom: PHANTOM_DEVICES=%llu: at most %d devices\n", (unsigned long long)devices,
                PHANTOM_MAX_DEVICES);
        exit(2);
    }
    settings.physical = (int)devices;
    settings.memory = number("PHANTOM_MEM", 0);
    settings.copy = number("PHANTOM_COPY", 64 << 10);
}

static pthread_once_t once = PTHREAD_ONCE_INIT, visible_once = PTHREAD_ONCE_INIT;

static void ready(void) { pthread_once(&once, read_settings); }

/* Reads CUDA_VISIBLE_DEVICES later than the other variables: scripts set it after importing torch, before they ask for
 * a device. */
static void read_visible_devices(void) {
    ready();
    read_visible(getenv("CUDA_VISIBLE_DEVICES"));
}

static void visible_ready(void) { pthread_once(&visible_once, read_visible_devices); }

bool phantom_debug(void) {
    ready();
    return settings.debug;
}

int phantom_device_count(void) {
    visible_ready();
    return settings.visible;
}

int phantom_physical_device_count(void) {
    ready();
    return settings.physical;
}

int phantom_physical_device(int device) {
    visible_ready();
    return device >= 0 && device < settings.visible ? settings.order[device] : -1;
}

uint64_t phantom_total_bytes(void) {
    ready();
    return settings.memory ? settings.memory : (uint64_t)phantom_profile()->total_memory_bytes;
}

/* If the user gives a memory size, the program can have all of it: how much a context would take on such a device is
 * unknown. */
uint64_t phantom_usable_bytes(void) {
    ready();
    if (settings.memory)
        return settings.memory;
    return (uint64_t)(phantom_profile()->total_memory_bytes - phantom_profile()->context_bytes);
}

size_t phantom_copy_limit(void) {
    ready();
    return settings.copy;
}
