/* Dropout: forward and, of the gradient, backward. */

#include "common.h"

void cursus_philox(uint64_t first, uint64_t seed, uint32_t *words) { philox(first, seed, (uint32_t(*)[LANES])words); }


INLINE void dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        float factors[TILE];
        kept((uint64_t)tile, seed, dropped, scale, factors);
        ptrdiff_t begin = tile * TILE;
        int count = (int)(size - begin < TILE ? size - begin : TILE);
        #pragma omp simd
        for (int at = 0; at < count; at++) store(to, begin + at, load(from, begin + at, half) * factors[at], half);
    }
}

void cursus_dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    if (half) dropout(from, to, size, seed, dropped, scale, threads, 1);
    else dropout(from, to, size, seed, dropped, scale, threads, 0);
}
