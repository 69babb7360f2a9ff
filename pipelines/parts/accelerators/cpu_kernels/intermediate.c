/* The inner layer of a feed-forward network: bias and GELU. */

#include "vectors.h"

#define FARTHEST 5.0f
#define TERMS 12

/* GELU is x · Φ(x). Φ(x) - 1/2 is odd, and so is the derivative minus 1/2: both are x times a polynomial of x², which
   needs no exponential. Minimax fit for |x| ≤ FARTHEST, in 2x² / FARTHEST² - 1: maximum error 9e-7 of Φ, 1.3e-5 of the
   derivative. Below that range both are taken as 0 (true values: 3e-7 and 8e-6), above it as 1. */
static const float SHARES[TERMS] = {
    0.141363606f, -0.0702976882f, 0.0515348502f, -0.0404097624f, 0.0312585272f, -0.0234790072f,
    0.0172561388f, -0.0106231151f, 0.00462776003f, -0.00328721362f, 0.00342821563f, -0.00137251825f,
};
static const float SLOPES[TERMS] = {
    0.142130584f, -0.0751227811f, 0.0668261796f, -0.0715419501f, 0.0770893842f, -0.085355334f,
    0.0951199681f, -0.0684483275f, 0.0212280862f, -0.0277212113f, 0.0465146862f, -0.0207203627f,
};

INLINE Reals sigmoid_like(Reals x, const float *terms) {
    Reals most = all(FARTHEST), near = lesser(x, most), place = near * near * (2.0f / FARTHEST / FARTHEST) - 1.0f;
    Reals sum = all(terms[TERMS - 1]);
    #pragma GCC unroll 12
    for (int term = TERMS - 2; term >= 0; term--) sum = sum * place + terms[term];
    return where_less(x, -most, all(0.0f), near * sum + 0.5f);
}

/* product, to: bfloat16 [rows, width]. */
void cursus_gelu(const void *product, const float *bias, void *to, ptrdiff_t rows, ptrdiff_t width, int threads) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t at = 0; at < width; at += VECTOR) {
            Reals x = take(product, row * width + at, 1) + take(bias, at, 0);
            put(to, row * width + at, x * sigmoid_like(x, SHARES), 1);
        }
    }
}

/* sums: float32 [parts, width], the gradient `to` summed over each part of the rows. */
void cursus_gelu_backward(
    const void *gradient, const void *product, const float *bias, void *to, float *sums, ptrdiff_t rows,
    ptrdiff_t width, ptrdiff_t parts, int threads
) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t part = 0; part < parts; part++) {
        float *sum = sums + part * width;
        for (ptrdiff_t at = 0; at < width; at++) sum[at] = 0.0f;
        for (ptrdiff_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            for (ptrdiff_t at = 0; at < width; at += VECTOR) {
                Reals x = take(product, row * width + at, 1) + take(bias, at, 0);
                Reals slope = take(gradient, row * width + at, 1) * sigmoid_like(x, SLOPES);
                put(to, row * width + at, slope, 1);
                put(sum, at, take(sum, at, 0) + slope, 0);
            }
        }
    }
}
