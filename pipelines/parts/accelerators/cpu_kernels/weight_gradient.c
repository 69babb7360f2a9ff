/* gradientᵀ · rows, the gradient of a weight, in the processor's matrix tiles (Intel AMX).

   The product sums over rows, which are contiguous in neither factor: a library transposes one of them in memory first.
   Here each factor is packed as the tiles need it, a block of rows at a time that stays in the cache. Each element is
   written by one thread, and rows are summed in a fixed order: the result does not depend on the number of threads. */

#include "vectors.h"

#ifdef __AMX_BF16__

#include <sys/syscall.h>
#include <unistd.h>

#define SIDE 16 /* side of a tile, in float32 elements */
#define DEPTH 32 /* rows that one tile sums over */
#define TILE_BYTES 1024
#define PAIR (2 * SIDE)

/* On Linux a process must request permission to use the tile registers. */
void cursus_has_tiles(int32_t *answer) { *answer = syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

INLINE __m512i of_row(const uint16_t *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t width) {
    return row < rows ? _mm512_loadu_si512(from + row * width) : _mm512_setzero_si512();
}

/* Columns of a PAIR alternate between its two tiles in groups of four, which is how the processor interleaves two rows
   at once. */
INLINE ptrdiff_t column(ptrdiff_t tile, ptrdiff_t at) { return at / 4 * 8 + tile * 4 + at % 4; }

/* Transpose sixteen by sixteen words. */
INLINE void mirrored(__m512i words[SIDE]) {
    __m512i other[SIDE];
    #pragma GCC unroll 8
    for (int at = 0; at < SIDE; at += 2) {
        other[at] = _mm512_unpacklo_epi32(words[at], words[at + 1]);
        other[at + 1] = _mm512_unpackhi_epi32(words[at], words[at + 1]);
    }
    #pragma GCC unroll 4
    for (int at = 0; at < SIDE; at += 4) {
        words[at] = _mm512_unpacklo_epi64(other[at], other[at + 2]);
        words[at + 1] = _mm512_unpackhi_epi64(other[at], other[at + 2]);
        words[at + 2] = _mm512_unpacklo_epi64(other[at + 1], other[at + 3]);
        words[at + 3] = _mm512_unpackhi_epi64(other[at + 1], other[at + 3]);
    }
    #pragma GCC unroll 4
    for (int at = 0; at < 4; at++) {
        other[at] = _mm512_shuffle_i32x4(words[at], words[at + 4], 0x88);
        other[at + 4] = _mm512_shuffle_i32x4(words[at], words[at + 4], 0xdd);
        other[at + 8] = _mm512_shuffle_i32x4(words[at + 8], words[at + 12], 0x88);
        other[at + 12] = _mm512_shuffle_i32x4(words[at + 8], words[at + 12], 0xdd);
    }
    #pragma GCC unroll 4
    for (int at = 0; at < 4; at++) {
        words[at] = _mm512_shuffle_i32x4(other[at], other[at + 8], 0x88);
        words[at + 8] = _mm512_shuffle_i32x4(other[at], other[at + 8], 0xdd);
        words[at + 4] = _mm512_shuffle_i32x4(other[at + 4], other[at + 12], 0x88);
        words[at + 12] = _mm512_shuffle_i32x4(other[at + 4], other[at + 12], 0xdd);
    }
}

/* Pack DEPTH rows of a PAIR of columns into two tiles, `stride` bytes from each other: two rows interleaved in each of
   sixteen vectors, the layout of a right factor; transposed, that of a left one. */
INLINE void pack(
    const uint16_t *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t width, int left, char *to, ptrdiff_t stride
) {
    __m512i first[SIDE], second[SIDE];
    #pragma GCC unroll 16
    for (int pair = 0; pair < SIDE; pair++) {
        __m512i even = of_row(from, row + 2 * pair, rows, width), odd = of_row(from, row + 2 * pair + 1, rows, width);
        first[pair] = _mm512_unpacklo_epi16(even, odd);
        second[pair] = _mm512_unpackhi_epi16(even, odd);
        if (left) continue;
        _mm512_store_si512(to + 64 * pair, first[pair]);
        _mm512_store_si512(to + stride + 64 * pair, second[pair]);
    }
    if (!left) return;
    mirrored(first);
    mirrored(second);
    #pragma GCC unroll 16
    for (int at = 0; at < SIDE; at++) {
        _mm512_store_si512(to + 64 * at, first[at]);
        _mm512_store_si512(to + stride + 64 * at, second[at]);
    }
}

INLINE void configure(void) {
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } told __attribute__((aligned(64))) = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        told.bytes[tile] = 64;
        told.rows[tile] = SIDE;
    }
    _tile_loadconfig(&told);
}

/* Add left [PAIR, DEPTH · steps] · right [DEPTH · steps, PAIR] to four tiles at `sums`. */
INLINE void add_product(
    const char *left, ptrdiff_t stride, const char *right, int steps, float *sums, int first, const uint16_t *soon,
    ptrdiff_t width, int count
) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, 64);
        _tile_loadd(1, sums + 256, 64);
        _tile_loadd(2, sums + 512, 64);
        _tile_loadd(3, sums + 768, 64);
    }
    for (int step = 0; step < steps; step++) {
        for (int one = 0; one < count; one++)
            _mm_prefetch((const char *)(soon + (step * count + one) * width), _MM_HINT_T1);
        _tile_loadd(4, left + step * TILE_BYTES, 64);
        _tile_loadd(6, right + 2 * step * TILE_BYTES, 64);
        _tile_loadd(7, right + (2 * step + 1) * TILE_BYTES, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, left + stride + step * TILE_BYTES, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
}

/* Store the four tiles into float32 `to`, whose rows are `width` elements long; transposed where the factors were
   swapped, and with non-temporal stores if `past`, where no cache could hold the result: memory is then not read
   first. */
INLINE void unpack(const float *sums, float *to, ptrdiff_t width, int swapped, int past) {
    const __m512i low = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i high = _mm512_set_epi32(31, 30, 29, 28, 15, 14, 13, 12, 27, 26, 25, 24, 11, 10, 9, 8);
    for (int down = 0; down < 2; down++) {
        __m512i words[2][SIDE];
        for (int along = 0; along < 2; along++) {
            const float *tile = sums + (swapped ? 2 * along + down : 2 * down + along) * SIDE * SIDE;
            for (int at = 0; at < SIDE; at++) words[along][at] = _mm512_loadu_si512(tile + at * SIDE);
            if (swapped) mirrored(words[along]);
        }
        for (int at = 0; at < SIDE; at++) {
            float *row = to + column(down, at) * width;
            __m512i one = _mm512_permutex2var_epi32(words[0][at], low, words[1][at]);
            __m512i other = _mm512_permutex2var_epi32(words[0][at], high, words[1][at]);
            if (past) {
                _mm512_stream_si512((void *)row, one);
                _mm512_stream_si512((void *)(row + SIDE), other);
            } else {
                _mm512_storeu_si512(row, one);
                _mm512_storeu_si512(row + SIDE, other);
            }
        }
    }
}

/* left: bfloat16 [rows, high], right: bfloat16 [rows, wide], both in whole PAIRs. to: float32 [high, wide], or [wide,
   high] if `swapped`. `depth` tiles of rows are packed at a time. scratch: for each thread `depth` tiles of left and of
   a PAIR of columns of right; and all sums, unless `depth` covers all rows; aligned to cache lines. `past`: whether
   `to` exceeds the cache. */
void cursus_weight_gradient(
    const uint16_t *left, const uint16_t *right, float *to, char *scratch, ptrdiff_t rows, ptrdiff_t high,
    ptrdiff_t wide, int swapped, int depth, int past, int threads
) {
    ptrdiff_t tall = high / PAIR, across = wide / PAIR, own = (tall + 1) * 2 * depth * TILE_BYTES;
    int at_once = rows <= depth * DEPTH;
    float *sums = (float *)(scratch + threads * own);
    #pragma omp parallel num_threads(threads)
    {
        float few[PAIR * PAIR] __attribute__((aligned(64)));
        char *lefts = scratch + omp_get_thread_num() * own, *packed = lefts + tall * 2 * depth * TILE_BYTES;
        ptrdiff_t each = omp_get_num_threads(), number = omp_get_thread_num();
        ptrdiff_t from = across * number / each, end = across * (number + 1) / each;
        configure();
        for (ptrdiff_t row = 0; row < rows && from < end; row += depth * DEPTH) {
            int steps = (int)((rows - row + DEPTH - 1) / DEPTH);
            if (steps > depth) steps = depth;
            for (int step = 0; step < steps; step++)
                for (ptrdiff_t block = 0; block < tall; block++)
                    pack(
                        left + block * PAIR, row + step * DEPTH, rows, high, 1,
                        lefts + (2 * block * depth + step) * TILE_BYTES, depth * TILE_BYTES
                    );
            for (ptrdiff_t strip = from; strip < end; strip++) {
                for (int step = 0; step < steps; step++)
                    pack(
                        right + strip * PAIR, row + step * DEPTH, rows, wide, 0, packed + 2 * step * TILE_BYTES,
                        TILE_BYTES
                    );
                const uint16_t *soon = strip + 1 < end
                    ? right + row * wide + (strip + 1) * PAIR
                    : right + (row + steps * DEPTH) * wide + from * PAIR;
                int count = (int)((DEPTH + tall - 1) / tall);
                for (ptrdiff_t block = 0; block < tall; block++) {
                    float *four = at_once ? few : sums + (strip * tall + block) * PAIR * PAIR;
                    add_product(
                        lefts + block * 2 * depth * TILE_BYTES, depth * TILE_BYTES, packed, steps, four, row == 0,
                        soon + block * steps * count * wide, wide, count
                    );
                    if (row + depth * DEPTH >= rows)
                        unpack(
                            four,
                            to + (swapped ? strip * PAIR * high + block * PAIR : block * PAIR * wide + strip * PAIR),
                            swapped ? high : wide, swapped, past
                        );
                }
            }
        }
        if (past) _mm_sfence();
        _tile_release();
    }
}

#else

void cursus_has_tiles(int32_t *answer) { *answer = 0; }

void cursus_weight_gradient(
    const uint16_t *left, const uint16_t *right, float *to, char *scratch, ptrdiff_t rows, ptrdiff_t high,
    ptrdiff_t wide, int swapped, int depth, int past, int threads
) {
    (void)left, (void)right, (void)to, (void)scratch, (void)rows, (void)high, (void)wide, (void)swapped, (void)depth,
        (void)past, (void)threads;
}

#endif
