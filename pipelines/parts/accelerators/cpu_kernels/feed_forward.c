/* ReLU and dropout between the two layers of T5's feed-forward network. */

#include "vectors.h"

/* product: bfloat16 [size], overwritten with the activations. */
void cursus_relu(void *product, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        Kept bits;
        keep((uint64_t)tile, seed, dropped, bits);
        ptrdiff_t begin = tile * TILE, end = begin + TILE < size ? begin + TILE : size;
        for (ptrdiff_t at = begin; at < end; at += VECTOR) {
            Reals x = take_some(product, at, end - at, 1);
            /* NaN is not less than 0, and stays NaN */
            put_some(
                product, at, dropped_out(where_less(x, all(0.0f), all(0.0f), x), bits[(at - begin) / VECTOR], scale),
                end - at, 1
            );
        }
    }
}

/* activations: bfloat16 [size], the activations of the function above: greater than 0 where the gradient passes.
   gradient: bfloat16, that of the activations, overwritten with that of the product. */
void cursus_relu_backward(void *gradient, const void *activations, ptrdiff_t size, float scale, int threads) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        ptrdiff_t begin = tile * TILE, end = begin + TILE < size ? begin + TILE : size;
        for (ptrdiff_t at = begin; at < end; at += VECTOR) {
            Reals passed = take_some(activations, at, end - at, 1),
                slope = take_some(gradient, at, end - at, 1) * scale;
            put_some(gradient, at, where_less(all(0.0f), passed, slope, all(0.0f)), end - at, 1);
        }
    }
}
