/* Cross-entropy over a vocabulary, and its gradient. */

#include "common.h"

#define PART 1024

/* losses: float32 [rows], 0 where the target is negative. slopes: the gradient of `share` times their sum, or null. room: float32
   [threads, width], for the exponentials of a row. */
INLINE void cross_entropy(
    const void *scores, const int64_t *targets, float *losses, void *slopes, float *room, ptrdiff_t rows, ptrdiff_t width, float share,
    int threads, int half
) {
    #pragma omp parallel num_threads(threads)
    {
        float *values = room + (ptrdiff_t)omp_get_thread_num() * width;
        #pragma omp for schedule(static)
        for (ptrdiff_t row = 0; row < rows; row++) {
            ptrdiff_t begin = row * width;
            int64_t target = targets[row];
            if (target < 0) {
                losses[row] = 0.0f;
                if (slopes) {
                    #pragma omp simd
                    for (ptrdiff_t at = 0; at < width; at++) store(slopes, begin + at, 0.0f, half);
                }
                continue;
            }
            float most = largest(scores, begin, width, half);
            if (is_wrong(most)) {
                losses[row] = most;
                for (ptrdiff_t at = 0; slopes && at < width; at++) store(slopes, begin + at, most, half);
                continue;
            }
            double all = 0.0; /* of parts: float32 alone would lose two digits over a large vocabulary */
            for (ptrdiff_t from = 0; from < width; from += PART) {
                ptrdiff_t to = from + PART < width ? from + PART : width;
                float sum = 0.0f;
                #pragma omp simd reduction(+ : sum)
                for (ptrdiff_t at = from; at < to; at++) {
                    values[at] = exponential(load(scores, begin + at, half) - most);
                    sum += values[at];
                }
                all += (double)sum;
            }
            float sum = (float)all;
            losses[row] = logf(sum) - (load(scores, begin + target, half) - most);
            if (!slopes) continue;
            float part = share / sum;
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) store(slopes, begin + at, values[at] * part, half);
            store(slopes, begin + target, values[target] * part - share, half);
        }
    }
}

void cursus_cross_entropy(
    const void *scores, const int64_t *targets, float *losses, void *slopes, float *room, ptrdiff_t rows, ptrdiff_t width, float share,
    int threads, int half
) {
    if (half) cross_entropy(scores, targets, losses, slopes, room, rows, width, share, threads, 1);
    else cross_entropy(scores, targets, losses, slopes, room, rows, width, share, threads, 0);
}
