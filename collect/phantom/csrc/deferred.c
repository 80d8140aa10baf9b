/* Large host tensors whose values are made only when they are read, which rarely happens: weights are drawn on the
 * host and copied to a device that keeps nothing.
 *
 * A deferred range has no pages and no access. The processor stops the first thread that reads or writes it. The
 * contents are then made elsewhere, by the recipe that Python keeps (pysrc/phantom_init.py), and moved into place
 * at once, so no other thread sees half of them. So it does not matter how a tensor's memory is reached: by
 * operators, numpy, pickle or a C extension. To leave out the values and warn of reads, every such way would have
 * to be known; watching operators alone would miss the others.
 *
 * For this, large blocks of torch's CPU allocator have pages of their own. */
#include "phantom.h"
#include "deferred.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define OWN_PAGES (1u << 20)
#define TORCH_ALIGNMENT 64
#define BUCKETS 1024u

struct block {
    struct block *next;
    char *from;
    size_t bytes;    /* of its pages */
    size_t asked;    /* of them, by whoever allocated it */
    size_t deferred; /* bytes of them without access: 0, or all */
    uint64_t id;     /* of its recipe */
    bool making;     /* by the first thread that came */
};

static struct block *blocks[BUCKETS];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static size_t deferred_blocks;
static uint64_t deferrals;
static uint64_t moved; /* how often values were moved into their place */
/* Blocks whose recipes are no longer needed, until Python asks for them. It is a list, since nothing may be
 * allocated under the lock: malloc's replacements take it too. */
static struct block *dropped;
static void (*maker)(uint64_t id);

/* Those being made, each on the stack of the thread that makes it. */
struct job {
    struct job *next;
    uint64_t id;
};

static struct job *jobs;

/* Holds back the signals that come from outside; what a thread itself does wrong stays its own. */
static void hold_signals(sigset_t *before) {
    sigset_t asynchronous;
    sigfillset(&asynchronous);
    sigdelset(&asynchronous, SIGSEGV);
    sigdelset(&asynchronous, SIGBUS);
    sigdelset(&asynchronous, SIGFPE);
    sigdelset(&asynchronous, SIGILL);
    pthread_sigmask(SIG_SETMASK, &asynchronous, before);
}

/* A handler may write while its own thread holds the lock for changes. It then neither gets the lock nor waits for
 * it. Two readers do not disturb each other. */
static void lock_to_change(sigset_t *before) {
    hold_signals(before);
    pthread_rwlock_wrlock(&lock);
}

static void unlock_changed(const sigset_t *before) {
    pthread_rwlock_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static size_t rounded(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

static struct block **bucket(const void *address) {
    return &blocks[((uintptr_t)address / PAGE * 0x9e3779b97f4a7c15u) >> 54];
}

static struct block *block_at(const void *address) {
    for (struct block *b = *bucket(address); b; b = b->next)
        if (b->from == address)
            return b;
    return NULL;
}

static struct block *deferred_over(const void *address, size_t bytes) {
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct block *b = blocks[i]; b; b = b->next)
            if (b->deferred && (const char *)address < b->from + b->deferred && (const char *)address + bytes > b->from)
                return b;
    return NULL;
}

static void settle(struct block *b) {
    b->deferred = 0;
    b->making = false;
    __atomic_sub_fetch(&deferred_blocks, 1, __ATOMIC_RELAXED);
}

static void drop(struct block *b) {
    b->next = dropped;
    dropped = b;
}

/* ---- blocks of pages of their own */

static bool wanted(void) {
    static int is = -1;
    if (is < 0) {
        const char *text = getenv("PHANTOM_INIT");
        is = !(text && text[0] == 'e'); /* eager */
    }
    return is;
}

PHANTOM_API int posix_memalign(void **to, size_t alignment, size_t bytes) {
    static int (*real)(void **, size_t, size_t);
    if (!real)
        real = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    if (alignment != TORCH_ALIGNMENT || bytes < OWN_PAGES || !wanted())
        return real(to, alignment, bytes);
    struct block *b = malloc(sizeof *b);
    if (!b)
        return ENOMEM;
    size_t size = rounded(bytes);
    /* What is deferred takes no memory, and torch asks for all of a model's. */
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        free(b);
        return ENOMEM;
    }
    *b = (struct block){.from = pages, .bytes = size, .asked = bytes};
    sigset_t signals;
    lock_to_change(&signals);
    b->next = *bucket(pages);
    *bucket(pages) = b;
    unlock_changed(&signals);
    *to = pages;
    return 0;
}

static bool release(void *address) {
    /* Nearly nothing else begins a page: malloc's own large blocks have a header there. */
    if ((uintptr_t)address % PAGE || !address)
        return false;
    struct block *found = NULL;
    sigset_t signals;
    lock_to_change(&signals);
    for (struct block **b = bucket(address); *b; b = &(*b)->next) {
        if ((*b)->from == address) {
            found = *b;
            *b = found->next;
            break;
        }
    }
    size_t bytes = found ? found->bytes : 0;
    if (found && found->deferred) {
        settle(found);
        drop(found);
        found = NULL; /* Python's */
    }
    unlock_changed(&signals);
    if (!bytes)
        return false;
    munmap(address, bytes);
    free(found);
    return true;
}

PHANTOM_API void free(void *address) {
    static void (*real)(void *);
    /* dlsym may free; the compiler takes it to be one that calls nothing of ours. */
    static __thread volatile bool looking;
    if (release(address))
        return;
    if (!real) {
        if (looking) /* a few bytes of the loader's own */
            return;
        looking = true;
        real = (void (*)(void *))dlsym(RTLD_NEXT, "free");
        looking = false;
    }
    real(address);
}

/* torch moves no block this way, but other code that requests such an alignment may. */
PHANTOM_API void *realloc(void *address, size_t bytes) {
    static void *(*real)(void *, size_t);
    size_t had = 0;
    if (address && (uintptr_t)address % PAGE == 0) {
        pthread_rwlock_rdlock(&lock);
        struct block *b = block_at(address);
        had = b ? b->bytes : 0;
        pthread_rwlock_unlock(&lock);
    }
    if (!had) {
        if (!real)
            real = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
        return real(address, bytes);
    }
    void *moved = bytes ? malloc(bytes) : NULL;
    if (moved)
        memcpy(moved, address, bytes < had ? bytes : had);
    if (moved || !bytes)
        free(address);
    return moved;
}

static sigset_t signals_of_fork; /* of the thread that has the lock */

static void before_fork(void) {
    sigset_t before;
    lock_to_change(&before);
    signals_of_fork = before;
}

static void after_fork(void) {
    sigset_t before = signals_of_fork;
    unlock_changed(&before);
}

/* glibc's lock knows its writer by a number that the child's thread does not have. */
static void in_child(void) {
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    jobs = NULL; /* of threads that are not here */
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct block *b = blocks[i]; b; b = b->next)
            b->making = false;
    pthread_sigmask(SIG_SETMASK, &signals_of_fork, NULL);
}

/* Runs when the library is loaded. Fork handlers that are registered later run outside of the lock, before it is
 * taken and after it is released, since they may free memory. Also, blocks exist before anything is deferred. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* ---- making
 *
 * The recipes are Python's, and a separate thread runs each. The stopped thread may be inside an operator, a
 * dispatch mode or a graph's capture, and in the main thread Python would run signal handlers, which may raise
 * where nothing can be raised. The stopped thread waits without the interpreter's lock: the thread that holds that
 * lock may be at a barrier until the waiting thread has done its share of an operator. */

static struct {
    int (*holds)(void);
    void *(*give)(void);
    void (*take)(void *);
    int (*ends)(void);
} python;

static void find_python(void) {
    python.holds = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
    python.give = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    python.take = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    python.ends = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!python.ends) /* before 3.13 */
        python.ends = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
}

static void *give_python(void) {
    return python.holds && python.give && python.take && python.holds() ? python.give() : NULL;
}

static void take_python(void *state) {
    if (state)
        python.take(state);
}

static struct block *with_id(uint64_t id) {
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct block *b = blocks[i]; b; b = b->next)
            if (b->deferred && b->id == id)
                return b;
    return NULL;
}

static bool pending(uint64_t id) {
    pthread_rwlock_rdlock(&lock);
    struct job *j = jobs;
    while (j && j->id != id)
        j = j->next;
    pthread_rwlock_unlock(&lock);
    return j != NULL;
}

/* Until the maker has returned, not only until the values are there: it still needs the interpreter's lock then. A
 * thread that took that lock to a barrier would wait there for the maker. */
static void wait_for(uint64_t id) {
    void *state = give_python();
    while (pending(id))
        usleep(200);
    take_python(state);
}

static void *make_one(void *id) {
    maker(*(uint64_t *)id);
    return NULL;
}

static void make_apart(uint64_t id) {
    sigset_t before;
    pthread_t thread;
    /* An interpreter that goes away lets no other thread in. */
    bool apart = !python.ends || !python.ends();
    if (apart) {
        hold_signals(&before);
        apart = !pthread_create(&thread, NULL, make_one, &id);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!apart) {
        maker(id);
        return;
    }
    void *state = give_python();
    pthread_join(thread, NULL);
    take_python(state);
}

static void make(uint64_t id) {
    sigset_t signals;
    struct job mine = {.id = id};
    lock_to_change(&signals);
    struct block *b = with_id(id);
    bool first = b && !b->making;
    if (first) {
        b->making = true;
        mine.next = jobs;
        jobs = &mine;
    }
    unlock_changed(&signals);
    if (!first) {
        wait_for(id);
        return;
    }
    make_apart(id);
    lock_to_change(&signals);
    struct job **at = &jobs;
    while (*at != &mine)
        at = &(*at)->next;
    *at = mine.next;
    unlock_changed(&signals);
}

/* ---- faults */

static struct sigaction others;
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

static void find_sigaction(void) {
    if (!real_sigaction)
        real_sigaction = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
}

static void pass_on(int signal, siginfo_t *info, void *context) {
    if (others.sa_flags & SA_SIGINFO) {
        others.sa_sigaction(signal, info, context);
    } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
        others.sa_handler(signal);
    } else {
        struct sigaction fatal = {.sa_handler = SIG_DFL};
        real_sigaction(signal, &fatal, NULL);
        if (info->si_code <= 0) /* sent: it would not come again by itself */
            raise(signal);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    int error = errno;
    uint64_t id = 0;
    bool ours = false;
    /* Where this thread was last stopped though nothing was deferred there. */
    static __thread const void *last;
    static __thread uint64_t moved_then;
    if (info->si_code == SEGV_ACCERR) {
        pthread_rwlock_rdlock(&lock);
        struct block *b = deferred_over(info->si_addr, 1);
        if (b)
            id = b->id;
        else /* another thread was first */
            for (unsigned i = 0; i < BUCKETS && !ours; i++)
                for (b = blocks[i]; b && !ours; b = b->next)
                    ours = (char *)info->si_addr >= b->from && (char *)info->si_addr < b->from + b->bytes;
        /* Stopped there again, and nothing was made between: whoever took the access away is another. */
        if (ours && last == info->si_addr && moved_then == moved)
            ours = false;
        last = info->si_addr;
        moved_then = moved;
        pthread_rwlock_unlock(&lock);
    }
    if (id)
        make(id);
    else if (!ours)
        pass_on(signal, info, context);
    errno = error;
}

PHANTOM_API int sigaction(int signal, const struct sigaction *to, struct sigaction *from) {
    find_sigaction();
    if (!__atomic_load_n(&maker, __ATOMIC_ACQUIRE))
        return real_sigaction(signal, to, from);
    if (signal != SIGSEGV) {
        struct sigaction open;
        if (to && sigismember(&to->sa_mask, SIGSEGV) == 1) {
            open = *to;
            sigdelset(&open.sa_mask, SIGSEGV);
            to = &open;
        }
        return real_sigaction(signal, to, from);
    }
    struct sigaction before = others;
    if (to)
        others = *to;
    if (from)
        *from = before;
    return 0;
}

PHANTOM_API void (*signal(int number, void (*handler)(int)))(int) {
    struct sigaction to = {.sa_handler = handler, .sa_flags = SA_RESTART}, from;
    sigemptyset(&to.sa_mask);
    return sigaction(number, &to, &from) ? SIG_ERR : from.sa_handler;
}

/* A thread that holds SIGSEGV back would be ended by the first deferred page it reads. */
#define MASK_DOOR(NAME)                                                                                  \
    PHANTOM_API int NAME(int how, const sigset_t *to, sigset_t *from) {                                  \
        static int (*real)(int, const sigset_t *, sigset_t *);                                           \
        if (!real)                                                                                       \
            real = (int (*)(int, const sigset_t *, sigset_t *))dlsym(RTLD_NEXT, #NAME);                  \
        sigset_t open;                                                                                   \
        if (to && how != SIG_UNBLOCK && __atomic_load_n(&maker, __ATOMIC_ACQUIRE)) {                     \
            open = *to;                                                                                  \
            sigdelset(&open, SIGSEGV);                                                                   \
            to = &open;                                                                                  \
        }                                                                                                \
        return real(how, to, from);                                                                      \
    }

MASK_DOOR(pthread_sigmask)
MASK_DOOR(sigprocmask)

static void install_handler(int flags, struct sigaction *before) {
    /* Faults may nest: what is made may read another deferred range. */
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | flags};
    sigemptyset(&ours.sa_mask);
    real_sigaction(SIGSEGV, &ours, before);
}

/* From here on the thread that is stopped may have to make the values itself, and a stack for signals has no room for
 * that. */
PHANTOM_API void phantom_defer_at_exit(void) { install_handler(0, NULL); }

PHANTOM_API void phantom_defer_to(void (*make)(uint64_t)) {
    find_sigaction();
    find_python();
    /* A stack overflow leaves no room for a handler. Handlers that report it have a stack of their own. */
    install_handler(SA_ONSTACK, &others);
    /* The parent process may have blocked it. From here on nothing can. */
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    __atomic_store_n(&maker, make, __ATOMIC_RELEASE);
}

/* ---- what Python asks for */

PHANTOM_API bool phantom_defer(void *address, size_t bytes, uint64_t id) {
    sigset_t signals;
    bool done = false;
    struct block *before = malloc(sizeof *before); /* for the recipe that it may have */
    if (!before)
        return false;
    lock_to_change(&signals);
    struct block *b = block_at(address);
    /* The whole block; the rest of its last page belongs to no tensor. A storage that begins at the same place may
     * be smaller, and the memory behind it then belongs to another. */
    if (b && maker && bytes == b->asked &&
        mmap(b->from, rounded(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
            MAP_FAILED) {
        if (b->deferred) {
            settle(b);
            *before = *b;
            drop(before);
            before = NULL;
        }
        b->deferred = rounded(bytes);
        b->id = id;
        b->making = false;
        done = true;
        deferrals++;
        __atomic_add_fetch(&deferred_blocks, 1, __ATOMIC_RELAXED);
    }
    unlock_changed(&signals);
    free(before);
    return done;
}

PHANTOM_API bool phantom_deferrable(void *address) {
    pthread_rwlock_rdlock(&lock);
    bool is = block_at(address) != NULL;
    pthread_rwlock_unlock(&lock);
    return is;
}

PHANTOM_API uint64_t phantom_deferred(void *address) {
    pthread_rwlock_rdlock(&lock);
    struct block *b = block_at(address);
    uint64_t id = b && b->deferred ? b->id : 0;
    pthread_rwlock_unlock(&lock);
    return id;
}

/* How often something was deferred, and made after all. */
PHANTOM_API void phantom_deferred_counts(uint64_t counts[2]) {
    pthread_rwlock_rdlock(&lock);
    counts[0] = deferrals;
    counts[1] = moved;
    pthread_rwlock_unlock(&lock);
}

PHANTOM_API void *phantom_deferred_pages(size_t bytes) {
    void *pages =
        mmap(NULL, rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

PHANTOM_API void phantom_deferred_made(uint64_t id, void *pages, size_t bytes) {
    sigset_t signals;
    lock_to_change(&signals);
    struct block *b = with_id(id);
    if (b) {
        /* In one step: threads that are stopped find all of it. */
        if (mremap(pages, rounded(bytes), b->deferred, MREMAP_MAYMOVE | MREMAP_FIXED, b->from) == MAP_FAILED) {
            int error = errno;
            unlock_changed(&signals); /* who writes takes the lock, too */
            fprintf(stderr, "phantom: cannot move the values of a host tensor into its memory: %s%s\n",
                    strerror(error), error == ENOMEM ? " (a limit on mappings: vm.max_map_count?)" : "");
            abort();
        }
        moved++;
        settle(b);
    } else {
        munmap(pages, rounded(bytes)); /* freed, or given another recipe, meanwhile */
    }
    unlock_changed(&signals);
}

/* The recipes of tensors that were freed or overwritten. The maker of a new tensor knows its recipe already. */
PHANTOM_API size_t phantom_deferred_dropped(uint64_t *to, size_t room) {
    sigset_t signals;
    size_t n = 0;
    lock_to_change(&signals);
    struct block *taken = dropped, **end = &taken;
    for (; *end && n < room; end = &(*end)->next)
        to[n++] = (*end)->id;
    dropped = *end;
    *end = NULL;
    unlock_changed(&signals);
    while (taken) {
        struct block *next = taken->next;
        free(taken);
        taken = next;
    }
    return n;
}

PHANTOM_API void phantom_make_all(void) { phantom_make_now((const void *)1, SIZE_MAX - 1); }

void phantom_make_now(const void *address, size_t bytes) {
    while (bytes && __atomic_load_n(&deferred_blocks, __ATOMIC_RELAXED)) {
        pthread_rwlock_rdlock(&lock);
        struct block *b = deferred_over(address, bytes);
        uint64_t id = b ? b->id : 0;
        pthread_rwlock_unlock(&lock);
        if (!id)
            return;
        make(id);
    }
}
