/* Notes of what the phantom GPU guessed, ignored or refused. A prediction reports them. */
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
    struct note *next;
    bool kept;
    char text[];
};

static struct note *notes, **last = &notes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Adds a note unless an equal one is there. Returns whether the note is new. */
static bool add(const char *text, bool keep) {
    bool fresh = true;
    pthread_mutex_lock(&lock);
    for (struct note *n = notes; n && fresh; n = n->next)
        fresh = strcmp(n->text, text) != 0;
    if (fresh) {
        struct note *n = malloc(sizeof *n + strlen(text) + 1);
        if (n) {
            n->next = NULL;
            n->kept = keep;
            strcpy(n->text, text);
            *last = n;
            last = &n->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return fresh;
}

void phantom_note(const char *what) {
    if (add(what, true) && phantom_debug())
        fprintf(stderr, "phantom: %s\n", what);
}

int phantom_refuse(const char *name, int status) {
    char text[256];
    snprintf(text, sizeof text, "%s cannot be answered without a device: the call fails", name);
    if (add(text, true))
        fprintf(stderr, "phantom: %s\n", text);
    return status;
}

int phantom_ignore(const char *name, int status) {
    phantom_works_somewhere();
    if (phantom_debug() && add(name, false))
        fprintf(stderr, "phantom: %s does nothing\n", name);
    return status;
}

size_t phantom_notes(char *buffer, size_t size) {
    size_t need = 0;
    pthread_mutex_lock(&lock);
    if (size)
        buffer[0] = 0;
    for (struct note *n = notes; n; n = n->next) {
        if (!n->kept)
            continue;
        if (need < size)
            snprintf(buffer + need, size - need, "%s\n", n->text);
        need += strlen(n->text) + 1;
    }
    pthread_mutex_unlock(&lock);
    return need;
}
