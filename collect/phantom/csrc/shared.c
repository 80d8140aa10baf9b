/* Counts the memory that the processes of a run hold on each device. The counts lie in a page that the processes share
 * (PHANTOM_SHARED names the file, PHANTOM_SHARED_PAGE the page in it), or in a page of this process alone. Each process
 * has its own slot, so its memory is free once it is gone, however it ended. Each request for memory first looks for
 * dead processes. shared.go reads the beginning of a page. */
#include "phantom.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 4096
#define PAGE_BYTES (1 << 19) /* shared.go has the same number */

struct slot {
    uint64_t started; /* identifies the owner together with pid, since process ids are reused */
    int32_t pid;       /* 0 if the slot is free */
    uint32_t contexts; /* one bit for each device on which the process has a context */
    uint64_t bytes[PHANTOM_MAX_DEVICES];
};

struct page {
    struct {
        uint64_t processes; /* the most that had or requested memory of the device at once */
        uint64_t bytes;     /* the most that all processes together requested and got */
        uint64_t taken;     /* the most of these bytes and of all contexts except the first */
    } most[PHANTOM_MAX_DEVICES];
    uint64_t ready, used;
    pthread_mutex_t lock;
    struct slot slots[SLOTS];
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "a page has room for all slots");

static struct page *page;
static struct slot *mine;

#define UNKNOWN UINT64_MAX

/* Returns when a process started, or 0 if no such process can hold memory: a zombie's memory is free too. UNKNOWN if it
 * cannot be looked up, for example because this process has too many files open. */
static uint64_t started(int32_t pid) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? 0 : UNKNOWN;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = 0;
    char *at = strrchr(text, ')'), state;
    unsigned long long ticks;
    if (!at || sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                      &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks + 1;
}

static void make_lock(struct page *made) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&made->lock, &kind);
    made->ready = 1;
}

static struct page *open_page(void) {
    const char *path = getenv("PHANTOM_SHARED");
    struct page *made = MAP_FAILED;
    int file = path && *path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        const char *which = getenv("PHANTOM_SHARED_PAGE");
        off_t at = which ? strtol(which, NULL, 10) * PAGE_BYTES : 0;
        struct stat status;
        while (flock(file, LOCK_EX) && errno == EINTR)
            ; /* retry after a signal: without flock two processes might both make the mutex */
        if (!fstat(file, &status) && at >= 0 && status.st_size >= at + PAGE_BYTES)
            made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
        if (made != MAP_FAILED && !made->ready)
            make_lock(made);
        flock(file, LOCK_UN); /* the mapping keeps the file open */
        close(file);
    }
    if (made != MAP_FAILED)
        return made;
    if (path && *path)
        phantom_note("a process could not see the device memory that other processes of the run hold: it got a "
                     "device of its own");
    made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        fprintf(stderr, "phantom: the host has no memory left\n");
        _exit(2); /* exit handlers would wait for this page */
    }
    make_lock(made);
    return made;
}

static void unlock(void) { pthread_mutex_unlock(&page->lock); }

static bool is_gone(const struct slot *slot) {
    uint64_t now = started(slot->pid);
    return now != slot->started && now != UNKNOWN && (!now || slot->started != UNKNOWN);
}

static void reap(void) {
    for (uint64_t i = 0; i < page->used; i++) {
        struct slot *slot = &page->slots[i];
        if (slot->pid && slot != mine && is_gone(slot))
            *slot = (struct slot){0};
    }
}

/* Takes a free slot. If this process has a slot from before it called exec, it takes that slot again. */
static void take_slot(void) {
    struct slot self = {.pid = getpid(), .started = started(getpid())}, *free_slot = NULL;
    reap();
    for (uint64_t i = page->used; i--;) {
        struct slot *slot = &page->slots[i];
        if (slot->pid == self.pid || !slot->pid)
            free_slot = slot;
        if (slot->pid == self.pid)
            break;
    }
    if (!free_slot) {
        if (page->used == SLOTS) {
            fprintf(stderr, "phantom: more than %d processes use a device at the same time\n", SLOTS);
            _exit(2); /* exit handlers give memory back, and would wait for the lock held here */
        }
        free_slot = &page->slots[page->used++];
    }
    *free_slot = self;
    mine = free_slot;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) { page = open_page(); }

/* Locks the page, enters this process in it if needed, and removes the processes that are gone. */
static void lock(void) {
    pthread_once(&once, open_once);
    if (pthread_mutex_lock(&page->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&page->lock);
    if (!mine)
        take_slot();
    else
        reap();
}

struct held {
    uint64_t bytes, taken,
        processes; /* taken has what contexts take beside the first, whose bytes the device's memory is without */
};

/* What all processes would hold on a device if this process had a context there and `more` bytes more. */
static struct held held_with(int device, uint64_t more) {
    struct held all = {more, more, 0};
    mine->contexts |= 1u << device;
    for (uint64_t i = 0; i < page->used; i++) {
        struct slot *slot = &page->slots[i];
        if (!slot->pid || !(slot->contexts & 1u << device))
            continue;
        all.processes++;
        all.bytes += slot->bytes[device];
    }
    all.taken = all.bytes + (all.processes - 1) * (uint64_t)phantom_profile()->context_bytes;
    return all;
}

bool phantom_charge(int visible, uint64_t bytes) {
    int device = phantom_physical_device(visible);
    if (device < 0 || bytes > phantom_usable_bytes())
        return false;
    lock();
    bool had = mine->contexts & 1u << device;
    struct held all = held_with(device, bytes);
    bool fits = all.taken <= phantom_usable_bytes();
    if (page->most[device].processes < all.processes)
        page->most[device].processes = all.processes;
    if (fits) {
        mine->bytes[device] += bytes;
        if (page->most[device].bytes < all.bytes)
            page->most[device].bytes = all.bytes;
        if (page->most[device].taken < all.taken)
            page->most[device].taken = all.taken;
    } else if (!had && all.taken - bytes > phantom_usable_bytes()) {
        mine->contexts &= ~(1u << device); /* there was no memory for this process's context either */
    }
    unlock();
    return fits;
}

void phantom_discharge(int visible, uint64_t bytes) {
    int device = phantom_physical_device(visible);
    if (device < 0)
        return;
    lock();
    mine->bytes[device] -= bytes;
    unlock();
}

uint64_t phantom_free_bytes(int visible) {
    int device = phantom_physical_device(visible);
    if (device < 0)
        return 0;
    lock();
    bool had = mine->contexts & 1u << device;
    struct held all = held_with(device, 0);
    uint64_t usable = phantom_usable_bytes();
    if (!had && all.taken > usable)
        mine->contexts &= ~(1u << device);
    unlock();
    return all.taken < usable ? usable - all.taken : 0;
}
