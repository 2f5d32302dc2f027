"""Bounds of a number, declared once: the check and its words."""

import math
import numbers
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a number may be; finite in any case.

    Attributes
    ----------
    ge, gt, le, lt : float or None
        At least, above, at most, below.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def allows(self, number):
        """Whether a number is finite and within the bounds."""
        try:
            size = float(number)
        except OverflowError:  # of an integer
            return False
        return (
            math.isfinite(size)
            and (self.ge is None or size >= self.ge)
            and (self.gt is None or size > self.gt)
            and (self.le is None or size <= self.le)
            and (self.lt is None or size < self.lt)
        )

    @property
    def bounds(self):
        """The bounds in words."""
        low, high = (self.gt if self.ge is None else self.ge), (self.lt if self.le is None else self.le)
        if low is None and high is None:
            return "a finite number"
        finite = "" if isinstance(low, int) else " and finite"
        if high is None:
            return (f"{in_short(low)} or more" if self.gt is None else f"above {in_short(low)}") + finite
        if low is None:
            return f"at most {in_short(high)}" if self.lt is None else f"below {in_short(high)}"
        if self.gt is None and self.lt is None:
            return f"from {in_short(low)} to {in_short(high)}"
        lowest = f"{'at least' if self.gt is None else 'above'} {in_short(low)}"
        return f"{lowest} and {'at most' if self.lt is None else 'below'} {in_short(high)}"


def in_short(number):
    """Text of an integer in full, of a float in short."""
    return str(number) if isinstance(number, numbers.Integral) else f"{number:g}"
