/* AdamW over all tensors of an optimizer in one call, and the norm of all their gradients in another. */

#include "scalars.h"

#define BLOCK 1024

/* Coefficients of a step, computed once per tensor from its settings. */
typedef struct {
    float lost, newer, kept_square, newer_square, step, steep, epsilon, unused;
} Terms;

typedef struct {
    float *weights;
    const float *gradient; /* dense, or `count` rows */
    float *mean, *square;
    float *steps; /* number of steps this tensor has taken */
    uint8_t *moved; /* per row, whether its moments are other than 0; or null */
    const int64_t *rows; /* indices of the gradient's rows, ascending; null where it is dense */
    uint16_t *copy; /* bfloat16 copy of the weights; or null */
    int64_t count, width;
    double rate, decay, first, second, epsilon;
    Terms terms;
} Tensor;

/* A range of a tensor's elements: whole rows, where it has `moved`. */
typedef struct {
    int64_t tensor, begin, end;
} Chunk;

/* Lower bound: the first position in ascending `rows` whose value is not less than `row`. */
INLINE int64_t lower_bound(const int64_t *rows, int64_t count, int64_t row) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (rows[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- the norm ---------------------------------------------------------------------------------------------------- */

INLINE double squares(const float *from, ptrdiff_t size) {
    double all = 0.0;
    for (ptrdiff_t begin = 0; begin < size; begin += BLOCK) {
        ptrdiff_t end = begin + BLOCK < size ? begin + BLOCK : size;
        float sum = 0.0f;
        #pragma omp simd reduction(+ : sum)
        for (ptrdiff_t at = begin; at < end; at++) sum += from[at] * from[at];
        all += (double)sum;
    }
    return all;
}

/* parts: float64 [chunks], summed in their order. A NaN in a gradient makes the norm NaN. */
void cursus_norm(
    const Tensor *tensors, const Chunk *chunks, ptrdiff_t number, double *parts, double *norm, int threads
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t at = 0; at < number; at++) {
        const Tensor *one = tensors + chunks[at].tensor;
        int64_t begin = chunks[at].begin, end = chunks[at].end;
        if (one->rows) {
            begin = lower_bound(one->rows, one->count, begin / one->width) * one->width;
            end = lower_bound(one->rows, one->count, end / one->width) * one->width;
        }
        parts[at] = squares(one->gradient + begin, end - begin);
    }
    double all = 0.0;
    for (ptrdiff_t at = 0; at < number; at++) all += parts[at];
    *norm = sqrt(all);
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

INLINE Terms terms_of(const Tensor *one) {
    double taken = (double)*one->steps, first = 1.0 - pow(one->first, taken), second = 1.0 - pow(one->second, taken);
    Terms terms = {
        .lost = (float)(one->rate * one->decay), .newer = (float)(1.0 - one->first), .kept_square = (float)one->second,
        .newer_square = (float)(1.0 - one->second), .step = (float)(one->rate / first),
        .steep = (float)(1.0 / sqrt(second)),
        .epsilon = (float)one->epsilon,
    };
    return terms;
}

/* Every multiply-add is an explicit fma, so that a row's result does not depend on its position in a vector. */
INLINE float decayed(float weight, float lost) { return fmaf(-lost, weight, weight); }

/* A separate pass over cached data: a loop over two element widths is not vectorised. */
INLINE void copied(const float *restrict weights, uint16_t *restrict copy, ptrdiff_t size) {
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) copy[at] = to_bfloat16(weights[at]);
}

INLINE void move(Tensor *one, const float *gradient, ptrdiff_t begin, ptrdiff_t size, float factor) {
    float *restrict weights = one->weights + begin, *restrict mean = one->mean + begin,
        *restrict square = one->square + begin;
    Terms is = one->terms;
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) {
        float slope = gradient ? gradient[at] * factor : 0.0f;
        mean[at] = fmaf(is.newer, slope - mean[at], mean[at]);
        square[at] = fmaf(is.newer_square * slope, slope, is.kept_square * square[at]);
        weights[at] = decayed(weights[at], is.lost)
            - is.step * mean[at] / fmaf(sqrtf(square[at]), is.steep, is.epsilon);
    }
    if (one->copy) copied(weights, one->copy + begin, size);
}

/* `move` for a gradient and moments of 0 (decay only): six arrays fewer are read and written. */
INLINE void rest(Tensor *one, ptrdiff_t begin, ptrdiff_t size) {
    float *weights = one->weights + begin, lost = one->terms.lost;
    if (lost == 0.0f) return;
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) weights[at] = decayed(weights[at], lost);
    if (one->copy) copied(weights, one->copy + begin, size);
}

/* Whether any bit is set; true for NaN as well. */
INLINE int any(const float *from, ptrdiff_t size) {
    uint32_t found = 0;
    #pragma omp simd reduction(| : found)
    for (ptrdiff_t at = 0; at < size; at++) found |= to_bits(from[at]);
    return found != 0;
}

INLINE void move_rows(Tensor *one, int64_t first, int64_t last, float factor) {
    int64_t width = one->width, next = one->rows ? lower_bound(one->rows, one->count, first) : 0;
    for (int64_t row = first; row < last; row++) {
        const float *gradient = NULL;
        if (!one->rows) gradient = one->gradient + row * width;
        else if (next < one->count && one->rows[next] == row) gradient = one->gradient + width * next++;
        if (!one->moved[row] && gradient && any(gradient, width)) one->moved[row] = 1;
        if (!one->moved[row]) rest(one, row * width, width);
        else if (gradient) move(one, gradient, row * width, width, factor);
        else move(one, NULL, row * width, width, factor);
    }
}

/* A step of AdamW (Loshchilov & Hutter 2019) on the gradients times `factor`, computed as torch's fused AdamW does. */
void cursus_adamw(
    Tensor *tensors, ptrdiff_t tensors_number, const Chunk *chunks, ptrdiff_t number, float factor, int threads
) {
    for (ptrdiff_t at = 0; at < tensors_number; at++) {
        *tensors[at].steps += 1.0f;
        tensors[at].terms = terms_of(tensors + at);
    }
    #pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (ptrdiff_t at = 0; at < number; at++) {
        Tensor *one = tensors + chunks[at].tensor;
        int64_t begin = chunks[at].begin, end = chunks[at].end;
        if (one->moved) move_rows(one, begin / one->width, end / one->width, factor);
        else move(one, one->gradient + begin, begin, end - begin, factor);
    }
}
