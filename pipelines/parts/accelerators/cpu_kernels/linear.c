/* Sums of columns: the gradient of a bias. */

#include "scalars.h"

#define STRIP 64

INLINE void column_sums(const void *from, float *to, ptrdiff_t rows, ptrdiff_t width, int threads, int half) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t begin = 0; begin < width; begin += STRIP) {
        float sums[STRIP] = {0.0f};
        int count = (int)(width - begin < STRIP ? width - begin : STRIP);
        if (count == STRIP) {
            for (ptrdiff_t row = 0; row < rows; row++) {
                #pragma omp simd
                for (int at = 0; at < STRIP; at++) sums[at] += load(from, row * width + begin + at, half);
            }
        } else {
            for (ptrdiff_t row = 0; row < rows; row++) {
                for (int at = 0; at < count; at++) sums[at] += load(from, row * width + begin + at, half);
            }
        }
        for (int at = 0; at < count; at++) to[begin + at] = sums[at];
    }
}

void cursus_column_sums(const void *from, float *to, ptrdiff_t rows, ptrdiff_t width, int threads, int half) {
    if (half) column_sums(from, to, rows, width, threads, 1);
    else column_sums(from, to, rows, width, threads, 0);
}
