"""What a run will take, from what runs have taken.

A guess to plan by, for a processor like that of the measurements; `benchmarks/scale.py --what told` holds it against
runs of many kinds, to set the constants below anew. It does not know whether a picture of up to 512x512 repeats itself,
for which `patches` takes up to five times as long, nor what is compiled in the first run.
"""

import math
from dataclasses import dataclass, replace

from .. import methods
from ..errors import InputError
from ..memory import limit


@dataclass(frozen=True)
class Cost:
    """Seconds of one core and bytes of memory, linear in the numbers of entries and of missing entries.

    Attributes
    ----------
    each, missing : float
        Microseconds for every entry, for every missing entry.
    start : float
        Seconds of a run before the work: interpreter, libraries, compiled code.
    near, near_compact : float
        Microseconds for every entry that lies near a missing one, within a patch or so, of methods that work on all of
        a patch; the second where what is missing hangs together, since patches are larger there.
    thin : float or None
        In place of `near`, `first` and `drafted` beneath thin strokes, for every missing entry; None: the same.
    rim : float
        In place of `near`, `first` and `drafted` at the rim of deep holes, for as many entries as are near missing ones
        and not inside of them, and at most as many as are.
    together : float or None
        In place of `each` and `missing` where all channels, and frames, miss the same pixels, for every pixel, and
        `APPLIED` times as much in a region, where nothing is learnt; None: the same.
    solid : float
        Beside `together` for every missing pixel but those of thin strokes, of frames those of one alone; else for
        every missing entry that hangs together with others, in place of `missing`.
    most : float
        Of clips, of all microseconds for missing entries at most so many for every entry: patches that many of them
        touch are worked on once.
    deep : float
        In place of `missing` for every missing entry inside of deep holes, of a method that tells these apart.
    small : float or None
        In place of `each` up to `SMALL` entries, where the method works longer; None: the same.
    corner : float
        Microseconds for every known entry beside a missing one, of a method that makes triangles of them.
    coupled : float
        In place of `missing` where it is more: times the third power of the share that is missing and the square root
        of how many are worked on together. A sparse system that falls apart the less, the more is missing; beyond one
        half its factors take `FILLED` times the memory, growing from 70 to 95 % to `FILLED_UP` times.
    first : float
        Microseconds for every entry of the first `FIRST`; what is learnt once from a part of the picture.
    drafted : float
        Microseconds for every entry of `SAMPLED` pixels, of larger pictures: parts of so many are completed before.
    space : float
        Bytes of a run without a picture: interpreter, libraries, compiled code.
    space_each, space_missing, space_corner : float
        Bytes for every entry, for every missing entry, for every known entry beside one; of methods that complete one
        channel after the other, of one channel.
    space_solid : float
        Bytes for every missing pixel that `solid` counts beside `together` and that hangs together with others, up to
        `FACTORED` of them.
    space_own : float
        Bytes for every entry of a frame of a clip, up to `WINDOWED`, where frames or channels have holes of their own.
    space_deep : float
        Bytes for every entry that deep holes are filled from, beside those of `space_each`; these are up to
        `SURROUNDINGS` times as many as are in such holes.
    """

    each: float
    missing: float
    space: float
    space_each: float
    space_missing: float = 0.0
    first: float = 0.0
    drafted: float = 0.0
    start: float = 0.5
    small: float | None = None
    near: float = 0.0
    near_compact: float = 0.0
    thin: float | None = None
    rim: float = 0.0
    together: float | None = None
    solid: float = 0.0
    most: float = math.inf
    deep: float = 0.0
    corner: float = 0.0
    coupled: float = 0.0
    space_corner: float = 0.0
    space_solid: float = 0.0
    space_own: float = 0.0
    space_deep: float = 0.0


@dataclass(frozen=True)
class Extent:
    """How much is completed at a time.

    Attributes
    ----------
    entries, missing : float
    worked : float or None
        Entries that the method works on, where deep holes are those around them; None: all.
    deep : float
        Missing entries inside of deep holes.
    near : float or None
        Entries near missing ones, these too; None: all.
    corners : float
        Known entries beside missing ones.
    compact, thin : bool
        Whether what is missing hangs together, and whether it is thin strokes.
    apart : int
        Channels; of a clip frames. A method that completes one after the other holds no more than one at a time.
    alike : int
        Those of them that have the same holes and are worked on together.
    own : bool
        Whether channels, or frames, have holes of their own.
    """

    entries: float
    missing: float
    worked: float | None = None
    deep: float = 0.0
    near: float | None = None
    corners: float = 0.0
    compact: bool = False
    thin: bool = False
    apart: int = 1
    alike: int = 1
    own: bool = False

    def part(self, share):
        """As much of all as this share of the entries has."""
        counts = {name: getattr(self, name) for name in ("entries", "missing", "worked", "deep", "near", "corners")}
        return replace(self, **{name: None if count is None else share * count for name, count in counts.items()})


# Microseconds for every entry beside the method: reading, looking at the holes and writing, beside that packing or
# unpacking, as all files but .npy want it, and measuring against the truth. Nearest by 2048x2048 in PNG, 8 frames of
# 1920x1080 in PNG, 2,000 of 176x144 in .npy.
_THROUGH, _PACKED, _MEASURED = 0.01, 0.04, 0.4
FIRST = 250_000
SAMPLED = 4 * 256**2  # as `patches.schedule.TUNED`
APPLIED = 0.25
FACTORED, WINDOWED = 40_000, 3 * 320**2  # as `field.factored.MOST_MISSING`, and three channels of a window
FILLED, FILLED_UP = 2.2, 6.5
SURROUNDINGS = 12  # a square with its side on each side, and the margin of patches
ONE_CHANNEL = 0.75  # of `near`: patches of one channel have fewer entries, and covariances with them
SMALL = 100_000  # as `methods.datc.SMALL`
# Module of the method -> cost. Fitted by eye to processor time and peak memory of runs on one thread. Those of field,
# patches, auto and exemplar: photographs of 128x128 to 1024x1024, some of them mosaics, with scattered entries missing,
# beneath letters and scratches and with deep holes, 2400x2400 with one of 440x440, 4000x3000 with scratches over 1 %.
# Those of biharmonic, linear and nearest: 2048x2048 beneath letters and 1024x1024 with 30 % of the entries missing.
# Small ones of datc: two tensors of 10,000 and 40,000 entries and a picture of 128x128, which took 420 to 1600 each.
# From `fbcp` on: pictures of 256x256 or 512x512 with half of the pixels missing alone.
_PATCHES = Cost(2, 0, 250e6, 100, start=0.9, first=8, drafted=10, near=20, near_compact=35, thin=80)
COSTS = {
    "tdc_cli.methods.field": Cost(3.5, 4.5, 125e6, 70, together=3, solid=20, space_solid=850),
    "tdc_cli.methods.biharmonic": Cost(0.1, 3, 80e6, 40, 900, coupled=0.16),
    "tdc_cli.methods.exemplar": Cost(0.5, 38, 200e6, 60, 300, start=0.7, deep=38),
    "tdc_cli.methods.auto": replace(_PATCHES, rim=80, deep=65, space_deep=60),
    "tdc_cli.methods.patches": _PATCHES,
    "tdc_cli.methods.datc": Cost(130, 0, 200e6, 300, small=900),
    "tdc_cli.peers.fbcp": Cost(25, 0, 80e6, 500),
    "tdc_cli.peers.fbcp_image": Cost(15, 0, 80e6, 500),
    "tdc_cli.peers.brtf": Cost(13, 0, 80e6, 550),
    "tdc_cli.peers.falrtc": Cost(55, 0, 90e6, 110),
    "tdc_cli.peers.halrtc": Cost(16, 0, 90e6, 150),
    "tdc_cli.peers.rptc_scad": Cost(25, 0, 90e6, 150),
    "tdc_cli.peers.tmac": Cost(10, 0, 90e6, 80),
    "tdc_cli.peers.stdc": Cost(30, 0, 90e6, 145),
    "tdc_cli.peers.tsvd": Cost(33, 0, 90e6, 100),
    "tdc_cli.peers.spc": Cost(13, 0, 90e6, 60),
    "tdc_cli.methods.opencv": Cost(0.4, 0.5, 80e6, 70),
    "tdc_cli.methods.linear": Cost(0.1, 0.4, 90e6, 60, corner=18, space_corner=1200),
    "tdc_cli.methods.nearest": Cost(0.1, 0.1, 80e6, 42),
    "tdc_cli.peers.cp_masked": Cost(6, 0, 90e6, 120),
}

# Of what works otherwise on clips: 20 frames of 192x108 beneath text (20 s), scratches (8.5 s), a logo (4 s), with 60 %
# of the entries missing (16 s), and of 176x144 with strokes or text over 13 % of every second one (10 and 16 s), with
# 60 % of the entries missing (33 s) and under noise (19 and 29 s). What is copied: logos, of 60x40 in 250 frames of
# 640x360 (120 s) and of 220x90 in 48 frames of 1920x1080 (57 s). Of field: the first with holes of its own in every
# frame (7 to 20 s), 12 frames of 640x360 beneath such letters (91 s, 541 MiB).
_COPIED = 8
_CLIPS = Cost(2, 110, 250e6, 120, start=0.9, most=15, deep=_COPIED)
CLIP_COSTS = {
    "tdc_cli.methods.auto": _CLIPS,
    "tdc_cli.methods.patches": _CLIPS,
    "tdc_cli.methods.exemplar": replace(COSTS["tdc_cli.methods.exemplar"], each=2, missing=_COPIED, deep=_COPIED),
    "tdc_cli.methods.field": replace(COSTS["tdc_cli.methods.field"], each=5, solid=25, space_own=400),
}


def around(method, entries, paths, measured):
    """Seconds of one core that a run takes beside the work of the method.

    Parameters
    ----------
    method : methods.Method
    entries : int
    paths : sequence of str
        What is read and what is written.
    measured : bool
        Whether the result is compared with the truth.

    Returns
    -------
    float
    """
    packed = sum(not path.endswith(".npy") for path in paths)
    return COSTS[method.module].start + 1e-6 * entries * (_THROUGH + _PACKED * packed + _MEASURED * measured)


def cost(method, extent, *, learns=True):
    """Seconds of one core and bytes that completing a picture takes.

    Parameters
    ----------
    method : methods.Method
        A variant of another method costs what that one does.
    extent : Extent
    learns : bool
        False: of a region, what is learnt once is learnt elsewhere.

    Returns
    -------
    (float, float)
    """
    return _cost(COSTS[method.module], method, extent, learns)


def clip_cost(method, extents):
    """Seconds of one core and bytes that completing a clip chunk by chunk takes, `extents` of what is seen of each."""
    each = CLIP_COSTS.get(method.module, COSTS[method.module])
    found = [_cost(each, method, extent) for extent in extents]
    return sum(seconds for seconds, _ in found), max((space for _, space in found), default=0.0)


def _cost(each, method, extent, learns=True):
    entries, missing = extent.entries, extent.missing
    if not missing:
        return 0.0, each.space + each.space_each * entries
    near = entries if extent.near is None else extent.near
    apart, alike = (extent.apart, extent.alike) if method.by_channel else (1, 1)
    rate = each.each if each.small is None or entries > SMALL else each.small
    size = entries if extent.worked is None else extent.worked
    least = each.solid if each.solid and extent.compact else each.missing
    of_each = max(least, each.coupled * (missing / entries) ** 3 * math.sqrt(missing / apart))
    of_missing = min(of_each * (missing - extent.deep), each.most * entries) + each.deep * extent.deep
    solid = 0.0
    if each.together is not None and not extent.own:
        solid = 0.0 if extent.thin else missing / max(extent.alike, extent.apart)
        work = each.together * (1 if learns else APPLIED) * size / extent.alike + each.solid * solid
    else:
        work = rate * size + (of_missing + each.corner * extent.corners) / alike
    beside = max(0, near - extent.deep)
    rim = min(beside, extent.deep) if each.rim else 0
    work += each.rim * rim
    if extent.thin and each.thin is not None:
        work += each.thin * missing
    else:
        near = each.near_compact if extent.compact else each.near
        work += (ONE_CHANNEL if extent.apart == 1 else 1) * near * (beside - rim)
        if learns and not rim:
            sampled = SAMPLED * extent.apart
            work += each.first * min(size, FIRST) + (each.drafted * sampled if size > sampled else 0.0)
    space = each.space + each.space_each * entries
    filled = 1.0
    if each.coupled and 2 * missing > entries:
        filled = FILLED + (FILLED_UP - FILLED) * min(max((missing / entries - 0.7) / 0.25, 0.0), 1.0)
    space += each.space_solid * extent.compact * min(solid, FACTORED)
    space += each.space_own * extent.own * min(entries / extent.apart, WINDOWED)
    space += each.space_deep * min(entries, SURROUNDINGS * extent.deep)
    space += (filled * each.space_missing * missing + each.space_corner * extent.corners) / apart
    return 1e-6 * work, space


def too_much(path, space):
    """Words for a run on `path` that may want more than the `limit`; else None.

    Raises
    ------
    InputError
        The limit would end the process, whatever library asks for the memory.
    """
    there, hard = limit()
    if there is None or space <= there:
        return None
    whose = "this process may take" if hard else "the machine has"
    words = f"{path}: may take {space / 1e9:.1f} GB of memory, and {whose} {there / 1e9:.1f} GB"
    if hard:
        raise InputError(f"{words}; raise the limit, or try a part of it")
    return words


def process_space():
    """Bytes of a process that has the libraries and works on nothing."""
    return 150e6


def words_of(space):
    """Such as ``300 MB`` or ``2.1 GB``."""
    return f"{math.ceil(space / 1e7) * 10} MB" if space < 1e9 else f"{space / 1e9:.1f} GB"


def together(plans, jobs):
    """Estimate of a batch from what `describe` says of its pictures, `jobs` at a time, each job started once."""
    estimates = [plan["estimate"] for plan in plans]
    spared = sum(COSTS[methods.get(plan["method"]).module].start for plan in plans[jobs:])
    return {
        "seconds": round(max(0.0, sum(e["seconds"] for e in estimates) - spared), 1),
        "bytes": jobs * max((e["bytes"] for e in estimates), default=0),
    }


def in_words(estimate):
    """Such as ``about 3 min on one core and 300 MB``."""
    seconds, space = estimate["seconds"], estimate["bytes"]
    for unit, name in ((3600, "h"), (60, "min"), (1, "s")):
        if seconds >= unit:
            time = f"{math.ceil(seconds / unit)} {name}"
            break
    else:
        time = "1 s"
    return f"about {time} on one core and {math.ceil(space / 1e7) * 10} MB"
