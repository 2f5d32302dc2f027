"""The suites of `tdc bench`: what a run measures, the tables and figures, and what is compared with."""

from dataclasses import replace

import numpy as np
import pytest

from tdc_cli import bench as experiment
from tdc_cli import methods
from tdc_cli.bench import detectable, least_squares, likeliest, mixtures, paper, synth, tables, tensors
from tdc_cli.bench.cells import Cell, Outcome, record
from tdc_cli.bench.suites import convergence, fit, rank, speed, synthetic
from tdc_cli.tensor import cp_to_tensor

SHORT = {"burn_in": 20, "samples": 10, "chains": 1, "residual": "none"}


@pytest.fixture
def small(monkeypatch):
    """Problems of the suites on synthetic tensors are 12x12x12, rank 2."""
    def draw(cell):
        return synth.draw(
            (12, 12, 12), 2, cell.problem["kind"], missing_ratio=0.5, noise_std=tensors.NOISE_STD, seed=cell.seed
        )

    monkeypatch.setattr(tensors, "draw", draw)


def _cell(method="datc", kind="zero", parameters=SHORT, true=5):
    return Cell(method, f"{kind}, rank {true}", 0.7, 0, {"kind": kind, "rank": true}, parameters)


def _records(suite, metrics, details=None, seconds=1.0, memory=1 << 22):
    """A record for every cell of a suite with two seeds: ``metrics(cell)`` are its figures, None a failure."""
    chosen = {"seeds": 2} if suite.load().DEFAULTS.seeds else {}
    made = []
    for cell in experiment.plan(suite, **chosen)[1]:
        found = metrics(cell)
        outcome = None if found is None else Outcome(found, seconds, memory, details or {})
        made.append(
            record(suite.name, cell, outcome, status="done" if found else "failed", error=None if found else "broke")
        )
    return made


@pytest.mark.parametrize("suite", list(experiment.SUITES.values()), ids=lambda suite: suite.name)
def test_every_suite_bears_no_records_and_failures_only(suite):
    module = suite.load()
    _, grid = experiment.plan(suite)
    assert len({cell.key for cell in grid}) == len(grid) and all(module.seconds(cell) > 0 for cell in grid)
    for records in ([], _records(suite, lambda cell: None)):
        for table in filter(None, module.tables(records)):
            assert tables.markdown(table) and all(len(row) == len(table.head) for row in table.rows)
        for figure in module.figures(records):
            assert figure.png.startswith(b"\x89PNG")


def test_synthetic_measures_the_floor_and_least_squares(small, one_thread):
    found = synthetic.run(_cell(), None)
    assert 0 < found.metrics["rre"] < 0.05 and found.metrics["floor"] == 0 and found.metrics["rre_over_floor"] is None
    assert found.metrics["mixture"] == 0.0 and {"r_hat", "ess"} <= set(found.metrics)
    assert 0.99 < found.metrics["rmse_over_least_squares"] < 1.5 and found.seconds > 0 and found.memory is not None
    found = synthetic.run(_cell("halrtc", "sparse", {}), None)
    assert found.metrics["rank"] is None and "rmse" not in found.metrics
    assert found.metrics["rre_over_floor"] == pytest.approx(found.metrics["rre"] / found.metrics["floor"])
    assert found.metrics["rre_over_floor"] > 1


def test_synthetic_sets_the_paper_beside():
    records = _records(
        experiment.get("synthetic"), lambda cell: {"rre": 0.01 if cell.method == "datc" else 0.02 + cell.seed / 100}
    )
    made = {table.name: table for table in filter(None, synthetic.tables(records))}
    first = made["performance-zero-5"]
    assert first.head[:4] == ("method", "70% missing", "paper", "difference")
    assert first.rows[0][:4] == ("datc", "0.0100 ± 0.0000", "0.0086", "+0.0014") and (0, 1) in first.best
    competitors = ["falrtc", "halrtc", "rptc-scad", "tmac (tolerance=1e-12)", "stdc", "tsvd", "fbcp", "brtf"]
    assert [row[0] for row in first.rows] == ["datc", *competitors]
    assert first.rows[7][2] == "0.0027"
    names = [row[0] for row in made["effectiveness-10"].rows]
    assert names == ["datc", "datc-ne", *(f"datc-nx (components={count})" for count in (6, 10, 20, 50))]
    assert [row[2] for row in made["effectiveness-10"].rows][:3] == ["0.1796", "0.2210", tables.MISSING]
    assert {row[5] for row in made["standing"].rows} == {"ahead"} and len(made["standing"].rows) == 18
    assert not {"datc-ne", "datc-nx"} & {row[2] for row in made["standing"].rows}


def test_synthetic_tells_the_spread_over_seeds():
    def metrics(cell):
        ours = {
            "rmse_over_least_squares": 1.0 + cell.seed / 10,
            "r_hat": 1.01 + cell.seed,
            "ess": 50.0 - cell.seed,
            "mixture": 1.0,
        }
        return {"rre": 0.1} | (ours if cell.method == "datc" else {})

    made = {
        table.name: table for table in filter(None, synthetic.tables(_records(experiment.get("synthetic"), metrics)))
    }
    assert made["least-squares"].rows[-1] == ("all", *[tables.MISSING] * 2, "1.05000 ± 0.05000", "1.050", "1.100")
    assert made["runs"].rows[0][1:] == ("1.510", "2.010", "50", "49", "2 of 2", "1.0 ± 0.0")


def test_figures_of_the_paper_belong_to_methods_that_there_are():
    rows = [*paper.PERFORMANCE.values(), paper.IMAGES, paper.VIDEOS, paper.FACES]
    for row in rows:
        assert set(row) <= set(methods.REGISTRY) and "datc" in row
    assert all(len(value) == 3 for row in paper.PERFORMANCE.values() for value in row.values())
    assert {kind for kind, _ in paper.FIT} == set(synth.KINDS)
    for (kind, _), parameters in paper.FIT.items():
        assert {len(values) for values in parameters.values()} == {len(synth.KINDS[kind])}


def test_rank_sets_aside_what_cannot_be_found(small, one_thread):
    found = rank.run(_cell(), None)
    assert found.metrics["rank"] == 2 and found.metrics["detectable"] == 1.0
    records = _records(
        experiment.get("rank"),
        lambda cell: {"rank": 6 - cell.seed, "detectable": 1.0} if cell.method != "brtf" else None,
    )
    rows = {row[:4]: row[4:] for row in rank.tables(records)[0].rows}
    assert rows["datc", "sparse", "5", "80% missing"] == ("2", "0", "1 of 2", "6")
    assert rows["brtf", "zero", "10", "90% missing"] == ("2 (2 failed)", "0", "0 of 0", tables.MISSING)
    aside = _records(
        experiment.get("rank"), lambda cell: {"rank": 6 - cell.seed, "detectable": 0.0 if cell.seed == 0 else 1.0}
    )
    assert rank.tables(aside)[0].rows[0][4:] == ("2", "1", "1 of 1", tables.MISSING)


def test_a_component_below_the_noise_is_not_detectable():
    problem = synth.draw((10, 11, 12), 2, "sparse", missing_ratio=0.5, seed=1)
    weak = np.where(np.arange(2) == 0, problem.weights, 1e-3)
    low_rank = cp_to_tensor(weak, problem.factors)
    faint = replace(problem, weights=weak, low_rank=low_rank, noisy=problem.noisy - problem.low_rank + low_rank)
    assert detectable.detectable(problem) and not detectable.detectable(faint)


def test_least_squares_ends_where_no_small_step_helps():
    problem = synth.draw((7, 8, 9), 2, missing_ratio=0.4, noise_std=0.1, seed=3)
    found = least_squares.from_the_truth(problem)

    def loss(tensor):
        return np.sum((problem.noisy - tensor)[problem.observed] ** 2)

    assert loss(found) < loss(problem.low_rank)
    assert np.linalg.matrix_rank(found.reshape(7, -1), tol=1e-6) == 2
    # Tangent steps at the solution: the gradient along every one vanishes.
    _, _, v = np.linalg.svd(found.reshape(7, -1), full_matrices=False)
    step = np.random.default_rng(0).standard_normal((7, 2)) @ v[:2]
    slope = np.sum(((problem.noisy - found) * problem.observed).reshape(7, -1) * step) / np.linalg.norm(step)
    assert abs(slope) < 1e-3 * np.sqrt(loss(found))


def test_the_likeliest_gaussian_is_that_of_the_sample():
    problem = synth.draw((15, 15, 15), 2, "gaussian", seed=0)
    weights, means, variances = likeliest.likeliest(problem, (np.ones(1), np.zeros(1), np.ones(1)))
    assert (weights[0], means[0], variances[0]) == pytest.approx((1.0, problem.residual.mean(), problem.residual.var()))


def test_no_mixture_of_as_many_is_likelier_than_the_parts():
    problem = synth.draw((15, 15, 15), 2, "mixture-shifted", seed=0)
    parts = synth.KINDS[problem.kind]
    true = tuple(np.array([getattr(part, name) for part in parts]) for name in ("share", "mean", "variance"))
    found = likeliest.likeliest(problem, (np.full(3, 1 / 3), np.array([-1.0, 0.0, 1.0]), np.ones(3)))
    values = problem.residual.ravel()
    assert np.log(mixtures.density(values, *found)).sum() > np.log(mixtures.density(values, *true)).sum()
    assert sorted(found[0]) == pytest.approx([0.1, 0.2, 0.7], abs=0.1)


def test_densities_that_are_alike_differ_by_nothing_and_others_by_two():
    one = np.array([0.4, 0.6]), np.array([0.0, 1.0]), np.array([0.01, 0.1])
    assert likeliest.density_difference(one, tuple(part[::-1] for part in one), 0.0) == pytest.approx(0, abs=1e-12)
    far = np.ones(1), np.array([50.0]), np.array([0.01])
    assert likeliest.density_difference(one, far, 0.0) == pytest.approx(2, abs=1e-3)


def test_fit_says_what_stands_for_each_part(small, one_thread):
    found = fit.run(_cell(kind="gaussian"), None)
    assert found.metrics["components"] == 1 and found.metrics["weight_1"] == 1.0
    assert found.metrics["mean_1"] == pytest.approx(0.1, abs=0.02) and found.metrics["precision_1"] == pytest.approx(
        100, rel=0.3
    )
    assert found.metrics["density_difference"] < 0.3 and found.metrics["through_noise"] == 0.0
    numbers = {
        "weight_1": 0.1,
        "mean_1": 1.5,
        "precision_1": 0.5,
        "components": 2,
        "density_difference": 0.02,
        "through_noise": 1.0,
    }
    details = {"fitted": [[1.0], [0.0], [0.01]]}
    made = {table.name: table for table in fit.tables(_records(experiment.get("fit"), lambda cell: numbers, details))}
    rows = {row[0]: row[1:] for row in made["fit-weight"].rows}
    assert rows["shifted mixture, 1"] == ("0.1", "0.1 ± 0", tables.MISSING, "0.065", "0.1 ± 0", tables.MISSING, "0.062")
    assert rows["shifted mixture, 3"][1] == tables.MISSING and made["fit-precision"].rows[0][1] == "1e+12"
    assert made["densities"].rows[0][2:] == ("2", "2", "0.0200 ± 0.0000", "0.0200", "2 of 2", "2")
    assert fit.figures(_records(experiment.get("fit"), lambda cell: numbers, details))[0].png


def test_convergence_keeps_the_error_of_every_sweep(small, one_thread):
    found = convergence.run(
        _cell(kind="mixture-shifted", parameters=SHORT | {"residual": "mixture", "burn_in": 60}), None
    )
    assert (
        len(found.details["draws"]) == len(found.details["means"]) == 70 and np.isnan(found.details["means"][:60]).all()
    )
    assert found.details["means"][-1] == pytest.approx(found.metrics["rre"], rel=1e-6)
    sweeps, floor = found.metrics["sweeps"], found.metrics["floor"]
    assert max(found.details["draws"][sweeps - 1 :]) <= 1.05 * floor < found.details["draws"][sweeps - 2]
    metrics = {"sweeps": 20, "rre_of_a_draw": 0.2, "rre": 0.1, "floor": 0.1}
    records = _records(experiment.get("convergence"), lambda cell: metrics, {"draws": [1.0, 0.5], "means": [None, 0.5]})
    assert convergence.tables(records)[0].rows[0] == (
        "collapsed",
        "5",
        "70% missing",
        "2 of 2",
        "20",
        "0.2000 ± 0.0000",
        "0.1000 ± 0.0000",
        "0.1000 ± 0.0000",
    )
    late = _records(
        experiment.get("convergence"), lambda cell: metrics | {"sweeps": None}, {"draws": [1.0], "means": [None]}
    )
    assert convergence.tables(late)[0].rows[0][3:5] == ("0 of 2", tables.MISSING)
    assert convergence.figures(records)[0].png


def test_growth_is_the_exponent():
    assert speed.growth((1, 10, 100), (3, 30 * 10**0.5, 300 * 10)) == pytest.approx(1.5)
    assert speed.growth((1, 10), (3, 30)) is None
    suite = experiment.get("speed")
    records = [
        each | {"seconds": 1e-6 * speed._place(each) ** 2} for each in _records(suite, lambda cell: {"psnr": 20.0})
    ]
    made = {table.name: table for table in speed.tables(records)}
    assert {row[-1] for row in made["seconds-size"].rows} == {"2.00"} and {
        row[-1] for row in made["memory-rank"].rows
    } <= {"-0.00", "0.00"}
    assert [row[0] for row in made["seconds-rank"].rows] == ["datc", "datc-sc", "fbcp", "fbcp-image", "fbcp-mp", "brtf"]
    assert made["seconds-size"].rows[0][1:5] == ("9.4", "151", "2416", "12231")
    assert speed.figures(records)[0].png


def test_speed_completes_a_photograph():
    cell = next(cell for cell in speed.cells(replace(speed.DEFAULTS, methods=("linear",))))
    found = speed.run(cell, None)
    assert found.metrics["psnr"] > 18 and found.seconds > 0
