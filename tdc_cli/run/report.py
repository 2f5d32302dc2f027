"""The report of a run, as JSON and as text.

The layout is fixed by `SCHEMA` and versioned by its name: fields may be added within version 1, never removed or
renamed. Numbers are finite: what has no value is null, and `warnings` says why.
"""

import json
import math
import re
from dataclasses import dataclass, field, fields

from ..errors import InputError
from ..listed import percent
from ..names import MEASURES, SAID_BY

VERSION = "tdc-report/1"
SETTLED = 0.995  # share of the draws from which on the rank is told without it

_NUMBER = {"type": ["number", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_SHARE = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_TEXT = {"type": ["string", "null"]}
_NUMBERS = {"type": "array", "items": _NUMBER}


def _object(properties, nullable=False, more=False, description=None, optional=None):
    """JSON Schema of an object that has all `properties` and may have the `optional` ones; others only if `more`."""
    made = {
        "type": ["object", "null"] if nullable else "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": more,
    }
    return made | ({"description": description} if description else {})


def _map(items, nullable=False):
    return {"type": ["object", "null"] if nullable else "object", "additionalProperties": items}


_MIXTURE = {"weights": _NUMBERS, "means": _NUMBERS, "precisions": _NUMBERS}
_MEASURES = {
    "properties": {m.key: _NUMBER for m in MEASURES if not m.later},
    "optional": {m.key: _NUMBER for m in MEASURES if m.later},
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": VERSION,
    "title": "Report of one run of tdc",
    **_object(
        {
            "schema": {"const": VERSION},
            "tool": _object({"name": {"const": "tdc"}, "version": {"type": "string"}}),
            "command": {"type": "array", "items": {"type": "string"}, "description": "arguments as given"},
            "seed": _COUNT,
            "input": _object(
                {
                    "path": {"type": "string"},
                    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "shape": {"type": "array", "items": _COUNT},
                    "dtype": {"type": "string"},
                    "mode": _TEXT,
                },
                optional={
                    "frames": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "of a clip, whose shape begins with them",
                    },
                    "rate": {
                        **_TEXT,
                        "description": "frames a second of a clip, such as 30000/1001; null where there is none",
                    },
                },
            ),
            "missing": _object(
                {
                    "source": {"enum": list(SAID_BY)},
                    "pattern": _TEXT,
                    "count": {**_COUNT, "description": "missing entries, channels apart"},
                    "pixels": {
                        **_COUNT,
                        "description": "positions with any channel missing; of tensors the same as count",
                    },
                    "ratio": {**_SHARE, "description": "count / number of entries"},
                    "mask": _TEXT,
                    "grey_levels": {
                        **_COUNT,
                        "description": "pixels of the mask neither black nor white, or partly transparent",
                    },
                }
            ),
            "method": _object({"name": {"type": "string"}, "parameters": {"type": "object"}}),
            "rank": _object(
                {
                    "value": {"type": ["integer", "null"]},
                    "posterior": _map(_NUMBER, nullable=True),
                    "paper_count": {"type": ["integer", "null"]},
                },
                nullable=True,
                description="null where the method has no rank",
            ),
            "mixture": _object(
                _MIXTURE,
                nullable=True,
                description="of the residual; in fractions of the full range for integer pictures",
            ),
            "noise_std": {
                **_NUMBER,
                "description": "given or learnt; in fractions of the full range for integer pictures",
            },
            "diagnostics": {
                "type": ["object", "null"],
                "properties": {
                    "r_hat": _map(_NUMBER, nullable=True),
                    "ess": _map(_NUMBER, nullable=True),
                    "chains": _COUNT,
                    "burn_in": _COUNT,
                    "draws": _COUNT,
                },
                "required": ["r_hat", "ess", "chains", "burn_in", "draws"],
                "description": "null where the method does not sample",
            },
            "uncertainty": _object(
                {
                    "mean_sd": {
                        **_NUMBER,
                        "description": "over the estimated entries, in the units of the output's own values",
                    },
                    "coverage90": {
                        **_SHARE,
                        "description": "share of missing entries whose truth lies in the 90 % interval",
                    },
                    "held_out": _object(
                        {"count": {"type": "integer"}, "coverage90": _SHARE},
                        nullable=True,
                        description="observed entries hidden to calibrate the standard deviations, and the share of "
                        "them inside their 90 % interval, each half judged by the scale fitted to the "
                        "other",
                    ),
                },
                nullable=True,
                description="null where the method gives no standard deviation",
            ),
            "metrics": _object(
                {
                    "all": _object(**_MEASURES),
                    "missing": _object(
                        **_MEASURES, description="over missing entries; ssim is always null: it needs whole windows"
                    ),
                    "incomplete": _object(**_MEASURES, description="of the input with holes as 0"),
                    "low_rank": _object(
                        {"rre": _NUMBER},
                        nullable=True,
                        more=True,
                        description="of the low-rank part alone; synthetic problems",
                    ),
                    "oracle_floor": {
                        **_NUMBER,
                        "description": "rre over all entries of an oracle that knows all but the missing residual",
                    },
                    "frames": {
                        "type": ["array", "null"],
                        "items": _object({"frame": _COUNT, "psnr": _NUMBER, "ssim": _NUMBER, "missing_psnr": _NUMBER}),
                        "description": "of every frame of a clip, whose PSNR above is of the pooled squared error, and "
                        "SSIM the mean",
                    },
                },
                nullable=True,
                description="null where no truth is known; every ssim of a tensor is null: it is of pictures",
            ),
            "timing": _object(
                {key: {"type": "number", "minimum": 0} for key in ("read", "compile", "complete", "write", "total")},
                description="seconds",
            ),
            "environment": _object(
                {"python": {"type": "string"}, "threads": {"type": "integer", "minimum": 1}}, more=True
            ),
            "outputs": _map({"type": "string"}),
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
        optional={
            "invented": {
                **_COUNT,
                "description": "pixels that were copied from what looks alike: their standard deviation is the spread "
                "among equally good sources, and no interval; absent where everything was predicted",
            },
            "variants": {
                "type": "array",
                "items": _object({"path": {"type": "string"}, "seed": _COUNT}),
                "minItems": 2,
                "description": "the answers to choose from, where several are asked for; all but outputs, timing and "
                "warnings is of the first",
            },
            "synthetic": _object(
                {
                    "kind": {"type": "string"},
                    "rank": _COUNT,
                    "noise_std": _NUMBER,
                    "mixture": {
                        **_object(_MIXTURE),
                        "description": "as drawn from; the precision of a part that is constant is null",
                    },
                    "weights": _object(
                        {"true": _NUMBERS, "found": {"type": ["array", "null"], "items": _NUMBER}},
                        description="absolute CP weights for factor columns of unit root mean square, largest first",
                    ),
                },
                description="the truth of a synthetic problem",
            ),
        },
    ),
}


@dataclass(frozen=True)
class Report:
    """What a run did and found; the fields are those of `SCHEMA`, plain Python values."""

    tool: dict
    command: list
    seed: int
    input: dict
    missing: dict
    method: dict
    timing: dict
    environment: dict
    rank: dict | None = None
    mixture: dict | None = None
    noise_std: float | None = None
    diagnostics: dict | None = None
    uncertainty: dict | None = None
    metrics: dict | None = None
    outputs: dict = field(default_factory=dict)
    warnings: list = field(default_factory=list)
    synthetic: dict | None = None
    invented: int | None = None
    variants: list | None = None

    def to_dict(self):
        """Plain dict in the order of `SCHEMA`, every number finite; what was not is None and named in `warnings`."""
        reasons = []
        values = {"schema": VERSION}
        for key in list(SCHEMA["properties"])[1:]:
            if getattr(self, key) is not None or key in SCHEMA["required"]:
                values[key] = plain(getattr(self, key), key, reasons)
        values["warnings"] += reasons
        return values

    def to_json(self):
        """JSON text, two spaces of indent, with a final newline."""
        return dumps(self.to_dict())

    @classmethod
    def from_json(cls, text):
        """Inverse of `to_json`.

        Raises
        ------
        InputError
            Not JSON, another version, or fields that do not fit.
        """
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"not a JSON report ({error})") from error
        if not isinstance(values, dict) or values.get("schema") != VERSION:
            raise InputError(f"not a report of version {VERSION}")
        known = {f.name for f in fields(cls)}
        odd = set(values) - known - {"schema"} | set(SCHEMA["required"]) - set(values)
        if odd:
            raise InputError(f"report with fields missing or unknown: {', '.join(sorted(odd))}")
        return cls(**{key: value for key, value in values.items() if key != "schema"})

    def summary(self):
        """A few lines of text for a human, a list."""
        main = next(iter(self.outputs), None)
        name = self.outputs.get(main, self.input["path"])
        lines = [
            f"{'standard output' if name == '-' else name}: {missing_in_words(self.input, self.missing)}, "
            f"{self.method['name']}, {self.timing['complete']:.1f} s"
        ]
        full = {"uint8": 255, "uint16": 65535}.get(self.input["dtype"])
        of_full = f" of {full}" if full else ""
        found = []
        if self.rank and self.rank["value"] is not None:
            share = (self.rank["posterior"] or {}).get(str(self.rank["value"]), 1.0)
            found.append(f"rank {self.rank['value']}" + (f" ({share:.0%} of the draws)" if share < SETTLED else ""))
        if self.noise_std:
            found.append(f"noise sd {_short(self.noise_std * (full or 1))}{of_full}")
        if self.uncertainty and self.uncertainty["mean_sd"] is not None:
            found.append(f"mean uncertainty {_short(self.uncertainty['mean_sd'])}{of_full}")
            if self.uncertainty["coverage90"] is not None:
                found.append(f"90 % interval holds {self.uncertainty['coverage90']:.1%} of the truth")
        if found:
            lines.append("  " + ", ".join(found))
        if self.invented:
            lines.append(
                f"  {self.invented} pixels invented: their uncertainty is the spread among equally good sources, no "
                "interval"
            )
        if self.variants:
            first, *_, last = (answer["seed"] for answer in self.variants)
            lines.append(f"  {len(self.variants)} answers, of seeds {first} to {last}")
        if self.metrics:
            for label, key in (
                ("all entries", "all"),
                ("missing entries", "missing"),
                ("before, holes as 0", "incomplete"),
            ):
                found = self.metrics[key]
                shown = [
                    f"{m.title} {found[m.key]:.{m.digits}f}{m.unit}" for m in MEASURES if found.get(m.key) is not None
                ]
                if shown:
                    lines.append(f"  {label}: {', '.join(shown)}")
        for key, path in self.outputs.items():
            if key != main:
                lines.append(f"  {key}: {path}")
        return lines


def missing_in_words(described, missing):
    """Such as ``48 of 1440 entries missing (3.3%)``, of the entries `input` and `missing` of a report; of a picture or
    clip in pixels, if those that lack anything lack all of their channels.
    """
    count, of, what = missing["count"], math.prod(described["shape"]), "entries"
    if described["mode"] != "tensor":
        pixels, channels = _places(described), _channels(described)
        of = pixels * channels
        if count == missing["pixels"] * channels:
            count, of, what = missing["pixels"], pixels, "pixels"
    return f"{count} of {of} {what} missing ({percent(missing['ratio'])})"


def _short(size):
    """Three digits, or all before the point."""
    return f"{size:.3g}" if size < 1000 or size >= 1e6 else f"{size:.0f}"


def _places(described):
    """Pixels of the input, in all frames of a clip."""
    return math.prod(described["shape"][: 3 if "frames" in described else 2])


def _channels(described):
    """Colour channels of the input: alpha is never missing and does not count."""
    shape = described["shape"][1:] if "frames" in described else described["shape"]
    return 1 if len(shape) == 2 or described["mode"] == "LA" else 3 if described["mode"] == "RGBA" else shape[2]


def dumps(values, indent=2):
    """JSON text with a final newline, in which no character that gives orders to a terminal stands as it is."""
    text = json.dumps(values, indent=indent, ensure_ascii=False, allow_nan=False)
    return (
        re.sub("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text)
        + "\n"
    )


def plain(value, where="", reasons=None):
    """`value` as JSON types; with a list of `reasons`, floats that are not finite become None with a line in it."""
    if isinstance(value, dict):
        return {str(key): plain(item, f"{where}.{key}", reasons) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", reasons) for i, item in enumerate(value)]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays, without importing NumPy
        return plain(value.tolist(), where, reasons)
    if reasons is not None and isinstance(value, float) and not math.isfinite(value):
        reasons.append(f"{where} is null: its value was {value}")
        return None
    return value
