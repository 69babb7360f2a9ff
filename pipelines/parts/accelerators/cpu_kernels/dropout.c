/* Dropout: of the values in the forward pass, of the gradient in the backward pass. */

#include "vectors.h"

void cursus_philox(uint64_t first, uint64_t seed, uint32_t *words) { philox(first, seed, (uint32_t(*)[LANES])words); }

INLINE void dropout(
    const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads,
    int reads_half, int writes_half
) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        Kept bits;
        keep((uint64_t)tile, seed, dropped, bits);
        ptrdiff_t begin = tile * TILE, end = begin + TILE < size ? begin + TILE : size;
        for (ptrdiff_t at = begin; at < end; at += VECTOR) {
            Reals values = take_some(from, at, end - at, reads_half);
            put_some(to, at, dropped_out(values, bits[(at - begin) / VECTOR], scale), end - at, writes_half);
        }
    }
}

void cursus_dropout(
    const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads,
    int reads_half, int writes_half
) {
    if (reads_half && writes_half) dropout(from, to, size, seed, dropped, scale, threads, 1, 1);
    else if (writes_half) dropout(from, to, size, seed, dropped, scale, threads, 0, 1);
    else if (reads_half) dropout(from, to, size, seed, dropped, scale, threads, 1, 0);
    else dropout(from, to, size, seed, dropped, scale, threads, 0, 0);
}
