/* Reads a device's profile: lines of key=value, which dpsight's Go code writes from profiles/NAME.json. */
#include "phantom.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct phantom_profile profile;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fail(const char *path, const char *problem, const char *key) {
    fprintf(stderr, "phantom: device profile %s: %s%s%s\n", path, problem, key[0] ? " " : "", key);
    exit(2);
}

struct property {
    const char *key;
    int64_t *value;
    bool seen;
};

#define PROPERTY(property) {#property, &profile.property, false},
static struct property properties[] = {PHANTOM_PROPERTIES(PROPERTY) PHANTOM_KERNELS(PROPERTY)};
#undef PROPERTY
#define PROPERTY_COUNT (sizeof properties / sizeof properties[0])

/* Reads text such as SIZE:COUNT,SIZE:COUNT: for each size of a cluster, how many such clusters are resident at once. */
static void set_clusters(const char *path, const char *text) {
    for (const char *at = text; *at;) {
        char *end;
        long long size = strtoll(at, &end, 10), count = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
        if (size < 1 || size >= (long long)(sizeof profile.clusters / sizeof *profile.clusters) || count < 1 ||
            (*end && *end != ','))
            fail(path, "no SIZE:COUNT in", "clusters");
        profile.clusters[size] = count;
        at = *end ? end + 1 : end;
    }
}

static void set(const char *path, const char *key, const char *text) {
    if (!strcmp(key, "name")) {
        snprintf(profile.name, sizeof profile.name, "%s", text);
        return;
    }
    if (!strcmp(key, "addresses")) {
        snprintf(profile.addresses, sizeof profile.addresses, "%s", text);
        return;
    }
    if (!strcmp(key, "clusters")) {
        set_clusters(path, text);
        return;
    }
    if (!strcmp(key, "withheld")) {
        profile.withheld = !strcmp(text, "1");
        return;
    }
    for (size_t i = 0; i < PROPERTY_COUNT; i++) {
        if (strcmp(key, properties[i].key))
            continue;
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (errno || end == text || *end)
            fail(path, "not a whole number:", key);
        *properties[i].value = value;
        properties[i].seen = true;
        return;
    }
    fail(path, "unknown property", key);
}

static void load(void) {
    const char *path = getenv("PHANTOM_PROFILE");
    if (!path || !*path) {
        fprintf(stderr, "phantom: set PHANTOM_PROFILE to the device profile\n");
        exit(2);
    }
    FILE *file = fopen(path, "re");
    if (!file)
        fail(path, strerror(errno), "");
    char line[512];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!line[0])
            continue;
        char *equals = strchr(line, '=');
        if (!equals)
            fail(path, "a line without '=':", line);
        *equals = 0;
        set(path, line, equals + 1);
    }
    fclose(file);
    if (!profile.name[0])
        fail(path, "no", "name");
    if (!profile.addresses[0])
        fail(path, "no", "addresses");
    for (size_t i = 0; i < PROPERTY_COUNT; i++)
        if (!properties[i].seen)
            fail(path, "no", properties[i].key);
}

const struct phantom_profile *phantom_profile(void) {
    pthread_once(&once, load);
    return &profile;
}
