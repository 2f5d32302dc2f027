"""Speed and memory of the sampler, each figure beside the one it is compared with, from one and the same run."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from arviz_stats.base import array_stats
from numba import njit
from PIL import Image
from threadpoolctl import threadpool_info

from tdc_cli.bench import synth
from tdc_cli.kernels import kernel_threads
from tdc_cli.methods import datc
from tdc_cli.model import diagnostics, fit, kernels
from tdc_cli.model.posterior import Scale, mixture_moments
from tdc_cli.model.problem import Problem
from tdc_cli.model.rank import expected_law
from tdc_cli.model.sampler import SWEEPS, draw_low_rank, sweep_collapsed
from tdc_cli.run import threads
from tdc_cli.tensor import Observed, cp_to_tensor

# Tensors of the speed and memory figures: shape and share missing.
TENSORS = {"image": ((256, 256, 3), 0.6), "video": ((144, 176, 3, 20), 0.1)}
RANKS = (100, 40)
PHOTOGRAPH = Path(__file__).parent.parent / "sample_data" / "astronaut.png"
# Two sweeps of burn-in are enough for components to be removed and looked for once, which is what takes the memory.
MEMORY_BURN_IN, MEMORY_DRAWS = 2, 4


def table(title, head, rows):
    """Print a Markdown table."""
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(field) for field in row)} |", flush=True)


# --- speed of the sweep -------------------------------------------------------------------------------------


def blas():
    """Name, version, kernel and threads of the BLAS that the compiled kernels call: scipy's own."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    found = [lib for lib in found if "scipy" in Path(lib["filepath"]).parent.name] or found
    return "; ".join(f"{lib['internal_api']} {lib['version']}, kernel {lib.get('architecture', 'not told')}, threads "
                     f"{lib['num_threads']}" for lib in found)


@njit
def repeat_dsyrk(block, gram, times):
    """Rank-k updates by the same routine, and with the same arguments, as the row sums; no gathering, all in cache."""
    uplo = np.array([ord("L")], dtype=np.uint8)
    trans = np.array([ord("N")], dtype=np.uint8)
    sizes = np.array([block.shape[1], block.shape[0]], dtype=np.int32)
    scalars = np.array([1.0, 1.0])
    for _ in range(times):
        kernels._dsyrk(uplo.ctypes, trans.ctypes, sizes[0:].ctypes, sizes[1:].ctypes, scalars[0:].ctypes, block.ctypes,
                       sizes[0:].ctypes, scalars[1:].ctypes, gram.ctypes, sizes[0:].ctypes)


def dsyrk_seconds(rank, seconds=0.1):
    """Seconds of one rank-`BLOCK` update on one thread, over a run of about `seconds`."""
    block, gram = np.random.default_rng(0).standard_normal((kernels.BLOCK, rank)), np.zeros((rank, rank))
    repeat_dsyrk(block, gram, 10)
    begin = time.perf_counter()
    repeat_dsyrk(block, gram, 100)
    times = max(100, int(100 * seconds / (time.perf_counter() - begin)))
    begin = time.perf_counter()
    repeat_dsyrk(block, gram, times)
    return (time.perf_counter() - begin) / times


@contextmanager
def clocked():
    """Within the block, the seconds of every compiled kernel are added up by name in the dictionary it yields."""
    seconds = {}

    def timed(name, kernel):
        def call(*arguments):
            begin = time.perf_counter()
            kernel(*arguments)
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin
        return call

    compiled = {
        name: kernel
        for name, kernel in vars(kernels).items()
        if hasattr(kernel, "py_func") and not name.startswith("_")
    }
    with patch.multiple(kernels, **{name: timed(name, kernel) for name, kernel in compiled.items()}):
        yield seconds


def random_problem(shape, missing, rank):
    """Problem with standard normal values, and a first state with six mixture components."""
    rng = np.random.default_rng(0)
    problem = Problem.of(Observed.of(rng.standard_normal(shape), rng.random(shape) >= missing))
    return problem, fit.start(problem, rank, 6, 100.0, rng)


def measure_speed(shape, missing, rank, counts, repetitions):
    """Best seconds of several repetitions, everything in turn, so that a slow moment of the machine hits all alike.

    Returns
    -------
    observed : int
    syrk : float
        Seconds of one rank-`BLOCK` update on one thread.
    best : dict of int to dict of str to float
        For every number of threads, the seconds of ``rows`` (the low-rank draw), of its kernels, and of a full
        ``sweep``.
    """
    problem, state = random_problem(shape, missing, rank)
    rng = np.random.default_rng(1)
    best, syrk = {count: {} for count in counts}, np.inf
    for repetition in range(repetitions + 1):
        with kernel_threads(1):
            syrk = min(syrk, dsyrk_seconds(rank))
        for count in counts:
            with kernel_threads(count):
                begin = time.perf_counter()
                with clocked() as found:
                    draw_low_rank(problem, state, rng)
                found["rows"] = time.perf_counter() - begin
                begin = time.perf_counter()
                sweep_collapsed(problem, state, rng)
                found["sweep"] = time.perf_counter() - begin
            if repetition:  # the first one compiles and touches the memory
                best[count] = {name: min(value, best[count].get(name, np.inf)) for name, value in found.items()}
    return problem.data.size, syrk, best


def speed(repetitions):
    """Tables of the row sweep beside BLAS, and of full sweeps."""
    counts = sorted({1, min(2, threads.available())})
    with kernel_threads(1):
        dsyrk_seconds(RANKS[0], 0.01)  # loads scipy's BLAS
        print(f"BLAS: {blas()}; processor cores: {threads.available()}; best of {repetitions} repetitions")
    shares, sweeps = [], []
    for name, (shape, missing) in TENSORS.items():
        for rank in RANKS:
            observed, syrk, best = measure_speed(shape, missing, rank, counts, repetitions)
            work, peak = len(shape) * observed * rank**2, kernels.BLOCK * rank**2 / syrk
            for count, seconds in best.items():
                inside = {key: value for key, value in seconds.items() if key not in ("rows", "sweep")}
                parts = ", ".join(f"{key} {1e3 * value:.1f}" for key, value in inside.items())
                rest = 1e3 * (seconds["rows"] - sum(inside.values()))
                rate, inner = work / seconds["rows"], work / sum(inside.values())
                shares.append(
                    [
                        name,
                        rank,
                        count,
                        f"{peak / 1e9:.1f}",
                        f"{rate / 1e9:.1f}",
                        f"{rate / (count * peak):.0%}",
                        f"{inner / (count * peak):.0%}",
                        f"{1e3 * seconds['rows']:.1f}",
                        f"{parts}, rest {rest:.1f}",
                    ]
                )
            rates = [1.0 / best[count]["sweep"] for count in counts]
            sweeps.append([name, rank, *(f"{rate:.2f}" for rate in rates), f"{rates[-1] / rates[0]:.2f}"])
    table(
        "Low-rank draw (CP weights and all factor rows) beside dsyrk of the same block shape",
        [
            "tensor",
            "rank",
            "threads",
            "dsyrk, 1 thread",
            "low-rank draw",
            "share of threads x dsyrk",
            "its kernels alone",
            "milliseconds",
            "of which",
        ],
        shares,
    )
    print(
        "\nRates in 10^9 multiply-adds a second, counted alike on both sides: R^2 an entry and mode, so K n R^2 for "
        f"the draw and {kernels.BLOCK} R^2 for a dsyrk call (n = R, k = {kernels.BLOCK}). Symmetry halves what is "
        "really done; a pass over the entries that is saved still counts; gathering, Cholesky and random numbers count "
        "as time, not as work."
    )
    table("Full sweeps a second", ["tensor", "rank", *(f"threads: {count}" for count in counts), "speed-up"], sweeps)


# --- memory -------------------------------------------------------------------------------------------------


def resident(field):
    """`VmRSS` (now) or `VmHWM` (peak) of this process in bytes.

    Not `ru_maxrss`: on Linux a process starts with that of the one that started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def picture_like(shape):
    """The sample photograph as a tensor of `shape` in [0, 1]; frames are windows that move by a pixel."""
    values = np.asarray(Image.open(PHOTOGRAPH).convert("RGB"), dtype=float) / 255.0
    if len(shape) == 3:
        return values[: shape[0], : shape[1]]
    return np.stack([values[i:i + shape[0], i:i + shape[1]] for i in range(shape[3])], axis=3)


def run_for_memory(name):
    """A few sweeps with the default rank and chains, pilot runs included; prints the memory before and at the peak."""
    shape, missing = TENSORS[name]
    config = datc.Config(burn_in=MEMORY_BURN_IN, samples=MEMORY_DRAWS, resolution=1 / 255)
    datc.warm_up(shape, config, 0.5)
    before = resident("VmRSS")
    rng = np.random.default_rng(0)
    with patch.object(datc, "PILOT_SAMPLES", MEMORY_DRAWS):
        datc.complete(picture_like(shape), rng.random(shape) >= missing, config, rng=rng)
    print(json.dumps({"before": before, "peak": resident("VmHWM")}))


def memory():
    """Peak memory of a short run on each tensor, in a process of its own."""
    if not os.path.exists("/proc/self/status"):
        print("\nMemory: not measured, this system has no /proc/self/status")
        return
    script = "print(next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmRSS')))"
    bare = 1024 * int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    rows = []
    for name, (shape, missing) in TENSORS.items():
        command = [sys.executable, __file__, "--memory-of", name]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        size = "x".join(str(n) for n in shape)
        rows.append(
            [
                name,
                f"{size}, {missing:.0%} missing",
                *(f"{found[key] / 2**30:.2f}" for key in ("before", "peak")),
                f"{(found['peak'] - found['before']) / 2**30:.2f}",
                f"{(found['peak'] - bare) / 2**30:.2f}",
            ]
        )
    table(
        f"Memory in GiB: {MEMORY_BURN_IN} sweeps of burn-in, {MEMORY_DRAWS} draws; rank, chains, pilot runs by default",
        [
            "tensor",
            "size",
            "imported and compiled, before the run",
            "peak",
            "peak above that",
            "peak above a bare interpreter",
        ],
        rows,
    )


# --- effective draws ----------------------------------------------------------------------------------------


def effective(draws):
    """Effective draws a second of both samplers on one problem, from the same state after burn-in."""
    drawn = synth.draw(kind="mixture-shifted", missing_ratio=0.7, seed=0)
    data = Observed.of(drawn.incomplete, drawn.observed)
    scale = Scale.of(data.values)
    problem = Problem.of(replace(data, values=(data.values - scale.centre) / scale.spread))
    rng = np.random.default_rng(0)
    probes = diagnostics.probes(drawn.observed.reshape(-1), rng)
    rows = []
    with kernel_threads(1):
        config = datc.with_defaults(data, datc.Config())
        start = fit.start(problem, config.rank, config.components, (scale.spread / drawn.noise_std) ** 2, rng)
        start = fit.burn_in(problem, start, config.burn_in, sweep_collapsed, rng)
        for name in ("literal", "collapsed"):
            state, sweep, seconds = start, SWEEPS[name], 0.0
            traces = np.empty((1 + len(probes), draws))
            for draw in range(-draws // 10, draws):
                begin = time.perf_counter()
                state = sweep(problem, state, rng)
                seconds += time.perf_counter() - begin if draw >= 0 else 0.0
                if draw >= 0:
                    value = cp_to_tensor(state.weights, state.factors).reshape(-1)[probes] + mixture_moments(state)[0]
                    traces[:, draw] = [-0.5 * expected_law(problem, state)[0], *value]
            ess = [float(array_stats.ess(trace[None], chain_axis=0, draw_axis=1, method="bulk")) for trace in traces]
            chosen = np.array([ess[0], np.median(ess[1:]), min(ess[1:])])
            rows.append([name, draws, f"{draws / seconds:.0f}", *(f"{value:.0f}" for value in chosen),
                         *(f"{value:.1f}" for value in chosen / seconds)])
    table(
        "Effective draws of both samplers: 30x30x30, rank 5, shifted mixture, 70 % missing, one thread; log likelihood "
        f"and {len(probes)} missing entries",
        [
            "sampler",
            "draws",
            "draws a second",
            "ESS of the log likelihood",
            "of an entry: median",
            "smallest",
            "effective draws a second: log likelihood",
            "entry: median",
            "smallest",
        ],
        rows,
    )


# --- a photograph -------------------------------------------------------------------------------------------


def photograph():
    """`tdc complete-image` on a photograph with all defaults, after a short run that warms the caches."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "tdc_cli",
            "complete-image",
            str(PHOTOGRAPH),
            "-o",
            str(Path(folder, "filled.png")),
            "--missing-ratio",
            "0.6",
            "--seed",
            "0",
            "--method",
            "datc",
            "--json",
            "--overwrite",
            "--no-progress",
        ]

        def run(*more):
            begin = time.perf_counter()
            output = subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
            return json.loads(output), time.perf_counter() - begin

        def rows():
            run("--burn-in", "1", "--samples", "1", "--chains", "1", "--rank", "4")
            for more in ((), ("--spatial",)):
                report, wall = run(*more)
                parameters = report["method"]["parameters"]
                r_hat = diagnostics.worst_r_hat(report["diagnostics"]["r_hat"])
                lengths = " + ".join(str(parameters[name]) for name in ("burn_in", "samples"))
                worst = "-" if r_hat[1] is None else f"{r_hat[1]:.3f} ({r_hat[0]})"
                yield [" ".join(more) or "all defaults", f"{report['timing']['complete']:.1f}", f"{wall:.1f}",
                       f"{parameters['chains']} x ({lengths})", parameters["residual"], report["rank"]["value"],
                       f"{report['metrics']['all']['psnr']:.2f}", worst, "; ".join(report["warnings"]) or "none"]

        table(
            "A photograph, 256x256x3, 60 % of the entries missing, `tdc complete-image --method datc`, warm, pilot "
            "runs and chains included",
            [
                "options",
                "seconds of completion",
                "of the whole command",
                "chains x (burn-in + draws)",
                "residual",
                "rank",
                "PSNR",
                "worst R-hat",
                "warnings",
            ],
            rows(),
        )


SECTIONS = ("speed", "memory", "effective", "photograph")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--repetitions", type=int, default=5, help="repetitions of which the best counts")
    parser.add_argument("--draws", type=int, default=2000, help="draws of either sampler for effective draws")
    parser.add_argument("--memory-of", choices=list(TENSORS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        run_for_memory(options.memory_of)
        return
    if "speed" in options.only:
        speed(options.repetitions)
    if "memory" in options.only:
        memory()
    if "effective" in options.only:
        effective(options.draws)
    if "photograph" in options.only:
        photograph()


if __name__ == "__main__":
    main()
