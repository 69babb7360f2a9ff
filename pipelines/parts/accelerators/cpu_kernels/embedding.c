/* Gradients of embedding tables: the rows that were looked up, each with the sum of its gradients. */

#include "scalars.h"

/* ids: int64 [number], below `height`; those equal to `skipped` are left out. rows: int64 [number], the distinct ids,
   ascending, of which `found` are written. order: int32 [number], the positions of the ids grouped by row; those of row
   i begin at begins[i], int32 [number + 1]. scratch: int32 [height]. */
void cursus_rows(
    const int64_t *ids, ptrdiff_t number, ptrdiff_t height, int64_t skipped, int64_t *rows, int32_t *order,
    int32_t *begins, int32_t *scratch, int64_t *found
) {
    for (ptrdiff_t row = 0; row < height; row++) scratch[row] = 0;
    for (ptrdiff_t at = 0; at < number; at++) scratch[ids[at]]++;
    int32_t before = 0;
    int64_t count = 0;
    for (ptrdiff_t row = 0; row < height; row++) {
        int32_t times = scratch[row];
        if (!times || row == skipped) continue;
        rows[count] = row;
        begins[count++] = before;
        scratch[row] = before;
        before += times;
    }
    begins[count] = before;
    for (ptrdiff_t at = 0; at < number; at++) {
        if (ids[at] != skipped) order[scratch[ids[at]]++] = (int32_t)at;
    }
    *found = count;
}

#define STRIP 64

INLINE void row_sum(
    const float *from, const int32_t *order, const int32_t *end, float *to, ptrdiff_t width, int columns
) {
    float sums[STRIP] = {0.0f};
    for (; order < end; order++) {
        const float *one = from + *order * width;
        #pragma omp simd
        for (int column = 0; column < columns; column++) sums[column] += one[column];
    }
    for (int column = 0; column < columns; column++) to[column] = sums[column];
}

/* sums: float32 [rows, width]. from: float32 [ids, width]. */
void cursus_row_sums(
    const float *from, const int32_t *order, const int32_t *begins, float *sums, ptrdiff_t rows, ptrdiff_t width,
    int threads
) {
    /* strips of rows, assigned in turn: most ids may belong to a few rows, or to one */
    #pragma omp parallel for collapse(2) schedule(static, 1) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t at = 0; at < width; at += STRIP) {
            const int32_t *first = order + begins[row], *last = order + begins[row + 1];
            float *to = sums + row * width + at;
            if (width - at >= STRIP) row_sum(from + at, first, last, to, width, STRIP);
            else row_sum(from + at, first, last, to, width, (int)(width - at));
        }
    }
}

/* Add `values`, float32 [count, width], to the `rows` of to, float32 [height, width]; each row occurs once. */
void cursus_add_rows(
    float *to, const int64_t *rows, const float *values, ptrdiff_t count, ptrdiff_t width, int threads
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < count; row++) {
        float *restrict one = to + rows[row] * width;
        const float *restrict more = values + row * width;
        #pragma omp simd
        for (ptrdiff_t column = 0; column < width; column++) one[column] += more[column];
    }
}

/* ids: int64 [number], below `height`. rows: int64 [height], the distinct ids, ascending, of which `found` are written.
   slots: int64 [number], the index of each id among them. scratch: int64 [height]. */
void cursus_slots(
    const int64_t *ids, ptrdiff_t number, ptrdiff_t height, int64_t *rows, int64_t *slots, int64_t *scratch,
    int64_t *found
) {
    int64_t count = 0;
    for (ptrdiff_t row = 0; row < height; row++) scratch[row] = 0;
    for (ptrdiff_t at = 0; at < number; at++) scratch[ids[at]] = 1;
    for (ptrdiff_t row = 0; row < height; row++) {
        if (!scratch[row]) continue;
        rows[count] = row;
        scratch[row] = count++;
    }
    for (ptrdiff_t at = 0; at < number; at++) slots[at] = scratch[ids[at]];
    *found = count;
}

/* A look-up whose gradient is summed: row r of a batch adds to row slots[r] of sums, float32 [height, width]. */
typedef struct { int64_t sums, slots; } Scatter;

INLINE void scatter_strip(
    const float *from, const Scatter *lookups, int number, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t at, int columns
) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *restrict one = from + row * width + at;
        for (int lookup = 0; lookup < number; lookup++) {
            int64_t slot = ((const int64_t *)lookups[lookup].slots)[row];
            float *restrict to = (float *)lookups[lookup].sums + slot * width + at;
            #pragma omp simd
            for (int column = 0; column < columns; column++) to[column] += one[column];
        }
    }
}

/* Add each row of from, float32 [rows, width], to one row of the sums of each look-up; several may share their sums.
   A thread has strips of columns of its own, so that sums do not depend on the number of threads. */
void cursus_scatter(
    const float *from, const Scatter *lookups, int number, ptrdiff_t rows, ptrdiff_t width, int threads
) {
    #pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (ptrdiff_t at = 0; at < width; at += STRIP) {
        if (width - at >= STRIP) scatter_strip(from, lookups, number, rows, width, at, STRIP);
        else scatter_strip(from, lookups, number, rows, width, at, (int)(width - at));
    }
}
