r"""Coloured Gaussian field: a smooth picture whose channels are correlated, completed by its posterior mean.

The picture x of H x W pixels and C channels is a constant per channel plus a Gaussian field,

    x ~ N(offset, (Q (x) S^-1)^-1),    Q = (L + delta I) (L + eps I)^(p - 1),

where L is the Laplacian of the grid with free (Neumann) borders, so that the discrete cosine transform diagonalises Q,
and S the C x C covariance of the channels, learnt together with the field. Over more than a few pixels the field is a
membrane: inside a hole its mean is the harmonic surface that its surroundings carry, and does not return to the offset,
for delta is next to nothing. An observed entry is x + N(0, noise_variance). With D the diagonal precision of the
observations (0 where nothing was observed), the posterior is N(offset + u, A^-1) with

    A = Q (x) S^-1 + D,    A u = D (y - offset);

without noise A is restricted to the missing entries, and A_mm u = -(Q (x) S^-1)_mo (y - offset). Both are solved by
conjugate gradients, but for few whole pixels that are missing, without noise and with a whole number p: there A_mm is
Q_mm (x) S^-1, u does not depend on S, and Q_mm, which couples near pixels only, has a sparse factor. The preconditioner
is R [W (Q / q + d I)^-1 W + I - W^2] R, where R is, pixel by pixel, the symmetric root of the inverse of the pixel's
block q S^-1 + D (q: the mean eigenvalue of Q), and W^2 is the share of the prior in the precision of an entry, 1 where
it is missing. A posterior sample is u + A^-1 b with b ~ N(0, A) (perturb and optimise). S is the fixed point of

    S = E[x^T Q x | y] / (H W),

an EM iteration with one sample for the expectation, accelerated by extrapolation.

Pictures of more than `WHOLE` pixels are worked on in windows with a margin, those with something to estimate only, and
pixels farther than `REACH` from anything observed are estimated on a coarser grid first. What is many channels is taken
in groups of at most `COUPLED` consecutive ones, each with a covariance of its own.

References
----------
F. Lindgren, H. Rue, J. Lindstrom: An explicit link between Gaussian fields and Gaussian Markov random fields, J. R.
Stat. Soc. B, 2011. R. Varadhan, C. Roland: Simple and globally convergent methods for accelerating the convergence of
any EM algorithm (SQUAREM), Scand. J. Stat., 2008. P. Siden, F. Lindgren, D. Bolin, M. Villani: Efficient covariance
approximations for large sparse precision matrices, J. Comput. Graph. Stat., 2018.
"""

from .factored import Factors
from .pieces import MARGIN
from .solve import STEPS, Field, Prior, fit, sample, solve, solve_with_sd
from .spectrum import EXPONENT

__all__ = ["EXPONENT", "MARGIN", "STEPS", "Factors", "Field", "Prior", "fit", "sample", "solve", "solve_with_sd"]
