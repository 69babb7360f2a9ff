/* The parts of a training step that torch's own CPU kernels make slow: see the Python file beside this one that has the name of each.

   Every result is a function of its arguments alone, whatever the number of threads: rows do not depend on each other, and sums over
   rows are taken in a fixed number of parts. `half` says whether a tensor is bfloat16; else it is float32. */

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

/* The compiler is told that all floats are finite, since it makes no vector of a maximum or a choice otherwise. So what is no number is
   looked for by its bits, where a step must notice it. */
#define NO_NUMBER 0x7fc00000u

/* ---- bfloat16 ------------------------------------------------------------------------------------------------------------ */

INLINE float from_bits(uint32_t bits) {
    union { uint32_t bits; float value; } both;
    both.bits = bits;
    return both.value;
}

INLINE uint32_t to_bits(float value) {
    union { uint32_t bits; float value; } both;
    both.value = value;
    return both.bits;
}

/* Whether it is no number, or +infinity. */
INLINE uint32_t is_wrong(float value) {
    uint32_t bits = to_bits(value);
    return (bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u;
}

/* To the nearest, ties to even; what is no number stays none. */
INLINE uint16_t narrow(float value) {
    uint32_t bits = to_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? NO_NUMBER >> 16 : rounded);
}

INLINE float load(const void *from, ptrdiff_t at, int half) {
    return half ? from_bits((uint32_t)((const uint16_t *)from)[at] << 16) : ((const float *)from)[at];
}

INLINE void store(void *to, ptrdiff_t at, float value, int half) {
    if (half) ((uint16_t *)to)[at] = narrow(value);
    else ((float *)to)[at] = value;
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

/* e^x of an x ≤ 0, to 2 units in the last place of a float32 (Cephes' reduction and polynomial); below -87 it is 0. */
INLINE float exponential(float x) {
    float kept = x < -87.0f ? -87.0f : x;
    float power = (kept * 1.44269504f + 12582912.0f) - 12582912.0f;
    float rest = kept - power * 0.693359375f + power * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    float scaled = sum * from_bits((uint32_t)((int32_t)power + 127) << 23);
    return x < -87.0f ? 0.0f : scaled;
}

#define LANES 16

/* The largest of `size` values; no number where one of them is none, or +infinity. */
INLINE float largest(const void *from, ptrdiff_t begin, ptrdiff_t size, int half) {
    float most = -FLT_MAX;
    uint32_t wrong = 0;
    #pragma omp simd reduction(max : most) reduction(| : wrong)
    for (ptrdiff_t at = 0; at < size; at++) {
        float value = load(from, begin + at, half);
        most = value > most ? value : most;
        wrong |= is_wrong(value);
    }
    return wrong ? from_bits(NO_NUMBER) : most;
}

/* ---- random numbers: Philox 4x32-10 (Salmon et al. 2011) ------------------------------------------------------------------ */

#define TILE 128 /* LANES blocks of four words, each word two decisions */

/* Words of the blocks `first` … `first` + LANES - 1 under the key `seed`. */
INLINE void philox(uint64_t first, uint64_t seed, uint32_t words[4][LANES]) {
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    #pragma omp simd
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t block = first + (uint64_t)lane;
        words[0][lane] = (uint32_t)block;
        words[1][lane] = (uint32_t)(block >> 32);
        words[2][lane] = 0;
        words[3][lane] = 0;
    }
    for (int round = 0; round < 10; round++) {
        #pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            uint64_t one = (uint64_t)0xD2511F53u * words[0][lane], two = (uint64_t)0xCD9E8D57u * words[2][lane];
            uint32_t a = (uint32_t)(two >> 32) ^ words[1][lane] ^ low, c = (uint32_t)(one >> 32) ^ words[3][lane] ^ high;
            words[1][lane] = (uint32_t)two;
            words[3][lane] = (uint32_t)one;
            words[0][lane] = a;
            words[2][lane] = c;
        }
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
}

/* What each of TILE elements is multiplied by: 0 for a share of dropped / 65536 of them, else `scale`. */
INLINE void kept(uint64_t tile, uint64_t seed, uint32_t dropped, float scale, float *factors) {
    uint32_t words[4][LANES];
    philox(tile * LANES, seed, words);
    for (int word = 0; word < 4; word++) {
        #pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            factors[word * 32 + lane] = (words[word][lane] & 0xffffu) < dropped ? 0.0f : scale;
            factors[word * 32 + LANES + lane] = (words[word][lane] >> 16) < dropped ? 0.0f : scale;
        }
    }
}

void cursus_philox(uint64_t first, uint64_t seed, uint32_t *words) { philox(first, seed, (uint32_t(*)[LANES])words); }

/* ---- dropout: forward and, of the gradient, backward ----------------------------------------------------------------------- */

INLINE void dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    ptrdiff_t tiles = (size + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t tile = 0; tile < tiles; tile++) {
        float factors[TILE];
        kept((uint64_t)tile, seed, dropped, scale, factors);
        ptrdiff_t begin = tile * TILE;
        int count = (int)(size - begin < TILE ? size - begin : TILE);
        #pragma omp simd
        for (int at = 0; at < count; at++) store(to, begin + at, load(from, begin + at, half) * factors[at], half);
    }
}

void cursus_dropout(const void *from, void *to, ptrdiff_t size, uint64_t seed, uint32_t dropped, float scale, int threads, int half) {
    if (half) dropout(from, to, size, seed, dropped, scale, threads, 1);
    else dropout(from, to, size, seed, dropped, scale, threads, 0);
}

/* ---- softmax of masked scores, and dropout of what it gives ---------------------------------------------------------------- */

/* scores, chances, dropped_chances: [rows, width]. The mask is float32 and added; the row of scores (a, b, c) of
   [first, second, third] reads its row at a · strides[0] + b · strides[1] + c · strides[2]. */
INLINE void softmax(
    const void *scores, const float *mask, const ptrdiff_t *shape, const ptrdiff_t *strides, void *chances, void *dropped_chances,
    ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    ptrdiff_t rows = shape[0] * shape[1] * shape[2], tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float values[width];
        ptrdiff_t begin = row * width;
        ptrdiff_t third = row % shape[2], second = row / shape[2] % shape[1], first = row / shape[2] / shape[1];
        const float *added = mask + (mask ? first * strides[0] + second * strides[1] + third * strides[2] : 0);
        float sum = 0.0f;
        if (mask) {
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half) * scaling + added[at];
        } else {
            #pragma omp simd
            for (ptrdiff_t at = 0; at < width; at++) values[at] = load(scores, begin + at, half) * scaling;
        }
        float most = largest(values, 0, width, 0);
        if (is_wrong(most)) {
            for (ptrdiff_t at = 0; at < width; at++) {
                store(chances, begin + at, most, half);
                store(dropped_chances, begin + at, most, half);
            }
            continue;
        }
        #pragma omp simd reduction(+ : sum)
        for (ptrdiff_t at = 0; at < width; at++) {
            values[at] = exponential(values[at] - most);
            sum += values[at];
        }
        float part = 1.0f / sum;
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++) {
            values[at] *= part;
            store(chances, begin + at, values[at], half);
        }
        if (!dropped) continue;
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            float factors[TILE];
            kept((uint64_t)(row * tiles + tile), seed, dropped, scale, factors);
            ptrdiff_t from = tile * TILE;
            int count = (int)(width - from < TILE ? width - from : TILE);
            #pragma omp simd
            for (int at = 0; at < count; at++) store(dropped_chances, begin + from + at, values[from + at] * factors[at], half);
        }
    }
}

void cursus_softmax(
    const void *scores, const float *mask, const ptrdiff_t *shape, const ptrdiff_t *strides, void *chances, void *dropped_chances,
    ptrdiff_t width, float scaling, uint64_t seed, uint32_t dropped, float scale, int threads, int half
) {
    if (half) softmax(scores, mask, shape, strides, chances, dropped_chances, width, scaling, seed, dropped, scale, threads, 1);
    else softmax(scores, mask, shape, strides, chances, dropped_chances, width, scaling, seed, dropped, scale, threads, 0);
}

INLINE void softmax_backward(
    const void *gradient, const void *chances, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling, uint64_t seed,
    uint32_t dropped, float scale, int threads, int half
) {
    ptrdiff_t tiles = (width + TILE - 1) / TILE;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        float slopes[width];
        ptrdiff_t begin = row * width;
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            ptrdiff_t from = tile * TILE;
            int count = (int)(width - from < TILE ? width - from : TILE);
            if (dropped) {
                float factors[TILE];
                kept((uint64_t)(row * tiles + tile), seed, dropped, scale, factors);
                #pragma omp simd
                for (int at = 0; at < count; at++) slopes[from + at] = load(gradient, begin + from + at, half) * factors[at];
            } else {
                #pragma omp simd
                for (int at = 0; at < count; at++) slopes[from + at] = load(gradient, begin + from + at, half);
            }
        }
        float dot = 0.0f;
        #pragma omp simd reduction(+ : dot)
        for (ptrdiff_t at = 0; at < width; at++) dot += slopes[at] * load(chances, begin + at, half);
        #pragma omp simd
        for (ptrdiff_t at = 0; at < width; at++)
            store(to, begin + at, load(chances, begin + at, half) * (slopes[at] - dot) * scaling, half);
    }
}

void cursus_softmax_backward(
    const void *gradient, const void *chances, void *to, ptrdiff_t rows, ptrdiff_t width, float scaling, uint64_t seed,
    uint32_t dropped, float scale, int threads, int half
) {
    if (half) softmax_backward(gradient, chances, to, rows, width, scaling, seed, dropped, scale, threads, 1);
    else softmax_backward(gradient, chances, to, rows, width, scaling, seed, dropped, scale, threads, 0);
}

/* ---- cross-entropy over a vocabulary, and its gradient ---------------------------------------------------------------------- */

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

/* ---- layer normalisation ----------------------------------------------------------------------------------------------------- */

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

/* ---- sums of columns: the gradient of a bias ----------------------------------------------------------------------------------- */

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
