"""A completed picture, and what is written beside it."""

from pathlib import Path

import numpy as np

from ... import media
from ...errors import ConfigError, OutputError
from ...media import Media, files, stored
from ...media.files import write_bytes
from ...names import STANDARD
from ...view.display import units_of
from .. import outputs
from ..bands import bands
from ..completed import completed


class Sink:
    """See the package."""

    def __init__(self, request):
        outputs.check_extensions(request)
        wanted = media.EXTENSIONS[f".{request.format}"] if request.format else None
        self.form = wanted
        if str(request.output) == STANDARD:
            return
        self.form = wanted or media.named(request.output, OutputError)
        suffix = Path(request.output).suffix.lower()
        if wanted and media.EXTENSIONS.get(suffix, wanted) is not wanted:
            raise ConfigError(
                f"{request.output}: its extension says {suffix} but `format` {request.format}; leave one out"
            )

    def fit(self, request, source):
        """See the package."""
        self.form = form = self.form or media.FORMATS[source.media.format]
        media.check(form, source.media, request.output)
        if request.quality is not None and form.lossless:
            raise ConfigError(
                f"`quality` is of JPEG, and {request.output} is written as {form.name}, without loss; leave it out"
            )
        if request.save_incomplete is not None:
            media.check(media.named(request.save_incomplete, OutputError), source.media, request.save_incomplete)
        return media.losses(form, source.media)

    def write(self, plan, measures, monitor, shown):
        """See the package. The picture comes first: of files that are written together, the first one appears last."""
        request, source = plan.request, plan.source
        if isinstance(source.media.values, stored.Stored):
            return self._write_rows(plan, measures)
        wanted = (request.uncertainty, request.panel, request.html if plan.answer == 1 else None)
        done = next(completed(plan, truth=True, sd=any(path is not None for path in wanted)))
        if measures is not None:
            measures.add(0, done.given.truth, done.estimate, ~done.given.absent)
        if request.make_folders:
            for path in request.outputs.values():
                files.make_folder(path.parent)
        media.write(done.media, request.output, form=self.form, quality=request.quality, replace=request.overwrite)
        if request.save_incomplete is not None:
            incomplete = source.media.with_colour(done.holed)
            media.write(incomplete, request.save_incomplete, quality=request.quality, replace=request.replaces)
            mask = Media(np.where(done.holes, 255, 0).astype(np.uint8), "L", source.path, "")
            media.write(mask, request.outputs["mask"], replace=request.replaces)
        units = units_of(source.full_range)
        if request.uncertainty is not None:
            if Path(request.uncertainty).suffix.lower() == ".png":
                from ...view.panel import draw_uncertainty

                write_bytes(request.uncertainty, draw_uncertainty(done.sd, units), replace=request.replaces)
            else:
                media.write_array(done.sd, request.uncertainty, replace=request.replaces)
        if request.panel is not None:
            from ...view.panel import draw_panel

            panel = draw_panel(
                done.shown(done.holed),
                done.shown(done.colour),
                done.sd,
                done.given.truth,
                source.full_range,
                units,
                source.mode == "CMYK",
                alpha=done.media.alpha,
                premultiplied="premultiplied" in source.media.metadata,
            )
            write_bytes(request.panel, panel, replace=request.replaces)
        # Without a page it need not be held any longer.
        return [*(shown or ()), done] if request.html is not None else None

    def _write_rows(self, plan, measures):
        """`write` of a picture that is not held: there is neither page nor panel of it."""
        request, given = plan.request, plan.source.media
        if request.make_folders:
            for path in request.outputs.values():
                files.make_folder(path.parent)

        def colours():
            for band in bands(plan, truth=measures is not None):
                if measures is not None:
                    measures.add(0, band.truth, band.colour, ~band.absent)
                yield band.colour

        stored.write_rows(colours(), given, request.output, replace=request.overwrite)
        if request.uncertainty is not None:
            like = Media(stored.Stored(given.values.shape, plan.sd_dtype, None), "array", given.path, "")
            deviations = (band.sd for band in bands(plan, sd=True))
            stored.write_rows(deviations, like, request.uncertainty, replace=request.replaces)

    def page(self, plan, report, shown):
        """Page of a run, as text.

        Parameters
        ----------
        plan : Plan
        report : Report
        shown : list of Completed
            What `Sink.write` gave, of every answer.
        """
        from ...view import page

        given, (done, *others) = plan.source.media, shown
        pictures = page.Pictures(
            done.shown(done.holed),
            done.shown(done.colour),
            ~done.given.absent,
            given=given.colour if plan.decision.source in ("mask", "alpha", "infrared", "color", "box") else None,
            sd=done.sd,
            truth=done.given.truth,
            full_range=given.full_range,
            inks=given.mode == "CMYK",
            alpha=done.media.alpha,
            given_alpha=given.alpha,
            premultiplied="premultiplied" in given.metadata,
            icc_profile=given.metadata.get("icc_profile"),
            variants=tuple(other.shown(other.colour) for other in others),
        )
        traces = plan.store.facts(plan.regions[0])["traces"] if plan.regions else {}
        return page.run(report, pictures, traces)
