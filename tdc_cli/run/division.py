"""How an input is divided: its regions, how many of them are worked on at a time, and what that takes.

What is divided, and how, depends on the input, the method and the options alone, so that the same seed gives the same
bytes everywhere; only where memory is too short for that are regions smaller, and the user is told.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, InputError, MaskError
from ..media.stored import Stored
from ..memory import budget
from ..names import PICTURE
from .cost import Extent, around, clip_cost, cost, process_space, words_of
from .regions import SAMPLE, SAMPLES, Region, divide, tiled, tiles, whole_boxes
from .solve import estimates_known, gives_uncertainty

# Memory that a region takes at most where the user names none, if that is possible at all.
REGION_BYTES = 1e9
# A picture of up to so many pixels is one region, if its memory is no more than `REGION_BYTES`.
WHOLE = 1_500_000
# What is not to be divided of a clip may take more, since what is invented changes at the end of a region; and sees so
# many pixels on each side.
UNDIVIDED_BYTES, BESIDE = 2.5e9, 64
# Sides of the tiles of pictures and of clips, in pixels: the largest that fits is taken.
SIDES = (1024, 512, 256, 128)
CLIP_SIDES = (384, 256, 192, 128)
# Memory that a tile of a clip takes at most where that is possible, and how many frames of it should be completed at a
# time: each chunk looks at as many beside them.
CLIP_BYTES, LEAST_FRAMES = 1.6e9, 8
# Bytes of what says where something is missing while it is made, for each pixel or entry: the mask as decoded and as
# read, what it marks, what is observed. And of what draws them.
_MARKS, _DRAWN = 4, 17


@dataclass(frozen=True)
class Division:
    """Regions and what they take.

    Attributes
    ----------
    regions : tuple of Region
    tiled : bool
        Whether frames are cut into rows and columns.
    workers : int
        Regions worked on at a time.
    seconds, bytes : float
        What the work will take on one core, and at the most of all processes together.
    notes : tuple of str
    """

    regions: tuple
    tiled: bool
    workers: int
    seconds: float
    bytes: float
    notes: tuple = ()


def divided(request, method, config, incomplete, seen, copied=None):
    """`Division` of an input.

    Parameters
    ----------
    request : Request
    method : methods.Method
    config : dataclass of the method
    incomplete : Incomplete
    seen : Survey
    copied : (H, W) ndarray of bool, or None
        Pixels that alone may be copied into deep holes; None: all that are known.

    Returns
    -------
    Division

    Raises
    ------
    ConfigError, InputError
        What the method needs of memory is more than it may take.
    MaskError
        Regions that have nothing observed.
    """
    if incomplete.in_time:
        return _of_clip(request, method, config, incomplete, seen, copied)
    return _of_frame(request, method, config, incomplete, seen, copied)


def _of_frame(request, method, config, incomplete, seen, copied):
    """Of a picture or a tensor."""
    source, entries, known = incomplete.source, incomplete.entries, estimates_known(config)
    count, allowed = int(seen.counts[0]), budget(request.memory)
    box = ((0, 1), *((0, n) for n in source.shape[:2]))
    everything = Extent(entries, count, own=True) if seen.coverage is None else _extent(seen, source, box[1:], known)
    beside = _beside(request, method, incomplete)
    seconds, space = cost(method, everything)
    seconds += beside
    if not count and not known:
        return Division((), False, 1, seconds, space)
    whole = Division((Region(box, box),), False, 1, seconds, space)
    margin = method.margin(config) if request.kind == PICTURE else None
    if request.region is not None and request.region != "whole" and margin is None:
        raise ConfigError(
            f"`region`: method {method.name} needs the whole of a picture with these parameters; leave it out"
        )
    if margin is None or request.region == "whole":
        _check_whole(request, method, source, space, allowed, margin is not None)
        return whole
    small = int(np.prod(source.shape[:2])) <= WHOLE and space <= REGION_BYTES
    if request.region is None and small and (allowed is None or space <= allowed):
        return whole
    held, before = _held(request, method, config, incomplete)
    undivided = whole_boxes(seen.undivided, margin, copied=copied)
    entire = [_extent(seen, source, plane, known) for _, plane in undivided]

    def cut(side):
        planes = tiles(seen.coverage, side, margin, everything=known, undivided=undivided)
        others = [_extent(seen, source, plane, known) for used, plane in planes if (used, plane) not in undivided]
        return tiled((whole.regions[0],), planes), others

    sides = SIDES if request.region is None else (request.region,)
    usual = next((side for side in sides if _largest(method, cut(side)[1]) <= REGION_BYTES), sides[-1])
    for side in sides[sides.index(usual) :]:
        regions, others = cut(side)
        windows = [*entire, *others]
        largest = _largest(method, windows)
        needed = max(before, held + largest)
        if allowed is None or needed <= allowed:
            break
    else:
        _refuse_regions(method, source.path, side, needed, allowed, largest == _largest(method, entire))
    workers = max(1, min(request.jobs, len(regions)))
    while workers > 1 and allowed is not None and _together(held, largest, workers) > allowed:
        workers -= 1
    notes = []
    if side != usual or (small and request.region is None):
        notes.append(
            f"{source.path}: is completed in regions of {side} pixels, to keep to {words_of(allowed)} of memory; where "
            f"there is more, `region={side}` gives the same result"
        )
    if workers < min(request.jobs, len(regions)):
        notes.append(f"{workers} regions are worked on at a time, to keep to {words_of(allowed)} of memory")
    sampled = min(1.0, SAMPLES * SAMPLE**2 / np.prod(source.shape[:2]))
    seconds = beside + sum(cost(method, window, learns=False)[0] for window in windows)
    seconds += cost(method, everything.part(sampled))[0]
    space = max(before, _together(held, largest, workers))
    return Division(regions, True, workers, seconds, space, tuple(notes))


def _beside(request, method, incomplete):
    """Seconds that a run takes beside the work of the method."""
    paths = [str(path) for path in (request.input, request.output)]
    return around(method, incomplete.entries * incomplete.source.count, paths, incomplete.truth is not None)


def _held(request, method, config, incomplete):
    """Bytes of what is held of a picture beside the regions, and of all that is there before their turn comes.

    Held are its colours as read and as written, what is observed, deviations, the truth.
    """
    source, entries = incomplete.source, incomplete.entries
    drawn = _DRAWN * entries if request.missing_ratio else 0
    if isinstance(source.media.values, Stored):
        by_entry = incomplete.holes.looks or request.missing_ratio
        marks = _MARKS * (entries if by_entry else int(np.prod(source.shape[:2])))
        return max(marks, drawn) + (0 if request.reference is None else source.dtype.itemsize * entries), 0
    each = 3 * source.dtype.itemsize + 1
    if gives_uncertainty(method, config) and (request.uncertainty or request.panel or request.html):
        each += 8 if source.dtype == np.float64 else 4
    if request.add_noise:
        each += 16
    if request.panel or request.html:
        each += 12
    if request.reference is not None:
        each += source.dtype.itemsize
    return each * entries, process_space() + source.dtype.itemsize * entries + drawn


def _largest(method, windows):
    """Bytes of the region that takes most, with its process; 0 without regions."""
    return max((cost(method, window)[1] for window in windows), default=0)


def _refuse_regions(method, path, side, needed, allowed, entire):
    """Refuse regions of which the largest, one that is `entire` or of this side, takes more memory than it may."""
    of, way = f"in regions of {side} pixels", "try a part of it"
    if entire:
        of, way = "for its largest deep hole, which is completed as a whole", "try method patches, which divides it"
    raise InputError(
        f"{path}: method {method.name} takes about {words_of(needed)} of memory {of}, and may take "
        f"{words_of(allowed)}; give {_more(needed)}, or {way}"
    )


def _together(held, largest, workers):
    """Bytes of all processes: this one works itself where it is alone."""
    return held + largest if workers == 1 else held + process_space() + workers * largest


def _extent(seen, source, plane, known=False):
    """`Extent` of what is seen of a tile, ``((row, end), (column, end))``; where `known` entries are estimated too, all
    are near missing ones.
    """
    channels = int(np.prod(source.colour_shape[2:]))
    missing, observed = seen.coverage.within(*plane)
    size, deep = channels * _pixels(plane), _deep(seen, channels, missing, plane)
    if deep and not known:
        plane = seen.coverage.around(*plane, BESIDE)
    return Extent(
        size,
        missing,
        worked=channels * _pixels(plane),
        deep=deep,
        near=size if known else seen.coverage.near(*plane),
        corners=min(observed, seen.coverage.corners(missing)),
        compact=seen.coverage.compact,
        thin=seen.coverage.thin,
        apart=channels,
        alike=_alike(seen, channels),
        own=_alike(seen, channels) < channels,
    )


def _pixels(plane):
    """Of ``((row, end), (column, end))``."""
    return int(np.prod([end - start for start, end in plane]))


def _alike(seen, channels):
    """How many channels have the same holes: all, or each its own."""
    return channels if seen.counts.sum() == channels * seen.pixels.sum() else 1


def _deep(seen, channels, missing, plane=()):
    """Entries inside of deep holes, of those that are missing in a tile of one frame."""
    if seen.undivided is None:
        return 0
    return min(missing, channels * int(np.count_nonzero(seen.undivided[tuple(slice(*side) for side in plane)])))


def _check_whole(request, method, source, space, allowed, divides):
    """Refuse what is worked on as a whole and takes more memory than it may."""
    if allowed is None or space <= allowed:
        return
    if divides:
        way = "leave out `region=whole`"
    elif request.kind == PICTURE:
        way = "try a method that works region by region, such as patches or field"
    else:
        way = "try a part of it"
    raise InputError(
        f"{source.path}: method {method.name} works on the whole at once and takes about {words_of(space)} of memory, "
        f"more than the {words_of(allowed)} that it may take; give {_more(space)}, or {way}"
    )


def _more(space):
    return f"`memory={-(-int(1.1 * space) // 10**8) / 10:g}G`"


def _of_clip(request, method, config, incomplete, seen, copied):
    source, entries = incomplete.source, incomplete.entries
    channels = entries // int(np.prod(source.shape[:2]))
    known = estimates_known(config)
    changed = np.arange(incomplete.begin, incomplete.end) if known else np.flatnonzero(seen.counts)
    estimated = np.full(source.count, entries) if known else seen.counts
    own, allowed = not seen.steady or _alike(seen, channels) < channels, budget(request.memory)
    most = request.chunk or _usual_length(method, own, entries, int(estimated.max()))
    undivided = whole_boxes(seen.undivided, method.margin(config) or 0, BESIDE, copied)
    planes = _planes(request, method, config, incomplete, seen, most, own, undivided)
    densest, total = int(seen.counts.max()), max(1, int(seen.counts.sum()))
    shares = [seen.coverage.within(*plane)[0] / total for _, plane in planes]
    notes = []
    if planes and not request.chunk:
        sizes = []
        for plane, share in zip(planes, shares, strict=True):
            size = channels * _pixels(plane[1])
            sizes.append((size, densest * share, UNDIVIDED_BYTES) if plane in undivided else (size, size, CLIP_BYTES))
        usual = min(_usual_length(method, own, *size) for size in sizes)
        most = usual
        if allowed is not None:
            most = min(_usual_length(method, own, size, dense, min(space, allowed)) for size, dense, space in sizes)
        if most < min(usual, incomplete.end - incomplete.begin):
            notes.append(
                f"{source.path}: {most} frames are completed at a time, to keep to {words_of(allowed)} of memory; "
                f"where there is more, `chunk={most}` gives the same result"
            )
    regions = divide(changed, incomplete.begin, incomplete.end, most, method.context, source.shape[:2])
    _check_regions(incomplete, seen, method, regions, most)
    counts = [(r.stop - r.start, int(estimated[r.start : r.stop].sum())) for r in regions]
    extents = []
    whole = tuple((0, n) for n in source.shape[:2])
    for (_, plane), share in zip(planes or [(whole, whole)], shares or [1.0], strict=True):
        size = channels * _pixels(plane)
        for frames, count in counts:
            missing = frames * size if known else min(frames * size, count * share)
            extents.append(
                Extent(
                    frames * size,
                    missing,
                    deep=_deep(seen, frames * channels, missing, plane),
                    corners=seen.coverage.corners(missing),
                    compact=seen.coverage.compact,
                    thin=seen.coverage.thin,
                    apart=frames,
                    alike=_alike(seen, channels),
                    own=own,
                )
            )
    seconds, space = clip_cost(method, extents)
    seconds += _beside(request, method, incomplete)
    _check_clip(request, method, source, extents, space)
    if planes:
        regions = tiled(regions, planes)
    if request.region not in (None, "whole") and all(plane in undivided for plane in planes):
        why = "what is missing lies in deep holes, which are not divided" if planes else "frames are not divided"
        notes.append(f"{source.path}: `region={request.region}` changes nothing: with method {method.name} {why}")
    return Division(regions, bool(planes), _workers(request, regions, space), seconds, space, tuple(notes))


def _check_clip(request, method, source, extents, space):
    """Refuse regions of a clip that take more memory than the user has named."""
    allowed = budget(request.memory)
    if request.memory is None or space <= allowed:
        return
    fewest = 1 + 2 * method.context
    least = clip_cost(method, [each.part(min(1.0, fewest / each.apart)) for each in extents])[1]
    chunk = ", a smaller `chunk`," if least <= allowed else ""
    raise InputError(
        f"{source.path}: takes about {words_of(space)} of memory, and may take {words_of(allowed)}; give "
        f"{_more(space)}{chunk} or a part of it"
    )


def _workers(request, regions, space):
    """Regions worked on at a time, as many as there is memory for."""
    allowed, workers = budget(request.memory), max(1, min(request.jobs, len(regions)))
    while workers > 1 and allowed is not None and _together(0, space, workers) > allowed:
        workers -= 1
    return workers


def _planes(request, method, config, incomplete, seen, most, own, undivided):
    """Tiles of all frames, where whole frames in their usual number would take more memory than a region may; else
    nothing.
    """
    margin = method.margin(config)
    wanted = min(request.chunk or method.chunk, incomplete.end - incomplete.begin)
    if (
        margin is None
        or method.context == 0
        or incomplete.source.fields
        or request.region == "whole"
        or not seen.counts.any()
    ):
        return []
    if request.region is None and most >= wanted and not request.chunk:
        return []
    known, entries = estimates_known(config), incomplete.entries
    pixels = int(np.prod(incomplete.source.shape[:2]))
    frames = wanted + 2 * method.context
    if (
        request.region is None
        and clip_cost(method, [_frames(frames, entries, int(seen.counts.max()), own)])[1] <= REGION_BYTES
    ):
        return []
    for side in CLIP_SIDES if request.region is None else (request.region,):
        planes = tiles(seen.coverage, side, margin, everything=known, undivided=undivided)
        others = [plane for used, plane in planes if (used, plane) not in undivided]
        sizes = [entries // pixels * _pixels(plane) for plane in others] or [0]
        if request.region is not None:
            return planes
        least = min(wanted, LEAST_FRAMES) + 2 * method.context
        if clip_cost(method, [_frames(least, max(sizes), max(sizes), own)])[1] <= CLIP_BYTES:
            break
    return planes if max(sizes) < entries else []


def _frames(count, entries, missing, own):
    """`Extent` of so many frames, each of as many entries and missing ones; `own`: the holes differ."""
    return Extent(count * entries, count * missing, apart=count, own=own)


def _usual_length(method, own, entries, densest, allowed=None):
    """Frames of a region whose memory stays below `allowed` bytes, or one.

    At most `densest` entries of a frame are to be estimated. None: `REGION_BYTES` are allowed.
    """
    allowed = REGION_BYTES if allowed is None else allowed
    for most in range(method.chunk, 1, -1):
        frames = most + 2 * method.context
        _, space = clip_cost(method, [_frames(frames, entries, densest, own)])
        if space <= allowed:
            return most
    return 1


def _check_regions(incomplete, seen, method, regions, most):
    """Refuse regions with nothing observed, and lost frames where the method looks at each frame alone; MaskError."""
    source = incomplete.source
    unseen = seen.counts + seen.kept == incomplete.entries
    lost = unseen & (seen.counts > 0)
    if method.context == 0 and lost.any():
        raise MaskError(
            f"frame {int(np.argmax(lost))} of {source.path} is missing altogether, and method {method.name} completes "
            "each frame by itself; use another method, such as patches"
        )
    for region in regions:
        if unseen[region.start : region.stop].all():
            raise MaskError(
                f"frames {region.start} to {region.stop - 1} of {source.path} are all missing altogether, and no more "
                f"than {most} are completed at a time; give a larger `chunk`, up to {source.count}"
            )
