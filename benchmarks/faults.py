"""Do the tests see faults? Puts them into a copy of the code, one by one, and runs the tests that should fail.

    .venv/bin/python benchmarks/faults.py [--only TEXT] [--begin N] [--sound] [--list]

Prints a table, a line for each fault, and ends with 1 if any is not seen. Each group of tests is run without a fault
first, so that one that fails by itself does not count as one that sees something.
"""

import argparse
import importlib
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# A process with threads must not fork.
os.environ |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import pytest

# Loaded once, for all forks.
for library in ("click", "numba", "PIL.Image", "scipy.linalg", "scipy.ndimage", "scipy.stats", "skimage.metrics"):
    importlib.import_module(library)

LOG = "log.txt"
ROOT = Path(__file__).parent.parent
# Of a processor, and of the clock, for a group of tests; one that takes longer, where it did not before, has seen
# something.
SECONDS, WAIT = 300, 1800
SLOW = "more than the time"


@dataclass(frozen=True)
class Fault:
    """A change of one place of the code, and the tests that must fail with it.

    Attributes
    ----------
    file : str
        Below `tdc_cli`.
    before, after : str
        The place, which is there once, and what comes in its stead.
    tests : str
        Words for pytest.
    """

    file: str
    before: str
    after: str
    tests: str


KINDS = "tests/test_mask_kinds.py -k "
MASKS = "tests/test_masks.py"
METRICS = "tests/test_metrics.py"
MODEL = "tests/test_conditionals.py -k "
DOOR = "tests/test_solve.py -k "
SCALE = "tests/test_patches.py -k scale_follows|fresh_errors|too_few_entries|by_halves|few_errors"
REPLACING = "tests/test_replacing.py -k "
KILLED = "tests/test_killed.py -k one_run_after"
STORE = "tests/test_stored_regions.py -k "

# fmt: off
FAULTS = (
    # Masks.
    Fault("holes/marks.py", "return 1 / 257", "return 1 / 256", KINDS + "257"),
    Fault("holes/marks.py", "if top <= 1:\n        return 255", "if top < 1:\n        return 255", KINDS + "of_one"),
    Fault("holes/marks.py", "if levels.max() <= 1 else levels", "if levels.max() < 1 else levels", KINDS + "of_one"),
    Fault("holes/marks.py", "if top <= 255:\n        return 1", "if top < 255:\n        return 1", KINDS + "of_one"),
    Fault("holes/marks.py", "    missing = levels >= threshold\n    if opaque is not None:",
          "    missing = levels > threshold\n    if opaque is not None:", KINDS + "threshold"),
    Fault("holes/marks.py", "opaque = None if alpha is None else alpha >= WHITE",
          "opaque = None if alpha is None else alpha > WHITE", KINDS + "layer"),
    Fault("holes/marks.py", "missing = farthest <= tolerance", "missing = farthest <= tolerance + 1",
          KINDS + "tolerance"),
    Fault("holes/marks.py", "missing = farthest <= tolerance", "missing = (farthest < tolerance) | (farthest == 0)",
          KINDS + "tolerance"),
    Fault("holes/marks.py", "structure=np.ones((3, 3), dtype=bool)",
          "structure=np.eye(3, dtype=bool) | np.eye(3, dtype=bool)[::-1]", MASKS),
    Fault("holes/marks.py", "missing = grown(alpha == 0, dilate)", "missing = grown(alpha < 128, dilate)",
          KINDS + "transparent"),
    Fault("holes/marks.py", "place + side if place < 0 else place", "place + side if place <= 0 else place",
          KINDS + "boxes"),
    Fault("holes/marks.py", "round(n * side / 100) if percent", "int(n * side / 101) if percent", KINDS + "boxes"),
    Fault("holes/marks.py", "2 * digit for digit", "digit + '0' for digit", KINDS + "short_colour"),
    Fault("holes/marks.py", "np.broadcast_to((~marked if invert else marked)",
          "np.broadcast_to((marked if invert else ~marked)", "tests/test_tensors.py -k mask"),
    Fault("media/masks.py", "_BRIGHTNESS = (0.299, 0.587, 0.114)", "_BRIGHTNESS = (0.114, 0.587, 0.299)",
          KINDS + "grey_of_a_colour"),
    Fault("media/masks.py", "(top - colour[..., 3:]) / top", "(colour[..., 3:]) / top", KINDS + "inks"),
    Fault("media/masks.py", "mask.values[..., -1] * (255 / (mask.full_range or 1))",
          "mask.values[..., -1] * (256 / (mask.full_range or 1))", KINDS + "layer"),
    Fault("holes/patterns.py", "round(ratio * n), replace=False", "int(ratio * n), replace=False", KINDS + "share"),
    Fault("holes/patterns.py", "_some(shape[1], ratio, rng)[None, :]", "_some(shape[1], ratio / 2, rng)[None, :]",
          KINDS + "share"),
    # Measures.
    Fault("metrics.py", "return float(10 * np.log10(data_range**2 / error))",
          "return float(20 * np.log10(data_range**2 / error))", METRICS),
    Fault("metrics.py", "NORMAL_90 = 1.6448536269514722", "NORMAL_90 = 1.959963984540054", METRICS),
    Fault("metrics.py", "<= z * np.asarray(sd)", "< z * np.asarray(sd) / 1.1", METRICS),
    Fault("metrics.py", "np.where(observed, estimate, 0), data_range, unit)",
          "np.where(observed, estimate, 1), data_range, unit)", METRICS),
    Fault("metrics.py", "self._range**2 * count / error", "self._range * count / error", METRICS),
    Fault("metrics.py", "np.sqrt(error / size)", "(error / size)", METRICS),
    Fault("metrics.py", "self._unit * sums[2] / sums[3]", "sums[2] / sums[3]", METRICS),
    Fault("metrics.py", 'found["mae"] * unit}', 'found["mae"]}', METRICS),
    Fault("metrics.py", "    known = np.isfinite(truth)\n    # A single",
          "    known = ~np.isinf(truth)\n    # A single", "tests/test_tensors.py -k metrics|truth"),
    # Model.
    Fault("model/conditionals.py", "priors.kappa_rate + variances / 2.0", "priors.kappa_rate + variances",
          MODEL + "rate"),
    Fault("model/conditionals.py", "priors.factor_shape + (factor.size + 1) / 2.0",
          "priors.factor_shape + factor.size / 2.0", MODEL + "precision"),
    Fault("model/conditionals.py", "priors.residual_shape + (count + 1) / 2.0", "priors.residual_shape + count / 2.0",
          MODEL + "component"),
    Fault("model/conditionals.py", "noise_precision / total)", "precisions / total)", MODEL + "residual"),
    Fault("model/conditionals.py", "strength = priors.factor_strength + factor.size",
          "strength = priors.factor_strength + len(factor)", MODEL + "mean"),
    Fault("model/conditionals.py", "diagonals += coherence.strength * coherence.degrees[rows]",
          "diagonals += coherence.degrees[rows]", MODEL + "row|coheren"),
    Fault("model/conditionals.py", "first / rates + np.where", "first / rates**2 + np.where", MODEL + "variance"),
    Fault("model/conditionals.py", "priors.noise_shape + len(errors) / 2.0", "priors.noise_shape + len(errors)",
          MODEL + "noise"),
    Fault("model/conditionals.py", "return root @ (root.T @ product), root", "return root.T @ (root @ product), root",
          MODEL + "weights"),
    Fault("model/kernels.py", "root = np.sqrt(precisions[entry])\n            target = targets[entry] * root",
          "root = precisions[entry]\n            target = targets[entry] * root", "tests/test_kernels.py"),
    # Calibration.
    Fault("patches/calibrate.py", "order = np.argsort(spreads, kind=\"stable\")", "order = np.arange(len(spreads))",
          SCALE),
    Fault("patches/calibrate.py", "np.maximum(spreads[b], centres[0]), 0.9, method",
          "np.maximum(spreads[b], centres[0]), 0.8, method", SCALE),
    Fault("patches/calibrate.py", "widths *= centres / NORMAL_90", "widths *= centres", SCALE),
    Fault("patches/calibrate.py", "np.maximum(widths**2 - noise_variance, least)", "np.maximum(widths**2, least)",
          "tests/test_patches.py -k noise_is_taken_out"),
    Fault("patches/calibrate.py", "scale = fit_scale(errors[one]", "scale = fit_scale(errors[other]", SCALE),
    Fault("patches/calibrate.py", "FEWEST = 20", "FEWEST = 2", SCALE),
    # The door to the methods, values, what is told of them.
    Fault("methods/solve.py", "return np.ldexp(standard, self.exponent) + self.centre",
          "return np.ldexp(standard, self.exponent)", DOOR + "not slow"),
    Fault("methods/solve.py", "power * self.exponent", "self.exponent", DOOR + "not slow"),
    Fault("methods/solve.py", "bad = np.count_nonzero(~np.isfinite(told))",
          "bad = np.count_nonzero(np.isnan(told))", DOOR + "not slow"),
    Fault("methods/solve.py", "if 0 < FAR * span < beyond:", "if 0 < FAR * beyond < span:", DOOR + "not slow"),
    Fault("methods/solve.py", "if not 0 <= mode < order:", "if not 0 <= mode <= order:",
          "tests/test_competitors.py -k ordered_mode"),
    Fault("run/values.py", "np.clip(np.rint(values * full_range), 0, full_range)",
          "np.clip(np.floor(values * full_range), 0, full_range)", KINDS + "nearest_level"),
    Fault("run/values.py", "hole = np.nan if", "hole = 0 if", KINDS + "holes_of_floats"),
    Fault("run/solve.py", "return None if sd is None else np.where(observed, 0.0, sd)",
          "return None if sd is None else sd", "tests/test_arrays.py -k known_exactly"),
    Fault("run/completed.py", "colour[plane][estimated] = self._values[part]",
          "colour[plane][estimated] = self._values[part][::-1]", KINDS + "every_level"),
    Fault("run/reporting.py", '"ratio": count / total', '"ratio": pixels / total', KINDS + "counts_entries"),
    Fault("run/reporting.py", 'total["inside"] / total["missing"]', 'total["inside"] / total["estimated"]',
          KINDS + "coverage"),
    Fault("run/sources.py", "alike = alike and same(reference) == same(source)", "alike = True", KINDS + "reference"),
    Fault("run/sources.py", "reference.colour_shape == source.colour_shape", "True", KINDS + "reference"),
    # Media.
    Fault("media/video/animate.py", "media.values[..., 3] < 128", "media.values[..., 3] < 64", KINDS + "animation"),
    Fault("media/pixels.py", "values[..., -1][opaque] = self.full_range or 1", "values[..., -1][opaque] = 1",
          KINDS + "becomes_opaque"),
    Fault("media/pixels.py", "self.values[..., -1] / (self.full_range or 1)", "self.values[..., -1] / 255",
          KINDS + "becomes_opaque"),
    Fault("media/png16.py", "values = values[..., 0] if channels == 1 else values[..., :channels]",
          "values = values[..., :channels]", "tests/test_media.py -k of_sixteen_bits"),
    Fault("media/parts.py", "if self.target.exists():  # a private file stays private",
          "if False:  # a private file stays private", KINDS + "permissions"),
    Fault("media/parts.py", "        if self.target.exists():\n            os.chmod",
          "        if False:\n            os.chmod", KINDS + "permissions"),
    # Results, and what is kept until they are there.
    Fault("media/parts.py", "            check_unread(self.path, reads)\n            if not self.replaces",
          "            if not self.replaces", REPLACING + "becomes_that_of_the_input"),
    Fault("media/contents.py", "and not path.is_symlink() and _digest(path) == sha256", "and _digest(path) == sha256",
          REPLACING + "no_run_has_written"),
    Fault("media/contents.py", "and not path.is_symlink() and _digest(path) == sha256", "and not path.is_symlink()",
          REPLACING + "no_run_has_written"),
    Fault("media/files.py", "for part in reversed(waiting):", "for part in waiting:",
          "tests/test_batch.py -k results_appear_together"),
    Fault("media/journal.py", "if not (folder / entry[\"commit\"]).exists():", "if False:", KILLED),
    Fault("media/journal.py", "for move in reversed(entry[\"moves\"]):", "for move in entry[\"moves\"][:0]:", KILLED),
    Fault("media/journal.py", "        if spent:\n            _remove_spent(*spent)",
          "        if False:\n            _remove_spent(*spent)", "tests/test_stored_regions.py -k goes_on"),
    Fault("run/store.py", "held = {name: arrays[name] for name in arrays}", "held = {'facts': arrays['facts']}",
          STORE + "damaged"),
    Fault("run/store.py", "json.loads(str(held[\"facts\"]))", "pass", STORE + "facts"),
    Fault("run/store.py", "self._known() == self._fingerprint):", "True):", STORE + "depend_on"),
    Fault("run/store.py", "if self.folder.is_symlink():", "if False:", REPLACING + "link"),
    Fault("run/regions.py", "max(begin, a - margin), min(end, b + margin)", "max(begin, a), min(end, b)",
          STORE + "beside"),
    Fault("run/written.py", "and _PAGE in begin", "", REPLACING + "summary_or_index"),
    Fault("run/unchanged.py", "(found.st_mtime_ns, found.st_ctime_ns)", "()", REPLACING + "changed|rewritten"),
    Fault("run/outputs.py",
          "if source is not None and os.path.exists(source) and _within(os.path.realpath(source), real):", "if False:",
          REPLACING + "mask_in_the_folder"),
    Fault("memory.py", "found.append(int(Path(most).read_text()) - int(Path(taken).read_text()))",
          "found.append(int(Path(most).read_text()))", "tests/test_limits.py -k group"),
    Fault("names.py", '_FORMULAS = ("=", "+", "-", "@", "\\t", "\\r")', '_FORMULAS = ("=", "+", "@")',
          "tests/test_names.py -k formula"),
    Fault("run/report.py", "\\u2028-\\u202e", "\\u2028-\\u202d", "tests/test_names.py -k reports"),
)
# fmt: on


def run(words, copy):
    """Name of the first of some tests that fails in a copy of the repository, `SLOW` where they take too long, and ""
    where all pass.

    They run in a fork of this process, which has the libraries loaded already but nothing of the package.
    """
    files, _, chosen = words.partition(" -k ")
    more = ["-k", chosen.replace("|", " or ")] if chosen else []
    child = os.fork()
    if not child:
        _run_here(["-q", "-x", "-p", "no:cacheprovider", *files.split(), *more], copy)
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGXCPU:
                return SLOW
            if code not in (0, 1):
                raise SystemExit(f"pytest {words}: ended with {code}, see {copy / LOG}\n{(copy / LOG).read_text()}")
            return _failed(copy) if code else ""
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return SLOW


def _failed(copy):
    """Name of the test that the log of a run in a copy tells as failed."""
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+?)(?:\[.*)?(?: - .*)?$", (copy / LOG).read_text(), re.MULTILINE)
    return failed[1] if failed else "an error of pytest"


def _run_here(arguments, copy):
    """Run pytest in this process, a fork, and end it."""
    code = 99
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": str(copy)}
        sys.path.insert(0, str(copy))
        with open(LOG, "w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            code = int(pytest.main(arguments))
    finally:
        os._exit(code)


def seen(fault, copy):
    """What of its tests fails with a fault, as `run` says."""
    path = copy / "tdc_cli" / fault.file
    text, stat = path.read_text(encoding="utf-8"), path.stat()
    if text.count(fault.before) != 1:
        raise SystemExit(f"{fault.file}: {fault.before!r} is there {text.count(fault.before)} times, not once")
    path.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
    try:
        return run(fault.tests, copy)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # compiled code stays valid


def main():
    """Put the faults in, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="faults whose file, place or tests hold this text")
    parser.add_argument("--begin", type=int, default=0, metavar="N", help="leave out the first N of them")
    parser.add_argument("--sound", action="store_true", help="take for granted that the tests pass without a fault")
    parser.add_argument("--list", action="store_true", help="print the faults and do nothing")
    asked = parser.parse_args()
    chosen = [each for each in FAULTS if asked.only in "\n".join((each.file, each.before, each.after, each.tests))]
    chosen = chosen[asked.begin :]
    print("| place | fault | seen by | seconds |\n|---|---|---|---|")
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for name in ("tdc_cli", "tests", "docs", "sample_data"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, copy / name)
        sound = {}
        for fault in chosen:
            answer, begin = fault.tests.replace("tests/", "").replace("|", " "), time.monotonic()
            if not asked.list:
                if fault.tests not in sound:
                    sound[fault.tests] = "" if asked.sound else run(fault.tests, copy)
                answer = "" if sound[fault.tests] else seen(fault, copy)
                missed += not answer
                answer = answer or (f"NOT: {sound[fault.tests]} fails by itself" if sound[fault.tests] else "NOT")
            what = " ".join(f"{fault.before} -> {fault.after}".split()).replace("|", "\\|")
            print(f"| {fault.file} | `{what}` | {answer} | {time.monotonic() - begin:.0f} |", flush=True)
    print(f"\n{len(chosen)} faults, {missed} not seen")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
