/* From one row per token to one row per token and head, and back: heads are then contiguous, and products need no
   copy. */

#include "vectors.h"

/* from: [batch, length, count, heads, size], e.g. the product with query, key and value; to: [count, batch, heads,
   length, size]. All bfloat16, size in whole vectors. bias: float32 [count, heads, size], or null. */
void cursus_split_heads(
    const void *from, const float *bias, void *to, ptrdiff_t batch, ptrdiff_t length, ptrdiff_t count, ptrdiff_t heads,
    ptrdiff_t size, int threads
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < batch * length; row++) {
        ptrdiff_t text = row / length, token = row % length, read = row * count * heads * size;
        for (ptrdiff_t kind = 0; kind < count; kind++) {
            for (ptrdiff_t head = 0; head < heads; head++) {
                ptrdiff_t write = (((kind * batch + text) * heads + head) * length + token) * size;
                ptrdiff_t place = (kind * heads + head) * size;
                for (ptrdiff_t at = 0; at < size; at += VECTOR) {
                    Halves values = take_halves(from, read + place + at);
                    if (bias) values = to_halves(to_reals(values) + take(bias, place + at, 0));
                    put_halves(to, write + at, values);
                }
            }
        }
    }
}

/* The inverse. sums: float32 [parts, count, heads, size], sums over each part of the tokens, or null. */
void cursus_join_heads(
    const void *from, void *to, float *sums, ptrdiff_t batch, ptrdiff_t length, ptrdiff_t count, ptrdiff_t heads,
    ptrdiff_t size, ptrdiff_t parts, int threads
) {
    ptrdiff_t rows = batch * length, width = count * heads * size;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *sum = sums ? sums + part * width : 0;
        for (ptrdiff_t at = 0; sums && at < width; at++) sum[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            ptrdiff_t text = row / length, token = row % length;
            for (ptrdiff_t kind = 0; kind < count; kind++) {
                for (ptrdiff_t head = 0; head < heads; head++) {
                    ptrdiff_t read = (((kind * batch + text) * heads + head) * length + token) * size;
                    ptrdiff_t place = (kind * heads + head) * size;
                    for (ptrdiff_t at = 0; at < size; at += VECTOR) {
                        Halves values = take_halves(from, read + at);
                        put_halves(to, row * width + place + at, values);
                        if (sums) put(sum, place + at, take(sum, place + at, 0) + to_reals(values), 0);
                    }
                }
            }
        }
    }
}
