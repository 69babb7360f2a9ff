/* The end of a sub-layer: bias, dropout, residual, layer normalisation. */

#include "vectors.h"

/* sums: bfloat16 [rows, width], the product, overwritten with the sum that is normalised. input: the residual, bfloat16
   if `half`. */
INLINE void residual(
    void *sums, const float *bias, const void *input, const float *gain, const float *shift, void *to, float *means,
    float *inverse_deviations, ptrdiff_t rows, ptrdiff_t width, float epsilon, uint64_t seed, uint32_t dropped,
    float scale, int threads, int half
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float values[width];
        Kept bits;
        ptrdiff_t begin = row * width;
        Reals sum = all(0.0f);
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
            keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
            for (ptrdiff_t at = from; at < end; at += VECTOR) {
                Reals value = dropped_out(
                    take(sums, begin + at, 1) + take(bias, at, 0), bits[(at - from) / VECTOR], scale
                );
                Halves added = to_halves(value + take(input, begin + at, half));
                put_halves(sums, begin + at, added);
                value = to_reals(added); /* rounded as the backward will read it */
                put(values, at, value, 0);
                sum += value;
            }
        }
        float mean, steep;
        moments(values, width, sum, epsilon, &mean, &steep);
        means[row] = mean;
        inverse_deviations[row] = steep;
        for (ptrdiff_t at = 0; at < width; at += VECTOR)
            put(to, begin + at, (take(values, at, 0) - mean) * steep * take(gain, at, 0) + take(shift, at, 0), 1);
    }
}

void cursus_residual(
    void *sums, const float *bias, const void *input, const float *gain, const float *shift, void *to, float *means,
    float *inverse_deviations, ptrdiff_t rows, ptrdiff_t width, float epsilon, uint64_t seed, uint32_t dropped,
    float scale, int threads, int half
) {
    if (half)
        residual(
            sums, bias, input, gain, shift, to, means, inverse_deviations, rows, width, epsilon, seed, dropped, scale,
            threads, 1
        );
    else
        residual(
            sums, bias, input, gain, shift, to, means, inverse_deviations, rows, width, epsilon, seed, dropped, scale,
            threads, 0
        );
}

/* All bfloat16 [rows, width]: `to_sums` is the gradient of the sums, `to_product` that of the product; they may be the
   same memory where nothing is dropped. parts: float32 [3, count, width], the gradients of gain, shift and bias, summed
   over each part of the rows. */
void cursus_residual_backward(
    const void *gradient, const void *sums, const float *gain, const float *means, const float *inverse_deviations,
    void *to_sums, void *to_product, float *parts, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t count, uint64_t seed,
    uint32_t dropped, float scale, int threads
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < count; part++) {
        float *of_gain = parts + part * width, *of_shift = of_gain + count * width, *of_bias = of_shift + count * width;
        Kept bits;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = of_shift[at] = of_bias[at] = 0.0f;
        for (ptrdiff_t row = rows * part / count; row < rows * (part + 1) / count; row++) {
            ptrdiff_t begin = row * width;
            float mean = means[row], steep = inverse_deviations[row];
            Reals plains = all(0.0f), alongs = all(0.0f);
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                Reals slope = take(gradient, begin + at, 1), normed = (take(sums, begin + at, 1) - mean) * steep;
                put(of_gain, at, take(of_gain, at, 0) + slope * normed, 0);
                put(of_shift, at, take(of_shift, at, 0) + slope, 0);
                slope *= take(gain, at, 0);
                plains += slope;
                alongs += slope * normed;
            }
            float plain = sum_of(plains) / (float)width, along = sum_of(alongs) / (float)width;
            for (ptrdiff_t tile = 0; tile < tiles; tile++) {
                ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
                keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
                for (ptrdiff_t at = from; at < end; at += VECTOR) {
                    Reals normed = (take(sums, begin + at, 1) - mean) * steep;
                    Reals slope = (take(gradient, begin + at, 1) * take(gain, at, 0) - plain - normed * along) * steep;
                    put(to_sums, begin + at, slope, 1);
                    if (dropped) {
                        slope = dropped_out(slope, bits[(at - from) / VECTOR], scale);
                        put(to_product, begin + at, slope, 1);
                    }
                    put(of_bias, at, take(of_bias, at, 0) + slope, 0);
                }
            }
        }
    }
}
