/* Vectors of sixteen elements, for kernels whose rows are whole vectors wide. The compiler maps them to the processor's
   registers; where it does not find the best instruction by itself, intrinsics are used. */

#pragma once

#include "scalars.h"

#include <string.h>

#define VECTOR 16

typedef float Reals __attribute__((vector_size(64)));
typedef int32_t Masks __attribute__((vector_size(64))); /* result of a comparison: all bits set, or none */
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

INLINE Reals all(float value) { return value - (Reals){0.0f}; }

INLINE Reals to_reals(Halves values) {
#ifdef __AVX512F__
    return (Reals)((Words)_mm512_cvtepu16_epi32((__m256i)values) << 16);
#else
    return (Reals)(__builtin_convertvector(values, Words) << 16);
#endif
}

/* As `to_bfloat16`. */
INLINE Halves to_halves(Reals values) {
#ifdef __AVX512BF16__
    return (Halves)_mm512_cvtneps_pbh((__m512)values); /* denormals become 0 */
#else
    Words bits = (Words)values, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    Words wrong = (Words)((bits & 0x7fffffffu) > 0x7f800000u);
    return __builtin_convertvector((rounded & ~wrong) | (wrong & (NO_NUMBER >> 16)), Halves);
#endif
}

INLINE Halves take_halves(const void *from, ptrdiff_t at) {
    Halves values;
    memcpy(&values, (const uint16_t *)from + at, sizeof values);
    return values;
}

INLINE void put_halves(void *to, ptrdiff_t at, Halves values) { memcpy((uint16_t *)to + at, &values, sizeof values); }

INLINE Reals take(const void *from, ptrdiff_t at, int half) {
    if (half) return to_reals(take_halves(from, at));
    Reals values;
    memcpy(&values, (const float *)from + at, sizeof values);
    return values;
}

INLINE void put(void *to, ptrdiff_t at, Reals values, int half) {
    if (half) put_halves(to, at, to_halves(values));
    else memcpy((float *)to + at, &values, sizeof values);
}

/* The first `count` of sixteen elements, all of them if `count` is larger; the others are 0. */
INLINE Reals take_some(const void *from, ptrdiff_t at, ptrdiff_t count, int half) {
    if (count >= VECTOR) return take(from, at, half);
    float values[VECTOR] = {0.0f};
    for (ptrdiff_t some = 0; some < count; some++) values[some] = load(from, at + some, half);
    return take(values, 0, 0);
}

INLINE void put_some(void *to, ptrdiff_t at, Reals values, ptrdiff_t count, int half) {
    if (count >= VECTOR) {
        put(to, at, values, half);
        return;
    }
    float some[VECTOR];
    put(some, 0, values, 0);
    for (ptrdiff_t one = 0; one < count; one++) store(to, at + one, some[one], half);
}

/* `yes` where left < right. */
INLINE Reals where_less(Reals left, Reals right, Reals yes, Reals no) {
#ifdef __AVX512F__
    return (Reals)_mm512_mask_blend_ps(
        _mm512_cmp_ps_mask((__m512)left, (__m512)right, _CMP_LT_OQ), (__m512)no, (__m512)yes
    );
#else
    Masks answers = left < right;
    return (Reals)(((Masks)yes & answers) | ((Masks)no & ~answers));
#endif
}

INLINE Reals lesser(Reals left, Reals right) {
#ifdef __AVX512F__
    return (Reals)_mm512_min_ps((__m512)left, (__m512)right);
#else
    return where_less(left, right, left, right);
#endif
}

/* Sum of all sixteen, always in the same order. */
INLINE float sum_of(Reals values) {
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)values);
#else
    float parts[VECTOR];
    memcpy(parts, &values, sizeof parts);
    for (int stride = VECTOR / 2; stride; stride /= 2)
        for (int at = 0; at < stride; at++) parts[at] += parts[at + stride];
    return parts[0];
#endif
}

INLINE float most_of(Reals values) {
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)values);
#else
    float parts[VECTOR], most;
    put(parts, 0, values, 0);
    most = parts[0];
    for (int at = 1; at < VECTOR; at++) most = parts[at] > most ? parts[at] : most;
    return most;
#endif
}

/* As `is_nan_or_inf`. */
INLINE Masks are_wrong(Reals values) {
    Words bits = (Words)values;
    return ((bits & 0x7fffffffu) > 0x7f800000u) | (bits == 0x7f800000u);
}

/* Maximum of the bits without their signs; at least that of infinity where an element is NaN. */
INLINE Words most_bits(Words most, Reals values) {
    Words bits = (Words)values & 0x7fffffffu;
#ifdef __AVX512F__
    return (Words)_mm512_max_epu32((__m512i)most, (__m512i)bits);
#else
    Words more = (Words)(bits > most);
    return (bits & more) | (most & ~more);
#endif
}

INLINE int any(Masks answers) {
#ifdef __AVX512F__
    return _mm512_test_epi32_mask((__m512i)answers, (__m512i)answers) != 0;
#else
    int32_t found = 0;
    for (int at = 0; at < VECTOR; at++) found |= answers[at];
    return found != 0;
#endif
}

INLINE Reals greater(Reals left, Reals right) {
#ifdef __AVX512F__
    return (Reals)_mm512_max_ps((__m512)left, (__m512)right);
#else
    return where_less(left, right, right, left);
#endif
}

/* e^x for x ≤ 0, with relative error 2e-7 + 1e-7 |x| (2^f by a polynomial of degree five, |f| ≤ 1/2); below -87 it is
   e^-87: 1.6e-38. */
INLINE Reals exponentials_above_nothing(Reals x) {
    Reals near = greater(x, all(-87.0f));
    /* adding 1.5 · 2^23 puts the integer part of the exponent into the lowest bits */
    Reals shifted = near * 1.44269504f + 12582912.0f, rest = near * 1.44269504f - (shifted - 12582912.0f);
    Reals sum = rest * 1.326471839e-3f + 9.671513261e-3f;
    sum = sum * rest + 5.550733773e-2f;
    sum = sum * rest + 2.402224207e-1f;
    sum = sum * rest + 6.931469776e-1f;
    sum = sum * rest + 1.0f;
    return (Reals)((Words)sum + ((Words)shifted << 23));
}

/* The same, but 0 below -87. */
INLINE Reals exponentials(Reals x) { return where_less(x, all(-87.0f), all(0.0f), exponentials_above_nothing(x)); }

/* Mean of `values`, float32 [width] in whole vectors, whose sum is `sum`, and the reciprocal of their standard
   deviation. */
INLINE void moments(const float *values, ptrdiff_t width, Reals sum, float epsilon, float *mean, float *steep) {
    Reals squares = all(0.0f);
    *mean = sum_of(sum) / (float)width;
    for (ptrdiff_t at = 0; at < width; at += VECTOR) {
        Reals stride = take(values, at, 0) - *mean;
        squares += stride * stride;
    }
    *steep = 1.0f / sqrtf(sum_of(squares) / (float)width + epsilon);
}

/* Which of TILE elements dropout keeps: one bit each, in groups of sixteen. */
typedef uint16_t Kept[TILE / VECTOR];

INLINE void keep(uint64_t tile, uint64_t seed, uint32_t dropped, Kept bits) {
    if (!dropped) {
        memset(bits, 0xff, sizeof(Kept));
        return;
    }
    uint32_t words[4][LANES];
    philox(tile * LANES, seed, words);
    for (int word = 0; word < 4; word++) {
#ifdef __AVX512BW__
        __m512i drawn = _mm512_loadu_si512(words[word]);
        uint32_t of_word = _mm512_cmpge_epu16_mask(drawn, _mm512_set1_epi16((short)dropped));
#else
        uint32_t of_word = 0;
        for (int lane = 0; lane < LANES; lane++) {
            of_word |= (uint32_t)((words[word][lane] & 0xffffu) >= dropped) << 2 * lane;
            of_word |= (uint32_t)((words[word][lane] >> 16) >= dropped) << (2 * lane + 1);
        }
#endif
        bits[2 * word] = (uint16_t)of_word;
        bits[2 * word + 1] = (uint16_t)(of_word >> 16);
    }
}

/* 0 where the bit is 0, else scaled. */
INLINE Reals dropped_out(Reals values, uint16_t bits, float scale) {
#ifdef __AVX512F__
    return (Reals)_mm512_maskz_mul_ps(bits, (__m512)values, _mm512_set1_ps(scale));
#else
    const Words places = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    return (Reals)((Words)(values * scale) & (Words)((places & bits) != 0));
#endif
}
