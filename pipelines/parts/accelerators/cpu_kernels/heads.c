/* From one row a token to one row a token and head, and back: what products of heads read without a copy. */

#include "vectors.h"

/* from: [batch, length, count, heads, size], e.g. of a product that says query, key and value; to: [count, batch, heads, length, size].
   All bfloat16, size in whole vectors. bias: float32 [count, heads, size], or null. */
void cursus_split_heads(
    const void *from, const float *bias, void *to, ptrdiff_t batch, ptrdiff_t length, ptrdiff_t count, ptrdiff_t heads, ptrdiff_t size,
    int threads
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
                    if (bias) values = narrowed(widened(values) + take(bias, place + at, 0));
                    put_halves(to, write + at, values);
                }
            }
        }
    }
}

/* The other way. sums: float32 [parts, count, heads, size], over the tokens by part of them, or null. */
void cursus_join_heads(
    const void *from, void *to, float *sums, ptrdiff_t batch, ptrdiff_t length, ptrdiff_t count, ptrdiff_t heads, ptrdiff_t size,
    ptrdiff_t parts, int threads
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
                        if (sums) put(sum, place + at, take(sum, place + at, 0) + widened(values), 0);
                    }
                }
            }
        }
    }
}
