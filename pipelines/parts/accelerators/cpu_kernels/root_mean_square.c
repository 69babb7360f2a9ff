/* Normalisation by the root of the mean square. */

#include "vectors.h"

/* What it says, and the gradient of that, are bfloat16; `half` says what it reads. */
INLINE void normalise(
    const void *from, const float *gain, void *to, float *steepness, ptrdiff_t rows, ptrdiff_t width, float epsilon, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        ptrdiff_t begin = row * width;
        Reals squares = all(0.0f);
        for (ptrdiff_t at = 0; at < width; at += VECTOR) {
            Reals x = take_some(from, begin + at, width - at, half);
            squares += x * x;
        }
        float steep = steepness[row] = 1.0f / sqrtf(sum_of(squares) / (float)width + epsilon);
        for (ptrdiff_t at = 0; at < width; at += VECTOR) {
            ptrdiff_t left = width - at;
            put_some(to, begin + at, take_some(from, begin + at, left, half) * steep * take_some(gain, at, left, 0), left, 1);
        }
    }
}

void cursus_root_mean_square(
    const void *from, const float *gain, void *to, float *steepness, ptrdiff_t rows, ptrdiff_t width, float epsilon, int threads, int half
) {
    if (half) normalise(from, gain, to, steepness, rows, width, epsilon, threads, 1);
    else normalise(from, gain, to, steepness, rows, width, epsilon, threads, 0);
}

/* gains: float32 [parts, width], the gradient of the gain by part of the rows. beside: as wide as `to`, a gradient of what was read
   that came another way and is added; or null. */
INLINE void normalise_backward(
    const void *gradient, const void *from, const float *gain, const float *steepness, const void *beside, void *to, float *gains,
    ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *of_gain = gains + part * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            ptrdiff_t begin = row * width;
            float steep = steepness[row];
            Reals alongs = all(0.0f);
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                ptrdiff_t left = width - at;
                Reals normed = take_some(from, begin + at, left, half) * steep, slope = take_some(gradient, begin + at, left, 1);
                put_some(of_gain, at, take_some(of_gain, at, left, 0) + slope * normed, left, 0);
                alongs += slope * take_some(gain, at, left, 0) * normed;
            }
            float along = sum_of(alongs) / (float)width;
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                ptrdiff_t left = width - at;
                Reals normed = take_some(from, begin + at, left, half) * steep;
                Reals slope = take_some(gradient, begin + at, left, 1) * take_some(gain, at, left, 0);
                Reals sum = (slope - normed * along) * steep;
                if (beside) sum += take_some(beside, begin + at, left, half);
                put_some(to, begin + at, sum, left, half);
            }
        }
    }
}

void cursus_root_mean_square_backward(
    const void *gradient, const void *from, const float *gain, const float *steepness, const void *beside, void *to, float *gains,
    ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    if (half) normalise_backward(gradient, from, gain, steepness, beside, to, gains, rows, width, parts, threads, 1);
    else normalise_backward(gradient, from, gain, steepness, beside, to, gains, rows, width, parts, threads, 0);
}
