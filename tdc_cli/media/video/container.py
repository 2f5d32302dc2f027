"""Reading of containers (MP4, MKV, MOV, AVI, WebM, and those of broadcasting and tapes) by PyAV.

A clip is decoded once before anything else is done with it: only then are the number of frames and their times sure,
and damage is found before any work. That costs little beside completing it.
"""

import contextlib
import os
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ...errors import InputError
from ..files import digest
from ..limits import check_size
from ..pixels import Media, widen
from . import colour, whole
from .clip import Clip
from .clip_formats import ClipFormat
from .fields import TOP, apart, first_of, woven

_MODES = {(1, False): "L", (1, True): "LA", (3, False): "RGB", (3, True): "RGBA"}
_MASTERED = (16, 18)  # transfer functions of high dynamic range: PQ, HLG
_GREY = {"L": "L", "LA": "LA", "RGB": "L", "RGBA": "LA"}
_UPRIGHT = (1, 0, 0, 1)
_TURNS = {
    _UPRIGHT,
    (0, 1, -1, 0),
    (-1, 0, 0, -1),
    (0, -1, 1, 0),
    (-1, 0, 0, 1),
    (1, 0, 0, -1),
    (0, 1, 1, 0),
    (0, -1, -1, 0),
}
_ID_OF_MATROSKA = 4  # bytes of the two outermost names in a file
_EARLY = 1  # seconds by which a file may end before the time that it tells


def read(path, form):
    """Clip of a container; see `read_clip`.

    Parameters
    ----------
    path : path-like
    form : ClipFormat
    """
    sha256 = digest(path)
    with opened(path, form) as (container, stream):
        check_size(stream.width, stream.height, path)  # before a decoder makes room for it
        seen = _Seen(str(path))
        for frame in _decoded(container, stream, seen):
            seen.add(frame)
        _check_whole(container, stream, seen)
        seen.notes += whole.notes(path, form.name)
        if seen.kind is None:
            raise InputError(f"{path}: its video has no frames; get the file again")
        base = stream.time_base
        # An AVI knows no later start than 0; what FFmpeg tells there is the delay of the decoder.
        start = seen.stamps[0] if form.name == "AVI" else 0
        times = tuple((stamp - start) * base for stamp in seen.stamps)
        rate = _constant_rate(times, base, (stream.average_rate, stream.guessed_rate, stream.base_rate))
        fields = seen.fields()
        details = {
            "aspect": _aspect(stream, seen.kind),
            "coding": seen.kind.coding,
            "codec": stream.codec_context.codec.canonical_name,
        }
    kind = replace(
        seen.kind, interlaced=fields is not None, mode=seen.kind.mode if seen.colourful else _GREY[seen.kind.mode]
    )
    if fields:
        details["fields"] = fields
        seen.notes.append(f"{path}: interlaced, {fields} field first; is completed field by field")
    last = seen.last_duration * base or (1 / rate if rate else times[-1] - times[-2] if len(times) > 1 else 0)
    return Clip(
        str(path),
        sha256,
        form.name,
        len(times),
        kind.shape,
        np.dtype(np.uint8 if kind.bits == 8 else np.uint16),
        kind.mode,
        rate,
        times,
        tuple(seen.notes),
        times[-1] + last if last else None,
        None if kind.bits in (8, 16) else kind.bits,
        details,
        _Frames(
            str(path),
            form,
            sha256,
            kind,
            tuple(seen.stamps),
            tuple(k for k, stamp in enumerate(seen.stamps) if stamp in seen.keys) if form.indexed else (),
        ),
    )


@dataclass(frozen=True)
class _Kind:
    """What all frames of a video have in common."""

    width: int
    height: int
    pixels: str  # FFmpeg's name of the pixel format
    bits: int
    mode: str
    coding: colour.Coding
    interlaced: bool
    turn: tuple  # a, b, c, d: where pixel (x, y) is to be shown, x' = a x + c y and y' = b x + d y

    @property
    def shape(self):
        """Of the values of an upright frame."""
        size = (self.width, self.height) if self.turn[0] == 0 else (self.height, self.width)
        channels = {"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,)}[self.mode]
        return (*size, *channels)


@dataclass
class _Seen:
    """What is gathered in the pass over all frames."""

    path: str
    kind: _Kind | None = None
    stamps: list = field(default_factory=list)
    keys: set = field(default_factory=set)  # time stamps of packets that need none before them
    notes: list = field(default_factory=list)
    last_duration: int = 0
    colourful: bool = False  # whether any frame so far has chroma
    latest: Fraction = Fraction(0)  # seconds at which the last packet of any stream ends
    interlaced: bool = False  # whether any frame so far has two fields
    first_field: str | None = None  # the field that comes first in all of them, as far as they tell

    def add(self, frame):
        """Take note of the next frame; InputError where it does not fit to those before."""
        number = len(self.stamps)
        if self.kind is None:
            self.kind = _kind_of(frame, self.path)
            if self.kind.coding.transfer in _MASTERED:
                self.notes.append(f"{self.path}: has a high dynamic range; its values are completed as they are stored")
        kind = self.kind
        if (frame.width, frame.height, frame.format.name) != (kind.width, kind.height, kind.pixels):
            raise InputError(
                f"{self.path}: frame {number} is {frame.width}x{frame.height} ({frame.format.name}), those before it "
                f"{kind.width}x{kind.height} ({kind.pixels}); cut the clip there"
            )
        if frame.interlaced_frame:
            self._add_fields(frame, number)
        if frame.pts is None or (self.stamps and frame.pts <= self.stamps[-1]):
            raise InputError(
                f"{self.path}: frame {number} has no time of its own; give it one first: "
                f"ffmpeg -i '{self.path}' -c:v ffv1 -c:a copy mended.mkv"
            )
        self.colourful = self.colourful or _has_colour(frame, kind)
        self.stamps.append(frame.pts)
        self.last_duration = frame.duration


    def _add_fields(self, frame, number):
        """Take note of the fields of an interlaced frame; InputError where they are not as those before."""
        if self.kind.turn != _UPRIGHT:
            raise InputError(
                f"{self.path}: interlaced, and is to be shown turned; take the turn out first: {_untagged(self.path)}"
            )
        if frame.height % (4 if -(-frame.height // frame.format.chroma_height()) == 2 else 2):
            raise InputError(
                f"{self.path}: interlaced with {frame.height} rows, which are no two fields with colours; crop it with "
                "ffmpeg"
            )
        first = first_of(frame)
        if first and self.first_field and first != self.first_field:
            raise InputError(f"{self.path}: at frame {number} the other field begins to come first; cut the clip there")
        self.interlaced, self.first_field = True, self.first_field or first

    def fields(self):
        """The field that comes first, where frames have two; None where they have not."""
        return (self.first_field or TOP) if self.interlaced else None


@dataclass(frozen=True)
class _Frames:
    """The frames of a container; see `clip.Source`."""

    path: str
    form: ClipFormat
    sha256: str
    kind: _Kind
    stamps: tuple
    keys: tuple

    def frames(self, start, stop):
        """Iterate over frames, from the last key frame before `start` on."""
        key = max((k for k in self.keys if k <= start), default=0)
        number = start
        for stamp, frame in self._from(key):
            if number == stop:
                return
            if stamp < self.stamps[number]:
                continue
            if stamp > self.stamps[number]:
                break
            yield Media(_values(frame, self.kind), self.kind.mode, self.path, self.sha256, format=self.form.name)
            number += 1
        if number < stop:
            raise InputError(f"{self.path}: frame {number} is no longer there; was the file changed?")

    def _from(self, key):
        """Time stamps and frames from the key frame of that number on; from the first one, where seeking does not lead
        there.
        """
        with opened(self.path, self.form) as (container, stream):
            if key:
                container.seek(self.stamps[key], stream=stream)
            for frame in _decoded(container, stream, _Seen(self.path, stamps=list(self.stamps[:key]))):
                if key and frame.pts > self.stamps[key]:
                    break
                key = 0
                yield frame.pts, frame
            else:
                return
        yield from self._from(0)


@contextlib.contextmanager
def opened(path, form):
    """The container and its video stream, closed at the end; InputError if there is none that can be decoded."""
    import av

    with contextlib.ExitStack() as stack:
        try:
            # Not by name: FFmpeg takes some names for protocols or lists of files.
            file = stack.enter_context(
                open(path, "rb")
            )
            container = stack.enter_context(av.open(file, format=form.demuxer, metadata_errors="replace"))
        except av.error.FFmpegError as error:
            raise InputError(
                f"{path}: not a readable {form.name} file ({error.strerror}); damaged, cut short or of another kind: "
                "get it again"
            ) from error
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        streams = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
        if not streams:
            raise InputError(f"{path}: has no video" + (", only sound" if container.streams.audio else ""))
        if streams[0].codec_context is None:
            raise InputError(f"{path}: its video has a codec that is not known; convert it with ffmpeg")
        if streams[0].codec_tag in ("encv", "drmi"):
            raise InputError(f"{path}: its video is encrypted; decrypt it first")
        yield container, streams[0]


def _decoded(container, stream, seen):
    """Iterate over the frames of a stream, to the last; InputError where one is damaged."""
    import av

    decoder = _decoder(stream)
    try:
        for packet in container.demux():
            if packet.pts is not None and packet.duration:
                seen.latest = max(seen.latest, (packet.pts + packet.duration) * packet.time_base)
            if packet.stream is not stream:
                continue
            if packet.is_corrupt:
                raise _damaged(seen, "cut short, or a part is missing")
            if packet.is_keyframe:
                seen.keys.add(packet.pts)
            for frame in decoder.decode(packet if packet.size else None):
                if frame.is_corrupt:
                    raise _damaged(seen, "not all of the frame is there")
                yield frame
    except av.error.FFmpegError as error:
        raise _damaged(seen, error.strerror) from error


def _decoder(stream):
    """What decodes the stream; that of libvpx where VP9 or VP8 has alpha, which FFmpeg's own leave out."""
    import av

    codec = stream.codec_context.codec.canonical_name
    if stream.metadata.get("alpha_mode") == "1" and codec in ("vp8", "vp9"):
        return av.CodecContext.create("libvpx-vp9" if codec == "vp9" else "libvpx", "r")
    stream.codec_context.options = {"err_detect": "explode"}  # else holes are painted over
    return stream.codec_context


def _damaged(seen, reason):
    number = len(seen.stamps)
    where = f"after frame {number - 1}" if number else "at its first frame"
    keep = (
        f"keep what is whole: ffmpeg -i '{seen.path}' -frames:v {number}"
        if number
        else f"mend what can be: ffmpeg -i '{seen.path}'"
    )
    return InputError(
        f"{seen.path}: damaged {where} ({reason}); get the file again, or {keep} -c:v ffv1 -c:a copy whole.mkv"
    )


def _untagged(path):
    return f"ffmpeg -display_rotation 0 -i '{path}' -c copy upright.mkv"


def _check_whole(container, stream, seen):
    """Raise InputError for a file that lacks what its index tells; take note where it only says that it were longer."""
    ends = [entry.pos + entry.size for entry in stream.index_entries]
    if {"matroska", "webm"} & set(container.format.name.split(",")):
        ends = [_end_of_matroska(seen.path)]  # its index tells no sizes
    if max(ends, default=0) > container.size:
        raise _damaged(seen, "the rest of the file is not there")
    told = Fraction(container.duration or 0, 1_000_000) + max(0, Fraction(container.start_time or 0, 1_000_000))
    if told > seen.latest + _EARLY:
        seen.notes.append(
            f"{seen.path}: ends after {float(seen.latest):.1f} s and {len(seen.stamps)} frames, though it tells "
            f"{float(told):.1f} s; is it whole?"
        )


def _end_of_matroska(path):
    """Where a file of MKV or WebM ends by what it tells of itself, 0 where it does not."""
    with open(path, "rb") as file:
        for _ in range(2):  # a header, and the segment that holds everything
            file.seek(_ID_OF_MATROSKA, os.SEEK_CUR)
            first = file.read(1)
            if not first or not first[0]:
                return 0
            length = 9 - first[0].bit_length()  # the leading zeros of a number tell its length in bytes
            size = int.from_bytes(first + file.read(length - 1), "big") & ((1 << 7 * length) - 1)
            if size == (1 << 7 * length) - 1:  # written as a stream
                return 0
            end = file.seek(size, os.SEEK_CUR)
        return end


def _kind_of(frame, path):
    """What the first frame says about all; InputError for what is not read."""
    check_size(frame.width, frame.height, path)  # which may not be what the container tells
    form = frame.format
    components = form.components
    bits = 8 if form.has_palette else max(c.bits for c in components)
    alpha = form.has_palette or any(c.is_alpha for c in components)
    grey = len(components) - alpha == 1 and not form.has_palette
    coding = colour.Coding(frame.colorspace, frame.color_range, frame.color_primaries, frame.color_trc)
    coding = coding.sure(frame.height, full=grey or form.name.startswith("yuvj"))
    if form.is_bayer or bits > 16 or form.name.rstrip("lbe").endswith(("f16", "f32")):
        raise InputError(f"{path}: pixels of kind {form.name} are not read; convert it with ffmpeg")
    if form.is_rgb or form.has_palette:
        coding = replace(coding, matrix=colour.RGB_MATRIX, range=colour.FULL)
    elif not grey and coding.matrix not in colour.MATRICES:
        raise InputError(
            f"{path}: colours of matrix {coding.matrix} (ITU-T H.273) are not read; convert it with ffmpeg"
        )
    return _Kind(frame.width, frame.height, form.name, max(bits, 8), _MODES[1 if grey else 3, alpha], coding, False,
                 _turn(frame, path))  # fmt: skip


def _turn(frame, path):
    """How frames are to be turned, as `_Kind.turn` has it."""
    for data in frame.side_data:
        if data.type.name == "DISPLAYMATRIX":
            a, b, _, c, d = np.frombuffer(data, dtype=np.int32)[:5] / (1 << 16)
            if (a, b, c, d) not in _TURNS:
                raise InputError(f"{path}: is to be shown turned by an odd angle; turn it first with ffmpeg")
            return tuple(int(n) for n in (a, b, c, d))
    return _UPRIGHT


def _aspect(stream, kind):
    """Width to height of an upright pixel, a Fraction."""
    aspect = Fraction(stream.sample_aspect_ratio or 1)
    return 1 / aspect if kind.turn[0] == 0 else aspect


def _constant_rate(times, base, candidates):
    """The rate that explains all times of a container within one unit of its clock, or None."""
    if len(times) > 1:
        candidates = (Fraction(len(times) - 1) / (times[-1] - times[0]), *candidates)
        exact = [rate for rate in candidates if rate and all(t - times[0] == k / rate for k, t in enumerate(times))]
        close = [
            rate
            for rate in candidates[1:]
            if rate and all(abs(t - times[0] - k / rate) <= base for k, t in enumerate(times))
        ]
        return next(iter(exact + close), None)
    return next((Fraction(rate) for rate in candidates if rate), None)


def _values(frame, kind):
    """Values of a frame, upright, as `Media` has them."""
    values = _levels(frame, kind)
    a, b, c, d = kind.turn
    across, down = (a, d) if a else (c, b)
    if not a:
        values = values.swapaxes(0, 1)
    return np.ascontiguousarray(widen(values[::down, ::across], kind.bits))


def _levels(frame, kind):
    """(H, W) or (H, W, C) ndarray of levels of `kind.bits` bits."""
    planes = _planes(frame, kind)
    if kind.interlaced:  # the rows of a field have chroma of their own
        each = enumerate(zip(*map(apart, planes)))
        return woven(*(_levels_of(list(rows), kind, number) for number, rows in each))
    return _levels_of(planes, kind)


def _levels_of(planes, kind, field=None):
    """Levels of the planes of a frame, or of a field, 0 of the even rows and 1 of the odd ones."""
    alpha = planes.pop() if kind.mode in ("LA", "RGBA") else None
    if kind.mode in ("L", "LA"):
        colours = colour.grey_to_full(planes[0], kind.bits, kind.coding)[..., None]
    elif kind.coding.matrix == colour.RGB_MATRIX:
        colours = np.stack(planes, axis=-1)
    else:
        colours = colour.to_rgb(*planes, kind.bits, kind.coding, field)
    if alpha is not None:
        return np.concatenate([colours, alpha[..., None]], axis=-1)
    return colours[..., 0] if kind.mode == "L" else colours


def _has_colour(frame, kind):
    """Whether a frame is in red, green and blue, or has chroma: H.264 and others store grey clips with empty chroma."""
    if kind.coding.matrix == colour.RGB_MATRIX:
        return True
    return kind.mode in ("RGB", "RGBA") and any(
        np.any(plane != 1 << (kind.bits - 1)) for plane in _planes(frame, kind)[1:3]
    )


def _planes(frame, kind):
    """Components of a frame in their order, each a (h, w) ndarray: luma and chroma, or red, green and blue; alpha comes
    last.
    """
    form = frame.format
    alone = len({c.plane for c in form.components}) == len(form.components)
    if form.name in ("ya8", "ya16le"):
        dtype = np.dtype("u1" if kind.bits == 8 else "<u2")
        rows = np.frombuffer(frame.planes[0], dtype).reshape(frame.height, -1)[:, : 2 * frame.width]
        return [rows[:, 0::2], rows[:, 1::2]]
    if form.has_palette or not alone or form.is_big_endian:
        frame = frame.reformat(format=_planar(frame, kind))
        form = frame.format
    dtype = np.dtype("u1" if kind.bits == 8 else "<u2")
    planes = []
    for component in form.components:
        plane = frame.planes[component.plane]
        rows = np.frombuffer(plane, dtype).reshape(-1, plane.line_size // dtype.itemsize)
        planes.append(rows[: component.height, : component.width])
    return planes


def _planar(frame, kind):
    """Name of the pixel format that holds the same numbers, one component a plane."""
    deep = "" if kind.bits == 8 else f"{kind.bits}le"
    alpha = "a" if kind.mode in ("LA", "RGBA") else ""
    if kind.mode in ("L", "LA"):
        return f"yuva444p{deep}" if alpha else f"gray{deep}"
    if kind.coding.matrix == colour.RGB_MATRIX:
        return f"gbr{alpha}p{deep}"
    form = frame.format
    across, down = -(-frame.width // form.chroma_width()), -(-frame.height // form.chroma_height())
    sampling = {(1, 1): "444", (2, 1): "422", (2, 2): "420", (4, 1): "411", (4, 4): "410", (1, 2): "440"}[across, down]
    return f"yuv{alpha}{sampling}p{deep}"
