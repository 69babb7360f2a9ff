/* Dropout: forward and, of the gradient, backward. */

#include "vectors.h"

void cursus_philox(uint64_t first, uint64_t seed, uint32_t *words) { philox(first, seed, (uint32_t(*)[LANES])words); }

INLINE void dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        Kept bits;
        keep((uint64_t)tile, seed, dropped, bits);
        ptrdiff_t begin = tile * TILE, end = begin + TILE < size ? begin + TILE : size, whole = end - (end - begin) % VECTOR;
        for (ptrdiff_t at = begin; at < whole; at += VECTOR)
            put(to, at, dropped_out(take(from, at, half), bits[(at - begin) / VECTOR], scale), half);
        for (ptrdiff_t at = whole; at < end; at++)
            store(to, at, bits[(at - begin) / VECTOR] >> (at - whole) & 1 ? load(from, at, half) * scale : 0.0f, half);
    }
}

void cursus_dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    if (half) dropout(from, to, size, seed, dropped, scale, threads, 1);
    else dropout(from, to, size, seed, dropped, scale, threads, 0);
}
