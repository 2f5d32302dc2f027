"""Every page of a file completed as a picture of its own, and the file whole again."""

from dataclasses import replace

from .. import media, methods
from ..errors import ConfigError, InputError, MaskError, MaskSizeError, OutputError
from ..media import files, metadata, tiff
from ..names import STANDARD
from .completed import completed
from .execute import execute
from .plan import prepare

# Results beside the file itself, which are of one picture.
_OF_ONE = ("uncertainty", "panel", "html", "report", "save_incomplete", "reference", "resume", "variants")


def plans(request):
    """Everything that can be found before any work, of every page.

    Parameters
    ----------
    request : Request
        With `pages`.

    Returns
    -------
    list of Plan
        In the order of the pages.

    Raises
    ------
    TdcError
        See `prepare`.
    """
    for name in _OF_ONE:
        if getattr(request, name):
            raise ConfigError(f"`{name}` is of one picture; leave it out, or name a `page` in place of `pages`")
    if request.page is not None or request.by_infrared:
        raise ConfigError(f"`pages` and `{'mask=ir' if request.by_infrared else 'page'}` exclude each other")
    if STANDARD in (str(request.input), str(request.output)):
        raise ConfigError("`pages` needs files for input and output, not -")
    if media.named(request.output, OutputError).name != "TIFF" or request.format not in (None, "tif"):
        raise OutputError(f"{request.output}: only TIFF holds pages that differ; write to .tif")
    given = media.named(request.input).name
    if given != "TIFF":
        raise InputError(f"{request.input}: is a {given} file, and `pages` is for pages of TIFF files; leave it out")
    numbers, left = tiff.page_numbers(request.input)
    planned = [_prepared(request, number) for number in numbers]
    first = planned[0]
    return [replace(first, notes=(*first.notes, *metadata.left_out(request.input, left))), *planned[1:]]


def _prepared(request, number):
    """`Plan` of a page; MaskError names the page."""
    try:
        return prepare(replace(request, page=number))
    except MaskSizeError as error:
        way = f"complete this page by itself, `page={number}`, with one of its size"
        raise MaskSizeError(f"page {number}: {error}; {way}") from error
    except MaskError as error:
        raise MaskError(f"page {number}: {error}") from error


def run(planned, monitor=methods.silent):
    """Complete every page and write the file.

    Parameters
    ----------
    planned : list of Plan
        From `plans`.
    monitor : callable
        Called as ``monitor(done, total, label)``.

    Returns
    -------
    list of Report
        In the order of the pages.

    Raises
    ------
    TdcError
        See `execute`; then nothing is written.
    """
    sink = _Whole(len(planned))
    return [execute(replace(plan, sink=sink), monitor) for plan in planned]


class _Whole:
    """Sink that keeps completed pages until it has all of them, and then writes the file; see `sinks`."""

    def __init__(self, count):
        self._count, self._pages = count, []

    def write(self, plan, measures, monitor, shown):
        """See `sinks`."""
        done = next(completed(plan, truth=True, sd=False))
        if measures is not None:
            measures.add(0, done.given.truth, done.colour, ~done.given.absent)
        self._pages.append(done.media)
        if len(self._pages) == self._count:
            request = plan.request
            if request.make_folders:
                files.make_folder(request.output.parent)
            files.write_bytes(request.output, tiff.encode_pages(self._pages, request.input), replace=request.replaces)
