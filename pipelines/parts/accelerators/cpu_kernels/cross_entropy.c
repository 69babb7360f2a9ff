/* Cross-entropy over a vocabulary, and its gradient. */

#include "vectors.h"

#define PART 1024
/* rows whose gradients are computed together, so that the column sums are read and written once for all */
#define GROUP 4

/* Sixteen scores of a row; beyond its end, the lowest float. */
INLINE Reals scores_at(
    const void *scores, const float *bias, ptrdiff_t begin, ptrdiff_t at, ptrdiff_t width, int half
) {
    ptrdiff_t count = width - at;
    if (count >= VECTOR) {
        Reals values = take(scores, begin + at, half);
        return bias ? values + take(bias, at, 0) : values;
    }
    float some[VECTOR];
    for (ptrdiff_t one = 0; one < VECTOR; one++)
        some[one] = one < count ? load(scores, begin + at + one, half) + (bias ? bias[at + one] : 0.0f) : -FLT_MAX;
    return take(some, 0, 0);
}

/* Write the exponentials of a row of scores into `values`, which has space for whole vectors; returns their sum, or
   NaN. */
INLINE float exponentials_of(
    const void *scores, const float *bias, ptrdiff_t begin, ptrdiff_t width, float *values, float *most, int half
) {
    Reals highest = all(-FLT_MAX);
    Words seen = (Words){0};
    for (ptrdiff_t at = 0; at < width; at += VECTOR) {
        Reals score = scores_at(scores, bias, begin, at, width, half);
        highest = greater(highest, score);
        seen = most_bits(seen, score);
    }
    *most = most_of(highest);
    if (any((Masks)(seen >= 0x7f800000u))) { /* -infinity is a valid score */
        Masks wrong = (Masks){0};
        for (ptrdiff_t at = 0; at < width; at += VECTOR)
            wrong |= are_wrong(scores_at(scores, bias, begin, at, width, half));
        if (any(wrong)) return *most = from_bits(NO_NUMBER);
    }
    Reals above = all(*most);
    double all_parts = 0.0; /* a float32 sum would lose two digits over a large vocabulary */
    for (ptrdiff_t from = 0; from < width; from += PART) {
        ptrdiff_t to = from + PART < width ? from + PART : width;
        Reals sum = all(0.0f);
        for (ptrdiff_t at = from; at < to; at += VECTOR) {
            /* prefetch the next row, which is far away, while this one is computed */
            __builtin_prefetch((const char *)scores + (begin + width + at) * (half ? 2 : 4), 0, 2);
            Reals value = exponentials_above_nothing(scores_at(scores, bias, begin, at, width, half) - above);
            put(values, at, value, 0);
            sum += value;
        }
        all_parts += (double)sum_of(sum);
    }
    return (float)all_parts;
}

/* factors[i] · values[i], float32 [count, stride], at the first `columns` columns from `at` on: written into `count`
   rows of gradients from row `begin` on, and added to the sums in `column`, which may be null. */
INLINE void scale_some(
    const float *values, ptrdiff_t stride, const float *factors, ptrdiff_t count, void *gradients, ptrdiff_t begin,
    ptrdiff_t width, float *column, ptrdiff_t at, ptrdiff_t columns, int half
) {
    Reals sum = column ? take_some(column, at, columns, 0) : all(0.0f);
    #pragma GCC unroll 4
    for (ptrdiff_t one = 0; one < count; one++) {
        Reals slope = take(values, one * stride + at, 0) * factors[one];
        put_some(gradients, begin + one * width + at, slope, columns, half);
        sum += slope;
    }
    if (column) put_some(column, at, sum, columns, 0);
}

/* The same for all columns of rows of `width`. */
INLINE void scale(
    const float *values, ptrdiff_t stride, const float *factors, ptrdiff_t count, void *gradients, ptrdiff_t begin,
    ptrdiff_t width, float *column, int half
) {
    ptrdiff_t whole = width - width % VECTOR;
    for (ptrdiff_t at = 0; at < whole; at += VECTOR)
        scale_some(values, stride, factors, count, gradients, begin, width, column, at, VECTOR, half);
    if (whole < width)
        scale_some(values, stride, factors, count, gradients, begin, width, column, whole, width - whole, half);
}

/* losses: float32 [rows], of scores [rows, width] + bias [width], if any; 0 where the target is negative. gradients:
   the gradient of `share` times the sum of the losses, or null; it may be the scores. sums: float32 [parts, width], the
   gradients summed over each part of the rows, or null. scratch: float32 [threads, GROUP, width, rounded up to whole
   vectors]. */
INLINE void cross_entropy(
    const void *scores, const float *bias, const int64_t *targets, float *losses, void *gradients, float *sums,
    float *scratch, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, float share, int threads, int half
) {
    ptrdiff_t stride = (width + VECTOR - 1) / VECTOR * VECTOR;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *values = scratch + (ptrdiff_t)omp_get_thread_num() * GROUP * stride,
            *column = sums ? sums + part * width : 0;
        for (ptrdiff_t at = 0; column && at < width; at++) column[at] = 0.0f;
        ptrdiff_t last = rows * (part + 1) / parts;
        for (ptrdiff_t first = rows * part / parts; first < last; first += GROUP) {
            ptrdiff_t count = last - first < GROUP ? last - first : GROUP;
            float factors[GROUP];
            for (ptrdiff_t one = 0; one < count; one++) {
                ptrdiff_t row = first + one;
                float *own = values + one * stride, most;
                if (targets[row] < 0) {
                    losses[row] = factors[one] = 0.0f;
                    for (ptrdiff_t at = 0; at < stride; at++) own[at] = 0.0f;
                    continue;
                }
                float sum = exponentials_of(scores, bias, row * width, width, own, &most, half);
                if (is_nan_or_inf(most)) {
                    losses[row] = most;
                    factors[one] = 0.0f;
                    for (ptrdiff_t at = 0; at < stride; at++) own[at] = most;
                    continue;
                }
                float score = load(scores, row * width + targets[row], half) + (bias ? bias[targets[row]] : 0.0f);
                losses[row] = logf(sum) - (score - most);
                factors[one] = share / sum;
                own[targets[row]] -= sum; /* softmax − one-hot, both times the sum */
            }
            if (!gradients) continue;
            if (count == GROUP) scale(values, stride, factors, GROUP, gradients, first * width, width, column, half);
            else scale(values, stride, factors, count, gradients, first * width, width, column, half);
        }
    }
}

void cursus_cross_entropy(
    const void *scores, const float *bias, const int64_t *targets, float *losses, void *gradients, float *sums,
    float *scratch, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, float share, int threads, int half
) {
    if (half)
        cross_entropy(scores, bias, targets, losses, gradients, sums, scratch, rows, width, parts, share, threads, 1);
    else cross_entropy(scores, bias, targets, losses, gradients, sums, scratch, rows, width, parts, share, threads, 0);
}
