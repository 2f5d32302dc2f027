"""The synthetic experiments of the paper: recovery, rank, and the fitted mixture, as Markdown tables.

Every run is a cell of a grid (kind of residual, rank, missing ratio, seed) and one record in the file of results; cells that the
file already holds are not run again, so an interrupted benchmark goes on where it stopped.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.stats import norm

from tdc_cli import synth
from tdc_cli.methods import datc
from tdc_cli.metrics import rre
from tdc_cli.model.diagnostics import worst_r_hat
from tdc_cli.model.posterior import Scale
from tdc_cli.model.problem import Problem
from tdc_cli.model.rank import noise_threshold, refit
from tdc_cli.model.state import State, unit_weights
from tdc_cli.tensor import Observed

NOISE_VARIANCE = 0.001
KINDS, FIT_KINDS, FIT_RATIO = ("mixture-shifted", "sparse", "zero"), ("sparse", "mixture", "mixture-shifted", "gaussian"), 0.7
# The method draws from a stream of its own: the problem's streams are [seed, 0] to [seed, 3].
METHOD_STREAM = 100
# A component counts as detectable if deleting it costs this many times what a component that fits only noise could gain.
DETECTABLE = 2.0
# Variance below which the maximum-likelihood mixture may not go: entries that are exactly 0 would make the likelihood infinite.
FLOOR = 1e-6
# Mixture parameters are compared where the weight is at least this and the variance at least the noise's.
LEAST_WEIGHT = 0.15
TOLERANCES = {"weight": 0.03, "mean": 0.03, "precision": 0.15}
DENSITY_LIMIT = 0.05
# RRE against L in the paper's table of performances, at 70, 80 and 90 % missing.
PAPER = {
    ("zero", 5): (0.0086, 0.0041, 0.0047), ("zero", 10): (0.0036, 0.0047, 0.0074),
    ("sparse", 5): (0.0285, 0.0307, 0.0351), ("sparse", 10): (0.0292, 0.0320, 0.0389),
    ("mixture-shifted", 5): (0.1829, 0.1960, 0.2038), ("mixture-shifted", 10): (0.1796, 0.1914, 0.2055),
}
# RRE of FBCP's own program on the three problems of --reference.
FBCP = {0.7: (0.0036, 0.0034, 0.0041), 0.8: (0.0040, 0.0047, 0.0312), 0.9: (0.0052, 0.0064, 0.0078)}
REFERENCE_RATIOS = {0.7: "observed70", 0.8: "observed80", 0.9: "observed90"}


# --- one run ------------------------------------------------------------------------------------------------


def run_cell(cell):
    """Record of one cell: draw the problem, complete it, measure."""
    if cell["kind"] == "reference":
        return cell | run_reference(cell)
    problem = synth.draw(rank=cell["rank"], kind=cell["kind"], missing_ratio=cell["ratio"], noise_std=np.sqrt(NOISE_VARIANCE),
                         seed=cell["seed"])
    completion, seconds = complete(problem.incomplete, problem.observed, cell["seed"])
    record = cell | of_method(completion, seconds)
    latent, missing, floor = problem.latent, ~problem.observed, problem.oracle_floor
    error = completion.mean - latent
    # the offset of the data belongs to E where there is one; without, all of the estimate is X
    low_rank = completion.mean if problem.kind == "zero" else completion.low_rank
    left = float(np.linalg.norm(error[missing]) / np.linalg.norm(latent))
    whole = rre(latent, completion.mean)
    record |= {
        "rre": whole, "rre_of_missing": rre(latent[missing], completion.mean[missing]), "floor": floor,
        "ratio_to_floor": whole / floor if floor else None, "missing_to_floor": left / floor if floor else None,
        "rre_low_rank": rre(problem.low_rank, low_rank), "rmse_low_rank": rms(low_rank - problem.low_rank),
        "rises": rises(problem, completion), "threshold": noise_threshold(problem.shape),
    }
    if problem.kind == "zero":
        record["rmse_least_squares"] = rms(least_squares(problem) - problem.low_rank)
        record["ratio_to_least_squares"] = record["rmse_low_rank"] / record["rmse_least_squares"]
    elif cell["ratio"] == FIT_RATIO:
        record["fit"] = compare_mixtures(problem, completion)
    return record


def run_reference(cell):
    """Record of one of the stored problems."""
    with np.load(cell["file"]) as held:
        truth, noisy, observed = held["truth"], held["noisy"], held[REFERENCE_RATIOS[cell["ratio"]]]
    completion, seconds = complete(np.where(observed, noisy, np.nan), observed, cell["seed"])
    return of_method(completion, seconds) | {"rre": rre(truth, completion.mean), "file": Path(cell["file"]).name}


def complete(values, observed, seed):
    """Completion by the method with its defaults and the noise given, and its seconds."""
    begin = time.perf_counter()
    completion = datc.complete(values, observed, datc.Config(noise_std=float(np.sqrt(NOISE_VARIANCE))),
                               rng=np.random.default_rng([seed, METHOD_STREAM]))
    return completion, time.perf_counter() - begin


def of_method(completion, seconds):
    """What the method says about its own run."""
    ess = [value for value in completion.diagnostics["ess"].values() if value is not None]
    name, r_hat = worst_r_hat(completion.diagnostics["r_hat"])
    return {
        "rank_found": completion.rank["value"], "rank_posterior": completion.rank["posterior"],
        "paper_count": completion.rank["paper_count"], "residual": completion.parameters["residual"],
        "held_out": completion.parameters.get("held_out_rmse"), "noise_std": completion.noise_std, "mixture": completion.mixture,
        "r_hat": r_hat, "r_hat_of": name, "ess": min(ess, default=None), "seconds": seconds,
        "warnings": list(completion.warnings),
    }


def rms(values):
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))


# --- the rank: is the weakest true component there to be found? ---------------------------------------------


def rises(problem, completion):
    """Rise of the deviance when the weakest true component is deleted and the others are refitted, under two mixtures.

    Returns
    -------
    dict
        ``true``: every part of the residual as one Gaussian with the part's mean and variance, and the true noise. It does not
        depend on how the run went. ``fitted``: the mixture that the run ended with.
    """
    parts = synth.KINDS[problem.kind]
    with np.errstate(divide="ignore"):
        precisions = 1.0 / np.array([part.variance for part in parts])
    true = [part.share for part in parts], [part.mean for part in parts], precisions, problem.noise_std
    mixture = completion.mixture
    if mixture is None:
        fitted = [1.0], [offset(problem, completion)], [np.inf], completion.noise_std
    else:
        fitted = mixture["weights"], mixture["means"], mixture["precisions"], completion.noise_std
    return {"true": rise(problem, *true), "fitted": rise(problem, *fitted)}


def rise(problem, shares, means, precisions, noise_std):
    """`rises` for one mixture, given in data units."""
    data = Observed.of(problem.incomplete, problem.observed)
    scale = Scale.of(data.values)
    model = Problem.of(replace(data, values=(data.values - scale.centre) / scale.spread))
    rank, order = problem.rank, len(problem.shape)
    state = State(
        weights=problem.weights / scale.spread, weight_variances=np.full(rank, 10.0), weight_rates=np.ones(rank),
        factors=problem.factors, factor_means=np.zeros(order), factor_precisions=np.ones(order),
        labels=np.zeros(data.size, dtype=np.int64), residuals=np.zeros(data.size),
        component_means=(np.array(means) - scale.centre) / scale.spread,
        component_precisions=np.array(precisions) * scale.spread**2, component_weights=np.array(shares),
        noise_precision=(scale.spread / noise_std) ** 2)
    state, whole = refit(model, state)
    _, without = refit(model, state.keep_components(np.arange(rank) != np.argmin(unit_weights(state))))
    return float(without - whole)


def offset(problem, completion):
    """Constant that the completion adds to its low-rank part at missing entries."""
    return float(np.mean((completion.mean - completion.low_rank)[~problem.observed]))


# --- kind zero: least squares from the truth ----------------------------------------------------------------


def least_squares(problem, most_steps=200):
    """Low-rank part by least squares on the noisy observed entries, true rank, started at the truth (Levenberg and Marquardt).

    Returns
    -------
    (n_1, ..., n_K) ndarray
    """
    coordinates = np.nonzero(problem.observed)
    values = problem.noisy[problem.observed]
    factors = [problem.factors[0] * problem.weights, *problem.factors[1:]]
    left = values - at(factors, coordinates)
    damping = 1e-6
    for _ in range(most_steps):
        slopes = jacobian(factors, coordinates)
        hessian, gradient = (slopes.T @ slopes).toarray(), slopes.T @ left
        before = left @ left
        while True:
            try:
                step = cho_solve(cho_factor(hessian + damping * np.eye(len(hessian))), gradient)
            except LinAlgError:
                damping *= 10.0
                continue
            pieces = np.split(step, np.cumsum([u.size for u in factors])[:-1])
            trial = [u + piece.reshape(u.shape) for u, piece in zip(factors, pieces)]
            trial_left = values - at(trial, coordinates)
            if trial_left @ trial_left <= before or damping > 1e12:
                break
            damping *= 10.0
        fall = before - trial_left @ trial_left
        if fall > 0:
            factors, left = trial, trial_left
        if fall < 1e-11 * before:
            break
        damping = max(damping / 10.0, 1e-9)
    return np.einsum("ir,jr,kr->ijk", *factors)


def at(factors, coordinates):
    """Value of the CP tensor at some entries."""
    return np.prod([u[c] for u, c in zip(factors, coordinates)], axis=0).sum(axis=1)


def jacobian(factors, coordinates):
    """Derivatives of `at` by all factor entries, sparse."""
    rows = [u[c] for u, c in zip(factors, coordinates)]
    count, rank = rows[0].shape
    first = np.cumsum([0, *(u.size for u in factors)])
    slopes = np.hstack([np.prod([row for j, row in enumerate(rows) if j != k], axis=0) for k in range(len(factors))])
    columns = np.hstack([first[k] + c[:, None] * rank + np.arange(rank) for k, c in enumerate(coordinates)])
    starts = np.arange(count + 1) * slopes.shape[1]
    return csr_array((slopes.ravel(), columns.ravel(), starts), shape=(count, first[-1]))


# --- the mixture --------------------------------------------------------------------------------------------


def compare_mixtures(problem, completion):
    """Fitted mixture against the maximum-likelihood mixture with as many components of the drawn residual, all entries of it.

    Returns
    -------
    dict
        ``pairs``: matched components with both sets of parameters. ``density_difference``: integral of the absolute difference of
        the densities; ``convolved`` says that both were convolved with the noise, because a component of either is narrower.
    """
    if completion.mixture is None:  # one Gaussian and no noise apart: the variance beyond the noise's is the residual's
        variance = max(completion.noise_std**2 - problem.noise_std**2, FLOOR)
        fitted = np.ones(1), np.array([offset(problem, completion)]), np.array([variance])
    else:
        mixture = completion.mixture
        fitted = np.array(mixture["weights"]), np.array(mixture["means"]), 1.0 / np.array(mixture["precisions"])
    best = maximum_likelihood(problem, fitted)
    noise = problem.noise_std**2
    mine, theirs = linear_sum_assignment(distances(fitted, best, noise))
    one, other = (np.array([weights, means, 1.0 / variances]) for weights, means, variances in (fitted, best))
    pairs = [{name: [float(one[i, a]), float(other[i, b])] for i, name in enumerate(TOLERANCES)} for a, b in zip(mine, theirs)]
    convolved = bool(min(fitted[2].min(), best[2].min()) < noise)
    extra = noise if convolved else 0.0
    return {"pairs": pairs, "density_difference": density_difference(fitted, best, extra), "convolved": convolved}


def distances(one, other, noise):
    """Distance of every component of one mixture from every one of another.

    One minus the overlap of the laws, as seen through the noise, plus the difference of the weights.
    """
    (w, m, v), (a, b, c) = (tuple(np.array(x) for x in mixture) for mixture in (one, other))
    v, c = v[:, None] + noise, c + noise
    overlap = np.sqrt(2 * np.sqrt(v * c) / (v + c)) * np.exp(-0.25 * (m[:, None] - b) ** 2 / (v + c))
    return 1.0 - overlap + np.abs(w[:, None] - a)


def density_difference(one, other, extra):
    """Integral of the absolute difference of two mixtures' densities, `extra` added to all variances."""
    sds = [np.sqrt(mixture[2] + extra) for mixture in (one, other)]
    low = min((mixture[1] - 8 * sd).min() for mixture, sd in zip((one, other), sds))
    high = max((mixture[1] + 8 * sd).max() for mixture, sd in zip((one, other), sds))
    # fine about every component, coarse elsewhere
    fine = [m + sd * np.linspace(-8, 8, 2001) for mixture, each in zip((one, other), sds) for m, sd in zip(mixture[1], each)]
    grid = np.unique(np.concatenate([np.linspace(low, high, 2001), *fine]))
    first, second = (norm.pdf(grid[:, None], mixture[1], sd) @ mixture[0] for mixture, sd in zip((one, other), sds))
    return float(np.trapezoid(np.abs(first - second), grid))


def maximum_likelihood(problem, fitted, random_starts=6):
    """Weights, means and variances of the most likely mixture of the drawn residual found from several starts.

    The starts: the fitted mixture, the population's parts where there are as many, and groups of residuals by distance from the
    median. A solution with a component of fewer than ten entries is a singularity of the likelihood and is left out.
    """
    values, counts = np.unique(problem.residual, return_counts=True)
    counts = counts.astype(float)
    number = len(fitted[0])
    starts = [(fitted[0], fitted[1], np.maximum(fitted[2], FLOOR))]
    parts = synth.KINDS[problem.kind]
    if len(parts) == number:
        starts.append(tuple(np.array(x) for x in ([p.share for p in parts], [p.mean for p in parts],
                                                  [max(p.variance, FLOOR) for p in parts])))
    rng = np.random.default_rng(0)
    near = np.argsort(np.abs(values - np.median(values)), kind="stable")
    for _ in range(random_starts if number > 1 else 1):
        groups = np.split(values[near], np.sort(rng.choice(np.arange(10, len(values) - 10), number - 1, replace=False)))
        weights = np.array([len(g) for g in groups]) / len(values)
        starts.append((weights, np.array([g.mean() for g in groups]), np.maximum([g.var() for g in groups], FLOOR)))
    fits = [maximise(values, counts, *start, steps=200) for start in starts]
    sound = [fit for fit in fits if fit[0].min() * counts.sum() >= 10] or fits
    sound.sort(key=lambda fit: -fit[3])
    finished = [maximise(values, counts, *fit[:3], steps=5000) for fit in sound[:2]]
    return max(finished, key=lambda fit: fit[3])[:3]


def maximise(values, counts, weights, means, variances, *, steps, tolerance=1e-10):
    """Expectation-maximisation; weights, means, variances, and the log likelihood before the last step."""
    before = -np.inf
    for _ in range(steps):
        with np.errstate(divide="ignore"):
            scores = (np.log(weights) - 0.5 * np.log(2 * np.pi * variances))[:, None]
        scores = scores - 0.5 * (values - means[:, None]) ** 2 / variances[:, None]
        top = scores.max(axis=0)
        shares = np.exp(scores - top)
        sums = shares.sum(axis=0)
        total = float(counts @ (top + np.log(sums)))
        shares *= counts / sums
        sizes = np.maximum(shares.sum(axis=1), 1e-300)
        weights, means = sizes / counts.sum(), shares @ values / sizes
        variances = np.maximum(np.array([s @ (values - m) ** 2 for s, m in zip(shares, means)]) / sizes, FLOOR)
        if total - before < tolerance * abs(total):
            break
        before = total
    return weights, means, variances, total


# --- the grid -----------------------------------------------------------------------------------------------


def grid(kinds, fit_kinds, ranks, ratios, seeds, reference):
    """All cells, seed by seed, so that the tables of an interrupted run already say something."""
    for seed in range(seeds):
        for rank in ranks:
            wanted = [(kind, ratio) for kind in kinds for ratio in ratios]
            wanted += [(kind, FIT_RATIO) for kind in fit_kinds if (kind, FIT_RATIO) not in wanted]
            for kind, ratio in wanted:
                yield {"kind": kind, "rank": rank, "ratio": ratio, "seed": seed}
    for file in sorted(reference.glob("zero_rank5_seed*.npz")) if reference else ():
        for ratio in REFERENCE_RATIOS:
            seed = int(file.stem.removeprefix("zero_rank5_seed"))
            yield {"kind": "reference", "rank": 5, "ratio": ratio, "seed": seed, "file": str(file)}


def key(cell):
    """What tells cells apart."""
    return cell["kind"], cell["rank"], cell["ratio"], cell["seed"]


def version():
    """Version of the code that ran, as git tells it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or None


def write(path, records):
    """Write the results in one go, so that an interruption leaves the old file or the new one."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"cells": records}, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def warm_up():
    """Compile or load the kernels, so that no cell's seconds count it."""
    datc.warm_up(3, datc.Config())


def run(cells, records, path, jobs):
    """Run the cells that `records` lacks, `jobs` at a time with one thread each; returns how many failed."""
    held = {key(record) for record in records}
    todo = [cell for cell in cells if key(cell) not in held]
    if not todo:
        return 0
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # the processes are spawned and read it before they load anything
    code, failures, begin = version(), 0, time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=warm_up) as pool:
        futures = {pool.submit(run_cell, cell): cell for cell in todo}
        try:
            for done, future in enumerate(as_completed(futures), 1):
                name = " ".join(str(part) for part in key(futures[future]))
                if error := future.exception():
                    failures += 1
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                    continue
                records.append(future.result() | {"version": code})
                write(path, records)
                print(f"{done}/{len(todo)} {time.perf_counter() - begin:.0f} s: {name}", file=sys.stderr)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failures


# --- the tables ---------------------------------------------------------------------------------------------


def table(title, head, rows):
    """Print a Markdown table, or nothing if it has no rows."""
    rows = list(rows)
    if not rows:
        return
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(field) for field in row)} |")


def groups(records, *names):
    """(values of the names, records) for all combinations that occur, sorted."""
    found = {}
    for record in records:
        found.setdefault(tuple(record[name] for name in names), []).append(record)
    return sorted(found.items())


def column(records, name):
    """Values that are there, as an array."""
    return np.array([record[name] for record in records if record.get(name) is not None], dtype=float)


def mean_max(values, digits=4):
    """``mean (largest)``."""
    return f"{values.mean():.{digits}f} ({values.max():.{digits}f})" if len(values) else "-"


def percent(ratio):
    """Missing ratio in words."""
    return f"{100 * ratio:g} %"


def recovery(records):
    """RRE and the oracle floor."""
    head = ["E", "rank", "missing", "runs", "RRE / floor", "missing entries only / floor", "RRE", "floor", "RRE against X",
            "RMSE of X", "paper's RRE", "held"]
    rows = [[kind, rank, percent(ratio), len(cells), mean_max(column(cells, "ratio_to_floor")),
             mean_max(column(cells, "missing_to_floor")), mean_max(column(cells, "rre")), f"{column(cells, 'floor').mean():.4f}",
             mean_max(column(cells, "rre_low_rank")), mean_max(column(cells, "rmse_low_rank")), paper(kind, rank, ratio),
             held_to_floor(cells, ratio)]
            for (kind, rank, ratio), cells in groups(records, "kind", "rank", "ratio")]
    table("Recovery: RRE against L beside the oracle floor, mean (largest) over seeds", head, rows)
    print("\nLimits of the mean RRE / floor: 1.01, at 90 % missing 1.02, for sparse and mixture-shifted.")


def paper(kind, rank, ratio):
    """The paper's RRE, where it has one."""
    figures = dict(zip((0.7, 0.8, 0.9), PAPER.get((kind, rank), ())))
    return figures.get(ratio, "-")


def held_to_floor(cells, ratio):
    """Whether the mean ratio to the floor is within its limit."""
    values = column(cells, "ratio_to_floor")
    if cells[0]["kind"] not in ("sparse", "mixture-shifted"):
        return "-"
    return "yes" if values.mean() <= (1.02 if ratio >= 0.9 else 1.01) else "NO"


def against_least_squares(records):
    """Kind zero beside least squares."""
    zero = [record for record in records if record["kind"] == "zero"]
    head = ["rank", "missing", "runs", "RMSE of X", "least squares", "ratio: median", "largest", "runs above 1.5"]
    rows = [[rank, percent(ratio), *least_squares_row(cells)] for (rank, ratio), cells in groups(zero, "rank", "ratio")]
    if zero:
        rows.append(["all", "all", *least_squares_row(zero)])
    table("E = 0: RMSE of X beside least squares with the true rank started at the truth, means over seeds", head, rows)
    if zero:
        print("\nLimits: median ratio 1.05; at most 2 runs of 60 above 1.5.")


def least_squares_row(cells):
    """Fields of `against_least_squares`."""
    ratios = column(cells, "ratio_to_least_squares")
    return [len(cells), f"{column(cells, 'rmse_low_rank').mean():.5f}", f"{column(cells, 'rmse_least_squares').mean():.5f}",
            f"{np.median(ratios):.3f}", f"{ratios.max():.3f}", int(np.sum(ratios > 1.5))]


def ranks(records):
    """Ranks found, by cell and pooled."""
    records = [record for record in records if record["kind"] in KINDS]
    head = ["E", "rank", "missing", "runs", "set aside", "misses", "ranks found where missed", "paper's count: median"]
    rows = [[kind, rank, percent(ratio), len(cells), *ranks_row(cells), f"{np.median(column(cells, 'paper_count')):g}"]
            for (kind, rank, ratio), cells in groups(records, "kind", "rank", "ratio")]
    for name, chosen in (("70 and 80 %", (0.7, 0.8)), ("90 %", (0.9,))):
        cells = [record for record in records if record["ratio"] in chosen]
        if cells:
            rows.append(["pooled", "both", name, len(cells), *ranks_row(cells), ""])
            rows.append(["pooled, by the fitted mixture", "both", name, len(cells), *ranks_row(cells, "fitted"), ""])
    table("Rank: runs set aside are those whose weakest true component cannot be detected", head, rows)
    print(f"\nLimits of the pooled misses: 6 of 120 and 6 of 60. Detectable: deleting the weakest true component from the truth "
          "and refitting the others raises the deviance (-2 log p of the observed entries, labels averaged over) by more than "
          f"{DETECTABLE:g} T, T = (sum_k sqrt(n_k))^2; every part of E stands as the Gaussian of its mean and variance, with the "
          "true noise. By the fitted mixture: the mixture that the run ended with in its place.")


def ranks_row(cells, mixture="true"):
    """Runs set aside, misses, and what was found where missed."""
    seen = [cell for cell in cells if cell["rises"][mixture] > DETECTABLE * cell["threshold"]]
    missed = [cell for cell in seen if cell["rank_found"] != cell["rank"]]
    found = ", ".join(f"{cell['rank_found']} for {cell['rank']} (seed {cell['seed']})" for cell in missed)
    return [len(cells) - len(seen), len(missed), found or "-"]


def chains(records):
    """Diagnostics, time, and the choice of the residual."""
    def held_out(cells, name):
        values = [cell["held_out"][name] for cell in cells if cell.get("held_out")]
        return f"{np.mean(values):.4f}" if values else "-"

    head = ["E", "rank", "missing", "worst R-hat: median (largest)", "least ESS: median (smallest)", "seconds: median (largest)",
            "mixture chosen", "held-out RMSE mixture", "none"]
    rows = [[kind, rank, percent(ratio), middle(column(cells, "r_hat"), np.max, 3), middle(column(cells, "ess"), np.min, 0),
             middle(column(cells, "seconds"), np.max, 1),
             f"{sum(cell['residual'] == 'mixture' for cell in cells)} of {len(cells)}",
             held_out(cells, "mixture"), held_out(cells, "none")]
            for (kind, rank, ratio), cells in groups(records, "kind", "rank", "ratio")]
    table("Runs: convergence, time on one thread, and the residual chosen by prediction of held-out entries", head, rows)


def middle(values, extreme, digits):
    """``median (extreme)``."""
    return f"{np.median(values):.{digits}f} ({extreme(values):.{digits}f})" if len(values) else "-"


def fits(records):
    """Fitted mixtures beside the maximum-likelihood ones."""
    cells = [record for record in records if record.get("fit")]
    rows, every = [], []
    for (kind, rank), group in groups(cells, "kind", "rank"):
        every += group
        rows.append([kind, rank, *fit_row(group)])
    if every:
        rows.append(["all", "all", *fit_row(every)])
    head = ["E", "rank", "runs", "components", "compared", "weights within .03", "means within .03", "precisions within 15 %",
            "all components: weights within .03", "means within .03", "density difference: mean (largest)", "below .05",
            "convolved with the noise"]
    table(f"Mixture at {percent(FIT_RATIO)} missing beside the maximum-likelihood mixture of the drawn residual: share within "
          "the limits (largest deviation)", head, rows)
    if cells:
        print(f"\nCompared: components of weight {LEAST_WEIGHT:g} and more in the maximum-likelihood mixture that are not "
              "narrower than the noise. Where a component of either mixture is narrower than the noise, the densities of both "
              "are compared as convolved with it.")
    table("Mixtures, seed 0: fitted / maximum likelihood", ["E", "rank", "weights", "means", "precisions"],
          ([record["kind"], record["rank"], *side_by_side(record["fit"]["pairs"])] for record in cells if record["seed"] == 0))


def side_by_side(pairs):
    """Both sets of weights, of means and of precisions as text."""
    return [", ".join(f"{pair[name][0]:.4g} / {pair[name][1]:.4g}" for pair in pairs) for name in TOLERANCES]


def fit_row(cells):
    """Fields of `fits`."""
    pairs = [pair for cell in cells for pair in cell["fit"]["pairs"]]
    chosen = [pair for pair in pairs if pair["weight"][1] >= LEAST_WEIGHT and pair["precision"][1] <= 1.0 / NOISE_VARIANCE]
    gaps = column([cell["fit"] for cell in cells], "density_difference")
    numbers = sorted({len(cell["fit"]["pairs"]) for cell in cells})
    return [len(cells), " or ".join(str(n) for n in numbers), len(chosen), *(within(chosen, name) for name in TOLERANCES),
            within(pairs, "weight"), within(pairs, "mean"), mean_max(gaps), f"{np.sum(gaps < DENSITY_LIMIT)} of {len(gaps)}",
            f"{sum(cell['fit']['convolved'] for cell in cells)} of {len(cells)}"]


def within(pairs, name):
    """``share (largest deviation)``; precisions relative to the maximum-likelihood one."""
    if not pairs:
        return "-"
    gaps = np.array([abs(pair[name][0] - pair[name][1]) / (pair[name][1] if name == "precision" else 1.0) for pair in pairs])
    return f"{np.sum(gaps <= TOLERANCES[name])} of {len(gaps)} ({gaps.max():.3f})"


def references(records):
    """The stored problems beside FBCP's own program."""
    cells = sorted((record for record in records if record["kind"] == "reference"), key=key)
    table("Stored problems, E = 0, rank 5: RRE beside FBCP's own program",
          ["missing", "seed", "RRE", "FBCP", "at least as good", "rank found"],
          ((percent(cell["ratio"]), cell["seed"], f"{cell['rre']:.4f}", figure := FBCP[cell["ratio"]][cell["seed"]],
            "yes" if round(cell["rre"], 4) <= figure else "NO", cell["rank_found"]) for cell in cells))


def tables(records):
    """Print everything."""
    drawn = [record for record in records if record["kind"] != "reference"]
    codes = sorted({str(record.get("version")) for record in records})
    print(f"{len(records)} runs of method datc with its defaults, noise_std = sqrt({NOISE_VARIANCE:g}); code {', '.join(codes)}")
    recovery(drawn)
    against_least_squares(drawn)
    ranks(drawn)
    chains(drawn)
    fits(drawn)
    references(records)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of problems in each cell: seeds 0, 1, ...")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--kinds", nargs="*", choices=list(synth.KINDS), default=list(KINDS), help="residuals run at all ratios")
    parser.add_argument("--fit-kinds", nargs="*", choices=list(synth.KINDS), default=list(FIT_KINDS),
                        help="residuals run at 70 %% missing for the table of mixtures")
    parser.add_argument("--ranks", nargs="*", type=int, default=[5, 10])
    parser.add_argument("--ratios", nargs="*", type=float, default=[0.7, 0.8, 0.9], help="missing ratios")
    parser.add_argument("--reference", type=Path, help="folder with zero_rank5_seed0.npz and so on, run too")
    parser.add_argument("--out", type=Path, default=Path("synthetic-results.json"),
                        help="results; cells that it holds are not run again")
    parser.add_argument("--tables-only", action="store_true", help="print the tables of --out and run nothing")
    options = parser.parse_args()
    if options.reference and not any(options.reference.glob("zero_rank5_seed*.npz")):
        parser.error(f"{options.reference} has no files zero_rank5_seed*.npz")
    records = json.loads(options.out.read_text(encoding="utf-8"))["cells"] if options.out.exists() else []
    failures = 0
    if not options.tables_only:
        cells = grid(options.kinds, options.fit_kinds, options.ranks, options.ratios, options.seeds, options.reference)
        failures = run(cells, records, options.out, options.jobs)
    tables(records)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
