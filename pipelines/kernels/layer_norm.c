/* Layer normalisation. */

#include "common.h"

/* What it says, and the gradient of that, are bfloat16; `half` says what it reads. */
INLINE void layer_norm(
    const void *from, const float *gain, const float *bias, void *to, float *means, float *steepness, ptrdiff_t rows, ptrdiff_t width,
    float epsilon, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        ptrdiff_t begin = row * width;
        float sum = 0.0f, squares = 0.0f;
        #pragma omp simd reduction(+ : sum)
        for (ptrdiff_t at = 0; at < width; at++) sum += load(from, begin + at, half);
        float mean = sum / (float)width;
        #pragma omp simd reduction(+ : squares)
        for (ptrdiff_t at = 0; at < width; at++) {
            float apart = load(from, begin + at, half) - mean;
            squares += apart * apart;
        }
        float steep = 1.0f / sqrtf(squares / (float)width + epsilon);
        means[row] = mean;
        steepness[row] = steep;
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++)
            store(to, begin + at, (load(from, begin + at, half) - mean) * steep * gain[at] + bias[at], 1);
    }
}

void cursus_layer_norm(
    const void *from, const float *gain, const float *bias, void *to, float *means, float *steepness, ptrdiff_t rows, ptrdiff_t width,
    float epsilon, int threads, int half
) {
    if (half) layer_norm(from, gain, bias, to, means, steepness, rows, width, epsilon, threads, 1);
    else layer_norm(from, gain, bias, to, means, steepness, rows, width, epsilon, threads, 0);
}

/* gains, biases: float32 [parts, width], the gradients of gain and bias by part of the rows. */
INLINE void layer_norm_backward(
    const void *gradient, const void *from, const float *gain, const float *means, const float *steepness, void *to, float *gains,
    float *biases, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *of_gain = gains + part * width, *of_bias = biases + part * width;
        for (ptrdiff_t at = 0; at < width; at++) of_gain[at] = of_bias[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            ptrdiff_t begin = row * width;
            float mean = means[row], steep = steepness[row], plain = 0.0f, along = 0.0f;
            #pragma omp simd reduction(+ : plain, along)
            for (ptrdiff_t at = 0; at < width; at++) {
                float slope = load(gradient, begin + at, 1), normed = (load(from, begin + at, half) - mean) * steep;
                of_gain[at] += slope * normed;
                of_bias[at] += slope;
                plain += slope * gain[at];
                along += slope * gain[at] * normed;
            }
            plain /= (float)width;
            along /= (float)width;
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) {
                float slope = load(gradient, begin + at, 1), normed = (load(from, begin + at, half) - mean) * steep;
                store(to, begin + at, (slope * gain[at] - plain - normed * along) * steep, half);
            }
        }
    }
}

void cursus_layer_norm_backward(
    const void *gradient, const void *from, const float *gain, const float *means, const float *steepness, void *to, float *gains,
    float *biases, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t parts, int threads, int half
) {
    if (half) layer_norm_backward(gradient, from, gain, means, steepness, to, gains, biases, rows, width, parts, threads, 1);
    else layer_norm_backward(gradient, from, gain, means, steepness, to, gains, biases, rows, width, parts, threads, 0);
}
