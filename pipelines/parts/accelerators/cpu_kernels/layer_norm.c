/* Layer normalisation. */

#include "vectors.h"

/* The output and its gradient are bfloat16; `half` is the dtype of the input. */
INLINE void layer_norm(
    const void *from, const float *gain, const float *bias, void *to, float *means, float *inverse_deviations,
    ptrdiff_t rows, ptrdiff_t width, float epsilon, int threads, int half
) {
    ptrdiff_t whole = width - width % VECTOR;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        ptrdiff_t begin = row * width;
        Reals sums = all(0.0f), squares = all(0.0f);
        float values[whole + 1];
        for (ptrdiff_t at = 0; at < whole; at += VECTOR) {
            Reals read = take(from, begin + at, half);
            put(values, at, read, 0);
            sums += read;
        }
        float sum = sum_of(sums);
        for (ptrdiff_t at = whole; at < width; at++) sum += load(from, begin + at, half);
        float mean = sum / (float)width;
        for (ptrdiff_t at = 0; at < whole; at += VECTOR) {
            Reals stride = take(values, at, 0) - mean;
            squares += stride * stride;
        }
        float square = sum_of(squares);
        for (ptrdiff_t at = whole; at < width; at++) {
            float stride = load(from, begin + at, half) - mean;
            square += stride * stride;
        }
        float steep = 1.0f / sqrtf(square / (float)width + epsilon);
        means[row] = mean;
        inverse_deviations[row] = steep;
        for (ptrdiff_t at = 0; at < whole; at += VECTOR)
            put(to, begin + at, (take(values, at, 0) - mean) * steep * take(gain, at, 0) + take(bias, at, 0), 1);
        for (ptrdiff_t at = whole; at < width; at++)
            store(to, begin + at, (load(from, begin + at, half) - mean) * steep * gain[at] + bias[at], 1);
    }
}

void cursus_layer_norm(
    const void *from, const float *gain, const float *bias, void *to, float *means, float *inverse_deviations,
    ptrdiff_t rows, ptrdiff_t width, float epsilon, int threads, int half
) {
    if (half) layer_norm(from, gain, bias, to, means, inverse_deviations, rows, width, epsilon, threads, 1);
    else layer_norm(from, gain, bias, to, means, inverse_deviations, rows, width, epsilon, threads, 0);
}

/* gains, biases: float32 [parts, width], the gradients of gain and bias, summed over each part of the rows. */
INLINE void layer_norm_backward(
    const void *gradient, const void *from, const float *gain, const float *means, const float *inverse_deviations,
    void *to, float *gains, float *biases, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    ptrdiff_t whole = width - width % VECTOR;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *of_gain = gains + part * width, *of_bias = biases + part * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = of_bias[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            ptrdiff_t begin = row * width;
            float mean = means[row], steep = inverse_deviations[row];
            Reals plains = all(0.0f), alongs = all(0.0f);
            for (ptrdiff_t at = 0; at < whole; at += VECTOR) {
                Reals slope = take(gradient, begin + at, 1), normed = (take(from, begin + at, half) - mean) * steep;
                put(of_gain, at, take(of_gain, at, 0) + slope * normed, 0);
                put(of_bias, at, take(of_bias, at, 0) + slope, 0);
                slope *= take(gain, at, 0);
                plains += slope;
                alongs += slope * normed;
            }
            float plain = sum_of(plains), along = sum_of(alongs);
            for (ptrdiff_t at = whole; at < width; at++) {
                float slope = load(gradient, begin + at, 1), normed = (load(from, begin + at, half) - mean) * steep;
                of_gain[at] += slope * normed;
                of_bias[at] += slope;
                plain += slope * gain[at];
                along += slope * gain[at] * normed;
            }
            plain /= (float)width;
            along /= (float)width;
            for (ptrdiff_t at = 0; at < whole; at += VECTOR) {
                Reals slope = take(gradient, begin + at, 1), normed = (take(from, begin + at, half) - mean) * steep;
                put(to, begin + at, (slope * take(gain, at, 0) - plain - normed * along) * steep, half);
            }
            for (ptrdiff_t at = whole; at < width; at++) {
                float slope = load(gradient, begin + at, 1), normed = (load(from, begin + at, half) - mean) * steep;
                store(to, begin + at, (slope * gain[at] - plain - normed * along) * steep, half);
            }
        }
    }
}

void cursus_layer_norm_backward(
    const void *gradient, const void *from, const float *gain, const float *means, const float *inverse_deviations,
    void *to, float *gains, float *biases, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    if (half)
        layer_norm_backward(
            gradient, from, gain, means, inverse_deviations, to, gains, biases, rows, width, parts, threads, 1
        );
    else
        layer_norm_backward(
            gradient, from, gain, means, inverse_deviations, to, gains, biases, rows, width, parts, threads, 0
        );
}
