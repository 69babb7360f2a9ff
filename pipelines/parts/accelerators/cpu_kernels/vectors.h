/* Sixteen numbers at a time, for kernels whose rows are whole vectors wide. The compiler makes of them what the processor has; what it
   does not find by itself is said with the processor's own words. */

#pragma once

#include "scalars.h"

#include <string.h>

#define VECTOR 16

typedef float Reals __attribute__((vector_size(64)));
typedef int32_t Answers __attribute__((vector_size(64))); /* of a comparison: all bits or none */
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

INLINE Reals all(float value) { return value - (Reals){0.0f}; }

INLINE Reals widened(Halves values) {
#ifdef __AVX512F__
    return (Reals)((Words)_mm512_cvtepu16_epi32((__m256i)values) << 16);
#else
    return (Reals)(__builtin_convertvector(values, Words) << 16);
#endif
}

/* As `narrow`. */
INLINE Halves narrowed(Reals values) {
#ifdef __AVX512BF16__
    return (Halves)_mm512_cvtneps_pbh((__m512)values); /* what is denormal becomes 0 */
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
    if (half) return widened(take_halves(from, at));
    Reals values;
    memcpy(&values, (const float *)from + at, sizeof values);
    return values;
}

INLINE void put(void *to, ptrdiff_t at, Reals values, int half) {
    if (half) put_halves(to, at, narrowed(values));
    else memcpy((float *)to + at, &values, sizeof values);
}

/* The first `count` of sixteen, or all where there are more; the others are 0. */
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
    return (Reals)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)left, (__m512)right, _CMP_LT_OQ), (__m512)no, (__m512)yes);
#else
    Answers answers = left < right;
    return (Reals)(((Answers)yes & answers) | ((Answers)no & ~answers));
#endif
}

INLINE Reals lesser(Reals left, Reals right) {
#ifdef __AVX512F__
    return (Reals)_mm512_min_ps((__m512)left, (__m512)right);
#else
    return where_less(left, right, left, right);
#endif
}

/* Of all sixteen, always in the same order. */
INLINE float sum_of(Reals values) {
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)values);
#else
    float parts[VECTOR];
    memcpy(parts, &values, sizeof parts);
    for (int apart = VECTOR / 2; apart; apart /= 2)
        for (int at = 0; at < apart; at++) parts[at] += parts[at + apart];
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

/* As `is_wrong`. */
INLINE Answers are_wrong(Reals values) {
    Words bits = (Words)values;
    return ((bits & 0x7fffffffu) > 0x7f800000u) | (bits == 0x7f800000u);
}

/* Of the bits without their signs: the most that has been seen, which is that of an infinity or more where a number is none. */
INLINE Words most_bits(Words most, Reals values) {
    Words bits = (Words)values & 0x7fffffffu;
#ifdef __AVX512F__
    return (Words)_mm512_max_epu32((__m512i)most, (__m512i)bits);
#else
    Words more = (Words)(bits > most);
    return (bits & more) | (most & ~more);
#endif
}

INLINE int any(Answers answers) {
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

/* e^x of x ≤ 0, to 2e-7 + 1e-7 |x| of itself (2^f by a polynomial of the fifth degree, |f| ≤ 1/2); below -87 it is e^-87: 1.6e-38. */
INLINE Reals exponentials_above_nothing(Reals x) {
    Reals near = greater(x, all(-87.0f));
    /* 1.5 · 2^23 is added: the whole part of the power is then in the lowest bits */
    Reals shifted = near * 1.44269504f + 12582912.0f, rest = near * 1.44269504f - (shifted - 12582912.0f);
    Reals sum = rest * 1.326471839e-3f + 9.671513261e-3f;
    sum = sum * rest + 5.550733773e-2f;
    sum = sum * rest + 2.402224207e-1f;
    sum = sum * rest + 6.931469776e-1f;
    sum = sum * rest + 1.0f;
    return (Reals)((Words)sum + ((Words)shifted << 23));
}

/* The same, but that below -87 it is 0. */
INLINE Reals exponentials(Reals x) { return where_less(x, all(-87.0f), all(0.0f), exponentials_above_nothing(x)); }

/* The mean of `values`, float32 [width] in whole vectors, whose sum is `sum`, and one over their deviation. */
INLINE void moments(const float *values, ptrdiff_t width, Reals sum, float epsilon, float *mean, float *steep) {
    Reals squares = all(0.0f);
    *mean = sum_of(sum) / (float)width;
    for (ptrdiff_t at = 0; at < width; at += VECTOR) {
        Reals apart = take(values, at, 0) - *mean;
        squares += apart * apart;
    }
    *steep = 1.0f / sqrtf(sum_of(squares) / (float)width + epsilon);
}

/* Of TILE places, which dropout keeps: for each sixteen of them a bit each. */
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
