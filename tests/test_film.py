"""Files of broadcasting and tapes: containers that are read only, and interlaced video, whose fields are completed each
by itself.
"""

import itertools
import re
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from clip_files import pictures, write_container
from PIL import Image

from tdc_cli.errors import InputError
from tdc_cli.media.video import read_clip

HEIGHT, WIDTH = 48, 64
LINEAR = ("--method", "linear")


def save_mask(path="logo.png", height=HEIGHT):
    """A logo of 4 x 8 pixels; where it is."""
    mask = np.zeros((height, WIDTH), np.uint8)
    mask[6:10, 44:52] = 255
    Image.fromarray(mask).save(path)
    return mask > 0


# -- containers that are read only
# --------------------------------------------------------------------------------------------

STREAMS = {
    "s.ts": {"codec": "libx264", "options": {"bf": "2"}, "sound": "aac"},
    "s.m2ts": {"codec": "mpeg2video", "sound": "ac3"},
    "s.mpg": {"codec": "mpeg2video", "options": {"bf": "2"}, "sound": "mp2"},
    "s.vob": {"codec": "mpeg2video", "sound": "ac3"},
    "s.wmv": {"codec": "wmv2", "sound": "libmp3lame"},
    "s.flv": {"codec": "flv"},
    "s.mxf": {"codec": "mpeg2video"},
}


def frames_of(path):
    """Frames in red, green and blue, as FFmpeg's scaler has them, and their times."""
    with av.open(str(path)) as container:
        found = [(f.to_ndarray(format="rgb24"), f.pts * f.time_base) for f in container.decode(video=0)]
    return [f for f, _ in found], [t for _, t in found]


def sound_of(path):
    """Decoded sound, (channels, samples), or None."""
    with av.open(str(path)) as container:
        return (
            np.concatenate([f.to_ndarray() for f in container.decode(audio=0)], axis=-1)
            if container.streams.audio
            else None
        )


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_broadcasting_are_completed_into_a_container_without_loss(tdc, name):
    write_container(name, pictures(6), rate=25, **STREAMS[name])
    logo = save_mask()
    result = tdc("complete-video", name, "-o", "b.mkv", "--codec", "ffv1", "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 0, result.stderr
    given, times = frames_of(name)
    made, after = frames_of("b.mkv")
    assert len(made) == len(given) == 6
    assert np.allclose(np.diff([float(t) for t in times]), np.diff([float(t) for t in after]), atol=0.0011)
    for one, other in zip(given, made):
        assert np.abs(one.astype(int) - other)[~logo].mean() < 8  # FFmpeg's scaler has chroma by other filters
    for frame, read in zip(read_clip(name).frames(), read_clip("b.mkv").frames(), strict=True):
        assert np.array_equal(frame.values[~logo], read.values[~logo]) and not np.array_equal(frame.values, read.values)
    if "sound" in STREAMS[name]:
        assert np.array_equal(sound_of(name), sound_of("b.mkv"))


@pytest.mark.parametrize("name", ["b.ts", "b.mpg", "b.vob", "b.wmv", "b.flv", "b.mxf", "b.dv", "b.MTS"])
def test_what_is_read_only_is_told_with_what_keeps_it(tdc, name):
    write_container("a.mkv", pictures(2), rate=25)
    save_mask()
    result = tdc("complete-video", "a.mkv", "-o", name, "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 2
    assert re.fullmatch(
        rf"tdc: {name}: [A-Z-]+ is read and not written; write to .mkv with --codec ffv1, which keeps every frame "
        "without loss\n",
        result.stderr,
    )
    other = tdc("complete-video", "a.mkv", "-o", "b.xyz", "--mask", "logo.png")
    assert ".mkv" in other.stderr and ".ts" not in other.stderr


@pytest.mark.parametrize("name", ["s.ts", "s.mpg", "s.wmv"])
def test_a_stream_that_is_cut_short_or_none_is_told(tdc, name):
    write_container(name, pictures(6), rate=25, codec=STREAMS[name]["codec"])
    save_mask()
    Path(name).write_bytes(b"\0" * 3000)
    result = tdc("complete-video", name, "-o", "b.mkv", "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and not Path("b.mkv").exists()


def whole_and_damaged(name, damage):
    """Frames of a stream by their times, and what is read of it after ``damage(content)``: a clip, or the text of the
    error.
    """
    write_container(name, pictures(12), rate=25, **STREAMS[name])
    clip = read_clip(name)
    given = dict(zip(clip.times, (frame.values for frame in clip.frames()), strict=True))
    damaged = Path(f"damaged_{name}")
    damaged.write_bytes(damage(Path(name).read_bytes()))
    try:
        return given, read_clip(damaged)
    except InputError as error:
        return given, str(error)


@pytest.mark.parametrize("name", ["s.ts", "s.m2ts", "s.mpg", "s.wmv", "s.mxf"])
@pytest.mark.parametrize("share", [0.99, 0.85, 0.6, 0.4])
def test_a_stream_that_ends_early_is_told_and_what_is_read_of_it_is_true(folder, name, share):
    def cut(content):
        end = int(share * len(content))
        return content[: end - (end % 188 == 0)]

    given, found = whole_and_damaged(name, cut)
    if isinstance(found, str):
        assert re.search(r"damaged (after frame \d+|at its first frame) \(", found)
        return
    assert re.search("ends in the middle of a packet; what|bytes long, though it tells", " ".join(found.notes))
    assert 0 < found.count <= 12
    left = iter(given.values())  # one before the end may be missing, and the index with the times of MXF
    assert all(any(np.array_equal(frame.values, other) for other in left) for frame in found.frames())


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "s.vob"])
def test_a_whole_stream_has_nothing_to_tell(folder, name):
    _, found = whole_and_damaged(name, lambda content: content)
    assert found.notes == ()


def packets_of(content, stream):
    """Numbers of the packets of a stream of MPEG-TS that hold something of it."""
    heads = np.frombuffer(content, np.uint8).reshape(-1, 188)[:, :4].astype(int)
    return np.flatnonzero(((heads[:, 1] & 31) << 8 | heads[:, 2] == stream) & (heads[:, 3] & 16 > 0))


def test_packets_that_are_missing_from_a_recording_are_told(tdc):
    sound, picture = 0x101, 0x100

    def without(stream):
        def damage(content):
            at = packets_of(content, stream)[-4]
            return content[: 188 * at] + content[188 * (at + 1) :]

        return damage

    given, found = whole_and_damaged("s.ts", without(sound))
    assert re.search(
        r"damaged_s.ts: packets are missing or damaged in one place, the first \d+% into the file, as after bad",
        found.notes[-1],
    )
    assert found.times == tuple(given)
    assert all(np.array_equal(frame.values, given[at]) for at, frame in zip(found.times, found.frames(), strict=True))
    save_mask()
    result = tdc("complete-video", "damaged_s.ts", "-o", "b.mkv", "--codec", "ffv1", "--mask", "logo.png", *LINEAR)
    assert result.exit_code == 0 and result.stderr.count("packets are missing or damaged in one place") == 1
    _, found = whole_and_damaged("s.ts", without(picture))
    assert "(cut short, or a part is missing); get the file again" in found
    _, found = whole_and_damaged("s.mxf", lambda content: content[:9000] + content[9099:])
    assert "its parts do not follow one another" in (found if isinstance(found, str) else found.notes[-1])


# -- what runs beside the frames
# ----------------------------------------------------------------------------------------------


def with_track(path, codec, make=av.container.OutputContainer.add_mux_stream):
    """Write six frames and, beside them, two packets of a track of that codec."""
    unit = Fraction(1, 90000)
    with av.open(path, "w") as output:
        video = output.add_stream("libx264", rate=25)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        track = make(output, codec)
        track.time_base = unit
        for k, picture in enumerate(pictures(6)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = k, Fraction(1, 25)
            output.mux(video.encode(frame))
            if k in (1, 3):
                packet = av.Packet(b"\x20\x00\x0f\x10word %d" % k)
                packet.stream, packet.time_base = track, unit
                packet.pts = packet.dts = 3600 * k
                packet.duration = 3600
                output.mux(packet)
        output.mux(video.encode())


def track_of(path):
    """Times and contents of the packets of a file that are neither pictures nor sound."""
    with av.open(path) as container:
        streams = [stream for stream in container.streams if stream.type in ("subtitle", "data")]
        return [(packet.pts * packet.time_base, bytes(packet)) for packet in container.demux(streams) if packet.size]


@pytest.mark.parametrize("codec", ["klv", "timed_id3", "scte_35"])
@pytest.mark.parametrize("output", ["b.mkv", "b.mp4", "b.mov", "b"])
def test_data_that_no_container_holds_is_named(tdc, codec, output):
    with_track("a.ts", codec, av.container.OutputContainer.add_data_stream)
    assert len(track_of("a.ts")) == 2
    save_mask()
    result = tdc("complete-video", "a.ts", "-o", output, "--mask", "logo.png", *LINEAR)
    name = codec if codec != "scte_35" else "bin_data"  # as FFmpeg reads it
    kind = {"b": "a folder of frames"}.get(output, output[2:].upper())
    told = f"tdc: warning: {kind} cannot hold all that the input has: without data ({name}); no container that is"
    assert result.exit_code == 0 and result.stderr.count(told) == 1, result.stderr


def test_subtitles_of_television_go_along_where_they_are_held(tdc):
    with_track("a.ts", "dvb_subtitle")
    save_mask()
    result = tdc("complete-video", "a.ts", "-o", "b.mkv", "--codec", "ffv1", "--mask", "logo.png", *LINEAR)
    assert result.exit_code == 0 and "without" not in result.stderr
    assert track_of("b.mkv") == track_of("a.ts") and len(track_of("b.mkv")) == 2
    told = tdc("complete-video", "a.ts", "-o", "b.mp4", "--mask", "logo.png", *LINEAR).stderr
    assert "without subtitles (dvb_subtitle); write to .mkv to keep it" in told


def test_teletext_which_nothing_decodes_is_told(tdc):
    with_track("a.ts", "dvb_teletext")
    save_mask()
    result = tdc("complete-video", "a.ts", "-o", "b.mkv", "--codec", "ffv1", "--mask", "logo.png", *LINEAR)
    assert result.exit_code == 0, result.stderr
    assert "without subtitles (of unknown kind); no container that is written keeps it" in result.stderr


# -- interlaced video
# ---------------------------------------------------------------------------------------------------------


def interlaced(path, first="top", codec="libx264", options=None, count=4, pixels="yuv420p", height=HEIGHT, empty=False):
    """Write frames whose two fields show two moments; returns the luma of every moment, at full height."""
    moments = [p[..., 1] for p in pictures(2 * count, height, WIDTH)]
    if empty:
        moments = [np.full((height, WIDTH), 90, np.uint8)] * (2 * count)
    frames = []
    for k in range(count):
        pair = moments[2 * k : 2 * k + 2]
        even, odd = pair if first == "top" else pair[::-1]
        luma = np.empty((height, WIDTH), np.uint8)
        luma[0::2], luma[1::2] = even[0::2], odd[1::2]
        frame = av.VideoFrame.from_ndarray(luma, format="gray").reformat(format=pixels)
        frames.append(with_flag(frame, first))
    write_container(path, frames, rate=25, codec=codec, pixels=pixels, options=options)
    return moments


def with_flag(frame, first):
    graph = av.filter.Graph()
    nodes = [graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25)),
             graph.add("setfield", {"top": "tff", "bottom": "bff"}[first]), graph.add("buffersink")]  # fmt: skip
    for one, other in itertools.pairwise(nodes):
        one.link_to(other)
    graph.configure()
    graph.push(frame)
    return graph.pull()


def order_of(path):
    """Which field comes first in every frame, by FFmpeg's own filter, and whether all are marked as interlaced."""
    found, marked = set(), set()
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            marked.add(frame.interlaced_frame)
            graph = av.filter.Graph()
            nodes = [
                graph.add_buffer(
                    width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25)
                ),
                graph.add("separatefields"),
                graph.add("buffersink"),
            ]
            for one, other in itertools.pairwise(nodes):
                one.link_to(other)
            graph.configure()
            graph.push(frame)
            field, whole = (f.reformat(format="gray").to_ndarray() for f in (graph.pull(), frame))
            found.add("top" if np.array_equal(field, whole[0::2]) else "bottom")
    return found, marked


INPUTS = {
    "i.ts": {"codec": "libx264", "options": {"x264-params": "interlaced=1", "qp": "4"}},
    "i.mpg": {"codec": "mpeg2video", "options": {"flags": "+ildct+ilme", "qscale": "1", "b": "20M"}},
    "i.mkv": {"codec": "ffv1", "options": {"level": "3"}},
}


@pytest.mark.parametrize("first", ["top", "bottom"])
@pytest.mark.parametrize(
    "name, output, codec",
    [
        ("i.ts", "b.mkv", "ffv1"),
        ("i.ts", "b.mp4", "h264"),
        ("i.mpg", "b.mkv", "h264-lossless"),
        ("i.mkv", "b.avi", "ffv1"),
        ("i.mkv", "b.mov", "h264"),
    ],
)
def test_fields_are_completed_each_by_itself_and_stay_in_order(tdc, name, output, codec, first):
    moments = interlaced(name, first, **INPUTS[name])
    logo = save_mask()
    result = tdc("complete-video", name, "-o", output, "--codec", codec, "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 0, result.stderr
    assert f"{name}: interlaced, {first} field first; is completed field by field" in result.stderr
    assert order_of(output) == ({first}, {True})
    given, made = read_clip(name), read_clip(output)
    assert made.fields == first and made.count == given.count
    for k, (frame, read) in enumerate(zip(given.frames(), made.frames(), strict=True)):
        if codec != "h264":
            assert np.array_equal(frame.values[~logo], read.values[~logo])
        for row in (0, 1):
            moment = moments[2 * k + (row if first == "top" else 1 - row)]
            # Each field shows its own moment, also where it was filled.
            assert np.abs(read.values[row::2] - moment[row::2].astype(float)).mean() < 4
            assert np.abs(read.values - moment.astype(float))[row::2][logo[row::2]].mean() < 12


def test_halved_chroma_of_fields_lies_where_the_standard_says(folder):
    """A ramp of chroma that each field samples at its own rows is a ramp again in all rows of the frame."""
    at = np.arange(HEIGHT // 2)
    rows = 2 * (2 * (at // 2) + np.where(at % 2, 0.75, 0.25)) + at % 2  # of the frame, of each row of chroma
    frame = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
    for plane, level in zip(frame.planes, (np.full(HEIGHT, 128.0), 60 + 3 * rows, np.full(HEIGHT // 2, 128.0))):
        plane.update(np.repeat(np.rint(level).astype(np.uint8)[:, None], plane.line_size, axis=1))
    write_container("a.mkv", [with_flag(frame, "top")] * 2, rate=25, codec="ffv1", pixels="yuv420p")
    clip = read_clip("a.mkv")
    assert clip.fields is not None
    blue = next(clip.frames()).values[4:-4, 0, 2].astype(float)
    ideal = (128 - 16) * 255 / 219 + 1.772 * 255 / 224 * (60 + 3 * np.arange(4, HEIGHT - 4) - 128)
    inside = (ideal > 5) & (ideal < 250)
    assert inside.sum() > 20 and np.abs(blue - ideal)[inside].max() < 2.1  # chroma is rounded, and so is blue


def test_a_method_that_looks_along_time_sees_fields(tdc):
    """What moves by three pixels a field is followed from field to field: frame by frame every second one would jump
    back.
    """
    moments = interlaced("i.mkv", codec="ffv1", count=3)
    logo = save_mask()
    how = ["complete-video", "i.mkv", "-o", "b.mkv", "--codec", "ffv1", "--mask", "logo.png", "--method", "patches"]
    result = tdc(*how, "--uncertainty", "sd.npy")
    assert result.exit_code == 0, result.stderr
    sd = np.load("sd.npy")
    for k, frame in enumerate(read_clip("b.mkv").frames()):
        assert np.array_equal(sd[k] > 0, logo)
        for row in (0, 1):
            error = np.abs(frame.values - moments[2 * k + row].astype(float))[row::2][logo[row::2]]
            assert error.mean() < 6


@pytest.mark.parametrize("height", [HEIGHT, 54])
def test_every_way_to_say_what_is_missing_goes_with_fields(tdc, height):
    interlaced("i.mkv", codec="ffv1", pixels="gray" if height % 4 else "yuv420p", height=height)
    save_mask(height=height)
    Image.fromarray(np.full((height, WIDTH), 255, np.uint8)).save("all.png")
    for args in (
        ["--mask-box", "44,5,8,5"],
        ["--missing-ratio", "0.2"],
        ["--mask", "logo.png", "--method", "exemplar", "--source", "all.png"],
        ["--mask", "logo.png", "--frames", "1:3"],
        ["--missing-ratio", "0.1", "--noise-std", "0.02", "--method", "field"],
    ):
        more = [] if "--method" in args else ["--method", "linear"]
        result = tdc("complete-video", "i.mkv", "-o", "b.mkv", "--codec", "h264-lossless", *args, *more, "--overwrite")
        assert result.exit_code == 0, result.stderr
        assert order_of("b.mkv") == ({"top"}, {True})


@pytest.mark.parametrize(
    "output, more, error",
    [
        (
            "b.webm",
            [],
            "b.webm: VP9 cannot hold mode L with 8 bits, interlaced; write to .mp4 with --codec h264 or .mkv with "
            "--codec h264 or .mov with --codec h264 or .avi with --codec ffv1 or .tif or .npy",
        ),
        (
            "b.mkv",
            ["--codec", "h265"],
            "b.mkv: H.265 cannot hold mode L with 8 bits, interlaced; write to .mp4 with --codec h264 or .mkv",
        ),
        (
            "b.webp",
            [],
            "b.webp: WebP cannot hold mode L with 8 bits, interlaced; write to .mp4 with --codec h264 or .mkv with "
            "--codec h264 or",
        ),
    ],
)
def test_what_cannot_hold_fields_is_refused_with_what_can(tdc, output, more, error):
    interlaced("i.mkv", codec="ffv1")
    save_mask()
    result = tdc("complete-video", "i.mkv", "-o", output, *more, "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 2 and error in result.stderr and not Path(output).exists()


def test_frames_without_a_container_hold_both_fields_and_say_so(tdc):
    interlaced("i.mkv", codec="ffv1")
    save_mask()
    for output, where in (("frames", "them"), ("b.npy", "NPY")):
        result = tdc("complete-video", "i.mkv", "-o", output, "--mask", "logo.png", "--method", "linear")
        assert result.exit_code == 0
        assert (
            f"nothing in {where} says that frames are interlaced, top field first; write to .mkv with --codec ffv1"
            in result.stderr
        )


def test_fields_that_change_places_or_are_none_are_told(tdc):
    interlaced("one.mkv", "top", "ffv1", count=2)
    interlaced("other.mkv", "bottom", "ffv1", count=2)
    with av.open("both.mkv", "w") as output:
        stream = output.add_stream("ffv1", rate=25, options={"level": "3"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for k, frame in enumerate([f for name in ("one.mkv", "other.mkv") for f in av.open(name).decode(video=0)]):
            frame.pts, frame.time_base = k, Fraction(1, 25)
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    save_mask()
    result = tdc("complete-video", "both.mkv", "-o", "b.mkv", "--mask", "logo.png", "--method", "linear")
    assert (result.exit_code, result.stderr) == (
        2,
        "tdc: both.mkv: at frame 2 the other field begins to come first; cut the clip there\n",
    )
    interlaced("still.mkv", "bottom", "ffv1", empty=True)  # both fields are alike: any order is right
    assert tdc("complete-video", "still.mkv", "-o", "b.mkv", "--mask", "logo.png", "--method", "linear").exit_code == 0
    interlaced("odd.mkv", codec="ffv1", height=50)
    save_mask(height=50)
    result = tdc("complete-video", "odd.mkv", "-o", "c.mkv", "--mask", "logo.png", "--method", "linear")
    assert result.exit_code == 2
    assert (
        "odd.mkv: interlaced with 50 rows, which are no two fields with colours; crop it with ffmpeg" in result.stderr
    )


# -- timecode
# -----------------------------------------------------------------------------------------------------------------


def with_timecode(path, codec="libx264"):
    """Five grey frames that begin at 10:00:00:05 by their timecode."""
    with av.open(path, "w") as output:
        stream = output.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.metadata["timecode"] = "10:00:00:05"
        for k in range(5):
            frame = av.VideoFrame.from_ndarray(np.full((HEIGHT, WIDTH, 3), 40 * k, np.uint8)).reformat(format="yuv420p")
            frame.pts = k
            output.mux(stream.encode(frame))
        output.mux(stream.encode())


def timecode_of(path):
    with av.open(path) as container:
        tags = [container.metadata, *(stream.metadata for stream in container.streams)]
        return {value for found in tags for key, value in found.items() if key.lower() == "timecode"}


@pytest.mark.parametrize("name", ["t.mov", "t.mp4", "t.mkv", "t.mxf"])
def test_the_timecode_goes_along(tdc, name):
    with_timecode(name, "mpeg2video" if name == "t.mxf" else "libx264")
    save_mask()
    assert timecode_of(name) == {"10:00:00:05"}
    for output in ("b.mov", "b.mp4", "b.mkv"):
        result = tdc("complete-video", name, "-o", output, "--mask", "logo.png", "--method", "linear", "--overwrite")
        assert result.exit_code == 0 and "without" not in result.stderr.replace("without loss", ""), result.stderr
        assert timecode_of(output) == {"10:00:00:05"}
    with av.open("b.mov") as container:
        assert [stream.type for stream in container.streams] == ["video", "data"]
    result = tdc("complete-video", name, "-o", "b.avi", "--mask", "logo.png", "--method", "linear")
    assert (
        "AVI cannot hold all that the input has: without timecode (10:00:00:05); write to .mp4 or .mkv or .mov to keep "
        "it"
        in result.stderr
    )
