/* Sixteen numbers at a time, for kernels whose rows are whole vectors wide. The compiler makes of them what the processor has; what it
   does not find by itself is said with the processor's own words. */

#pragma once

#include "common.h"

#include <string.h>

#define VECTOR 16

typedef float Reals __attribute__((vector_size(64)));
typedef int32_t Answers __attribute__((vector_size(64))); /* of a comparison: all bits or none */
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

INLINE Reals all(float value) { return value - (Reals){0.0f}; }

INLINE Reals widened(Halves values) { return (Reals)(__builtin_convertvector(values, Words) << 16); }

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

INLINE Reals chosen(Answers answers, Reals yes, Reals no) {
    return (Reals)(((Answers)yes & answers) | ((Answers)no & ~answers));
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

/* Dropout's factors for `count` ≤ TILE places, as `kept` draws them, at `factors`; drawn or not, they can be multiplied with. */
INLINE void factors_of(uint64_t tile, uint64_t seed, uint32_t dropped, float scale, float *factors) {
    if (dropped) kept(tile, seed, dropped, scale, factors);
    else for (int at = 0; at < TILE; at++) factors[at] = 1.0f;
}
