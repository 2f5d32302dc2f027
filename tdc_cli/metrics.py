"""How near an estimate is to the truth: relative and absolute error, PSNR, SSIM, and coverage of intervals.

Every function returns a finite float, or None where the measure has no value; `compare` says why in words.
"""

import itertools

import numpy as np

from .tensor import LARGEST, SMALLEST, norm

SSIM_WINDOW = 7
# Windows along the side of a tile: those of a tile where both pictures are the same have an SSIM of 1.
SSIM_TILE = 128
NORMAL_90 = 1.6448536269514722  # half-width of the central 90 % interval of a standard normal


def rre(truth, estimate):
    """Relative error ``||estimate - truth|| / ||truth||`` (Frobenius norms); None if the truth is zero everywhere.

    Parameters
    ----------
    truth, estimate : ndarray of equal shape
    """
    length = norm(np.asarray(truth, dtype=float))
    return norm(np.asarray(estimate, dtype=float) - truth) / length if length else None


def psnr(truth, estimate, data_range):
    """Peak signal-to-noise ratio in dB of the squared error pooled over all entries.

    Parameters
    ----------
    truth, estimate : ndarray of equal shape
    data_range : float
        Full range of the values: 255 for 8 bits.

    Returns
    -------
    float or None
        None if there are no entries, if they are identical, or if the range is zero.
    """
    if np.size(truth) == 0 or not data_range > 0:
        return None
    error = np.mean((np.asarray(truth, dtype=float) - estimate) ** 2)
    return float(10 * np.log10(data_range**2 / error)) if error > 0 else None


def ssim(truth, estimate, data_range):
    """Structural similarity with scikit-image's defaults: 7x7 windows, mean over windows and channels.

    In tiles, for the memory, and because most of a picture often is as it was.

    Parameters
    ----------
    truth, estimate : (H, W) or (H, W, C) ndarray
    data_range : float

    Returns
    -------
    float or None
        None if the picture is smaller than a window, or if the range is zero.
    """
    if min(np.shape(truth)[:2]) < SSIM_WINDOW or not data_range > 0:
        return None
    from skimage.metrics import structural_similarity

    total, windows = 0.0, 0
    for rows, columns in itertools.product(*(_cuts(n) for n in np.shape(truth)[:2])):
        one, other = (a[rows, columns].reshape(rows.stop - rows.start, columns.stop - columns.start, -1)
                      for a in (truth, estimate))  # fmt: skip
        count = (one.shape[0] - SSIM_WINDOW + 1) * (one.shape[1] - SSIM_WINDOW + 1)
        windows += count
        # Channel by channel, as scikit-image does it too.
        values = [1.0 if np.array_equal(one[..., c], other[..., c]) else structural_similarity(
            one[..., c].astype(float), other[..., c].astype(float), win_size=SSIM_WINDOW, data_range=data_range
        ) for c in range(one.shape[2])]  # fmt: skip
        total += count * np.mean(values)
    return float(total / windows)


def _cuts(length):
    """Slices of an axis whose windows together are all of them."""
    windows = length - SSIM_WINDOW + 1
    return [slice(n, min(n + SSIM_TILE, windows) + SSIM_WINDOW - 1) for n in range(0, windows, SSIM_TILE)]


def mae(truth, estimate):
    """Mean absolute error, in the units of the values; None if there are no entries.

    Parameters
    ----------
    truth, estimate : ndarray of equal shape
    """
    return float(np.mean(np.abs(np.asarray(truth, dtype=float) - estimate))) if np.size(truth) else None


# Key of `names.MEASURES` -> function of truth, estimate and data range.
MEASURES = {
    "rre": lambda truth, estimate, data_range: rre(truth, estimate),
    "psnr": psnr,
    "ssim": ssim,
    "mae": lambda truth, estimate, data_range: mae(truth, estimate),
}


def coverage(truth, mean, sd, z=NORMAL_90):
    """Share of entries whose truth lies within ``mean +- z * sd``; None if there are no entries.

    Parameters
    ----------
    truth, mean, sd : ndarray of equal shape
    z : float
        1.645 for the central 90 % interval.
    """
    if np.size(truth) == 0:
        return None
    return float(np.mean(np.abs(np.asarray(truth, dtype=float) - mean) <= z * np.asarray(sd)))


def compare(truth, estimate, observed, data_range):
    """The measures of a report: over all entries and over the missing ones.

    Parameters
    ----------
    truth, estimate : (H, W) or (H, W, C) ndarray
        Values as written: rounded and clipped.
    observed : ndarray of bool, of the same shape
        True = observed.
    data_range : float

    Returns
    -------
    metrics : dict
        ``{"all": {...}, "missing": {...}, "incomplete": {...}}``, each with all `MEASURES`, floats or None.
        ``incomplete`` measures the picture with holes as 0 over all entries. SSIM over missing entries alone has no
        meaning and is always None.
    reasons : list of str
        Why a value is None.
    """
    size = float(np.max(np.abs(truth), initial=0.0))
    unit = size if size and not SMALLEST < size < LARGEST else 1.0
    if unit != 1.0:  # sums of squares would not be finite
        truth, estimate, data_range = truth / unit, estimate / unit, data_range / unit
    missing = ~observed
    metrics = {
        "all": _measured(truth, estimate, data_range, unit),
        "missing": _measured(truth[missing], estimate[missing], data_range, unit, leave_out="ssim"),
        "incomplete": _measured(truth, np.where(observed, estimate, 0), data_range, unit),
    }
    return metrics, _reasons(metrics, min(truth.shape[:2]) < SSIM_WINDOW, data_range, missing.any())


def _reasons(metrics, small, data_range, missing):
    """Why measures of a picture are None, a list of str."""
    reasons = []
    if small:
        reasons.append(f"ssim is null: the picture is smaller than its {SSIM_WINDOW}x{SSIM_WINDOW} window")
    if not data_range > 0:
        reasons.append("psnr and ssim are null: the reference is constant, so its range is zero")
    elif metrics["all"]["psnr"] is None:
        reasons.append("psnr is null: the result is identical to the reference")
    elif not missing:
        reasons.append("psnr over missing entries is null: there are none")
    elif metrics["missing"]["psnr"] is None:
        reasons.append("psnr over missing entries is null: they are identical to the reference")
    if metrics["all"]["rre"] is None:
        reasons.append("rre is null: the reference is zero everywhere")
    elif metrics["missing"]["rre"] is None and missing:
        reasons.append("rre over missing entries is null: the reference is zero there")
    return reasons


def compare_tensor(truth, estimate, observed, data_range):
    """As `compare`, for tensors of any order, over the entries whose truth is known; SSIM, which is of pictures, is
    always None.

    Parameters
    ----------
    truth, estimate : ndarray of equal shape
        Values as written; NaN in the truth where it is not known.
    observed : ndarray of bool, of the same shape
        True = observed.
    data_range : float

    Returns
    -------
    metrics : dict
    reasons : list of str
    """
    known = np.isfinite(truth)
    # A single row is smaller than the window of SSIM.
    metrics, reasons = compare(truth[known][None], estimate[known][None], observed[known][None], data_range)
    return metrics, _of_known(reasons, int(known.size - known.sum()))


def _of_known(reasons, unknown):
    """Reasons of `compare_tensor`, a list of str: nothing of SSIM, and how many entries are left out."""
    reasons = [r.replace("psnr and ssim are", "psnr is") for r in reasons if not r.startswith("ssim")]
    return [*reasons, f"metrics leave out {unknown} entries whose truth is not known"] if unknown else reasons


class ClipMeasures:
    """The measures of a clip, taken frame by frame: nothing of a frame is kept but a few numbers.

    Parameters
    ----------
    data_range : float
        Of the whole clip.
    unit : float
        Largest size of the true values; no measure depends on it, but it keeps squares within what numbers hold.
    """

    def __init__(self, data_range, unit=1.0):
        self._unit = unit if unit and not SMALLEST < unit < LARGEST else 1.0
        self._range = data_range / self._unit
        self._frames = []
        self._ssims = {"all": [], "incomplete": []}
        # Of all entries, of the missing ones, and of the incomplete clip.
        self._sums = {key: np.zeros(4) for key in ("all", "missing", "incomplete")}

    def add(self, number, truth, estimate, observed):
        """Take the measures of the next frame.

        Parameters
        ----------
        number : int
            Of the frame, for the report.
        truth, estimate, observed
            As for `compare`.
        """
        truth, estimate = (np.asarray(a, dtype=float) / self._unit for a in (truth, estimate))
        missing = ~observed
        holes = np.where(observed, estimate, 0)
        sums = {
            "all": _sums(truth, estimate),
            "missing": _sums(truth[missing], estimate[missing]),
            "incomplete": _sums(truth, holes),
        }
        for key, more in sums.items():
            self._sums[key] += more
        ssims = {"all": ssim(truth, estimate, self._range)}
        ssims["incomplete"] = ssim(truth, holes, self._range) if missing.any() else ssims["all"]
        for key, value in ssims.items():
            self._ssims[key].append(value)
        psnrs = {"psnr": self._psnr(sums["all"]), "missing_psnr": self._psnr(sums["missing"])}
        self._frames.append(
            {"frame": number, "psnr": psnrs["psnr"], "ssim": ssims["all"], "missing_psnr": psnrs["missing_psnr"]}
        )

    def result(self):
        """The measures of all frames so far.

        Returns
        -------
        metrics : dict
            As `compare` gives it, PSNR of the squared error pooled over all frames and SSIM the mean of the frames',
            and ``frames``, a list with ``{"frame", "psnr", "ssim", "missing_psnr"}`` for each frame.
        reasons : list of str
            Why a value is None.
        """
        metrics = self._metrics()
        reasons = []
        if not self._range > 0:
            reasons.append("psnr and ssim are null: the reference is constant, so its range is zero")
        else:
            if metrics["all"]["ssim"] is None:
                reasons.append(f"ssim is null: the frames are smaller than its {SSIM_WINDOW}x{SSIM_WINDOW} window")
            if metrics["all"]["psnr"] is None:
                reasons.append("psnr is null: the result is identical to the reference")
            elif alike := sum(frame["psnr"] is None for frame in self._frames):
                reasons.append(
                    f"psnr is null for {alike} of {len(self._frames)} frames: they are identical to the reference, as "
                    "where nothing is missing"
                )
        return metrics | {"frames": self._frames}, reasons

    def _metrics(self):
        return {
            key: {
                "rre": self._rre(sums),
                "psnr": self._psnr(sums),
                "ssim": self._mean_ssim(key),
                "mae": self._mae(sums),
            }
            for key, sums in self._sums.items()
        }

    def _psnr(self, sums):
        error, _, _, count = sums
        return float(10 * np.log10(self._range**2 * count / error)) if error > 0 and self._range > 0 else None

    def _rre(self, sums):
        error, size, _, _ = sums
        return float(np.sqrt(error / size)) if size > 0 else None

    def _mae(self, sums):
        return float(self._unit * sums[2] / sums[3]) if sums[3] else None

    def _mean_ssim(self, key):
        values = self._ssims.get(key)
        return float(np.mean(values)) if values and None not in values else None


class RowMeasures(ClipMeasures):
    """The measures of a large picture, taken from its rows some at a time.

    Parameters
    ----------
    data_range, unit : float
        As of `ClipMeasures`.
    partly : bool
        Whether the truth is known of a part only, and NaN elsewhere; then as `compare_tensor`, else as `compare`.
    """

    ROWS = 256  # looked at together

    def __init__(self, data_range, unit=1.0, partly=False):
        super().__init__(data_range, unit)
        self._partly, self._unknown = partly, 0
        self._before = None  # rows that the windows of the next ones begin in: truth, estimate, observed

    def add(self, number, truth, estimate, observed):
        """Take the measures of the next rows; see `ClipMeasures.add`."""
        for row in range(0, len(truth), self.ROWS):
            self._add(*(a[row : row + self.ROWS] for a in (truth, estimate, observed)))

    def _add(self, truth, estimate, observed):
        if self._partly:
            known = np.isfinite(truth)
            self._unknown += int(known.size - known.sum())
            truth, estimate, observed = truth[known], estimate[known], observed[known]
        truth, estimate = (np.asarray(a, dtype=float) / self._unit for a in (truth, estimate))
        missing = ~observed
        for key, more in (("all", _sums(truth, estimate)), ("missing", _sums(truth[missing], estimate[missing])),
                          ("incomplete", _sums(truth, np.where(observed, estimate, 0)))):  # fmt: skip
            self._sums[key] += more
        if self._partly:
            return
        rows = truth, estimate, observed
        if self._before is not None:
            rows = tuple(np.concatenate(pair) for pair in zip(self._before, rows))
        self._before = tuple(a[1 - SSIM_WINDOW :] for a in rows)
        truth, estimate, observed = rows
        windows = len(truth) - SSIM_WINDOW + 1
        if windows < 1:
            return
        for key, shown in (("all", estimate), ("incomplete", np.where(observed, estimate, 0))):
            self._ssims[key].append((ssim(truth, shown, self._range), windows))

    def result(self):
        """See `compare` and `compare_tensor`."""
        metrics = self._metrics()
        reasons = _reasons(metrics, metrics["all"]["ssim"] is None, self._range, self._sums["missing"][3] > 0)
        return metrics | {"frames": None}, _of_known(reasons, self._unknown) if self._partly else reasons

    def _mean_ssim(self, key):
        found = self._ssims.get(key)
        if not found or any(value is None for value, _ in found):
            return None
        values, windows = zip(*found)
        return float(np.average(values, weights=windows))


def _sums(truth, estimate):
    """Sum of squared errors, sum of squares of the truth, sum of absolute errors, number of entries."""
    return np.array([((truth - estimate) ** 2).sum(), (truth**2).sum(), np.abs(truth - estimate).sum(), truth.size])


def _measured(truth, estimate, data_range, unit, leave_out=None):
    """All measures of values that are multiples of `unit`."""
    found = {
        key: None if key == leave_out else measure(truth, estimate, data_range) for key, measure in MEASURES.items()
    }
    return found | {"mae": None if found["mae"] is None else found["mae"] * unit}
