"""Frames of a clip as they are looked at: taken one by one as a clip goes by, a few of them kept.

`panel`, `side_by_side` and `page` draw what `take` makes. A shot holds copies, so that nothing of the clip stays in
memory for it.
"""

from dataclasses import dataclass, replace

import numpy as np

from .display import over_channels, over_checkerboard, reduced, reduction, to_bytes

# What a kept shot holds at most: about what a frame of a panel or of a page has room for.
MOST_PIXELS = 640 * 360


@dataclass(frozen=True)
class Shot:
    """A frame, ready to be drawn.

    Attributes
    ----------
    number : int
        Of the frame in its clip, counted from 0.
    time : float or None
        Seconds from the beginning of the clip.
    pictures : dict of str to (H, W) or (H, W, 3) ndarray of uint8
        "incomplete", "completed" and, where known, "truth"; see also `Evenly.join`.
    sizes : dict of str to (H, W) ndarray of float32
        "uncertainty" and "error" where known, in the units of the file, means over channels.
    missing : (H, W) ndarray of float32
        Share of the channels that is missing.
    share : float
        Of the frame's entries that is missing, 0 to 1.
    """

    number: int
    time: float | None
    pictures: dict
    sizes: dict
    missing: np.ndarray
    share: float

    @property
    def changed(self):
        """Whether the frame has holes, or was changed without them, as where noise was taken away."""
        return self.share > 0 or not np.array_equal(self.pictures["incomplete"], self.pictures["completed"])

    def small(self):
        """The shot with means over squares of pixels in place of pixels, `MOST_PIXELS` of them at most."""
        factor = reduction(*self.missing.shape, MOST_PIXELS)
        return replace(
            self,
            pictures={name: reduced(picture, factor) for name, picture in self.pictures.items()},
            sizes={name: reduced(size, factor) for name, size in self.sizes.items()},
            missing=reduced(self.missing, factor),
        )

    def small_picture(self, name):
        """One of `pictures` as `small` has it."""
        return reduced(self.pictures[name], reduction(*self.missing.shape, MOST_PIXELS))


def take(
    number, time, incomplete, completed, observed, limits, *, sd=None, truth=None, alpha=None, premultiplied=False
):
    """Shot of one frame.

    Parameters
    ----------
    number : int
        Counted from 0.
    time : real number or None
        Seconds from the beginning.
    incomplete, completed : (H, W) or (H, W, C) ndarray
        In the units of the file, without alpha; holes in `incomplete` are 0 or NaN.
    observed : (H, W) or (H, W, C) ndarray of bool
        True = observed.
    limits : (low, high)
        Values shown as black and as white, the same for all frames of a clip: (0, 255) for 8 bits; see
        `display.limits`.
    sd, truth : ndarray of the shape of `completed`, or None
    alpha : (H, W) ndarray of float, or None
    premultiplied : bool
        See `display.over_checkerboard`.

    Returns
    -------
    Shot
    """
    pictures = {"incomplete": incomplete, "completed": completed} | ({"truth": truth} if truth is not None else {})
    sizes = {}
    if sd is not None:
        sizes["uncertainty"] = over_channels(sd)
    if truth is not None:
        sizes["error"] = over_channels(np.abs(np.asarray(completed, dtype=float) - truth))
    missing = over_channels(~observed)
    return Shot(
        number,
        None if time is None else float(time),
        {
            name: np.array(over_checkerboard(to_bytes(picture, *limits), alpha, premultiplied))
            for name, picture in pictures.items()
        },
        {name: size.astype(np.float32) for name, size in sizes.items()},
        missing.astype(np.float32),
        float(missing.mean()),
    )


class Evenly:
    """Keeps a few shots, spread evenly over those that have changed, of a clip whose length need not be known.

    Parameters
    ----------
    most : int
        How many `chosen` gives.
    """

    def __init__(self, most=5):
        self.most = most
        self._first = None
        self._kept = []
        self._seen = 0
        self._step = 1

    def add(self, shot):
        """Take notice of the next `shot`."""
        if self._first is None:
            self._first = shot.small()
        if not shot.changed:
            return
        if self._seen % self._step == 0:
            self._kept.append(shot.small())
            # Four times as many as are wanted at most: then every other one goes, and of those that come too.
            if len(self._kept) > 4 * self.most:
                self._kept = self._kept[::2]
                self._step *= 2
        self._seen += 1

    def join(self, shot, name):
        """Give the shot of the same frame, if it is chosen, the completed picture of another one, under this name; all
        shots were added before.
        """
        for kept in self.chosen:
            if kept.number == shot.number:
                kept.pictures[name] = shot.small_picture("completed")

    @property
    def chosen(self):
        """List of at most `most` shots, in the order of the clip; the first one where none has changed."""
        if len(self._kept) <= self.most:
            return list(self._kept or [self._first])
        places = np.linspace(0, len(self._kept) - 1, self.most)
        return [self._kept[round(place)] for place in places]
