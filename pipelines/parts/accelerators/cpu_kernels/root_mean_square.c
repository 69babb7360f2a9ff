/* RMSNorm: normalisation by the root of the mean square. */

#include "vectors.h"

/* The output and its gradient are bfloat16; `half` is the dtype of the input. */
INLINE void normalise(
    const void *from, const float *gain, void *to, float *inverse_rms, ptrdiff_t rows, ptrdiff_t width, float epsilon,
    int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        ptrdiff_t begin = row * width;
        Reals squares = all(0.0f);
        for (ptrdiff_t at = 0; at < width; at += VECTOR) {
            Reals x = take_some(from, begin + at, width - at, half);
            squares += x * x;
        }
        float steep = inverse_rms[row] = 1.0f / sqrtf(sum_of(squares) / (float)width + epsilon);
        for (ptrdiff_t at = 0; at < width; at += VECTOR) {
            ptrdiff_t left = width - at;
            put_some(
                to, begin + at, take_some(from, begin + at, left, half) * steep * take_some(gain, at, left, 0), left, 1
            );
        }
    }
}

void cursus_root_mean_square(
    const void *from, const float *gain, void *to, float *inverse_rms, ptrdiff_t rows, ptrdiff_t width, float epsilon,
    int threads, int half
) {
    if (half) normalise(from, gain, to, inverse_rms, rows, width, epsilon, threads, 1);
    else normalise(from, gain, to, inverse_rms, rows, width, epsilon, threads, 0);
}

/* gains: float32 [parts, width], the gradient of the gain, summed over each part of the rows. residual_gradient: of the
   dtype of `to`, the input's gradient from the residual connection, which is added; or null. */
INLINE void normalise_backward(
    const void *gradient, const void *from, const float *gain, const float *inverse_rms, const void *residual_gradient,
    void *to, float *gains, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *of_gain = gains + part * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            ptrdiff_t begin = row * width;
            float steep = inverse_rms[row];
            Reals alongs = all(0.0f);
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                ptrdiff_t left = width - at;
                Reals normed = take_some(from, begin + at, left, half) * steep,
                    slope = take_some(gradient, begin + at, left, 1);
                put_some(of_gain, at, take_some(of_gain, at, left, 0) + slope * normed, left, 0);
                alongs += slope * take_some(gain, at, left, 0) * normed;
            }
            float along = sum_of(alongs) / (float)width;
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                ptrdiff_t left = width - at;
                Reals normed = take_some(from, begin + at, left, half) * steep;
                Reals slope = take_some(gradient, begin + at, left, 1) * take_some(gain, at, left, 0);
                Reals sum = (slope - normed * along) * steep;
                if (residual_gradient) sum += take_some(residual_gradient, begin + at, left, half);
                put_some(to, begin + at, sum, left, half);
            }
        }
    }
}

void cursus_root_mean_square_backward(
    const void *gradient, const void *from, const float *gain, const float *inverse_rms, const void *residual_gradient,
    void *to, float *gains, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    if (half)
        normalise_backward(
            gradient, from, gain, inverse_rms, residual_gradient, to, gains, rows, width, parts, threads, 1
        );
    else
        normalise_backward(
            gradient, from, gain, inverse_rms, residual_gradient, to, gains, rows, width, parts, threads, 0
        );
}
