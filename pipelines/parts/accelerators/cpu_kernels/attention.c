/* Softmax of masked scores, and dropout of the probabilities. */

#include "vectors.h"

/* scores, probabilities, dropped_probabilities: [rows, width]. Mask and bias are float32 and added; the row of scores
   (a, b, c) of [first, second, third] reads its row of the mask at a · strides[0] + b · strides[1] + c · strides[2],
   and its row of the bias by the next three strides in the same way. */
INLINE void softmax(
    const void *scores, const float *mask, const float *bias, const ptrdiff_t *shape, const ptrdiff_t *strides,
    void *probabilities, void *dropped_probabilities, ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped,
    float scale, int threads, int half
) {
    ptrdiff_t rows = shape[0] * shape[1] * shape[2], tiles = (width + TILE - 1) / TILE, whole = width - width % VECTOR;
    ptrdiff_t filled = width > whole ? whole + VECTOR : whole;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float values[filled]; /* padded behind the row with values whose exponential is 0 */
        ptrdiff_t begin = row * width;
        ptrdiff_t third = row % shape[2], second = row / shape[2] % shape[1], first = row / shape[2] / shape[1];
        const float *masked = mask + (mask ? first * strides[0] + second * strides[1] + third * strides[2] : 0);
        const float *biased = bias + (bias ? first * strides[3] + second * strides[4] + third * strides[5] : 0);
        Reals mosts = all(-FLT_MAX), sums = all(0.0f);
        Masks wrong = {0};
        for (ptrdiff_t at = whole; at < filled; at++)
            values[at] = at < width
                ? load(scores, begin + at, half) * scaling + (mask ? masked[at] : 0.0f) + (bias ? biased[at] : 0.0f)
                    : -FLT_MAX;
        for (ptrdiff_t at = 0; at < filled; at += VECTOR) {
            Reals value;
            if (at == whole) value = take(values, at, 0);
            else {
                value = take(scores, begin + at, half) * scaling;
                if (mask) value += take(masked, at, 0);
                if (bias) value += take(biased, at, 0);
            }
            put(values, at, value, 0);
            mosts = where_less(mosts, value, value, mosts);
            wrong |= are_wrong(value);
        }
        if (any(wrong)) {
            for (ptrdiff_t at = begin; at < begin + width; at++) {
                store(probabilities, at, from_bits(NO_NUMBER), half);
                store(dropped_probabilities, at, from_bits(NO_NUMBER), half);
            }
            continue;
        }
        float most = most_of(mosts);
        for (ptrdiff_t at = 0; at < filled; at += VECTOR) {
            Reals value = exponentials(take(values, at, 0) - most);
            put(values, at, value, 0);
            sums += value;
        }
        float part = 1.0f / sum_of(sums);
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            Kept bits;
            keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
            ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
            for (ptrdiff_t at = from; at < end; at += VECTOR) {
                Reals value = take(values, at, 0) * part;
                put_some(probabilities, begin + at, value, end - at, half);
                if (dropped)
                    put_some(
                        dropped_probabilities, begin + at, dropped_out(value, bits[(at - from) / VECTOR], scale),
                        end - at, half
                    );
            }
        }
    }
}

void cursus_softmax(
    const void *scores, const float *mask, const float *bias, const ptrdiff_t *shape, const ptrdiff_t *strides,
    void *probabilities, void *dropped_probabilities, ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped,
    float scale, int threads, int half
) {
    if (half)
        softmax(
            scores, mask, bias, shape, strides, probabilities, dropped_probabilities, width, scaling, seed, dropped,
            scale, threads, 1
        );
    else
        softmax(
            scores, mask, bias, shape, strides, probabilities, dropped_probabilities, width, scaling, seed, dropped,
            scale, threads, 0
        );
}

INLINE void softmax_backward(
    const void *gradient, const void *probabilities, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling,
    uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE, filled = (width + VECTOR - 1) / VECTOR * VECTOR;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float gradients[filled], shares[filled];
        ptrdiff_t begin = row * width;
        Reals dots = all(0.0f);
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            Kept bits;
            keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
            ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
            for (ptrdiff_t at = from; at < end; at += VECTOR) {
                Reals slope = dropped_out(
                    take_some(gradient, begin + at, end - at, half), bits[(at - from) / VECTOR], scale
                );
                Reals chance = take_some(probabilities, begin + at, end - at, half);
                put(gradients, at, slope, 0);
                put(shares, at, chance, 0);
                dots += slope * chance;
            }
        }
        float dot = sum_of(dots);
        for (ptrdiff_t at = 0; at < filled; at += VECTOR)
            put_some(to, begin + at, take(shares, at, 0) * (take(gradients, at, 0) - dot) * scaling, width - at, half);
    }
}

void cursus_softmax_backward(
    const void *gradient, const void *probabilities, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling,
    uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    if (half) softmax_backward(gradient, probabilities, to, rows, width, scaling, seed, dropped, scale, threads, 1);
    else softmax_backward(gradient, probabilities, to, rows, width, scaling, seed, dropped, scale, threads, 0);
}
