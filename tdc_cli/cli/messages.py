"""What commands tell of a single input, before and after the work."""

import click

from .folder import tell_compilation


def tell(plan, quiet, verbose):
    """Print what the user should know before the work begins.

    Parameters
    ----------
    plan : pipeline.Plan
    quiet, verbose : bool
    """
    if quiet:
        return
    from ..run import estimate

    say(plan, estimate.lack_of_memory(plan), verbose)


def say(plan, lack, verbose):
    """Notes and warnings of a plan, and its parameters.

    Parameters
    ----------
    plan : Plan
        Of a picture, a tensor or a clip.
    lack : str or None
        Of memory, in words.
    verbose : bool
    """
    for text in plan.notes:
        click.echo(f"tdc: note: {text}", err=True)
    for text in (*plan.warnings, *([lack] if lack else [])):
        click.echo(f"tdc: warning: {text}", err=True)
    if verbose:
        click.echo(f"tdc: {plan.method.name}: {plan.config}", err=True)


def describe(plan, as_json):
    """Print what a dry run would do.

    Parameters
    ----------
    plan : pipeline.Plan
    as_json : bool
    """
    from ..run import estimate

    planned = estimate.describe(plan)
    if as_json:
        import json

        click.echo(json.dumps(planned, indent=2, ensure_ascii=False))
        return
    source = plan.missing["source"]
    if source == "mask":
        how = f"by mask {plan.job.mask}"
    elif source == "color":
        how = f"by color {plan.job.mask_color}"
    else:
        how = {"alpha": "as transparent", "nan": "as NaN", "simulated": "simulated"}[source]
    click.echo(
        f"{plan.media.path}: {plan.missing['count']} of {plan.observed.size} entries missing ({plan.missing['ratio']:.1%}) "
        f"{how}, to be completed by {plan.method.name}"
    )
    for key, path in planned["outputs"].items():
        click.echo(f"  {key}: {path}")
    click.echo(f"  {estimate.in_words(planned['estimate'])}")


def tell_done(plan, report, as_json, quiet):
    """Print what came out: warnings that came up during the work, and the report or its summary.

    Parameters
    ----------
    plan : Plan
        Of a picture, a tensor or a clip.
    report : Report
    as_json, quiet : bool
    """
    if not quiet:
        for text in report.warnings[len(plan.notes) + len(plan.warnings) :]:
            click.echo(f"tdc: warning: {text}", err=True)
        tell_compilation(report.timing["compile"])
    if as_json:
        click.echo(report.to_json().encode(errors="backslashreplace"), nl=False)
    elif not quiet:
        click.echo(report.summary(), err=str(plan.job.output) == "-")
