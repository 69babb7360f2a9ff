/* Scalar operations: bfloat16 conversion, NaN tests, random numbers.

   Every result is a function of its arguments alone, for any number of threads: rows do not depend on each other, and
   sums over rows are computed in a fixed number of parts. `half` means that a tensor is bfloat16, else it is
   float32. */

#pragma once

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* Compiled with -ffinite-math-only, since a maximum or a selection is not vectorised otherwise. NaN is therefore
   detected by its bits, where a step must notice it. */
#define NO_NUMBER 0x7fc00000u

/* ---- bfloat16 ---------------------------------------------------------------------------------------------------- */

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

/* Whether a value is NaN or +infinity. */
INLINE uint32_t is_nan_or_inf(float value) {
    uint32_t bits = to_bits(value);
    return (bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u;
}

/* Rounded to nearest, ties to even; NaN stays NaN. */
INLINE uint16_t to_bfloat16(float value) {
    uint32_t bits = to_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? NO_NUMBER >> 16 : rounded);
}

INLINE float load(const void *from, ptrdiff_t at, int half) {
    return half ? from_bits((uint32_t)((const uint16_t *)from)[at] << 16) : ((const float *)from)[at];
}

INLINE void store(void *to, ptrdiff_t at, float value, int half) {
    if (half) ((uint16_t *)to)[at] = to_bfloat16(value);
    else ((float *)to)[at] = value;
}

#define LANES 16

/* ---- random numbers: Philox 4x32-10 (Salmon et al. 2011) --------------------------------------------------------- */

#define TILE 128 /* LANES blocks of four words, each word two decisions */

/* Words of the blocks `first` … `first` + LANES - 1 under the key `seed`. */
#ifdef __AVX512F__
/* A word is in the lower half of each eight bytes, as the multiplication needs it; the upper half holds rests of
   earlier products. */
INLINE void philox(uint64_t first, uint64_t seed, uint32_t words[4][LANES]) {
    const __m512i one = _mm512_set1_epi64(0xD2511F53), two = _mm512_set1_epi64(0xCD9E8D57);
    __m512i a[2], b[2], c[2], d[2];
    for (int half = 0; half < 2; half++) {
        a[half] = _mm512_add_epi64(
            _mm512_set1_epi64((int64_t)first + 8 * half), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
        );
        b[half] = _mm512_srli_epi64(a[half], 32);
        c[half] = d[half] = _mm512_setzero_si512();
    }
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        __m512i lows = _mm512_set1_epi32((int)low), highs = _mm512_set1_epi32((int)high);
        for (int half = 0; half < 2; half++) {
            __m512i left = _mm512_mul_epu32(a[half], one), right = _mm512_mul_epu32(c[half], two);
            /* exclusive or of three */
            a[half] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(right, 32), b[half], lows, 0x96);
            c[half] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(left, 32), d[half], highs, 0x96);
            b[half] = right;
            d[half] = left;
        }
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    const __m512i *from[4] = {a, b, c, d};
    for (int word = 0; word < 4; word++) {
        __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        _mm512_storeu_si512(words[word], _mm512_permutex2var_epi32(from[word][0], even, from[word][1]));
    }
}
#else
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
            uint32_t a = (uint32_t)(two >> 32) ^ words[1][lane] ^ low,
                c = (uint32_t)(one >> 32) ^ words[3][lane] ^ high;
            words[1][lane] = (uint32_t)two;
            words[3][lane] = (uint32_t)one;
            words[0][lane] = a;
            words[2][lane] = c;
        }
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
}
#endif
