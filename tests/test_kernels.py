"""The compiled kernels against their plain twins in reference.py, and the same bits for any number of threads."""

import inspect
import threading
import time
from dataclasses import astuple, replace

import numba
import numpy as np
import pytest
import reference
from joint import draw_prior
from threadpoolctl import threadpool_limits

from tdc_cli import library_threads
from tdc_cli.kernels import run_shares
from tdc_cli.model import kernels, sampler
from tdc_cli.model import problem as problem_module
from tdc_cli.model.coherence import Coherence
from tdc_cli.model.problem import Problem
from tdc_cli.model.state import Priors
from tdc_cli.tensor import Observed

# Orders 2, 3, 4 and 6; the last has rows of more than BLOCK entries. Entries are missing, among them the last row of
# mode 1.
SHAPES = [(5, 7), (4, 6, 5), (3, 4, 2, 3), (2, 3, 2, 2, 3, 2), (2, 41, 30)]
RANKS = [1, 3]
MANY_THREADS = min(2, numba.config.NUMBA_NUM_THREADS)


def public_kernels():
    functions = {name: getattr(f, "py_func", f) for name, f in vars(kernels).items() if name[0] != "_"}
    return {name: f for name, f in functions.items() if inspect.isfunction(f) and f.__module__ == kernels.__name__}


class Given:
    """Random arguments of every kernel for one shape and rank."""

    def __init__(self, shape, rank, mode, seed=0):
        rng = np.random.default_rng(seed)
        observed = rng.random(shape) < 0.7
        observed[:, -1] = False
        self.data = Observed.of(rng.standard_normal(shape), observed)
        self.problem = Problem.of(self.data)
        self.mode, self.rank, self.rng = mode, rank, rng
        self.stack = rng.standard_normal((sum(shape), rank))
        self.first = self.problem.first
        self.weights = rng.standard_normal(rank)
        self.precisions = rng.gamma(2.0, size=self.data.size)
        self.targets = rng.standard_normal(self.data.size)
        self.residuals = rng.standard_normal(self.data.size)

    def batch(self):
        return self.problem.batches[self.mode][0]

    def sums(self, module, batch=None, mode=None):
        """Gram matrices (NaN where nothing is written) and right sides, by the kernel of `module`."""
        batch = batch or self.batch()
        grams = np.full((len(batch.begins), self.rank, self.rank), np.nan)
        products = np.full((len(batch.begins), self.rank), np.nan)
        mode = self.mode if mode is None else mode
        module.segment_products(self.stack, self.first, self.data.coordinates, self.data.order[self.mode], batch.begins,
                                batch.ends, mode, self.precisions, self.targets, grams, products)
        return grams, products


def cases(test):
    modes = [(shape, mode) for shape in SHAPES for mode in range(len(shape))]
    return pytest.mark.parametrize("rank", RANKS)(pytest.mark.parametrize("shape, mode", modes)(test))


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1):
        yield


def test_every_public_kernel_has_a_twin():
    assert len(public_kernels()) >= 7
    for name, kernel in public_kernels().items():
        twin = getattr(reference, name)
        assert list(inspect.signature(twin).parameters) == list(inspect.signature(kernel).parameters), name


@pytest.mark.parametrize("threads", [1, MANY_THREADS])
@pytest.mark.parametrize("count, share", [(0, 4), (3, 4), (4, 4), (1000, 16), (1001, 1)])
def test_shares_cover_everything_once(count, share, threads):
    parts = []
    with library_threads.kernels(threads):
        run_shares(lambda first, last, found: found.append((first, last)), count, share, parts)
    assert [n for first, last in sorted(parts) for n in range(first, last)] == list(range(count))
    assert all(first % share == 0 for first, _ in parts)


def test_what_fails_in_a_share_fails():
    def fail(first, last):
        if last == 100:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_shares(fail, 100, 1)


def test_what_is_not_compiled_yet_is_compiled_by_the_thread_that_calls():
    """One that helps does not hear Ctrl-C."""
    threads = []

    class Kernel:
        signatures = []

        def __call__(self, first, last):
            if not self.signatures:
                threads.append(threading.current_thread())
                time.sleep(0.05)
                self.signatures.append("compiled")

    with library_threads.kernels(MANY_THREADS):
        run_shares(Kernel(), 100, 1)
    assert threads == [threading.current_thread()]


def test_every_kernel_is_compared_in_this_file():
    source = inspect.getsource(inspect.getmodule(test_every_kernel_is_compared_in_this_file))
    for name in public_kernels():
        assert f".{name}(" in source, name


@cases
def test_segment_products(shape, mode, rank):
    given = Given(shape, rank, mode)
    for left_out in (mode, -1):
        ref, comp = given.sums(reference, mode=left_out), given.sums(kernels, mode=left_out)
        upper = (..., *np.triu_indices(rank))
        np.testing.assert_allclose(comp[0][upper], ref[0][upper], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(comp[1], ref[1], rtol=1e-12, atol=1e-12)


def test_rows_longer_than_a_block():
    given = Given(SHAPES[-1], 3, 0)
    assert np.diff(given.data.offsets[0]).min() > 2 * kernels.BLOCK
    assert np.diff(given.data.offsets[0]).min() % kernels.BLOCK


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_segments_add_up(shape, rank, monkeypatch):
    """A row that is cut into segments gets the same law as in one piece, by kernel and by twin."""
    whole = Given(shape, rank, 0)
    monkeypatch.setattr(problem_module, "SMALLEST_SEGMENT", 4)
    monkeypatch.setattr(problem_module, "MOST_SEGMENTS_A_ROW", 7)
    cut = Given(shape, rank, 0)
    assert len(cut.batch().begins) > len(whole.batch().begins)
    results = []
    for given, module in ((whole, kernels), (cut, kernels), (cut, reference)):
        batch = given.batch()
        grams, products = given.sums(module)
        rows = np.empty((shape[0], rank))
        gram, product = np.empty((rank, rank)), np.empty(rank)
        module.contract_rows(grams, products, batch.owners, given.stack[:shape[0]], gram, product)
        module.draw_rows(grams, products, batch.bounds, given.weights, np.ones(shape[0]), np.ones((shape[0], rank)),
                         np.ones((shape[0], rank)), rows)
        results.append((rows, gram, product))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


@cases
def test_contract_rows(shape, mode, rank):
    given = Given(shape, rank, mode)
    grams, products = given.sums(reference)
    factor = given.stack[given.first[mode]:given.first[mode] + shape[mode]]
    got = []
    for module in (kernels, reference):
        gram, product = np.empty((rank, rank)), np.empty(rank)
        module.contract_rows(grams, products, given.batch().owners, factor, gram, product)
        got.append((gram, product))
    for comp, ref in zip(*got):
        np.testing.assert_allclose(comp, ref, rtol=1e-12, atol=1e-12)
    # what it is for: the sums over all modes' products, without a pass over the entries
    b = reference._products(given.stack, given.first, given.data.coordinates, -1)
    np.testing.assert_allclose(got[0][0], (b * given.precisions[:, None]).T @ b, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got[0][1], (given.precisions * given.targets) @ b, rtol=1e-10, atol=1e-10)


@cases
def test_draw_rows(shape, mode, rank):
    given = Given(shape, rank, mode)
    m = shape[mode]
    diagonals, shifts = given.rng.gamma(2.0, size=m), given.rng.standard_normal((m, rank))
    noise = given.rng.standard_normal((m, rank))
    got = []
    for module in (kernels, reference):
        rows = np.empty((m, rank))
        module.draw_rows(*given.sums(module), given.batch().bounds, given.weights, diagonals, shifts, noise, rows)
        got.append(rows)
    np.testing.assert_allclose(got[0], got[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_and_covariance_of_drawn_rows(shape):
    """Noise 0 gives the mean, noise e_j column j of the covariance's root: both against the precision written out."""
    rank, mode = 3, 1
    given = Given(shape, rank, mode)
    m = shape[mode]
    diagonals, shifts = given.rng.gamma(2.0, size=m), given.rng.standard_normal((m, rank))

    def draw(noise):
        rows = np.empty((m, rank))
        noises = np.tile(noise, (m, 1))
        kernels.draw_rows(*given.sums(kernels), given.batch().bounds, given.weights, diagonals, shifts, noises, rows)
        return rows

    mean = draw(np.zeros(rank))
    root = np.stack([draw(np.eye(rank)[j]) - mean for j in range(rank)], axis=-1)
    c = reference._products(given.stack, given.first, given.data.coordinates, mode) * given.weights
    for i in range(m):
        mine = given.data.coordinates[mode] == i
        precision = (c[mine] * given.precisions[mine, None]).T @ c[mine] + diagonals[i] * np.eye(rank)
        right = (given.precisions[mine] * given.targets[mine]) @ c[mine] + shifts[i]
        np.testing.assert_allclose(precision @ mean[i], right, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(root[i] @ root[i].T @ precision, np.eye(rank), atol=1e-9)
    np.testing.assert_allclose(mean[-1], shifts[-1] / diagonals[-1])  # the empty row echoes its prior


def test_a_precision_that_is_not_positive_definite_gives_nan():
    for module in (kernels, reference):
        rows, nothing = np.zeros((2, 2)), np.zeros((2, 2))
        grams = np.stack([np.eye(2), -np.eye(2)])
        module.draw_rows(
            grams, nothing.copy(), np.array([0, 1, 2]), np.ones(2), np.full(2, 0.5), nothing, nothing, rows
        )
        assert np.isfinite(rows[0]).all() and np.isnan(rows[1]).all()


@cases
def test_cp_at(shape, mode, rank):
    given = Given(shape, rank, mode)
    got = np.empty((2, given.data.size))
    for out, module in zip(got, (kernels, reference)):
        module.cp_at(given.stack, given.first, given.data.coordinates, given.weights, out)
    np.testing.assert_allclose(got[0], got[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weights", [(1.0,), (0.3, 0.7), (0.2, 0.0, 0.5, 0.3), (0.0, 1.0, 0.0)])
def test_draw_labels(weights):
    rng = np.random.default_rng(1)
    n, count = 2 * kernels.CHUNK + 17, len(weights)
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.array(weights))
    means, variances = rng.standard_normal(count), rng.gamma(2.0, size=count)
    residuals, uniforms = 2.0 * rng.standard_normal(n), rng.random(n)
    uniforms[:2] = 0.0, 1.0 - 2.0**-53
    got = np.full((2, n), -1)
    for labels, module in zip(got, (kernels, reference)):
        module.draw_labels(residuals, log_weights, means, variances, uniforms, labels)
    np.testing.assert_array_equal(got[0], got[1])
    assert set(np.unique(got[0])) == set(np.flatnonzero(weights))


@pytest.mark.parametrize("weights", [(1.0,), (0.3, 0.7), (0.2, 0.0, 0.5, 0.3)])
def test_expected_labels(weights):
    rng = np.random.default_rng(2)
    n, count = kernels.CHUNK + 17, len(weights)
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.array(weights))
    means, variances = rng.standard_normal(count), rng.gamma(2.0, size=count) + 0.1
    residuals = 2.0 * rng.standard_normal(n)
    got = np.full((2, 3, n), np.nan)
    for out, module in zip(got, (kernels, reference)):
        module.expected_labels(residuals, log_weights, means, variances, *out)
    np.testing.assert_allclose(got[0], got[1], rtol=1e-10, atol=1e-10)


def test_labels_far_from_every_component():
    """Where every density underflows the nearest component, in units of its spread, is still found."""
    labels = np.empty(2, dtype=np.int64)
    kernels.draw_labels(
        np.array([-1e6, 1e6]), np.log([0.5, 0.5]), np.array([-1.0, 1.0]), np.ones(2), np.full(2, 0.5), labels
    )
    assert labels.tolist() == [0, 1]


@cases
def test_draw_weights_one_by_one(shape, mode, rank):
    given = Given(shape, rank, mode)
    variances, noise = given.rng.gamma(2.0, size=rank), given.rng.standard_normal(rank)
    got = []
    for module in (kernels, reference):
        residuals, weights = given.residuals.copy(), given.weights.copy()
        module.draw_weights_one_by_one(
            given.stack, given.first, given.data.coordinates, 2.5, variances, noise, residuals, weights
        )
        got.append(np.append(weights, residuals))
    np.testing.assert_allclose(got[0], got[1], rtol=1e-10, atol=1e-10)


@cases
def test_draw_rows_one_by_one(shape, mode, rank):
    given = Given(shape, rank, mode)
    rows = np.arange(0, shape[mode], 2)
    diagonals, shifts = given.rng.gamma(2.0, size=len(rows)), given.rng.standard_normal((len(rows), rank))
    noise = given.rng.standard_normal((len(rows), rank))
    got = []
    for module in (kernels, reference):
        stack, residuals = given.stack.copy(), given.residuals.copy()
        module.draw_rows_one_by_one(
            stack,
            given.first,
            given.data.coordinates,
            given.data.order[mode],
            given.data.offsets[mode],
            mode,
            rows,
            2.5,
            given.weights,
            diagonals,
            shifts,
            noise,
            residuals,
        )
        got.append(np.append(stack.ravel(), residuals))
    np.testing.assert_allclose(got[0], got[1], rtol=1e-10, atol=1e-10)


def bits(state):
    """Everything in a state as bytes."""
    fields = [field if isinstance(field, tuple) else (field,) for field in astuple(state)]
    return b"".join(np.asarray(part).tobytes() for field in fields for part in field)


def run(problem, start, sweep, sweeps, threads):
    rng = np.random.default_rng(5)
    with library_threads.kernels(threads):
        return [state for _, state in zip(range(sweeps), sampler.chain(problem, start, rng, sweep))]


@pytest.mark.parametrize("coherent", [False, True], ids=["plain", "coherent"])
@pytest.mark.parametrize("sweep", sampler.SWEEPS.values(), ids=list(sampler.SWEEPS))
def test_one_and_two_threads_give_the_same_bits(sweep, coherent):
    shape, rank = (30, 23, 12), 7
    priors = Priors(factor_strength=1.0, factor_shape=2.0, factor_rate=1.0, residual_strength=1.0, residual_shape=3.0,
                    residual_rate=1.0, concentration=1.0, kappa_shape=3.0, kappa_rate=2.0)
    rng = np.random.default_rng(3)
    observed = rng.random(shape) < 0.8
    coherences = tuple(Coherence.of(n, 0.8, 2.0) for n in shape[:2]) + (None,) if coherent else None
    state, values = draw_prior(shape, observed, rank, 3, priors, rng, noise_precision=10.0, coherences=coherences)
    tensor = np.zeros(shape)
    tensor[observed] = values
    problem = Problem.of(Observed.of(tensor, observed), priors, coherences=coherences)
    assert problem.data.size > kernels.CHUNK
    start = replace(state, noise_precision=10.0)
    one = run(problem, start, sweep, 4, 1)
    many = run(problem, start, sweep, 4, MANY_THREADS)
    assert [bits(s) for s in one] == [bits(s) for s in many]
    assert bits(one[0]) != bits(one[1])


def test_segments_have_the_same_bits_with_one_and_two_threads(monkeypatch):
    """Few rows, many segments: the case in which threads share a row."""
    monkeypatch.setattr(problem_module, "SMALLEST_SEGMENT", 64)
    given = Given((2, 41, 30), 5, 0)
    assert len(given.batch().begins) > 10
    sums = []
    for threads in (1, MANY_THREADS):
        with library_threads.kernels(threads):
            grams, products = given.sums(kernels)
        sums.append((grams.tobytes(), products.tobytes()))
    assert sums[0] == sums[1]


def test_few_segments_at_a_time_give_the_same_draws(monkeypatch):
    """Rows drawn in many small batches, to bound the memory, are the rows drawn in one."""
    shape, rank = (30, 23, 3), 4
    rng = np.random.default_rng(3)
    observed = rng.random(shape) < 0.8
    priors = Priors(factor_strength=1.0, factor_shape=2.0, factor_rate=1.0, residual_strength=1.0, residual_shape=3.0,
                    residual_rate=1.0, concentration=1.0, kappa_shape=3.0, kappa_rate=2.0)
    state, _ = draw_prior(shape, observed, rank, 2, priors, rng, noise_precision=10.0)
    state = replace(state, noise_precision=10.0)
    data = Observed.of(rng.standard_normal(shape), observed)
    batches, draws = [], []
    for most in (1000, 5):
        monkeypatch.setattr(problem_module, "SEGMENTS_AT_A_TIME", most)
        monkeypatch.setattr(sampler, "SEGMENTS_AT_A_TIME", most)
        problem = Problem.of(data, priors)
        batches.append(len(problem.batches[0]))
        draws.append(sampler.draw_low_rank(problem, state, np.random.default_rng(1)))
    assert batches == [1, 6]
    for one, other in zip(draws[0].factors, draws[1].factors):
        np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-8)
