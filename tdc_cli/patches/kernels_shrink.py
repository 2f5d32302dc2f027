"""Compiled shrinking of the singular values of groups of patches; `kernels` says how pictures, clips and patches are
laid out.
"""

import numpy as np
from numba import njit

from ..kernels import INNER, OUTER, foreign, run_shares
from .kernels import SHARE, _take

_ssyrk = foreign("ssyrk", "cython_blas", 10)
_ssyevr = foreign("ssyevr", "cython_lapack", 21)
_UPPER_OF_ROWS = ord("L")  # Fortran sees the row-major upper triangle as a column-major lower one


@njit(**INNER)
def _eigenpairs_above(matrix, bound, values, vectors, supports, work, integers):
    """Eigenvalues above `bound` of a symmetric matrix, which is overwritten, and their vectors as rows; returns how
    many.
    """
    count = len(matrix)
    letters = np.array([ord("V"), ord("V"), _UPPER_OF_ROWS], np.uint8)
    sizes = np.array([count, len(work), len(integers), 0, 0, 0, 0], np.int32)
    scalars = np.array([bound, np.inf, 0.0], np.float32)
    _ssyevr(
        letters.ctypes,
        letters[1:].ctypes,
        letters[2:].ctypes,
        sizes.ctypes,
        matrix.ctypes,
        sizes.ctypes,
        scalars.ctypes,
        scalars[1:].ctypes,
        sizes[4:].ctypes,
        sizes[4:].ctypes,
        scalars[2:].ctypes,
        sizes[5:].ctypes,
        values.ctypes,
        vectors.ctypes,
        sizes.ctypes,
        supports.ctypes,
        work.ctypes,
        sizes[1:].ctypes,
        integers.ctypes,
        sizes[2:].ctypes,
        sizes[6:].ctypes,
    )
    return sizes[5]


@njit(**OUTER)
def _shrink(first, last, image, groups, frame, depth, size, noise, estimates, variances):
    """`shrink` for the groups `first` to ``last - 1``, in one workspace."""
    members = groups.shape[1]
    length = depth * image.shape[0] * size * size
    longer, ratio = max(members, length), min(members, length) / max(members, length)
    patches = np.empty((members, length), np.float32)
    mean = np.empty(length, np.float32)
    gram, vectors = np.empty((members, members), np.float32), np.empty((members, members), np.float32)
    values, along = np.empty(members, np.float32), np.empty(length, np.float32)
    supports, integers = np.empty(2 * members, np.int32), np.empty(10 * members, np.int32)
    work = np.empty(26 * members, np.float32)
    for g in range(first, last):
        mean[:] = np.float32(0.0)
        for k in range(members):
            _take(image, groups[g, k], frame, depth, size, patches[k])
            mean += patches[k]
        mean /= np.float32(members)
        for k in range(members):
            patches[k] -= mean
            estimates[g, k] = mean
        letters = np.array([_UPPER_OF_ROWS, ord("T")], np.uint8)
        sizes = np.array([members, length], np.int32)
        scalars = np.array([1.0 / (noise * longer), 0.0], np.float32)
        _ssyrk(
            letters.ctypes,
            letters[1:].ctypes,
            sizes.ctypes,
            sizes[1:].ctypes,
            scalars.ctypes,
            patches.ctypes,
            sizes[1:].ctypes,
            scalars[1:].ctypes,
            gram.ctypes,
            sizes.ctypes,
        )
        found = _eigenpairs_above(gram, (1.0 + np.sqrt(ratio)) ** 2, values, vectors, supports, work, integers)
        freedom = 0.0
        for r in range(found):
            factor = np.sqrt(max((values[r] - ratio - 1.0) ** 2 - 4.0 * ratio, 0.0)) / values[r]
            freedom += factor
            along[:] = np.float32(0.0)
            for k in range(members):
                weight = vectors[r, k]
                for d in range(length):
                    along[d] += weight * patches[k, d]
            for k in range(members):
                weight = np.float32(factor) * vectors[r, k]
                result = estimates[g, k]
                for d in range(length):
                    result[d] += weight * along[d]
        variances[g] = np.float32(noise * (1.0 / members + freedom * (1.0 / members + 1.0 / length)))


def shrink(image, groups, frame, depth, size, noise, estimates, variances):
    """Every group with the singular values of its patches, less their mean, shrunk as white noise of a known variance
    asks.

    A singular value y of the K x D matrix, over the root of ``noise max(K, D)``, becomes ``sqrt((y^2 - b - 1)^2 - 4 b)
    / y`` with ``b = min(K, D) / max(K, D)``, and 0 where it is not above ``1 + sqrt(b)``: the best there is for large
    matrices (M. Gavish, D. Donoho: Optimal shrinkage of singular values, IEEE Trans. Inf. Theory, 2017).

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
        With noise.
    groups : (G, K) int32 ndarray
    frame, depth : int
        Rows of a frame, and frames of a patch.
    size : int
    noise : float32
        Variance, above 0.
    estimates : (G, K, D) float32 ndarray
        Written.
    variances : (G, K, D) float32 ndarray
        Written: of every entry of a group the noise that is left, ``noise (1/K + f (1/K + 1/D))`` with f the sum of the
        factors.
    """
    run_shares(_shrink, len(groups), SHARE, image, groups, frame, depth, size, noise, estimates, variances)
