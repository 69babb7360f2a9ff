/* Add a sub-layer's output to the residual stream: dropout and sum in one pass. */

#include "vectors.h"

/* values: bfloat16; states and to: bfloat16 if `half`. to = states + dropout(values). The backward is dropout of the
   gradient. */
INLINE void add(
    const void *states, const void *values, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale,
    int threads, int half
) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        Kept bits;
        keep((uint64_t)tile, seed, dropped, bits);
        ptrdiff_t begin = tile * TILE, end = begin + TILE < size ? begin + TILE : size;
        for (ptrdiff_t at = begin; at < end; at += VECTOR) {
            Reals more = dropped_out(take_some(values, at, end - at, 1), bits[(at - begin) / VECTOR], scale);
            put_some(to, at, take_some(states, at, end - at, half) + more, end - at, half);
        }
    }
}

void cursus_add_dropped(
    const void *states, const void *values, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale,
    int threads, int half
) {
    if (half) add(states, values, to, size, seed, dropped, scale, threads, 1);
    else add(states, values, to, size, seed, dropped, scale, threads, 0);
}
