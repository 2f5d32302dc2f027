"""What is missing: simulated patterns, and masks in all their forms.

Everywhere in this package a bool array says what is *observed*: True = observed.
"""

from .infrared import from_infrared
from .marks import (
    FAINT,
    Mask,
    color_distance,
    color_of_holes,
    empty_slices,
    from_alpha,
    from_array,
    from_boxes,
    from_color,
    from_image,
    from_levels,
    grown,
    in_any_channel,
    largest_level,
    much_marked,
    nothing_marked,
    over,
    parse_box,
    parse_color,
    unit_of,
)
from .patterns import (
    CLIP_PATTERNS,
    PATTERNS,
    lost_frames,
    simulate,
    simulate_frame,
    simulate_tensor,
    tensor_axes,
)

__all__ = [
    "CLIP_PATTERNS",
    "FAINT",
    "PATTERNS",
    "Mask",
    "color_distance",
    "color_of_holes",
    "empty_slices",
    "from_alpha",
    "from_array",
    "from_boxes",
    "from_color",
    "from_image",
    "from_infrared",
    "from_levels",
    "grown",
    "in_any_channel",
    "largest_level",
    "lost_frames",
    "much_marked",
    "nothing_marked",
    "over",
    "parse_box",
    "parse_color",
    "simulate",
    "simulate_frame",
    "simulate_tensor",
    "tensor_axes",
    "unit_of",
]
