"""`tdc synth`: the problem, what is found of it, the report, the figures, and what is refused."""

import io
import json
import zipfile

import jsonschema
import numpy as np
import pytest
from PIL import Image

from tdc_cli import methods
from tdc_cli.bench import mixtures, synth, trial
from tdc_cli.bench.curve import Curve
from tdc_cli.bench.trial import text
from tdc_cli.errors import InputError
from tdc_cli.run.report import SCHEMA, Report

SMALL = ["--shape", "8,8,8", "--rank", "1", "--missing-ratio", "0.3"]
SHORT = ["--param", "burn_in=20", "--param", "samples=8", "--param", "residual=mixture", "--param", "rank=3"]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def run(tdc):
    """`tdc synth` on a small problem in short chains; returns click's result."""
    return lambda *words: tdc("synth", *SMALL, *SHORT, "-q", *words)


def reports(result):
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    for one in found if isinstance(found, list) else [found]:
        VALIDATOR.validate(one)
    return found


def refused(result, line, code=2):
    assert result.exit_code == code and result.stderr == f"tdc: {line}\n", result.stderr


@pytest.mark.parametrize("kind", synth.KINDS)
def test_every_kind_gives_a_report(run, kind):
    report = reports(run("--kind", kind, "--json", "--seed", "3"))
    truth = synth.draw((8, 8, 8), 1, kind, missing_ratio=0.3, seed=3)
    assert report["synthetic"]["kind"] == kind and report["synthetic"]["rank"] == 1
    assert [report["synthetic"]["noise_std"], report["noise_std"]] == pytest.approx([0.001**0.5] * 2)
    assert report["metrics"]["oracle_floor"] == pytest.approx(truth.oracle_floor)
    assert report["metrics"]["all"]["rre"] < 0.9 and report["metrics"]["low_rank"]["rre"] < 0.9
    assert report["missing"]["count"] == 154 and report["input"]["shape"] == [8, 8, 8] and report["seed"] == 3
    assert sum(report["synthetic"]["mixture"]["weights"]) == pytest.approx(1)
    assert len(report["synthetic"]["weights"]["true"]) == 1


def test_an_easy_problem_is_found(tdc):
    report = reports(
        tdc(
            "synth --shape 14,13,12 --rank 2 --kind gaussian --missing-ratio 0.2 --seed 1 --json -q --param "
            "residual=mixture --param burn_in=80 --param samples=30"
        )
    )
    assert report["rank"]["value"] == 2
    assert report["metrics"]["low_rank"]["rre"] < 0.06
    # The oracle knows E where it is observed; the noise there alone leaves 1.17 of its error.
    assert report["metrics"]["all"]["rre"] < 1.25 * report["metrics"]["oracle_floor"]
    assert report["synthetic"]["weights"]["found"] == pytest.approx(report["synthetic"]["weights"]["true"], rel=0.1)
    heaviest = np.argmax(report["mixture"]["weights"])
    assert report["mixture"]["means"][heaviest] == pytest.approx(0.1, abs=0.04)


def test_the_figures_of_the_report_are_those_of_the_arrays(run):
    report = reports(run("--json", "-o", "p.npz"))
    problem = synth.load("p.npz")
    method, config = trial.prepare(
        ["datc"], 3, problem.noise_std, {"burn_in": 20, "samples": 8, "residual": "mixture", "rank": 3}
    )[0]
    done = method.load().complete(problem.incomplete, problem.observed, config, rng=np.random.default_rng([0, 100]))
    norm = np.linalg.norm
    assert report["metrics"]["all"]["rre"] == pytest.approx(norm(done.mean - problem.latent) / norm(problem.latent))
    assert report["metrics"]["low_rank"]["rre"] == pytest.approx(
        norm(done.low_rank - problem.low_rank) / norm(problem.low_rank)
    )
    absent = ~problem.observed
    assert report["metrics"]["missing"]["rre"] == pytest.approx(
        norm((done.mean - problem.latent)[absent]) / norm(problem.latent[absent])
    )
    assert report["metrics"]["all"]["ssim"] is None
    inside = np.abs(problem.latent - done.mean)[absent] <= 1.6448536269514722 * done.latent_interval_sd[absent]
    assert report["uncertainty"]["coverage90"] == pytest.approx(inside.mean())


def test_a_saved_problem_gives_the_same_report(run, tdc):
    drawn = reports(run("--json", "-o", "p.npz", "--seed", "2"))
    again = reports(tdc("synth", "--problem", "p.npz", "--json", "-q", *SHORT))
    assert again["input"] == drawn["input"] | {"path": "p.npz"} and again["seed"] == 2
    for key in ("metrics", "rank", "mixture", "synthetic", "diagnostics"):
        assert again[key] == drawn[key], key
    other = reports(tdc("synth", "--problem", "p.npz", "--seed", "5", "--json", "-q", *SHORT))
    assert other["input"] == again["input"] and other["metrics"]["all"]["rre"] != again["metrics"]["all"]["rre"]


def test_the_same_seed_gives_the_same_bytes_watched_or_not(run):
    for name in ("one", "other"):
        assert (
            run(
                "-o", f"{name}.npz", "--report", f"{name}.json", *(["--plot", "figures"] if name == "other" else [])
            ).exit_code
            == 0
        )
    with open("one.npz", "rb") as one, open("other.npz", "rb") as other:
        assert one.read() == other.read()
    one, other = (json.load(open(f"{name}.json")) for name in ("one", "other"))  # noqa: SIM115
    for key in ("metrics", "rank", "mixture", "input"):
        assert one[key] == other[key], key


def test_several_methods_give_a_list_and_a_table(run, tdc):
    found = reports(run("--methods", "datc,tmac,fbcp", "--json", "--report", "r.json"))
    assert [one["method"]["name"] for one in found] == ["datc", "tmac", "fbcp"]
    with open("r.json", encoding="utf-8") as file:
        assert json.load(file) == found
    assert found[0]["method"]["parameters"]["burn_in"] == 20 and found[0]["method"]["parameters"][
        "noise_std"
    ] == pytest.approx(0.001**0.5)
    assert found[1]["metrics"]["low_rank"] is None and found[1]["synthetic"]["weights"]["found"] is None
    assert any("metrics.low_rank is null" in line for line in found[1]["warnings"])
    result = tdc("synth", *SMALL, *SHORT, "--methods", "datc,tmac", "--no-progress")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "synthetic: 8x8x8, rank 1, E mixture-shifted, 154 of 512 entries missing (30.1%), noise sd 0.0316, seed 0"
    )
    assert lines[-3].split() == ["method", "rank", "RRE,", "L", "missing", "RRE,", "X", "seconds"]
    assert lines[-2].startswith("datc ") and lines[-1].startswith("tmac ")


def test_the_text_says_what_the_report_says(run, tdc):
    result = tdc("synth", *SMALL, *SHORT, "--report", "r.json", "--no-progress")
    with open("r.json", encoding="utf-8") as file:
        report = json.load(file)
    words = " ".join(result.stdout.split())
    floor, rre = report["metrics"]["oracle_floor"], report["metrics"]["all"]["rre"]
    assert f"RRE against L {rre:.4f}; oracle floor {floor:.4f}, {rre / floor:.3f} times that" in words
    assert f"RRE against X {report['metrics']['low_rank']['rre']:.4f}" in words
    assert f"rank {report['rank']['value']} (" in words and "; true 1" in words
    assert "noise sd 0.0316; true 0.0316" in words and "2 chains of 20 + 8 sweeps" in words
    assert result.stdout.count("component ") >= 3 and not result.stdout.endswith("\n\n")
    assert "tdc: warning: datc: " in result.stderr


def test_a_clean_problem_keeps_what_is_observed(run):
    report = reports(run("--noise-std", "0", "--json", "--methods", "tmac,datc"))
    # What is restored has no error: all of it is at missing entries.
    problem = synth.draw((8, 8, 8), 1, "mixture-shifted", missing_ratio=0.3, noise_std=0)
    share = np.linalg.norm(problem.latent[~problem.observed]) / np.linalg.norm(problem.latent)
    for one in report:
        assert one["metrics"]["all"]["rre"] == pytest.approx(share * one["metrics"]["missing"]["rre"])


def test_figures(run):
    report = reports(run("--plot", "figures", "--json"))
    assert report["outputs"] == {key: f"figures/{key}.png" for key in ("densities", "weights", "convergence")}
    for name in report["outputs"].values():
        with Image.open(name) as picture:
            assert picture.width >= 1000
            shown = np.asarray(picture.convert("RGB"))
        assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 20  # axes, letters and lines
    refused(run("--plot", "figures"), "figures/densities.png: exists already; give --overwrite to replace it")


def test_files_are_replaced_only_if_asked(run, folder):
    (folder / "r.json").write_text("mine")
    refused(run("--report", "r.json"), "r.json: exists already; give --overwrite to replace it")
    assert (folder / "r.json").read_text() == "mine"
    assert run("--report", "r.json", "--overwrite").exit_code == 0
    VALIDATOR.validate(json.loads((folder / "r.json").read_text()))


def test_no_curve_of_methods_that_do_not_sample(tdc, folder):
    report = reports(tdc("synth", *SMALL, "--methods", "tmac", "--plot", "figures", "--json", "-q"))
    assert "convergence" not in report["outputs"]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == ["densities.png", "weights.png"]


def test_a_method_that_no_figure_shows_is_noted(tdc, folder):
    result = tdc("synth", *SMALL, "--methods", "halrtc,tmac", "--plot", "figures")
    assert result.exit_code == 0
    assert (
        "tdc: note: halrtc tells no mixture and no CP weights and does not sample: no figure shows it\n"
        in result.stderr
    )


def test_the_curve_is_that_of_every_sweep():
    truth = np.array([[3.0, 4.0]])
    curve = Curve(truth)
    curve.watch(0, np.array([[0.0, 0.0]]), False)
    curve.watch(0, np.array([[3.0, 3.0]]), True)
    curve.watch(1, np.array([[3.0, 4.0]]), False)
    curve.watch(0, np.array([[3.0, 5.0]]), True)
    assert curve.draws == [[1.0, 0.2, 0.2], [0.0]]
    assert np.isnan(curve.means[0][0]) and curve.means[0][1:] == [0.2, 0.0] and np.isnan(curve.means[1][0])


def test_watching_follows_all_chains_and_ends_near_the_result():
    source = trial.draw(shape=(8, 8, 8), rank=1, kind="gaussian", missing_ratio=0.3)
    method, config = trial.prepare(["datc"], 3, source.problem.noise_std,
                                   {"burn_in": 20, "samples": 8, "residual": "mixture", "rank": 3})[0]  # fmt: skip
    done = trial.run(source, method, config, seed=0, watched=True)
    assert [len(chain) for chain in done.curve.draws] == [28, 28]
    assert all(np.isnan(chain[:20]).all() and np.isfinite(chain[20:]).all() for chain in done.curve.means)
    assert done.curve.draws[0][0] > 1.5 * done.curve.draws[0][-1]
    assert np.mean([chain[-1] for chain in done.curve.means]) == pytest.approx(
        done.report.metrics["all"]["rre"], rel=0.2
    )
    assert trial.run(source, method, config, seed=0).curve is None


@pytest.mark.parametrize(
    "words, line",
    [
        (["--shape", "5"], "shape (5,) must have at least two modes, each of size 1 or more"),
        (["--shape", "5,a"], "Invalid value for '--shape': '5,a' is not of the form 30,30,30; see 'tdc synth --help'"),
        (["--shape", "9000,9000,9000"], "shape (9000, 9000, 9000) has more than 200000000 entries; give a smaller one"),
        (["--shape", "2,2,2,2,2,2,2"], "method datc takes tensors of order 2 to 6, not 7"),
        (
            ["--shape", "3,,3"],
            "Invalid value for '--shape': '3,,3' is not of the form 30,30,30; see 'tdc synth --help'",
        ),
        (
            ["--shape", "3,3,"],
            "Invalid value for '--shape': '3,3,' is not of the form 30,30,30; see 'tdc synth --help'",
        ),
        (["--methods", ""], "Invalid value for '--methods': '' is not of the form datc,fbcp; see 'tdc synth --help'"),
        (
            ["--methods", "datc,,fbcp"],
            "Invalid value for '--methods': 'datc,,fbcp' is not of the form datc,fbcp; see 'tdc synth --help'",
        ),
        (["--methods", "datc,datc"], "a method is named twice: datc, datc"),
        (["--problem", "none.npz"], "none.npz: no such file"),
        (["--problem", "."], ".: is a folder; give one file"),
        (["--seed", str(2**64)], "seed is 18446744073709551616; it must be at least 0 and below 2**64"),
        (["-o", "p.txt"], "p.txt: a problem is written to .npz"),
        (["-o", "none/p.npz"], "none/p.npz: folder none does not exist; create it first"),
        (["-o", "a.png/p.npz"], "a.png/p.npz: a.png is a file, no folder; name another place"),
        (["-o", "."], ".: is a folder; name a file in it"),
        (["-o", "none/p.npz", "--plot", "figures"], "none/p.npz: folder none does not exist; create it first"),
        (["--report", "a.png/r.json"], "a.png/r.json: a.png is a file, no folder; name another place"),
        (["--plot", "a.png"], "a.png: is a file; give a folder for the figures"),
        (["--plot", "a.png/figures"], "a.png/figures/densities.png: a.png is a file, no folder; name another place"),
        (["--plot", "none/figures"], "none/figures: folder none does not exist; create it first"),
        (
            ["--report", "p.npz", "-o", "p.npz"],
            "p.npz: named twice, as problem and as report; give each result a file of its own",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(tdc, words, line):
    refused(tdc("synth", *words), line)


def test_unknown_methods_and_parameters_are_refused(run):
    assert "no method 'dact'; did you mean datc? 'tdc methods' lists all" in run("--methods", "dact").stderr
    assert run("--param", "ranks=2").stderr.startswith(
        "tdc: method datc has no parameter 'ranks'; that is for method tmac; it has: a0"
    )


def test_a_problem_from_a_file_is_not_drawn(run, tdc):
    assert run("-o", "p.npz").exit_code == 0
    refused(
        tdc("synth", "--problem", "p.npz", "--rank", "3"),
        "--problem has all that is drawn; leave out --rank; see 'tdc synth --help'",
    )
    refused(tdc("synth", "--problem", "p.npz", "-o", "p.npz"), "p.npz: is the problem itself; name another file")


def test_options_come_from_the_environment_and_from_a_file(tdc, folder):
    (folder / "tdc.toml").write_text(
        '[synth]\nshape = "6,5,4"\nrank = 2\nmethods = "tmac"\nkind = "sparse"\nmissing-ratio = 0.5\n'
    )
    report = reports(
        tdc("--config", "tdc.toml", "synth", "--json", "-q", "-o", "p.npz", env={"TDC_SYNTH_KIND": "zero"})
    )
    assert (
        report["input"]["shape"] == [6, 5, 4]
        and report["missing"]["count"] == 60
        and report["method"]["name"] == "tmac"
    )
    assert report["synthetic"]["kind"] == "zero" and report["synthetic"]["rank"] == 2
    again = reports(tdc("--config", "tdc.toml", "synth", "--json", "-q", "--problem", "p.npz"))
    assert again["synthetic"] == report["synthetic"]


def _objects(value):
    return np.array([value, None], dtype=object)


@pytest.mark.parametrize(("change", "reason"), [
    ({"low_rank": None}, "it has no low_rank"),
    ({"factor_1": None}, "it has no factor_1"),
    ({"rank": "x"}, "rank is no whole number"),
    ({"rank": np.arange(3)}, "rank is no whole number"),
    ({"seed": 1.5}, "seed is no whole number"),
    ({"missing_ratio": 1j}, "missing_ratio is no number"),
    ({"kind": 5}, "kind is no text"),
    ({"low_rank": np.full((4, 4), "a")}, "low_rank is no array of finite floats of the shape (4, 4)"),
    ({"noisy": np.zeros((4, 3))}, "noisy is no array of finite floats of the shape (4, 4)"),
    ({"observed": np.ones((4, 4), dtype=int)}, "observed is no array of true and false of the shape (4, 4)"),
    ({"weights": np.array(["a"])}, "weights is no array of finite floats of the shape (1,)"),
    ({"factor_0": np.full((4, 1), np.nan)}, "factor_0 is no array of finite floats of the shape (4, 1)"),
    ({"weights": _objects({})}, "it is no archive of arrays, or damaged or cut short"),
    ({"low_rank": np.float64(3.0)}, "shape () must have at least two modes, each of size 1 or more"),
    ({"low_rank": np.zeros((4, 4)), "residual": np.zeros((4, 4))}, "its tensor is 0 everywhere"),
])  # fmt: skip
def test_what_is_wrong_with_a_problem_is_told_in_one_line(tdc, change, reason):
    synth.save(synth.draw((4, 4), 1, "sparse", missing_ratio=0.5), "p.npz")
    with np.load("p.npz") as held:
        np.savez("q.npz", **{key: value for key, value in {**held, **change}.items() if value is not None})
    refused(
        tdc("synth", "--problem", "q.npz"),
        f"q.npz: not a synthetic problem as saved by this program ({reason}); make one with 'tdc synth -o FILE.npz'",
    )


@pytest.mark.parametrize("kind", ["text", "array", "objects", "empty", "cut short", "huge"])
def test_files_that_are_no_archive_of_arrays_are_told_in_one_line(tdc, folder, kind):
    synth.save(synth.draw((4, 4), 1, "sparse", missing_ratio=0.5), "p.npz")
    reason, path = "it is no archive of arrays, or damaged or cut short", folder / "q.npz"
    if kind in ("array", "objects"):
        with open(path, "wb") as file:
            np.save(file, np.zeros(3) if kind == "array" else _objects({}), allow_pickle=True)
    elif kind == "huge":
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**30, 2**20)})
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("low_rank.npy", header.getvalue())
        reason = "it tells of an array larger than the memory"
    else:
        path.write_bytes(
            {"text": b"no numbers\n", "empty": b"", "cut short": (folder / "p.npz").read_bytes()[:-10]}[kind]
        )
    refused(tdc("synth", "--problem", "q.npz"),
            f"q.npz: not a synthetic problem as saved by this program ({reason}); make one with 'tdc synth -o "
            "FILE.npz'")  # fmt: skip


def test_the_largest_seed_survives_a_file(tdc):
    seed = str(2**64 - 1)
    assert tdc("synth", *SMALL, "--methods", "nearest", "--seed", seed, "-o", "p.npz", "-q").exit_code == 0
    assert reports(tdc("synth", "--problem", "p.npz", "--methods", "nearest", "--json", "-q"))["seed"] == int(seed)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "odd"},
        {"rank": 2},
        {"noisy": np.full((4, 4), np.nan)},
        {"residual": np.zeros((4, 3))},
        {"observed": np.zeros((4, 4))},
        {"observed": np.zeros((4, 4), dtype=bool)},
        {"weights": np.zeros(2)},
        {"factor_1": np.zeros((3, 1))},
        {"missing_ratio": 2.0},
    ],
)
def test_parts_that_do_not_fit_are_refused(tdc, change):
    synth.save(synth.draw((4, 4), 1, "sparse", missing_ratio=0.5), "p.npz")
    with np.load("p.npz") as held:
        np.savez("q.npz", **{**held, **change})
    with pytest.raises(InputError, match=r"q.npz: not a synthetic problem as saved by this program \("):
        synth.load("q.npz")
    result = tdc("synth", "--problem", "q.npz")
    assert result.exit_code == 2 and result.stderr.startswith("tdc: q.npz: not a synthetic problem")


def test_a_damaged_problem_is_refused(tdc, folder):
    synth.save(synth.draw((4, 4), 1, "sparse", missing_ratio=0.5), "p.npz")
    content = (folder / "p.npz").read_bytes()
    for damaged in (content[:200], content[:300] + b"\0" * 50 + content[350:], b""):
        (folder / "q.npz").write_bytes(damaged)
        result = tdc("synth", "--problem", "q.npz")
        assert result.exit_code == 2 and result.stderr.startswith("tdc: q.npz: not a synthetic problem"), result.stderr


def test_a_method_that_fails_leaves_nothing(run, folder, monkeypatch):
    from tdc_cli.peers import tmac

    monkeypatch.setattr(
        tmac, "complete", lambda values, *_, **__: methods.Completion(mean=np.full(values.shape, np.nan))
    )
    result = run("--methods", "datc,tmac", "-o", "p.npz", "--report", "r.json")
    refused(result, "synthetic: method tmac gave 512 values that are not finite; try another method", code=1)
    assert not (folder / "p.npz").exists() and not (folder / "r.json").exists()


def test_reports_without_a_synthetic_part_are_still_read(run):
    report = reports(run("--json"))
    assert Report.from_json(json.dumps(report)).synthetic == report["synthetic"]
    del report["synthetic"]
    VALIDATOR.validate(report)
    assert Report.from_json(json.dumps(report)).synthetic is None
    assert "synthetic" not in Report.from_json(json.dumps(report)).to_dict()


def test_components_are_matched_with_those_most_like_them():
    true = ([0.1, 0.2, 0.7], [1.5, 0.1, -0.1], [2.0, 0.1, 0.003])
    found = ([0.68, 0.32], [-0.1, 0.2], [0.003, 0.2])
    assert mixtures.match(found, true, 1e-3) == [(0, 2), (1, 1), (None, 0)]
    assert mixtures.match(true, found, 1e-3) == [(2, 0), (1, 1), (0, None)]
    values = np.linspace(-30, 30, 60_001)
    assert np.trapezoid(mixtures.density(values, *true), values) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("kind", synth.KINDS)
def test_the_density_is_that_of_what_is_drawn(kind):
    blur = 0.05
    edges = np.linspace(-3, 5, 41)
    rng = np.random.default_rng(0)
    drawn = synth.draw_residual((100, 100, 20), kind, rng) + blur * rng.standard_normal((100, 100, 20))
    shares = np.histogram(drawn, edges)[0] / drawn.size
    fine = np.linspace(-3, 5, 80_001)
    density = sum(part.share * part.density(fine, blur) for part in synth.KINDS[kind])
    mass = np.array([np.trapezoid(density[i : i + 2001], fine[i : i + 2001]) for i in range(0, 80_000, 2000)])
    assert np.abs(shares - mass).max() < 0.005


def test_a_uniform_part_as_it_is():
    part = synth.Part(1.0, "uniform", -1.0, 4.0)
    assert part.density(np.array([-1.1, 0.0, 3.9, 4.1]), 0.0).tolist() == [0.0, 0.2, 0.2, 0.0]


def test_numbers_that_are_not_there_are_dashes():
    assert [text._number(value) for value in (None, 0.0, 2.3e-5, 0.0123)] == ["-", "0.0000", "2.3e-05", "0.0123"]
    assert text._rank(None) == "not inferred"


def test_the_kinds_of_the_help_are_those_there_are():
    from tdc_cli.cli.synth import NOISE_STD
    from tdc_cli.names import RESIDUAL_LAWS

    assert list(RESIDUAL_LAWS) == list(synth.KINDS) and synth.draw((2, 2), 1).noise_std == pytest.approx(NOISE_STD)


def test_warnings_name_parameters_as_they_are_given_here(tdc):
    words = "synth --shape 8,7,6 --rank 2 --kind zero --noise-std 0 --missing-ratio 0.3 --methods datc --threads 1"
    done = tdc(words, "--param", "burn_in=5", "--param", "samples=5")
    assert "the chains have not converged" in done.stderr and "`" not in done.stderr
    assert "more --param burn_in and --param samples help" in done.stderr
