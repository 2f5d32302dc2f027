"""Writing of containers (MP4, MKV, MOV, AVI, WebM) by PyAV.

The frames are encoded; sound and subtitles of the input are copied packet by packet.
"""

import contextlib
import io
import math
from fractions import Fraction

import numpy as np

from ...errors import OutputError
from ..pixels import narrow
from . import colour, fields
from .clip import DEFAULT_RATE
from .clip_formats import CLIP_FORMATS, CODECS, FOLDER
from .container import opened

_KINDS = {
    "audio": "sound",
    "subtitle": "subtitles",
    "video": "a second video",
    "attachment": "an attachment",
    "data": "data",
}
_FINEST = 1_000_000_000  # ticks a second
# What the AVX-512 code of x264 (165) writes is not the same twice: of 300x180 pixels 9 kinds of bytes in 20 runs.
_STEADY = "asm=avx2"
_SMALL = 128  # pixels a side below which the assembly code of x265 (4.2) has written behind the end of its memory
_MILLISECONDS = ("MKV", "WebM")  # whose clocks have no finer unit
# No random numbers: Matroska would give tracks and file some, and the same run other bytes each time.
_CONTAINER = {"avoid_negative_ts": "disabled", "fflags": "+bitexact"}
_TIMECODES = ("mov", "mp4", "matroska")  # muxers that hold a timecode
# Tags that say how the old file was made, not what it shows.
_TECHNICAL = {
    "operational_pattern_ul",
    "uid",
    "generation_uid",
    "company_name",
    "product_name",
    "product_version_num",
    "product_version",
    "application_platform",
    "product_uid",
    "toolkit_version_num",
    "material_package_umid",
    "file_package_umid",
    "modification_date",
    "encoder",
    "major_brand",
    "minor_version",
    "compatible_brands",
    "duration",
    "bps",
    "number_of_frames",
    "number_of_bytes",
    "alpha_mode",
    "handler_name",
    "vendor_id",
    "timecode",
}


def check(path, clip, form, codec):
    """Raise OutputError for a clip that the container or the codec cannot hold; see `check_clip`.

    Returns
    -------
    list of str
        What cannot be kept, for the user.
    """
    notes = []
    if not codec.lossless:
        notes.append(
            f"{codec.title} compresses with loss: known pixels change a little in the file; {_lossless(clip, form)} "
            "keeps them"
        )
    if codec.format_of(clip).startswith("yuv444p") and not codec.lossless:
        what = "an odd size" if not clip.fields else "no size for two fields that share colours"
        notes.append(
            f"{clip.shape[1]}x{clip.shape[0]} is {what}: the colours are stored in full resolution, which some players "
            "cannot show"
        )
    _check_times(path, clip, form, notes)
    for kind, codec_name, held in _companions(clip, form):
        if kind == "audio" and not held:
            able = [f.extensions[0] for f in CLIP_FORMATS.values() if f.muxer and not lost_companions(clip, f, "audio")]
            raise OutputError(
                f"{path}: {form.name} cannot hold the input's sound ({codec_name}); write to {' or '.join(able)}"
            )
    return notes + lost_companions(clip, form)


def lost_companions(clip, form, only=None):
    """What stands beside the frames in the input, all of it or of the kind `only`, and cannot be held by `form`; a list
    of notes.
    """
    lost = [
        (kind, codec_name) for kind, codec_name, held in _companions(clip, form) if not held and only in (kind, None)
    ]
    if not lost:
        return []
    name = "a folder of frames" if form.name == FOLDER else form.name
    words = ", ".join(dict.fromkeys(f"{_KINDS.get(kind, kind)} ({codec_name})" for kind, codec_name in lost))
    counts = {
        other.extensions[0]: sum(not held for _, _, held in _companions(clip, other)) for other in _containers(clip)
    }
    able = [extension for extension, count in counts.items() if count == min(counts.values()) < len(lost)]
    way = (
        f"write to {' or '.join(able)} to keep {'more' if counts[able[0]] else 'it'}"
        if able
        else "no container that is written keeps it"
    )
    return [f"{name} cannot hold all that the input has: without {words}; {way}"]


def _containers(clip):
    """Containers that can hold the frames of a clip."""
    return [form for form in CLIP_FORMATS.values() if form.muxer and form.holds(clip)]


def _lossless(clip, form):
    """How to write a clip without loss, in words."""
    names = [
        name for name, codec in CODECS.items() if codec.lossless and form.holds(clip, codec) and name in form.codecs
    ]
    words = " or ".join(f"`codec={name}`" for name in names)
    return words or f"{CLIP_FORMATS['MKV'].extensions[0]} with `codec=ffv1`"


def _check_times(path, clip, form, notes):
    """Raise OutputError for times that the container cannot hold; take note of what it rounds."""
    times, end = _times(clip, form)
    spans = np.diff([*times, end])
    if min(spans) <= 0:
        number = int(np.argmin(spans))
        raise OutputError(
            f"{path}: frame {number} of the input lasts no time, which {form.name} cannot hold; write to .gif or .webp"
        )
    clock = _clock(times, end)
    if form.name in _MILLISECONDS and not clip.rate and 1000 % clock:
        notes.append(
            f"{form.name} counts milliseconds, to which the times of the frames are rounded; write to .mp4 to keep "
            "them exactly"
        )
    elif clock > _FINEST:
        raise OutputError(
            f"{path}: the times of the frames need more than {_FINEST:,} ticks a second; write a folder of frames"
        )
    if form.name == "AVI" and clip.times and (clip.rate is None or (times[0] != 0 and _companions(clip, form))):
        why = "one frame rate throughout" if clip.rate is None else "a video that begins at 0 s"
        raise OutputError(f"{path}: AVI can hold only {why}; write to .mkv or .mp4")


def _times(clip, form):
    """When the frames are shown and when the last one ends, in seconds; lists of Fraction.

    Where the rate is constant they follow it exactly, unless both files count milliseconds, to which the first one has
    been rounded.
    """
    if clip.times is None:
        return [k / DEFAULT_RATE for k in range(clip.count)], clip.count / DEFAULT_RATE
    if clip.rate and not (form.name in _MILLISECONDS and clip.format in _MILLISECONDS):
        start = clip.times[0]
        return [start + k / clip.rate for k in range(clip.count)], start + clip.count / clip.rate
    return list(clip.times), clip.end or clip.times[-1] + 1 / DEFAULT_RATE


def _clock(times, end):
    """Ticks a second in which all these times are whole numbers."""
    return math.lcm(*{time.denominator for time in (*times, end)})


def _base(clip, form, times, end):
    """The unit of time of the stream, in seconds."""
    if form.name in _MILLISECONDS and (not clip.rate or clip.format in _MILLISECONDS):
        return Fraction(1, 1000)
    length = 1 / clip.rate if clip.rate else 1 / DEFAULT_RATE
    return (
        length if all((time / length).denominator == 1 for time in (*times, end)) else Fraction(1, _clock(times, end))
    )


def _coding(clip, pixels):
    """How the numbers of the output are meant: as in the input, where it says so."""
    coding = clip.details.get("coding") or colour.Coding()
    if not pixels.startswith("yuv"):
        grey = pixels.startswith(("gray", "ya"))
        return colour.Coding(
            colour.BT709 if grey else colour.RGB_MATRIX, colour.FULL, coding.primaries, coding.transfer
        )
    if coding.matrix == colour.RGB_MATRIX or "coding" not in clip.details:
        return colour.Coding(colour.BT709, colour.LIMITED, coding.primaries, coding.transfer)
    return coding


def write(frames, file, clip, form, codec, quality):
    """Encode `frames` into an open binary file, with the sound, subtitles, chapters and tags of `clip`.

    Parameters
    ----------
    frames : iterable of Media
        As many as the clip has.
    file : binary file
    clip : Clip
        Where the frames come from.
    form : ClipFormat
    codec : Codec
    quality : int
        1 to 100, of codecs with loss.
    """
    import av

    times, end = _times(clip, form)
    base = _base(clip, form, times, end)
    stamps = [round(time / base) for time in (*times, end)]
    pixels = codec.format_of(clip)
    coding = _coding(clip, pixels)
    sink = _Sink(file)
    try:
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(av.open(sink, "w", format=form.muxer, container_options=_CONTAINER))
            video = _video(output, clip, form, codec, quality, pixels, coding, base)
            others = stack.enter_context(_copies(output, clip, form))
            lengths = dict(zip(stamps, np.diff(stamps).tolist()))
            for media, stamp in zip(frames, stamps):
                others.send_until(stamp * base)
                frame = _frame(media, clip, pixels, coding)
                if clip.fields:
                    frame = fields.flagged(frame, clip.fields)
                frame.pts, frame.time_base, frame.duration = stamp, base, lengths[stamp]
                _mux(output, video.encode(frame), lengths)
                sink.check()
            _mux(output, video.encode(), lengths)
            others.send_until(None)
        sink.check()
    except av.error.FFmpegError as error:
        raise OutputError(
            f"{clip.path}: cannot be encoded as {codec.title} in {form.name} ({error.strerror})"
        ) from error


def _mux(output, packets, lengths):
    for packet in packets:
        packet.duration = lengths.get(packet.pts, packet.duration)
        output.mux(packet)


def _video(output, clip, form, codec, quality, pixels, coding, base):
    """The stream of the frames."""
    options = codec.options(quality) | (codec.interlaced if clip.fields else {})
    if codec.name == "h265" and min(clip.shape[:2]) < _SMALL:
        options["x265-params"] += ":asm=0"
    encoder = codec.encoder(clip.mode)
    if encoder.startswith("libx264") and _has_avx512():
        options["x264-params"] = ":".join(filter(None, (options.get("x264-params"), _STEADY)))
    video = output.add_stream(encoder, rate=clip.rate or _mean_rate(clip), options=options)
    video.height, video.width = clip.shape[:2]
    video.pix_fmt = pixels
    context = video.codec_context
    context.time_base = base
    context.sample_aspect_ratio = clip.details.get("aspect", Fraction(1))
    context.thread_count = 1  # what is written depends on the number of threads
    context.colorspace, context.color_range = coding.matrix, coding.range
    context.color_primaries, context.color_trc = coding.primaries, coding.transfer
    if clip.fields:
        context.field_order = fields.order_in_container(clip.fields)
    if codec.tag and form.muxer in ("mp4", "mov"):
        context.codec_tag = codec.tag
    return video


def _has_avx512():
    import llvmlite.binding  # whatever completes a clip has it, and nothing else needs it here

    return llvmlite.binding.get_host_cpu_features().get("avx512f", False)


def _mean_rate(clip):
    if clip.times is None or not clip.end or clip.end <= clip.times[0]:
        return DEFAULT_RATE
    return (clip.count / (clip.end - clip.times[0])).limit_denominator(100_000)


def _frame(media, clip, pixels, coding):
    """A frame of FFmpeg of the values of `media`."""
    import av

    form = av.VideoFormat(pixels)
    bits = clip.bits or 8 * clip.dtype.itemsize
    frame = av.VideoFrame(clip.shape[1], clip.shape[0], pixels)
    frame.colorspace, frame.color_range = coding.matrix, coding.range
    frame.color_primaries, frame.color_trc = coding.primaries, coding.transfer
    levels = narrow(media.values, bits)
    if not form.is_planar or len(form.components) == 1:  # one plane with all channels
        order = {"bgr0": [2, 1, 0, 0], "bgra": [2, 1, 0, 3]}.get(pixels)
        _put(frame.planes[0], levels if order is None else levels[..., order])
        return frame
    alpha = [levels[..., -1]] if clip.has_alpha else []
    if not pixels.startswith("yuv"):
        planes = [levels[..., k] for k in (1, 2, 0)] + alpha  # green, blue, red
    elif clip.mode in ("L", "LA"):
        grey = levels[..., 0] if alpha else levels
        plane = frame.planes[1]
        empty = np.full((plane.height, plane.width), 1 << (bits - 1), dtype=levels.dtype)
        planes = [colour.grey_from_full(grey, bits, coding), empty, empty, *alpha]
    else:
        size = frame.planes[1].height, frame.planes[1].width
        if clip.fields:  # the rows of a field have chroma of their own
            size = size[0] // 2, size[1]
            pair = enumerate(fields.apart(levels[..., :3]))
            each = [colour.from_rgb(rows, bits, coding, size, number) for number, rows in pair]
            planes = [*(fields.woven(*pair) for pair in zip(*each)), *alpha]
        else:
            planes = [*colour.from_rgb(levels[..., :3], bits, coding, size), *alpha]
    for plane, values in zip(frame.planes, planes):
        _put(plane, values)
    return frame


def _put(plane, values):
    """Fill a plane with the rows of an array; each row of the plane is longer by what makes it fit the processor."""
    rows = np.zeros((plane.height, plane.line_size // values.dtype.itemsize), dtype=values.dtype.newbyteorder("<"))
    flat = values.reshape(len(values), -1)
    rows[:, : flat.shape[1]] = flat
    plane.update(rows)


def _companions(clip, form):
    """Streams beside the frames in the file that a clip was read from: kind, codec, and whether `form` can hold it; a
    list of tuples.
    """
    import av

    if not CLIP_FORMATS[clip.format].demuxer:
        return []
    with opened(clip.path, CLIP_FORMATS[clip.format]) as (container, video):
        others = [stream for stream in container.streams if stream is not video and not _lists_chapters(stream)]
        others = [stream for stream in others if not _is_timecode(stream)]
        names = [_name_of(stream) for stream in others]
        timecode = _timecode(container)
        timecodes = [("timecode", timecode, form.muxer in _TIMECODES)] if timecode else []
        if not form.muxer:
            return [*((stream.type, name, False) for stream, name in zip(others, names)), *timecodes]
        with av.open(io.BytesIO(), "w", format=form.muxer) as trial:
            return [
                *((stream.type, name, _copied(trial, stream) is not None) for stream, name in zip(others, names)),
                *timecodes,
            ]


def _name_of(stream):
    """What a stream holds, in words."""
    if stream.type == "attachment":
        return stream.mimetype or "of unknown kind"
    if stream.codec_context:
        return stream.codec_context.codec.canonical_name
    # Subtitles that FFmpeg does not decode, such as teletext, have no name.
    return getattr(stream, "name", None) or "of unknown kind"


def _timecode(container):
    """The timecode of the first frame, a str, or None."""
    tags = [container.metadata, *(stream.metadata for stream in container.streams)]
    return next((value for found in tags for key, value in found.items() if key.lower() == "timecode"), None)


def _is_timecode(stream):
    """Whether a stream holds the timecode, which FFmpeg gives as a tag too and writes by it."""
    return stream.type == "data" and any(key.lower() == "timecode" for key in stream.metadata)


def _lists_chapters(stream):
    """Whether a stream is the list of chapters of MP4 and MOV, which are copied as such."""
    return stream.type == "data" and stream.name == "bin_data" and bool(stream.container.chapters())


def _copied(output, stream):
    """A stream of `output` that takes the packets of `stream`, or None where its format cannot hold them."""
    if stream.type == "attachment" and output.format.name == "matroska":
        return output.add_attachment(stream.name, stream.mimetype, stream.data)
    if stream.type not in ("audio", "subtitle") or stream.codec_context is None:
        return None
    try:
        return output.add_stream_from_template(stream, opaque=True)
    except ValueError:
        return None


@contextlib.contextmanager
def _copies(output, clip, form):
    """Everything beside the frames, copied from the file that the clip was read from into `output`."""
    if not CLIP_FORMATS[clip.format].demuxer:
        yield _Copies(output, {}, iter(()))
        return
    with opened(clip.path, CLIP_FORMATS[clip.format]) as (container, video):
        pairs = {}
        for stream in container.streams:
            made = None if stream is video else _copied(output, stream)
            if made is not None and stream.type != "attachment":
                made.metadata.update(_descriptive(stream.metadata))
                made.disposition = stream.disposition
                pairs[stream.index] = made
        output.metadata.update(_descriptive(container.metadata))
        output.streams.video[0].metadata.update(_descriptive(video.metadata))
        if form.muxer in _TIMECODES and _timecode(container):
            output.streams.video[0].metadata["timecode"] = _timecode(container)
        if container.chapters() and form.muxer != "avi":
            output.set_chapters(container.chapters())
        yield _Copies(
            output, pairs, container.demux([s for s in container.streams if s.index in pairs]) if pairs else iter(())
        )


def _descriptive(tags):
    return {
        key: value
        for key, value in tags.items()
        if key.lower().split("-")[0] not in _TECHNICAL and not key.startswith("_")
    }


class _Sink:
    """An open binary file for FFmpeg, which has no words for failures and cannot stop at one.

    After the first failure nothing more is written; `check` raises it.
    """

    def __init__(self, file):
        self._file = file
        self._error = None

    def check(self):
        """Raise the first failure, if there was one."""
        if self._error:
            raise self._error

    def _try(self, act, instead):
        if self._error is None:
            try:
                return act()
            except OSError as error:
                self._error = error
        return instead

    def write(self, content):
        """Write `content`; the number of bytes."""
        return self._try(lambda: self._file.write(content), len(content))

    def seek(self, offset, whence=0):
        """Move to a place in the file; the new place."""
        return self._try(lambda: self._file.seek(offset, whence), offset)

    def tell(self):
        """The place in the file."""
        return self._try(self._file.tell, 0)

    def seekable(self):
        """True."""
        return True

    def writable(self):
        """True."""
        return True


class _Copies:
    """Packets on their way from one file to another.

    Parameters
    ----------
    output : av.container.OutputContainer
    pairs : dict
        Number of a stream of the input to the stream of the output.
    packets : iterator of av.Packet
    """

    def __init__(self, output, pairs, packets):
        self._output, self._pairs, self._packets = output, pairs, packets
        self._next = None

    def send_until(self, time):
        """Send all packets that come before a time in seconds; all that are left where it is None."""
        while True:
            packet = self._next or next(self._packets, None)
            if packet is None:
                return
            self._next = None
            if packet.dts is None:  # marks the end
                continue
            if time is not None and packet.dts * packet.time_base > time:
                self._next = packet
                return
            packet.stream = self._pairs[packet.stream_index]
            self._output.mux(packet)
