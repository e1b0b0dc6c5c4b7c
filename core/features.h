/* A random feature map as the core takes it: scaling of raw inputs, the product with the frequencies, the waves. */
#ifndef FEATURES_H
#define FEATURES_H
#include <stdint.h>

typedef struct {
    int64_t n_inputs;       /* entries of a raw input */
    int64_t n_frequencies;  /* L */
    int64_t stride;         /* of frequencies: L padded to whole vectors */
    int64_t size;           /* of features: D padded to whole vectors */
    int64_t n_lifted;       /* rows of frequencies: inputs of the product */
    int64_t scaled;         /* whether raw inputs are scaled: then the fields below have a meaning */
    int64_t n_columns;      /* inputs that vary */
    int64_t n_direct;       /* scaled inputs that stand behind the waves */
    int64_t last;           /* whether a 1 stands behind them */
    double scale;           /* L^(-1/2) */
    double share;           /* of a direct input in the features */
    double most;            /* a scaled input is clipped to this */
    const void* frequencies;  /* (n_lifted, stride) in the working precision */
    const int64_t* columns;
    const double* centre;
    const double* spread;
} Features;

#endif
