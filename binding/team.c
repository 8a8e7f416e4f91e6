#include "team.h"

#include "products.h"

#include <stdlib.h>
#include <string.h>

struct inkling_team * inkling_team_new(void) {
    struct inkling_team * t = aligned_alloc(_Alignof(struct inkling_team), sizeof(struct inkling_team));
    if (!t) return NULL;
    memset(t, 0, sizeof(*t));
    t->vectors = inkling_vectors();
    return t;
}

enum inkling_vectors inkling_team_vectors(const struct inkling_team * t) { return t->vectors; }

void inkling_team_use(struct inkling_team * t, enum inkling_vectors vectors) { t->vectors = vectors; }

void inkling_team_free(struct inkling_team * t) {
    if (t) free(t->work);
    free(t);
}

bool inkling_team_reserve(struct inkling_team * t, size_t size) {
    if (size <= t->size) return true;
    char * work = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!work) return false;
    free(t->work);
    t->work = work;
    t->size = size;
    return true;
}
