/* Embeddings of a network: sum of the rows of several tables, layer normalisation, dropout. */

#include "vectors.h"

/* A table, float32 [height, width], and its ids: row r of a batch reads the table's row ids[r % period]. */
typedef struct { int64_t table, ids, height, period; } Lookup;

#define TABLES 16 /* LOOKUPS of embedding_sum.py */

/* Addresses of the tables' rows for row `row` of a batch; NULL for an id outside its table. */
INLINE int look_up(const Lookup *lookups, int count, ptrdiff_t row, ptrdiff_t width, const float **found) {
    for (int one = 0; one < count; one++) {
        int64_t period = lookups[one].period; /* a division takes longer than the look-up */
        int64_t id = ((const int64_t *)lookups[one].ids)[row < period ? row : row % period];
        if ((uint64_t)id >= (uint64_t)lookups[one].height) return 0;
        found[one] = (const float *)lookups[one].table + id * width;
    }
    return 1;
}

/* Write the sum of the rows into values, float32 [width]; returns the sum of values. */
INLINE Reals summed(const float **found, int count, float *values, ptrdiff_t width) {
    Reals sum = all(0.0f);
    for (ptrdiff_t at = 0; at < width; at += VECTOR) {
        Reals said = take(found[0], at, 0);
        for (int one = 1; one < count; one++) said += take(found[one], at, 0);
        put(values, at, said, 0);
        sum += said;
    }
    return sum;
}

/* to: bfloat16 [rows, width]. means, inverse_deviations: float32 [rows]. `out_of_range` becomes 1 where an id is
   outside its table. */
void cursus_embedding_sum(
    const Lookup *lookups, int count, const float *gain, const float *shift, void *to, float *means,
    float *inverse_deviations, ptrdiff_t rows, ptrdiff_t width, float epsilon, uint64_t seed, uint32_t dropped,
    float scale, int threads, int64_t *out_of_range
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    int64_t amiss = 0;
    #pragma omp parallel for schedule(static) num_threads(threads) reduction(|: amiss)
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *found[TABLES];
        float values[width];
        if (!look_up(lookups, count, row, width, found)) {
            amiss = 1;
            continue;
        }
        moments(values, width, summed(found, count, values, width), epsilon, means + row, inverse_deviations + row);
        float mean = means[row], steep = inverse_deviations[row];
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            Kept bits;
            keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
            ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
            for (ptrdiff_t at = from; at < end; at += VECTOR) {
                Reals said = (take(values, at, 0) - mean) * steep * take(gain, at, 0) + take(shift, at, 0);
                put(to, row * width + at, dropped_out(said, bits[(at - from) / VECTOR], scale), 1);
            }
        }
    }
    *out_of_range = amiss;
}

/* gradient: bfloat16 [rows, width]. to: float32 [rows, width], the gradient of the sums, which are recomputed. parts:
   float32 [2, pieces, width], the gradients of gain and shift, summed over each part of the rows. */
void cursus_embedding_sum_backward(
    const Lookup *lookups, int count, const void *gradient, const float *gain, const float *means,
    const float *inverse_deviations, float *to, float *parts, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t pieces,
    uint64_t seed, uint32_t dropped, float scale, int threads
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < pieces; part++) {
        float *of_gain = parts + part * width, *of_shift = of_gain + pieces * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = of_shift[at] = 0.0f;
        for (ptrdiff_t row = rows * part / pieces; row < rows * (part + 1) / pieces; row++) {
            const float *found[TABLES];
            float normed[width], gradients[width];
            if (!look_up(lookups, count, row, width, found)) continue;
            summed(found, count, normed, width);
            float mean = means[row], steep = inverse_deviations[row];
            Reals plains = all(0.0f), alongs = all(0.0f);
            for (ptrdiff_t tile = 0; tile < tiles; tile++) {
                Kept bits;
                keep((uint64_t)(row * tiles + tile), seed, dropped, bits);
                ptrdiff_t from = tile * TILE, end = from + TILE < width ? from + TILE : width;
                for (ptrdiff_t at = from; at < end; at += VECTOR) {
                    Reals slope = dropped_out(take(gradient, row * width + at, 1), bits[(at - from) / VECTOR], scale);
                    Reals one = (take(normed, at, 0) - mean) * steep;
                    put(of_gain, at, take(of_gain, at, 0) + slope * one, 0);
                    put(of_shift, at, take(of_shift, at, 0) + slope, 0);
                    slope *= take(gain, at, 0);
                    plains += slope;
                    alongs += slope * one;
                    put(gradients, at, slope, 0);
                    put(normed, at, one, 0);
                }
            }
            float plain = sum_of(plains) / (float)width, along = sum_of(alongs) / (float)width;
            for (ptrdiff_t at = 0; at < width; at += VECTOR)
                put(to, row * width + at, (take(gradients, at, 0) - plain - take(normed, at, 0) * along) * steep, 0);
        }
    }
}
