/* AdamW over all tensors of an optimizer in one call, and the norm of all their gradients in another. */

#include "scalars.h"

#define BLOCK 1024

/* What a step makes of a tensor's settings, for its elements. */
typedef struct {
    float lost, newer, kept_square, newer_square, step, steep, epsilon, unused;
} Terms;

typedef struct {
    float *weights;
    const float *gradient; /* of all weights, or of `count` rows */
    float *mean, *square;
    float *steps; /* how many this tensor has taken */
    uint8_t *moved; /* of each row, whether its moments are other than 0; or null */
    const int64_t *rows; /* which rows the gradient is of, ascending; null where it is of all */
    uint16_t *copy; /* bfloat16, of all weights; or null */
    int64_t count, width;
    double rate, decay, first, second, epsilon;
    Terms terms;
} Tensor;

/* Elements of a tensor: of one with `moved`, whole rows. */
typedef struct {
    int64_t tensor, begin, end;
} Chunk;

/* The first place in ascending `rows` that is not before `row`. */
INLINE int64_t place(const int64_t *rows, int64_t count, int64_t row) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (rows[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- the norm ------------------------------------------------------------------------------------------------------------ */

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

/* parts: float64 [chunks], which are summed in their order. A gradient that is no number makes a norm that is none. */
void cursus_norm(const Tensor *tensors, const Chunk *chunks, ptrdiff_t number, double *parts, double *norm, int threads) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t at = 0; at < number; at++) {
        const Tensor *one = tensors + chunks[at].tensor;
        int64_t begin = chunks[at].begin, end = chunks[at].end;
        if (one->rows) {
            begin = place(one->rows, one->count, begin / one->width) * one->width;
            end = place(one->rows, one->count, end / one->width) * one->width;
        }
        parts[at] = squares(one->gradient + begin, end - begin);
    }
    double all = 0.0;
    for (ptrdiff_t at = 0; at < number; at++) all += parts[at];
    *norm = sqrt(all);
}

/* ---- the step ------------------------------------------------------------------------------------------------------------ */

INLINE Terms terms_of(const Tensor *one) {
    double taken = (double)*one->steps, first = 1.0 - pow(one->first, taken), second = 1.0 - pow(one->second, taken);
    Terms terms = {
        .lost = (float)(one->rate * one->decay), .newer = (float)(1.0 - one->first), .kept_square = (float)one->second,
        .newer_square = (float)(1.0 - one->second), .step = (float)(one->rate / first), .steep = (float)(1.0 / sqrt(second)),
        .epsilon = (float)one->epsilon,
    };
    return terms;
}

/* Every product that is added is an fma by its name, so that a row says the same wherever in a vector it stands. */
INLINE float decayed(float weight, float lost) { return fmaf(-lost, weight, weight); }

/* A pass of its own over what is in the cache: two widths in one make no vector. */
INLINE void copied(const float *restrict weights, uint16_t *restrict copy, ptrdiff_t size) {
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) copy[at] = narrow(weights[at]);
}

INLINE void move(Tensor *one, const float *gradient, ptrdiff_t begin, ptrdiff_t size, float factor) {
    float *restrict weights = one->weights + begin, *restrict mean = one->mean + begin, *restrict square = one->square + begin;
    Terms is = one->terms;
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) {
        float slope = gradient ? gradient[at] * factor : 0.0f;
        mean[at] = fmaf(is.newer, slope - mean[at], mean[at]);
        square[at] = fmaf(is.newer_square * slope, slope, is.kept_square * square[at]);
        weights[at] = decayed(weights[at], is.lost) - is.step * mean[at] / fmaf(sqrtf(square[at]), is.steep, is.epsilon);
    }
    if (one->copy) copied(weights, one->copy + begin, size);
}

/* What `move` comes to where gradient and moments are 0: six arrays fewer are read and written. */
INLINE void rest(Tensor *one, ptrdiff_t begin, ptrdiff_t size) {
    float *weights = one->weights + begin, lost = one->terms.lost;
    if (lost == 0.0f) return;
    #pragma omp simd
    for (ptrdiff_t at = 0; at < size; at++) weights[at] = decayed(weights[at], lost);
    if (one->copy) copied(weights, one->copy + begin, size);
}

/* Whether any bit but zeros is among them: what is no number, too. */
INLINE int any(const float *from, ptrdiff_t size) {
    uint32_t found = 0;
    #pragma omp simd reduction(| : found)
    for (ptrdiff_t at = 0; at < size; at++) found |= to_bits(from[at]);
    return found != 0;
}

INLINE void move_rows(Tensor *one, int64_t first, int64_t last, float factor) {
    int64_t width = one->width, next = one->rows ? place(one->rows, one->count, first) : 0;
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

/* A step of AdamW (Loshchilov & Hutter 2019) on gradients that are `factor` times what they are; as torch's fused one computes it. */
void cursus_adamw(Tensor *tensors, ptrdiff_t tensors_number, const Chunk *chunks, ptrdiff_t number, float factor, int threads) {
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
