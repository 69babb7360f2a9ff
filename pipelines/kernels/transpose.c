/* The transpose of a bfloat16 matrix, squares of 16 by 16 in registers. */

#include "common.h"

#define SIDE 16
#define STRIP 64 /* columns of a strip: its part of a row is two lines of memory */

typedef uint32_t vector __attribute__((vector_size(64)));
typedef uint16_t narrow_vector __attribute__((vector_size(32)));

#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOOSE(a, b, ...) __builtin_shuffle(a, b, (vector){__VA_ARGS__})
#endif

/* Exchange of the off-diagonal blocks of rows `one` and `other`, which are the width of a block apart. */
#define EXCHANGE(one, other, FIRST, SECOND) do { \
        vector above = one, below = other; \
        one = CHOOSE(above, below, FIRST); \
        other = CHOOSE(above, below, SECOND); \
    } while (0)

#define FIRST8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define SECOND8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define FIRST4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define SECOND4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define FIRST2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define SECOND2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define FIRST1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define SECOND1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31

INLINE void turn(vector *rows) {
    for (int at = 0; at < 8; at++) EXCHANGE(rows[at], rows[at + 8], FIRST8, SECOND8);
    for (int at = 0; at < 16; at++) if (!(at & 4)) EXCHANGE(rows[at], rows[at + 4], FIRST4, SECOND4);
    for (int at = 0; at < 16; at++) if (!(at & 2)) EXCHANGE(rows[at], rows[at + 2], FIRST2, SECOND2);
    for (int at = 0; at < 16; at++) if (!(at & 1)) EXCHANGE(rows[at], rows[at + 1], FIRST1, SECOND1);
}

INLINE void square(const uint16_t *from, ptrdiff_t from_stride, void *to, ptrdiff_t to_stride, int half) {
    vector rows[SIDE];
    #pragma GCC unroll 16
    for (int at = 0; at < SIDE; at++) {
        narrow_vector read;
        __builtin_memcpy(&read, from + at * from_stride, sizeof read);
        rows[at] = __builtin_convertvector(read, vector) << 16;
    }
    turn(rows);
    #pragma GCC unroll 16
    for (int at = 0; at < SIDE; at++) {
        if (half) {
            narrow_vector said = __builtin_convertvector(rows[at] >> 16, narrow_vector);
            __builtin_memcpy((uint16_t *)to + at * to_stride, &said, sizeof said);
        } else __builtin_memcpy((float *)to + at * to_stride, &rows[at], sizeof rows[at]);
    }
}

INLINE void transpose(const uint16_t *from, ptrdiff_t stride, void *to, ptrdiff_t to_stride, ptrdiff_t rows, ptrdiff_t width, int threads, int half) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t begin = 0; begin < width; begin += STRIP) {
        ptrdiff_t end = begin + STRIP < width ? begin + STRIP : width;
        for (ptrdiff_t row = 0; row < rows; row += SIDE) {
            for (ptrdiff_t column = begin; column < end; column += SIDE) {
                if (row + SIDE <= rows && column + SIDE <= width) {
                    void *into = half ? (void *)((uint16_t *)to + column * to_stride + row) : (void *)((float *)to + column * to_stride + row);
                    square(from + row * stride + column, stride, into, to_stride, half);
                    continue;
                }
                for (ptrdiff_t one = row; one < rows && one < row + SIDE; one++)
                    for (ptrdiff_t at = column; at < width && at < column + SIDE; at++)
                        store(to, at * to_stride + one, load(from, one * stride + at, 1), half);
            }
        }
    }
}

/* to: [width, rows] with rows `to_stride` apart, bfloat16 where `half`, else float32; of `from`, bfloat16 [rows, width], `stride` apart. */
void cursus_transpose(
    const uint16_t *from, ptrdiff_t stride, void *to, ptrdiff_t to_stride, ptrdiff_t rows, ptrdiff_t width, int threads, int half
) {
    if (half) transpose(from, stride, to, to_stride, rows, width, threads, 1);
    else transpose(from, stride, to, to_stride, rows, width, threads, 0);
}
