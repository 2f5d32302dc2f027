"""A completed tensor, and what is written beside it."""

import numpy as np

from ...media import Media, tensor
from ...names import STANDARD
from ..completed import completed

_SD = "sd"  # variable that holds the standard deviations
_MASK = "mask"


class Sink:
    """See the package."""

    def __init__(self, request):
        for path in (request.save_incomplete, request.uncertainty):
            if path is not None:
                tensor.named(path)
        self.form = tensor.named(request.output) if str(request.output) != STANDARD else None

    def fit(self, request, source):
        """See the package."""
        self.form = self.form or tensor.FORMATS[source.media.format]
        tensor.check(self.form, source.media, request.output)
        if request.save_incomplete is not None:
            tensor.check(tensor.named(request.save_incomplete), source.media, request.save_incomplete)
        left = tensor.left_out(self.form, source.media)
        return (
            [f"{request.output}: without {', '.join(left)}, which {tensor.split(request.input)[0]} holds as well"]
            if left
            else []
        )

    def write(self, plan, measures, monitor, shown):
        """See the package. The tensor comes first: of files that are written together, the first one appears last."""
        request, given = plan.request, plan.source.media
        done = next(completed(plan, truth=True))
        if measures is not None:
            measures.add(0, done.given.truth, done.colour, ~done.given.absent)
        tensor.write(given.with_colour(done.colour), request.output, form=self.form, replace=request.overwrite)
        if request.save_incomplete is not None:
            tensor.write(given.with_colour(done.holed), request.save_incomplete, replace=request.overwrite)
            mask = done.given.absent.astype(np.uint8)
            tensor.write(_array(given, mask, _MASK), request.outputs["mask"], replace=request.overwrite)
        if request.uncertainty is not None:
            tensor.write(_array(given, done.sd, _SD), request.uncertainty, replace=request.overwrite)


def _array(given, values, name):
    """An array that belongs to the tensor `given`, alone in its file."""
    kept = {key: value for key, value in given.metadata.items() if key == "axes"}
    return Media(values, "tensor", given.path, "", {"variable": name} | kept, given.format)
