"""The precision of the field as the discrete cosine transform has it; `tdc_cli.field` has the model."""

import functools

import numpy as np
import scipy.fft

# Exponent p of the field's precision, and eps, both found by trial on photographs; delta only keeps the mean of a
# window finite.
EXPONENT = 2.0
EPSILON = 0.5
DELTA = 1e-6


def dct(a, overwrite=False):
    return scipy.fft.dctn(a, type=2, axes=(1, 2), norm="ortho", workers=1, overwrite_x=overwrite)


def idct(a):
    return scipy.fft.idctn(a, type=2, axes=(1, 2), norm="ortho", workers=1, overwrite_x=True)


def laplacian(shape):
    """Eigenvalues of the Laplacian of a grid with free borders, in the order of the DCT, (H, W)."""
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape)
    return rows[:, None] + columns


def _density(eigenvalues, exponent, cell=1):
    """Eigenvalues of Q from those of the Laplacian, on a grid of squares of `cell` pixels."""
    return (eigenvalues + DELTA * cell**2) * (eigenvalues + EPSILON * cell**2) ** (exponent - 1)


@functools.lru_cache(maxsize=8)
def grid(shape, exponent, cell):
    """Mean eigenvalue q of Q on a grid of `shape` squares of `cell` pixels, the eigenvalues over q, and the diagonal of
    Q over q.

    The last two are (H, W); the diagonal is 1 but near the border.
    """
    eigenvalues = _density(laplacian(shape), exponent, cell)
    level = eigenvalues.mean()
    squares = [
        np.where(np.arange(n)[:, None], 1 + np.cos(np.pi * np.outer(np.arange(n), 2 * np.arange(n) + 1) / n), 1) / n
        for n in shape
    ]
    diagonal = np.einsum("kl,lj->kj", eigenvalues, squares[1])
    return level, eigenvalues / level, np.einsum("ki,kj->ij", squares[0], diagonal) / level
