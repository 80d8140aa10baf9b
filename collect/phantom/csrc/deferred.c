/* Large host tensors whose values are made only when they are read, which rarely happens: weights are drawn on the
 * host and copied to a device that keeps nothing.
 *
 * A deferred range has no pages and no access. The processor stops the first thread that reads or writes it. The
 * contents are then made elsewhere, by the recipe that Python keeps (pysrc/phantom_init.py), and moved into place at
 * once, so no other thread sees half of them. So it does not matter how a program reaches a tensor's memory: by
 * operators, numpy, pickle or a C extension. A library that leaves out the values and warns of reads would have to know
 * every such way.
 *
 * Large blocks of torch's CPU allocator have pages of their own here, since access can only be taken from whole
 * pages. */
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
    size_t bytes;    /* of the block's pages */
    size_t asked;    /* bytes that the caller of posix_memalign requested */
    size_t deferred; /* bytes without access: 0, or all of the block's pages */
    uint64_t id;     /* of the recipe of the deferred values */
    bool making;     /* the first thread that needed the values is making them */
};

static struct block *blocks[BUCKETS];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static size_t deferred_blocks;
static uint64_t deferrals;
static uint64_t moved; /* how often values were moved into their place */
/* Blocks whose recipes are no longer needed, kept until Python fetches their ids. They form a list, since nothing may
 * be allocated under the lock: this file's free() and posix_memalign() take the lock too. */
static struct block *dropped;
static void (*maker)(uint64_t id);

/* A job is one deferred range whose values are being made. It lies on the stack of the thread that makes them. */
struct job {
    struct job *next;
    uint64_t id;
};

static struct job *jobs;

/* Holds back the signals that come from outside. Signals for a thread's own faults still reach that thread. */
static void hold_signals(sigset_t *before) {
    sigset_t asynchronous;
    sigfillset(&asynchronous);
    sigdelset(&asynchronous, SIGSEGV);
    sigdelset(&asynchronous, SIGBUS);
    sigdelset(&asynchronous, SIGFPE);
    sigdelset(&asynchronous, SIGILL);
    pthread_sigmask(SIG_SETMASK, &asynchronous, before);
}

/* A signal handler may write to memory that this file manages, and so need the lock. If its own thread held the lock
 * for changes, the handler would wait for ever. So signals are held back meanwhile. Two readers do not disturb each
 * other. */
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
    /* MAP_NORESERVE: torch requests the memory of all weights of a model, and deferred weights take none. */
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
    /* Hardly any other allocation begins at a page: a large block of malloc has a header there. */
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
        found = NULL; /* Python fetches it later */
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
    /* dlsym may call free. `looking` is volatile because the compiler assumes that dlsym calls nothing in this file. */
    static __thread volatile bool looking;
    if (release(address))
        return;
    if (!real) {
        if (looking) /* the loader frees a few bytes, which are leaked */
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

static sigset_t signals_of_fork; /* the signal mask of the thread that holds the lock */

static void before_fork(void) {
    sigset_t before;
    lock_to_change(&before);
    signals_of_fork = before;
}

static void after_fork(void) {
    sigset_t before = signals_of_fork;
    unlock_changed(&before);
}

/* Makes the lock new in a forked child. glibc's lock identifies its writer by a thread id, and the child's thread has
 * another one. */
static void in_child(void) {
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    jobs = NULL; /* the threads that made them exist only in the parent */
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct block *b = blocks[i]; b; b = b->next)
            b->making = false;
    pthread_sigmask(SIG_SETMASK, &signals_of_fork, NULL);
}

/* Runs when the library is loaded. Fork handlers that are registered later run before this lock is taken and after it
 * is released. They may free memory, which takes the lock. Registration cannot wait for the first deferred range, since
 * blocks exist before that. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* ---- making
 *
 * A recipe is a Python function, and a separate thread runs it. The thread that the processor stopped cannot: it may be
 * inside an operator, a dispatch mode or a graph's capture, and in the main thread Python would run signal handlers,
 * which may raise where nothing can be raised. The stopped thread waits without the interpreter's lock: the thread that
 * holds that lock may be at a barrier until the waiting thread has done its share of an operator. */

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

/* Waits until the thread that makes the values has ended, not only until they are there: until its end that thread
 * still needs the interpreter's lock. A thread that held this lock at a barrier would keep it from ending. */
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
    /* While the interpreter shuts down no other thread can enter it, so the stopped thread then makes the values
     * itself. */
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
        if (info->si_code <= 0) /* another process or thread sent it, so returning would not raise it again */
            raise(signal);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    int error = errno;
    uint64_t id = 0;
    bool ours = false;
    /* The address of this thread's previous fault, and how often values had been moved by then. */
    static __thread const void *last;
    static __thread uint64_t moved_then;
    if (info->si_code == SEGV_ACCERR) {
        pthread_rwlock_rdlock(&lock);
        struct block *b = deferred_over(info->si_addr, 1);
        if (b)
            id = b->id;
        else /* another thread may have made the values meanwhile */
            for (unsigned i = 0; i < BUCKETS && !ours; i++)
                for (b = blocks[i]; b && !ours; b = b->next)
                    ours = (char *)info->si_addr >= b->from && (char *)info->si_addr < b->from + b->bytes;
        /* If the thread stops at the same address again and no values were made in between, other code took the access
         * away. */
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

/* Keeps SIGSEGV out of the masks that a thread sets: the kernel ends a process whose thread faults while it blocks
 * SIGSEGV, and a read of a deferred page is such a fault. */
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

/* Python calls this when it begins to exit. From then on a stopped thread may have to make the values itself, and a
 * stack for signal handlers has no room for that. */
PHANTOM_API void phantom_defer_at_exit(void) { install_handler(0, NULL); }

PHANTOM_API void phantom_defer_to(void (*make)(uint64_t)) {
    find_sigaction();
    find_python();
    /* SA_ONSTACK: a stack overflow leaves no room for a handler on the thread's stack, so handlers that report one have
     * a stack of their own. */
    install_handler(SA_ONSTACK, &others);
    /* The parent process may have blocked SIGSEGV. From here on pthread_sigmask and sigprocmask cannot block it. */
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
    struct block *before = malloc(sizeof *before); /* takes the recipe that the block may already have */
    if (!before)
        return false;
    lock_to_change(&signals);
    struct block *b = block_at(address);
    /* Only a whole block can be deferred; the rest of its last page belongs to no tensor. A storage that begins at the
     * block's address may be smaller than the block, and the memory behind it may belong to another storage. */
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

/* Gives how often values were deferred, and how often deferred values were made after all. */
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
        /* mremap moves all pages in one step, so stopped threads find all of the values. */
        if (mremap(pages, rounded(bytes), b->deferred, MREMAP_MAYMOVE | MREMAP_FIXED, b->from) == MAP_FAILED) {
            int error = errno;
            unlock_changed(&signals); /* writing the message may take the lock */
            fprintf(stderr, "phantom: cannot move the values of a host tensor into its memory: %s%s\n",
                    strerror(error), error == ENOMEM ? " (a limit on mappings: vm.max_map_count?)" : "");
            abort();
        }
        moved++;
        settle(b);
    } else {
        munmap(pages, rounded(bytes)); /* the block was freed meanwhile, or has another recipe */
    }
    unlock_changed(&signals);
}

/* Writes the ids of the recipes that are no longer needed, since their tensors were freed or overwritten, to `to`, and
 * returns their number. */
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
