"""Trials as text for a terminal."""

import numpy as np

from ..mixtures import match

WIDTH = 22  # of the names at the left
# Added to all variances where components are matched, so that constants have some.
LEAST_VARIANCE = 1e-6


def problem(source):
    """One line that says what the problem is."""
    drawn = source.problem
    missing = int((~drawn.observed).sum())
    return (
        f"{source.path}: {'x'.join(map(str, drawn.shape))}, rank {drawn.rank}, E {drawn.kind}, {missing} of "
        f"{drawn.observed.size} entries missing ({missing / drawn.observed.size:.1%}), noise sd {drawn.noise_std:.3g}, "
        f"seed {drawn.seed}"
    )


def trial(report):
    """What one method found, beside the truth.

    Parameters
    ----------
    report : Report
        With its entry `synthetic`.

    Returns
    -------
    str
        Without a final newline.
    """
    truth, measured = report.synthetic, report.metrics
    lines = [f"{report.method['name']}, {report.timing['complete']:.1f} s"]

    def row(name, text):
        lines.append(f"  {name:{WIDTH}}{text}")

    row("rank", f"{_rank(report.rank)}; true {truth['rank']}")
    row(
        "RRE against L",
        f"{_number(measured['all']['rre'])}; oracle floor {_number(measured['oracle_floor'])}{_ratio(measured)}",
    )
    row("RRE, missing entries", _number(measured["missing"]["rre"]))
    row("RRE against X", _number(measured["low_rank"]["rre"]) if measured["low_rank"] else "not told apart")
    if report.noise_std is not None:
        row("noise sd", f"{report.noise_std:.3g}; true {truth['noise_std']:.3g}")
    if report.uncertainty and report.uncertainty["coverage90"] is not None:
        row("90 % intervals", f"hold {report.uncertainty['coverage90']:.1%} of the missing entries")
    if report.diagnostics:
        row("convergence", _convergence(report.diagnostics))
    if report.mixture:
        row("mixture of E", f"{'weight':>9} {'true':>9}  {'mean':>9} {'true':>9}  {'precision':>9} {'true':>9}")
        for i, text in enumerate(_components(report.mixture, truth["mixture"], truth["noise_std"]), 1):
            row(f"  component {i}", text)
    return "\n".join(lines)


def comparison(reports):
    """Table of several methods, a line each."""
    width = max(len(report.method["name"]) for report in reports)
    lines = [f"{'method':{width}}  {'rank':>4}  {'RRE, L':>8}  {'missing':>8}  {'RRE, X':>8}  {'seconds':>8}"]
    for report in reports:
        measured, rank = report.metrics, report.rank and report.rank["value"]
        low_rank = measured["low_rank"] and measured["low_rank"]["rre"]
        lines.append(
            f"{report.method['name']:{width}}  {'-' if rank is None else rank:>4}  "
            f"{_number(measured['all']['rre']):>8}  {_number(measured['missing']['rre']):>8}  {_number(low_rank):>8}  "
            f"{report.timing['complete']:8.1f}"
        )
    return "\n".join(lines)


def _number(value):
    """Four decimals, two digits where they would show less."""
    if value is None:
        return "-"
    return f"{value:.1e}" if 0 < value < 1e-3 else f"{value:.4f}"


def _rank(rank):
    if rank is None or rank["value"] is None:
        return "not inferred"
    shares = sorted((rank["posterior"] or {}).items(), key=lambda item: -item[1])
    return f"{rank['value']}" + (
        f" ({', '.join(f'{value}: {share:.0%}' for value, share in shares[:4])})" if shares else ""
    )


def _ratio(measured):
    """How many times the floor, where there is one."""
    rre, floor = measured["all"]["rre"], measured["oracle_floor"]
    return f", {rre / floor:.3f} times that" if rre is not None and floor else ""


def _convergence(diagnostics):
    """Worst R-hat, smallest effective sample size, length of the chains."""
    parts = []
    for name, key, worst in (("R-hat", "r_hat", max), ("ESS", "ess", min)):
        known = {trace: value for trace, value in (diagnostics[key] or {}).items() if value is not None}
        if known:
            trace = worst(known, key=known.get)
            parts.append(f"{name} {known[trace]:{'.2f' if key == 'r_hat' else '.0f'}} ({trace})")
    parts.append(f"{diagnostics['chains']} chains of {diagnostics['burn_in']} + {diagnostics['draws']} sweeps")
    return ", ".join(parts)


def _components(found, true, noise_std):
    """A line for each component, the one found beside the true one that is most like it."""

    def mixture(parameters):
        precisions = [np.inf if precision is None else precision for precision in parameters["precisions"]]
        return parameters["weights"], parameters["means"], 1.0 / np.array(precisions, dtype=float)

    for mine, theirs in match(mixture(found), mixture(true), max(noise_std**2, LEAST_VARIANCE)):
        cells = []
        for key, style in (("weights", ".3f"), ("means", ".3f"), ("precisions", ".4g")):
            cells.append(
                " ".join(
                    f"{_cell(parameters[key], index, style):>9}"
                    for parameters, index in ((found, mine), (true, theirs))
                )
            )
        yield "  ".join(cells)


def _cell(values, index, style):
    if index is None:
        return "-"
    return "constant" if values[index] is None else f"{values[index]:{style}}"
