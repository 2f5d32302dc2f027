"""The files that a completed picture goes to: their formats, what they cannot keep, their content."""

from pathlib import Path

import numpy as np

from .. import media
from ..errors import ConfigError, OutputError
from ..holes import in_any_channel
from ..media import Media, files
from ..media.files import write_bytes
from .values import holed, units_of


def output_format(job, source):
    """`media.formats.Format` of the completed picture; ConfigError or OutputError where the name does not tell, or tells two."""
    wanted = media.EXTENSIONS[f".{job.format}"] if job.format else None
    if str(job.output) == media.STANDARD:
        return wanted or media.FORMATS[source.format]
    if wanted is None:
        return media.named(job.output, OutputError)
    suffix = Path(job.output).suffix.lower()
    if media.EXTENSIONS.get(suffix, wanted) is not wanted:
        raise ConfigError(f"{job.output}: its extension says {suffix} but --format {job.format}; leave one out")
    return wanted


def check_formats(job, source, form):
    """Refuse formats that cannot hold the picture; OutputError or ConfigError."""
    media.check(form, source, job.output)
    if job.quality is not None and form.lossless:
        raise ConfigError(f"--quality is of JPEG, and {job.output} is written as {form.name}, without loss; leave it out")
    if job.incomplete is not None:
        media.check(media.named(job.incomplete, OutputError), source, job.incomplete)


def losses(source, form):
    """Warnings of what the format of the output cannot keep, a list of str."""
    told = []
    if not form.lossless:
        told.append(
            f"{form.name} compresses with loss: known pixels change a little in the file; write to .png to keep them bit for bit"
        )
    lost = form.lost(source)
    if lost:
        told.append(f"{form.name} cannot hold all that the input has: without {', '.join(lost)}; write to .png or .tif to keep it")
    return told


def write(plan, colour, incomplete, sd):
    """Write every output but the report and the page, which need what is only known at the end.

    The picture comes first: of files that are written together, the first one appears last.

    Parameters
    ----------
    plan : Plan
    colour, incomplete : ndarray
        The completed colours and those of the input with the added noise, as stored.
    sd : ndarray or None
    """
    job, source = plan.job, plan.media
    if job.make_folders:
        for path in job.outputs.values():
            files.make_folder(path.parent)
    shown = holed(incomplete, plan.observed)
    done = _done(plan, colour)
    media.write(done, job.output, form=plan.format, quality=job.quality, replace=plan.replaces_picture)
    if job.incomplete is not None:
        media.write(source.with_colour(shown), job.incomplete, quality=job.quality, replace=job.overwrite)
        mask = Media(np.where(in_any_channel(~plan.observed), 255, 0).astype(np.uint8), "L", source.path, "")
        media.write(mask, job.outputs["mask"], replace=job.overwrite)
    units = units_of(source.full_range)
    if job.uncertainty is not None:
        if Path(job.uncertainty).suffix.lower() == ".png":
            from ..view.panel import draw_uncertainty

            write_bytes(job.uncertainty, draw_uncertainty(sd, units), replace=job.overwrite)
        else:
            from ..media.array import write_array

            write_array(sd, job.uncertainty, replace=job.overwrite)
    if job.panel is not None:
        from ..view.panel import draw_panel

        transparency = {"alpha": done.alpha, "premultiplied": "premultiplied" in source.metadata}
        panel = draw_panel(shown, colour, sd, plan.truth, source.full_range, units, source.mode == "CMYK", **transparency)
        write_bytes(job.panel, panel, replace=job.overwrite)


def page_of(plan, report, colour, incomplete, sd, traces):
    """Page of the run, as text.

    Parameters
    ----------
    plan, colour, incomplete, sd
        As for `write`.
    report : Report
    traces : dict
        Of the completion.
    """
    from ..view import page

    shown = page.Pictures(
        holed(incomplete, plan.observed),
        colour,
        plan.observed,
        given=plan.media.colour if plan.missing["source"] in ("mask", "alpha", "color") else None,
        sd=sd,
        truth=plan.truth,
        full_range=plan.media.full_range,
        inks=plan.media.mode == "CMYK",
        alpha=_done(plan, colour).alpha,
        given_alpha=plan.media.alpha,
        premultiplied="premultiplied" in plan.media.metadata,
        icc_profile=plan.media.metadata.get("icc_profile"),
    )
    return page.run(report, shown, traces)


def _done(plan, colour):
    """The input with the completed colours; holes that were transparent are opaque."""
    return plan.media.with_colour(colour, opaque=in_any_channel(~plan.observed) if plan.missing["source"] == "alpha" else None)
