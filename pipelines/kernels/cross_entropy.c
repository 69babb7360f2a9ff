/* Cross-entropy over a vocabulary, and its gradient. */

#include "common.h"

#define PART 1024
#define GROUP 4 /* rows whose gradients are made together, so that the sums of columns are read and written once for all */

/* Exponentials of a row of scores, into `values`; their sum, or no number. */
INLINE float exponentials(const void *scores, const float *bias, ptrdiff_t begin, ptrdiff_t width, float *values, float *most, int half) {
    if (bias) {
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half) + bias[at];
    } else {
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half);
    }
    float highest = largest(values, 0, width, 0);
    *most = highest;
    if (is_wrong(highest)) return from_bits(NO_NUMBER);
    double all = 0.0; /* of parts: float32 alone would lose two digits over a large vocabulary */
    for (ptrdiff_t from = 0; from < width; from += PART) {
        ptrdiff_t to = from + PART < width ? from + PART : width;
        float sum = 0.0f;
        #pragma omp simd reduction(+ : sum)
        for (ptrdiff_t at = from; at < to; at++) {
            values[at] = exponential(values[at] - highest);
            sum += values[at];
        }
        all += (double)sum;
    }
    return (float)all;
}

/* losses: float32 [rows], of scores [rows, width] + bias [width], where there is one; 0 where the target is negative. slopes: the
   gradient of `share` times their sum, or null; it may be the scores. sums: float32 [parts, width], of the slopes by part of the rows, or
   null. room: float32 [threads, GROUP, width]. */
INLINE void cross_entropy(
    const void *scores, const float *bias, const int64_t *targets, float *losses, void *slopes, float *sums, float *room, ptrdiff_t rows,
    ptrdiff_t width, ptrdiff_t parts, float share, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *values = room + (ptrdiff_t)omp_get_thread_num() * GROUP * width, *column = sums ? sums + part * width : 0;
        for (ptrdiff_t at = 0; column && at < width; at++) column[at] = 0.0f;
        ptrdiff_t last = rows * (part + 1) / parts;
        for (ptrdiff_t first = rows * part / parts; first < last; first += GROUP) {
            ptrdiff_t count = last - first < GROUP ? last - first : GROUP;
            float factors[GROUP];
            for (ptrdiff_t one = 0; one < count; one++) {
                ptrdiff_t row = first + one;
                float *own = values + one * width, most;
                if (targets[row] < 0) {
                    losses[row] = factors[one] = 0.0f;
                    for (ptrdiff_t at = 0; at < width; at++) own[at] = 0.0f;
                    continue;
                }
                float sum = exponentials(scores, bias, row * width, width, own, &most, half);
                if (is_wrong(most)) {
                    losses[row] = most;
                    factors[one] = 0.0f;
                    for (ptrdiff_t at = 0; at < width; at++) own[at] = most;
                    continue;
                }
                float score = load(scores, row * width + targets[row], half) + (bias ? bias[targets[row]] : 0.0f);
                losses[row] = logf(sum) - (score - most);
                factors[one] = share / sum;
                own[targets[row]] -= sum; /* softmax − one-hot, both times the sum */
            }
            if (!slopes) continue;
            for (ptrdiff_t one = 0; one < count; one++) {
                const float *own = values + one * width;
                float factor = factors[one];
                ptrdiff_t begin = (first + one) * width;
                #pragma omp simd
                for (ptrdiff_t at = 0; at < width; at++) store(slopes, begin + at, own[at] * factor, half);
            }
            if (!column) continue;
            if (count == GROUP) {
                const float *a = values, *b = a + width, *c = b + width, *d = c + width;
                #pragma omp simd
                for (ptrdiff_t at = 0; at < width; at++)
                    column[at] += a[at] * factors[0] + b[at] * factors[1] + (c[at] * factors[2] + d[at] * factors[3]);
            } else {
                for (ptrdiff_t one = 0; one < count; one++)
                    for (ptrdiff_t at = 0; at < width; at++) column[at] += values[one * width + at] * factors[one];
            }
        }
    }
}

void cursus_cross_entropy(
    const void *scores, const float *bias, const int64_t *targets, float *losses, void *slopes, float *sums, float *room, ptrdiff_t rows,
    ptrdiff_t width, ptrdiff_t parts, float share, int threads, int half
) {
    if (half) cross_entropy(scores, bias, targets, losses, slopes, sums, room, rows, width, parts, share, threads, 1);
    else cross_entropy(scores, bias, targets, losses, slopes, sums, room, rows, width, parts, share, threads, 0);
}
