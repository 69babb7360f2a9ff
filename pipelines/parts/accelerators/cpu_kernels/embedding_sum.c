/* The bottom of a network: rows of several tables summed, layer normalisation, dropout. */

#include "vectors.h"

/* A table, float32 [height, width], and which of its rows are read: row r of a batch reads the one that ids[r % period] says. */
typedef struct { int64_t table, ids, height, period; } Looked;

#define TABLES 4

/* Where the rows stand that row `row` of a batch reads; NULL for a row that a table has not. */
INLINE int look_up(const Looked *looked, int count, ptrdiff_t row, ptrdiff_t width, const float **found) {
    for (int one = 0; one < count; one++) {
        int64_t id = ((const int64_t *)looked[one].ids)[row % looked[one].period];
        if ((uint64_t)id >= (uint64_t)looked[one].height) return 0;
        found[one] = (const float *)looked[one].table + id * width;
    }
    return 1;
}

/* values: their sum, float32 [width]. The sum of that. */
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

/* to: bfloat16 [rows, width]. means, steepness: float32 [rows]. `wrong` becomes 1 where an id is of no row of its table. */
void cursus_embedding_sum(
    const Looked *looked, int count, const float *gain, const float *shift, void *to, float *means, float *steepness, ptrdiff_t rows,
    ptrdiff_t width, float epsilon, uint64_t seed, uint32_t dropped, float scale, int threads, int64_t *wrong
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    int64_t amiss = 0;
    #pragma omp parallel for schedule(static) num_threads(threads) reduction(|: amiss)
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *found[TABLES];
        float values[width];
        if (!look_up(looked, count, row, width, found)) {
            amiss = 1;
            continue;
        }
        moments(values, width, summed(found, count, values, width), epsilon, means + row, steepness + row);
        float mean = means[row], steep = steepness[row];
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
    *wrong = amiss;
}

/* gradient: bfloat16 [rows, width]. to: float32 [rows, width], of the sums, which are taken once more. parts: float32
   [2, pieces, width], the gradients of gain and shift by part of the rows. */
void cursus_embedding_sum_backward(
    const Looked *looked, int count, const void *gradient, const float *gain, const float *means, const float *steepness, float *to,
    float *parts, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t pieces, uint64_t seed, uint32_t dropped, float scale, int threads
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < pieces; part++) {
        float *of_gain = parts + part * width, *of_shift = of_gain + pieces * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = of_shift[at] = 0.0f;
        for (ptrdiff_t row = rows * part / pieces; row < rows * (part + 1) / pieces; row++) {
            const float *found[TABLES];
            float normed[width], slopes[width];
            if (!look_up(looked, count, row, width, found)) continue;
            summed(found, count, normed, width);
            float mean = means[row], steep = steepness[row];
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
                    put(slopes, at, slope, 0);
                    put(normed, at, one, 0);
                }
            }
            float plain = sum_of(plains) / (float)width, along = sum_of(alongs) / (float)width;
            for (ptrdiff_t at = 0; at < width; at += VECTOR)
                put(to, row * width + at, (take(slopes, at, 0) - plain - take(normed, at, 0) * along) * steep, 0);
        }
    }
}
