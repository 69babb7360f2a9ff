/* Softmax of masked scores, and dropout of what it gives. */

#include "common.h"

/* scores, chances, dropped_chances: [rows, width]. The mask is float32 and added; the row of scores (a, b, c) of
   [first, second, third] reads its row at a · strides[0] + b · strides[1] + c · strides[2]. */
INLINE void softmax(
    const void *scores, const float *mask, const ptrdiff_t *shape, const ptrdiff_t *strides, void *chances, void *dropped_chances,
    ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    ptrdiff_t rows = shape[0] * shape[1] * shape[2], tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float values[width];
        ptrdiff_t begin = row * width;
        ptrdiff_t third = row % shape[2], second = row / shape[2] % shape[1], first = row / shape[2] / shape[1];
        const float *added = mask + (mask ? first * strides[0] + second * strides[1] + third * strides[2] : 0);
        float sum = 0.0f;
        if (mask) {
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half) * scaling + added[at];
        } else {
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half) * scaling;
        }
        float most = largest(values, 0, width, 0);
        if (is_wrong(most)) {
            for (ptrdiff_t at = 0; at < width; at++) {
                store(chances, begin + at, most, half);
                store(dropped_chances, begin + at, most, half);
            }
            continue;
        }
        #pragma omp simd reduction(+ : sum)
        for (ptrdiff_t at = 0; at < width; at++) {
            values[at] = exponential(values[at] - most);
            sum += values[at];
        }
        float part = 1.0f / sum;
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++) {
            values[at] *= part;
            store(chances, begin + at, values[at], half);
        }
        if (!dropped) continue;
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            float factors[TILE];
            kept((uint64_t)(row * tiles + tile), seed, dropped, scale, factors);
            ptrdiff_t from = tile * TILE;
            int count = (int)(width - from < TILE ? width - from : TILE);
            #pragma omp simd
            for (int at = 0; at < count; at++) store(dropped_chances, begin + from + at, values[from + at] * factors[at], half);
        }
    }
}

void cursus_softmax(
    const void *scores, const float *mask, const ptrdiff_t *shape, const ptrdiff_t *strides, void *chances, void *dropped_chances,
    ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    if (half) softmax(scores, mask, shape, strides, chances, dropped_chances, width, scaling, seed, dropped, scale, threads, 1);
    else softmax(scores, mask, shape, strides, chances, dropped_chances, width, scaling, seed, dropped, scale, threads, 0);
}

INLINE void softmax_backward(
    const void *gradient, const void *chances, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling, uint64_t seed,
    uint32_t dropped, float scale, int threads, int half
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float slopes[width];
        ptrdiff_t begin = row * width;
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            ptrdiff_t from = tile * TILE;
            int count = (int)(width - from < TILE ? width - from : TILE);
            if (dropped) {
                float factors[TILE];
                kept((uint64_t)(row * tiles + tile), seed, dropped, scale, factors);
                #pragma omp simd
                for (int at = 0; at < count; at++) slopes[from + at] = load(gradient, begin + from + at, half) * factors[at];
            } else {
                #pragma omp simd
                for (int at = 0; at < count; at++) slopes[from + at] = load(gradient, begin + from + at, half);
            }
        }
        float dot = 0.0f;
        #pragma omp simd reduction(+ : dot)
        for (ptrdiff_t at = 0; at < width; at++) dot += slopes[at] * load(chances, begin + at, half);
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++)
            store(to, begin + at, load(chances, begin + at, half) * (slopes[at] - dot) * scaling, half);
    }
}

void cursus_softmax_backward(
    const void *gradient, const void *chances, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling, uint64_t seed,
    uint32_t dropped, float scale, int threads, int half
) {
    if (half) softmax_backward(gradient, chances, to, rows, width, scaling, seed, dropped, scale, threads, 1);
    else softmax_backward(gradient, chances, to, rows, width, scaling, seed, dropped, scale, threads, 0);
}
