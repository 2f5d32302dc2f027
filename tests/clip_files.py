"""Clips for the tests, made by PyAV, tifffile and Pillow alone: nothing here is shared with what is tested."""

import hashlib
from fractions import Fraction

import av
import numpy as np

NTSC = Fraction(30000, 1001)
BARS = [(255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0), (0, 0, 255), (0, 0, 0)]
SHARES = {1: (0.2126, 0.0722), 6: (0.299, 0.114), 9: (0.2627, 0.0593)}  # of red and blue in luma


def pictures(count=8, height=48, width=64):
    """`count` RGB frames with detail that moves."""
    rows, columns = np.mgrid[:height, :width]
    planes = [
        [128 + 70 * np.sin((columns + 3 * k) / (4 + c)) + 40 * np.cos(rows / 5 + c) for c in range(3)]
        for k in range(count)
    ]
    return [np.stack(p, axis=-1).round().astype(np.uint8) for p in planes]


def bars(height=16, width=64):
    """Colour bars, 8 pixels or more each."""
    return np.repeat(np.array(BARS, dtype=np.uint8)[None], height, axis=0).repeat(width // 8, axis=1)


def write_container(
    path,
    frames,
    rate=NTSC,
    *,
    stamps=None,
    base=None,
    codec="libx264",
    pixels="yuv420p",
    options=None,
    sound=None,
    rotation=None,
    aspect=None,
    subtitles=False,
    chapters=(),
    attachment=None,
    colours=None,
    faststart=False,
):
    """Encode RGB frames, or ready av.VideoFrames, and what may stand beside them, into a container."""
    base = base or 1 / Fraction(rate)
    with av.open(str(path), "w", container_options={"movflags": "faststart"} if faststart else None) as output:
        video = output.add_stream(codec, rate=rate, options=options or {})
        first = frames[0]
        ready = isinstance(first, av.VideoFrame)
        video.height, video.width = (first.height, first.width) if ready else first.shape[:2]
        video.pix_fmt, video.codec_context.time_base = pixels, base
        if rotation is not None:
            video.set_display_rotation(rotation)
        if aspect:
            video.codec_context.sample_aspect_ratio = aspect
        if colours:
            video.codec_context.colorspace, video.codec_context.color_range = colours
        output.metadata["title"], video.metadata["language"] = "A title", "deu"
        if sound:
            voice = output.add_stream(sound, rate=48000)
            voice.codec_context.layout = "stereo"
            voice.metadata["language"] = "fra"
        if subtitles:
            text = output.add_mux_stream("subrip")
            text.time_base = Fraction(1, 1000)
        if attachment:
            output.add_attachment("notes.txt", "text/plain", attachment)
        if chapters:
            output.set_chapters(list(chapters))
        for k, values in enumerate(frames):
            frame = values if ready else av.VideoFrame.from_ndarray(values).reformat(format=pixels)
            frame.pts, frame.time_base = (stamps[k] if stamps else k), base
            if colours:
                frame.colorspace, frame.color_range = colours
            output.mux(video.encode(frame))
        output.mux(video.encode())
        if sound:
            rng = np.random.default_rng(0)
            size = voice.codec_context.frame_size or 1024
            for k in range(12):
                wave = (0.1 * rng.normal(size=(2, size))).astype(np.float32)
                frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="stereo")
                frame.sample_rate, frame.pts, frame.time_base = 48000, k * size, Fraction(1, 48000)
                output.mux(voice.encode(frame))
            output.mux(voice.encode())
        if subtitles:
            for k in range(3):
                packet = av.Packet(b"Line %d" % k)
                packet.pts = packet.dts = 70 * k
                packet.duration, packet.time_base, packet.stream = 60, Fraction(1, 1000), text
                output.mux(packet)
    return path


def packets(path, kind):
    """Time, length and hash of every packet of the first stream of a kind, and the data that its decoder needs."""
    with av.open(str(path)) as container:
        stream = next(s for s in container.streams if s.type == kind)
        told = [
            (p.pts * p.time_base, p.duration * p.time_base, hashlib.sha256(bytes(p)).hexdigest())
            for p in container.demux(stream)
            if p.size
        ]
        return told, stream.codec_context.extradata


def planes_of(rgb, matrix, full, bits=8):
    """Luma and chroma in full resolution by the formula of the standards, unrounded; `rgb` from 0 to 1."""
    share_red, share_blue = SHARES[matrix]
    red, green, blue = np.moveaxis(np.asarray(rgb, dtype=float), -1, 0)
    luma = share_red * red + (1 - share_red - share_blue) * green + share_blue * blue
    chroma = [(blue - luma) / (2 * (1 - share_blue)), (red - luma) / (2 * (1 - share_red))]
    unit, middle = 1 << (bits - 8), 1 << (bits - 1)
    top = (1 << bits) - 1
    if full:
        return [luma * top, *(c * top + middle for c in chroma)]
    return [16 * unit + 219 * unit * luma, *(224 * unit * c + middle for c in chroma)]


def frame_of(planes, pixels, dtype=np.uint8):
    """An av.VideoFrame of rounded planes."""
    frame = av.VideoFrame(planes[0].shape[1], planes[0].shape[0], pixels)
    top = (1 << frame.format.components[0].bits) - 1
    for plane, values in zip(frame.planes, planes):
        rows = np.zeros((plane.height, plane.line_size // np.dtype(dtype).itemsize), dtype=dtype)
        rows[:, : values.shape[1]] = np.clip(np.rint(values), 0, top)
        plane.update(rows)
    return frame
