/* The first thing that is freed is what the loader said of a symbol that is not there: by the loader, as it looks for free. */
#include "deferred.h"

int main(void) {
    CHECK(!dlsym(RTLD_DEFAULT, "no_such_symbol"));
    void *volatile some = malloc(100); /* or the compiler leaves both out */
    free(some);
    return 0;
}
