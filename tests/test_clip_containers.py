"""Containers in and out: frames, times, colours, sound, and damage."""

import os
import struct
import weakref
from fractions import Fraction

import av
import clip_files
import numpy as np
import pytest
from clip_files import NTSC, bars, packets, pictures, write_container

from tdc_cli.errors import ConfigError, InputError, OutputError
from tdc_cli.media import Media, parts
from tdc_cli.media.pixels import narrow, widen
from tdc_cli.media.video import CODECS, Clip, check_clip, read_clip, write_clip

STAMPS = [0, 900, 2000, 5000, 9000, 9900, 12000, 13333]  # of 1/90000 s
CHAPTER = {"id": 1, "start": 0, "end": 150, "time_base": Fraction(1, 1000), "metadata": {"title": "One"}}


def copy(source, target, **how):
    """Read a clip and write its frames unchanged; the clip and what was written."""
    clip = read_clip(source)
    write_clip(clip.frames(), target, clip, **how)
    return clip, read_clip(target)


def clip_of(frames, mode="RGB", bits=None, rate=NTSC):
    """A Clip that was read nowhere, for writing."""
    times = tuple(k / rate for k in range(len(frames)))
    return Clip(
        "-",
        "",
        "folder",
        len(frames),
        frames[0].shape,
        frames[0].dtype,
        mode,
        rate,
        times,
        (),
        len(frames) / rate,
        bits,
    )


def written(frames, path, mode="RGB", bits=None, **how):
    """Write arrays and read them back."""
    clip = clip_of(frames, mode, bits)
    check_clip(path, clip, **how)
    write_clip([Media(f, mode, "-", "") for f in frames], path, clip, **how)
    return read_clip(path)


def values(clip, *span):
    return [media.values for media in clip.frames(*span)]


@pytest.mark.parametrize("rate", [NTSC, Fraction(25), Fraction(24000, 1001)], ids=str)
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.mov"])
def test_rate_times_and_count_are_exact(tmp_path, rate, name):
    clip, again = copy(write_container(tmp_path / name, pictures(), rate), tmp_path / f"b{name}")
    assert clip.rate == again.rate == rate
    assert clip.count == again.count == len(list(again.frames())) == 8
    assert clip.times == again.times and clip.end == again.end
    if not name.endswith("mkv"):
        assert clip.times == tuple(k / rate for k in range(8)) and clip.end == 8 / rate


@pytest.mark.parametrize("name", ["b.mp4", "b.mov"])
def test_variable_rate_is_kept(tmp_path, name):
    clip, again = copy(
        write_container(tmp_path / "a.mp4", pictures(), stamps=STAMPS, base=Fraction(1, 90000)), tmp_path / name
    )
    assert clip.rate is None and again.rate is None
    assert again.times == clip.times == tuple(Fraction(s, 90000) for s in STAMPS)


def test_variable_rate_of_mkv_is_kept_to_its_millisecond(tmp_path):
    stamps = [0, 7, 40, 80, 81, 200, 330, 400]
    source = write_container(tmp_path / "a.mkv", pictures(), stamps=stamps, base=Fraction(1, 1000))
    clip, again = copy(source, tmp_path / "b.mkv")
    assert again.times == clip.times == tuple(Fraction(s, 1000) for s in stamps) and again.rate is None
    assert copy(source, tmp_path / "b.mp4")[1].times == clip.times


def test_two_sounds_keep_order_and_use(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as output:
        video = output.add_stream("libx264", rate=25)
        video.height, video.width = 48, 64
        voices = [output.add_stream("aac", rate=48000) for _ in range(2)]
        voices[0].metadata["language"], voices[1].metadata["language"] = "fra", "ita"
        voices[1].disposition = av.stream.Disposition.default | av.stream.Disposition.hearing_impaired
        for k, picture in enumerate(pictures(5)):
            frame = av.VideoFrame.from_ndarray(picture)
            frame.pts = k
            output.mux(video.encode(frame))
        for number, voice in enumerate(voices):
            for k in range(6):
                frame = av.AudioFrame.from_ndarray(
                    np.full((2, 1024), number * 0.1, np.float32), format="fltp", layout="stereo"
                )
                frame.sample_rate, frame.pts = 48000, 1024 * k
                output.mux(voice.encode(frame))
        for stream in (video, *voices):
            output.mux(stream.encode())
    copy(tmp_path / "a.mkv", tmp_path / "b.mkv")
    told = []
    for name in ("a.mkv", "b.mkv"):
        with av.open(str(tmp_path / name)) as container:
            told.append([(s.type, s.metadata.get("language"), int(s.disposition)) for s in container.streams])
    assert told[0] == told[1] and told[1][2][1] == "ita" and told[1][2][2]


def test_variable_rate_where_clocks_are_coarser(tmp_path):
    clip = read_clip(write_container(tmp_path / "a.mp4", pictures(), stamps=STAMPS, base=Fraction(1, 90000)))
    assert any("counts milliseconds" in note for note in check_clip(tmp_path / "b.mkv", clip))
    write_clip(clip.frames(), tmp_path / "b.mkv", clip)
    assert all(abs(a - b) <= Fraction(1, 2000) for a, b in zip(read_clip(tmp_path / "b.mkv").times, clip.times))
    with pytest.raises(OutputError, match=r"AVI can hold only one frame rate throughout; write to .mkv or .mp4"):
        check_clip(tmp_path / "b.avi", clip)


@pytest.mark.parametrize("target", ["b.mp4", "b.mkv"])
def test_a_late_start_stays_beside_the_sound(tmp_path, target):
    source = write_container(tmp_path / "a.mp4", pictures(), stamps=range(7, 15), sound="aac")
    clip, again = copy(source, tmp_path / target)
    assert clip.times[0] > Fraction(1, 5)
    assert abs(again.times[0] - clip.times[0]) < Fraction(1, 1000)


@pytest.mark.parametrize(
    ("source", "target", "sound"),
    [
        ("a.mp4", "b.mp4", "aac"),
        ("a.mp4", "b.mkv", "aac"),
        ("a.mkv", "b.mkv", "aac"),
        ("a.mkv", "b.mp4", "aac"),
        ("a.mov", "b.mov", "aac"),
        ("a.webm", "b.webm", "libopus"),
        ("a.mkv", "b.avi", "mp3"),
    ],
)
def test_sound_is_copied_packet_by_packet(tmp_path, source, target, sound):
    codec = {"codec": "libvpx-vp9"} if source.endswith("webm") else {}
    copy(write_container(tmp_path / source, pictures(), sound=sound, **codec), tmp_path / target)
    before, needs = packets(tmp_path / source, "audio")
    after, needs_then = packets(tmp_path / target, "audio")
    assert len(before) >= 12 and [p[2] for p in before] == [p[2] for p in after]
    if not target.endswith("avi"):  # which counts packets instead of noting times
        assert needs == needs_then
        assert all(abs(a[0] - b[0]) < Fraction(1, 1000) for a, b in zip(before, after))
    if source[2:] == target[2:]:
        assert [p[:2] for p in before] == [p[:2] for p in after]
    if not target.endswith("avi"):
        with av.open(str(tmp_path / target)) as container:
            assert container.streams.audio[0].metadata["language"] == "fra"
            assert (
                target.endswith("mov") or container.streams.video[0].metadata["language"] == "deu"
            )  # MOV knows few languages
            assert container.metadata["title"] == "A title"


def test_subtitles_chapters_and_attachments_are_copied(tmp_path):
    source = write_container(
        tmp_path / "a.mkv", pictures(), sound="aac", subtitles=True, chapters=[CHAPTER], attachment=b"some text"
    )
    clip = read_clip(source)
    assert not any("cannot hold all" in note for note in check_clip(tmp_path / "b.mkv", clip))
    write_clip(clip.frames(), tmp_path / "b.mkv", clip)
    assert packets(source, "subtitle")[0] == packets(tmp_path / "b.mkv", "subtitle")[0]
    with av.open(str(tmp_path / "b.mkv")) as container:
        assert [s.data for s in container.streams if s.type == "attachment"] == [b"some text"]
        assert [(c["start"] * c["time_base"], c["metadata"]) for c in container.chapters()] == [(0, {"title": "One"})]
    assert (
        "MP4 cannot hold all that the input has: without subtitles (subrip), an attachment (text/plain); write to .mkv "
        "to keep it"
        in check_clip(tmp_path / "b.mp4", clip)
    )


def test_chapters_of_mp4_are_no_lost_data(tmp_path):
    clip = read_clip(write_container(tmp_path / "a.mp4", pictures(), chapters=[CHAPTER]))
    assert not any("cannot hold all" in note for note in check_clip(tmp_path / "b.mp4", clip))


def test_sound_that_a_container_cannot_hold_is_refused(tmp_path):
    clip = read_clip(write_container(tmp_path / "a.mp4", pictures(), sound="aac"))
    with pytest.raises(
        OutputError, match=r"WebM cannot hold the input's sound \(aac\); write to .mp4 or .mkv or .mov or .avi$"
    ):
        check_clip(tmp_path / "b.webm", clip)
    assert any("without sound (aac)" in note for note in check_clip(tmp_path / "folder", clip))


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_any_span_of_frames_is_the_same_wherever_reading_starts(tmp_path, codec):
    options = (
        {"g": "5", "bf": "2"} if codec == "libx264" else {"x265-params": "keyint=5:bframes=2:log-level=none:asm=0"}
    )
    clip = read_clip(write_container(tmp_path / "a.mp4", pictures(17), codec=codec, options=options))
    everything = values(clip)
    assert len(everything) == 17 and len({a.tobytes() for a in everything}) == 17
    for start in range(17):
        assert np.array_equal(values(clip, start, start + 3), everything[start : start + 3])
    assert values(clip, 17) == values(clip, 3, 3) == []


def test_few_frames_are_held(tmp_path):
    clip = read_clip(write_container(tmp_path / "a.mp4", pictures(30)))
    alive, most = [], 0

    class Watched(np.ndarray):
        pass

    def taken():
        nonlocal most
        for media in clip.frames():
            array = media.values.view(Watched)
            alive.append(weakref.ref(array))
            most = max(most, sum(one() is not None for one in alive))
            yield Media(array, media.mode, "-", "")

    write_clip(taken(), tmp_path / "b.mkv", clip, codec="ffv1")
    assert 1 <= most <= 4


@pytest.mark.parametrize(("turn", "corner"), [(0, (0, 0)), (90, (-1, 0)), (180, (-1, -1)), (270, (0, -1))])
def test_rotated_clips_come_out_upright(tmp_path, turn, corner):
    frame = np.full((48, 64, 3), 60, dtype=np.uint8)
    frame[:16, :16] = 230
    source = write_container(tmp_path / "a.mp4", [frame] * 3, rotation=turn, aspect=Fraction(4, 3))
    clip, again = copy(source, tmp_path / "b.mp4", codec="h264-lossless")
    first = values(clip)[0]
    assert first.shape == ((64, 48) if turn % 180 else (48, 64)) == again.shape
    assert first[corner] > 200 and np.sum(first > 150) < 400
    assert np.array_equal(values(again)[0], first)
    assert clip.details["aspect"] == again.details["aspect"] == (Fraction(3, 4) if turn % 180 else Fraction(4, 3))
    with av.open(str(tmp_path / "b.mp4")) as container:
        assert next(container.decode(video=0)).rotation == 0


@pytest.mark.parametrize(
    ("name", "codec", "mode", "bits"),
    [("a.mkv", "ffv1", mode, bits) for mode in ("L", "RGB", "RGBA") for bits in (8, 10, 12, 16)]
    + [("a.mkv", "ffv1", "LA", 8), ("a.avi", "ffv1", "RGB", 8)]
    + [(name, "h264-lossless", mode, 8) for name in ("a.mp4", "a.mov", "a.mkv") for mode in ("L", "RGB")],
)
@pytest.mark.parametrize("size", [(16, 64), (25, 33)])
def test_lossless_choices_bring_every_value_back(tmp_path, name, codec, mode, bits, size):
    rng = np.random.default_rng(0)
    channels = {"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,)}[mode]
    frames = [
        widen(rng.integers(0, 1 << bits, (*size, *channels)).astype("u1" if bits == 8 else "u2"), bits)
        for _ in range(3)
    ]
    if mode == "RGB" and bits == 8 and size == (16, 64):
        frames[0] = bars()
    again = written(frames, tmp_path / name, mode, None if bits in (8, 16) else bits, codec=codec)
    assert (again.mode, again.count, again.rate, again.full_range) == (mode, 3, NTSC, 255 if bits == 8 else 65535)
    assert again.bits == (None if bits in (8, 16) else bits)
    assert all(np.array_equal(a, b) for a, b in zip(values(again), frames, strict=True))


@pytest.mark.parametrize("bits", [9, 10, 12, 14])
def test_levels_fill_the_range_and_come_back(bits):
    levels = np.arange(1 << bits, dtype=np.uint16)
    wide = widen(levels, bits)
    assert wide[0] == 0 and wide[-1] == 65535 and np.all(np.diff(wide.astype(int)) > 0)
    assert np.array_equal(narrow(wide, bits), levels)


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", clip_files.SHARES)
def test_colours_are_read_by_the_tags_of_the_clip(tmp_path, matrix, full, bits):
    """FFV1 keeps luma and chroma, which the test computes by the standard's formula: the bars must be what they were.
    """
    rgb = bars() / 255
    pixels, dtype = ("yuv444p", "u1") if bits == 8 else ("yuv444p10le", "u2")
    frame = clip_files.frame_of(clip_files.planes_of(rgb, matrix, full, bits), pixels, dtype)
    write_container(tmp_path / "a.mkv", [frame], codec="ffv1", pixels=pixels, colours=(matrix, 2 if full else 1))
    found = values(read_clip(tmp_path / "a.mkv"))[0].astype(int)
    top = 255 if bits == 8 else 65535
    assert np.abs(found - rgb * top).max() <= top / ((1 << bits) - 1)


@pytest.mark.parametrize(("height", "matrix"), [(480, 6), (720, 1)])
def test_untagged_clips_are_read_as_players_do(tmp_path, height, matrix):
    frame = clip_files.frame_of(clip_files.planes_of(bars(height) / 255, matrix, False), "yuv444p")
    write_container(tmp_path / "a.mkv", [frame], codec="ffv1", pixels="yuv444p")
    assert np.abs(values(read_clip(tmp_path / "a.mkv"))[0].astype(int) - bars(height)).max() <= 1


@pytest.mark.parametrize("matrix", clip_files.SHARES)
@pytest.mark.parametrize("full", [False, True])
def test_a_clip_is_written_with_the_colours_that_it_had(tmp_path, matrix, full):
    """Tags are the same again, and FFmpeg's own conversion, which goes by them, sees the same bars."""
    wide = bars(32, 128)
    frame = clip_files.frame_of(clip_files.planes_of(wide / 255, matrix, full), "yuv444p")
    tags = (matrix, 2 if full else 1)
    write_container(tmp_path / "a.mkv", [frame] * 2, codec="ffv1", pixels="yuv444p", colours=tags)
    clip, again = copy(tmp_path / "a.mkv", tmp_path / "b.mp4", quality=90)
    assert again.details["coding"] == clip.details["coding"]
    with av.open(str(tmp_path / "b.mp4")) as container:
        shown = next(container.decode(video=0))
    assert (shown.colorspace, shown.color_range) == tags and shown.format.name in ("yuv420p", "yuvj420p")
    middle = np.s_[8:24, np.arange(128) % 16 // 4 == 1]  # not at the edges of the bars, where chroma is shared
    assert np.abs(shown.to_ndarray(format="rgb24")[middle].astype(int) - wide[middle]).max() <= 6
    assert np.abs(values(again)[0][middle].astype(int) - wide[middle]).max() <= 6


def test_halved_chroma_is_not_shifted(tmp_path):
    """A grey step with a smooth tint: what is read is where FFmpeg's own bilinear scaler puts it."""
    tint = np.zeros((48, 64, 3), dtype=np.uint8)
    tint[..., 0], tint[..., 2] = np.linspace(40, 200, 64)[None], np.linspace(60, 220, 48)[:, None]
    tint[..., 1] = 90
    write_container(tmp_path / "a.mkv", [tint], codec="ffv1")
    assert np.abs(values(read_clip(tmp_path / "a.mkv"))[0].astype(int) - tint)[4:-4, 4:-4].max() <= 3
    again = copy(tmp_path / "a.mkv", tmp_path / "b.mkv", quality=100)[1]
    assert np.abs(values(again)[0].astype(int) - tint)[4:-4, 4:-4].max() <= 4


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.mov", "a.webm"])
@pytest.mark.parametrize("size", [(48, 64), (25, 33)])
def test_default_codecs_keep_size_mode_and_look(tmp_path, name, size):
    frames = pictures(4, *size)
    again = written(frames, tmp_path / name)
    assert again.shape == (*size, 3) and again.mode == "RGB" and again.count == 4
    assert all(np.abs(a.astype(int) - b).mean() < 4 for a, b in zip(values(again), frames))
    with av.open(str(tmp_path / name)) as container:
        pixels = container.streams.video[0].pix_fmt
    assert pixels == ("yuv420p" if size == (48, 64) or name == "a.webm" else "yuv444p")
    notes = check_clip(tmp_path / "x.mp4", clip_of(frames))
    assert any("odd size" in note for note in notes) == (size == (25, 33))
    assert any(note.startswith("H.264 compresses with loss: known pixels change a little") for note in notes)


@pytest.mark.parametrize("name", ["a.mp4", "a.webm"])
def test_grey_stays_grey(tmp_path, name):
    frames = [f[..., 0] for f in pictures(4)]
    again = written(frames, tmp_path / name, "L")
    assert again.mode == "L" and again.shape == (48, 64)
    assert all(np.abs(a.astype(int) - b).mean() < 3 for a, b in zip(values(again), frames))


def test_ten_bits_stay_ten_bits(tmp_path):
    frames = [widen(f.astype(np.uint16) * 4 + 1, 10) for f in pictures(3)]
    again = written(frames, tmp_path / "a.mp4", bits=10)
    assert again.bits == 10 and again.dtype == np.uint16 and again.details["codec"] == "hevc"
    assert all(np.abs(a.astype(int) - b).mean() < 700 for a, b in zip(values(again), frames))
    clip, more = copy(tmp_path / "a.mp4", tmp_path / "b.mkv", codec="ffv1")
    assert more.bits == 10 and np.array_equal(values(clip), values(more))
    with pytest.raises(
        OutputError, match=r"H.264 cannot hold mode RGB with 10 bits; write to .mp4 with `codec=h265` or "
    ):
        check_clip(tmp_path / "c.mp4", clip, codec="h264")


def test_alpha_is_kept_or_refused(tmp_path):
    frames = [np.concatenate([f, np.roll(f[..., :1], 9, axis=1)], axis=-1) for f in pictures(3)]
    again = written(frames, tmp_path / "a.webm", "RGBA")
    assert again.mode == "RGBA" and np.abs(values(again)[1][..., 3].astype(int) - frames[1][..., 3]).mean() < 4
    with pytest.raises(OutputError, match=r"cannot hold mode RGBA with 8 bits; write to .mkv with `codec=vp9` or "):
        check_clip(tmp_path / "b.mp4", again)


def test_what_makes_no_sense_is_refused_before_any_work(tmp_path):
    clip = clip_of(pictures(2))
    with pytest.raises(OutputError, match=r"WebM takes no codec ffv1; use one of vp9$"):
        check_clip(tmp_path / "a.webm", clip, codec="ffv1")
    with pytest.raises(OutputError, match=r"GIF takes no codec h264; leave `codec` out$"):
        check_clip(tmp_path / "a.gif", clip, codec="h264")
    with pytest.raises(ConfigError, match=r"FFV1 has no quality to choose"):
        check_clip(tmp_path / "a.mkv", clip, codec="ffv1", quality=50)
    with pytest.raises(OutputError, match=r"extension '.xyz' is not known for clips; use one of .apng, .avi, "):
        check_clip(tmp_path / "a.xyz", clip)
    assert not list(tmp_path.iterdir())
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "plain").touch()
    with pytest.raises(OutputError, match=r"pipe.mp4: is not a regular file$"):
        check_clip(tmp_path / "pipe.mp4", clip)
    with pytest.raises(OutputError, match=r"plain: is no folder; give the name of one, or a file with an extension$"):
        check_clip(tmp_path / "plain", clip)


def test_frames_that_an_edit_list_leaves_out_are_no_frames(tmp_path):
    """A list that begins three frames later, of which the first two are needed to decode the others."""
    content = bytearray(write_container(tmp_path / "a.mp4", pictures(12), 25).read_bytes())
    frames = values(read_clip(tmp_path / "a.mp4"))
    place = content.index(b"elst") + 12
    length, begin = struct.unpack(">Ii", content[place : place + 8])
    content[place : place + 8] = struct.pack(">Ii", length * 9 // 12, begin + 3 * 512)
    (tmp_path / "a.mp4").write_bytes(content)
    clip, again = copy(tmp_path / "a.mp4", tmp_path / "b.mp4", codec="h264-lossless")
    assert clip.count == again.count == 9 and clip.times == again.times == tuple(Fraction(k, 25) for k in range(9))
    assert np.array_equal(values(again), frames[3:])


def test_every_codec_has_an_encoder():
    for codec in CODECS.values():
        for mode, bits in codec.pixels:
            formats = [f.name for f in av.codec.Codec(codec.encoder(mode), "w").video_formats]
            assert codec.pixels[mode, bits] in formats


def test_quality_is_a_scale(tmp_path):
    sizes = []
    for quality in (20, 67, 95):
        written(pictures(4), tmp_path / f"{quality}.mp4", quality=quality)
        sizes.append((tmp_path / f"{quality}.mp4").stat().st_size)
    assert sizes[0] < sizes[1] < sizes[2]


# What is damaged or is none of it.


@pytest.mark.parametrize("name", ["a.mkv", "a.webm", "a.avi", "a.mp4"])
def test_cut_files_are_told(tmp_path, name):
    codec = {"a.webm": "libvpx-vp9", "a.avi": "ffv1"}.get(name, "libx264")
    write_container(tmp_path / name, pictures(20), codec=codec, pixels="bgr0" if codec == "ffv1" else "yuv420p")
    content = (tmp_path / name).read_bytes()
    for share in (0.1, 0.5, 0.9):
        (tmp_path / name).write_bytes(content[: int(share * len(content))])
        with pytest.raises(InputError) as told:
            read_clip(tmp_path / name)
        assert "\n" not in str(told.value) and ("damaged" in str(told.value))
        if name == "a.mkv" and share == 0.9:
            assert str(told.value).startswith(f"{tmp_path / name}: damaged after frame 1")


def test_cut_files_whose_index_comes_first_are_told(tmp_path):
    write_container(tmp_path / "a.mp4", pictures(20), faststart=True)
    content = (tmp_path / "a.mp4").read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")
    for share, line in {0.5: "damaged a", 0.9: "damaged after frame 1", 0.99: "damaged after frame 1"}.items():
        (tmp_path / "a.mp4").write_bytes(content[: int(share * len(content))])
        with pytest.raises(InputError) as told:
            read_clip(tmp_path / "a.mp4")
        assert str(told.value).startswith(f"{tmp_path / 'a.mp4'}: {line}")


def test_damaged_files_never_end_in_anything_but_one_line(tmp_path):
    rng = np.random.default_rng(0)
    contents = {}
    for name, codec in (("a.mp4", "libx264"), ("a.mkv", "libx264"), ("a.webm", "libvpx-vp9"), ("a.mov", "libx264")):
        contents[name] = write_container(
            tmp_path / name, pictures(5, 16, 16), codec=codec, sound="aac" if codec == "libx264" else None
        ).read_bytes()
    for trial in range(60):
        name = list(contents)[trial % 4]
        damaged = bytearray(contents[name])
        start = int(rng.integers(0, len(damaged) - 8))
        damaged[start : start + 8] = rng.bytes(8)
        (tmp_path / name).write_bytes(damaged)
        try:
            clip = read_clip(tmp_path / name)
            assert len(values(clip)) == clip.count
            write_clip(clip.frames(), tmp_path / "out.mkv", clip, replace=True)
        except (InputError, OutputError) as error:
            assert "\n" not in str(error) and name in str(error)


def test_files_that_are_no_clips(tmp_path):
    from PIL import Image

    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", tmp_path / "picture.mp4")
    (tmp_path / "empty.mkv").touch()
    with av.open(str(tmp_path / "sound.mp4"), "w") as output:
        voice = output.add_stream("aac", rate=48000)
        for k in range(4):
            frame = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
            frame.sample_rate, frame.pts = 48000, 1024 * k
            output.mux(voice.encode(frame))
        output.mux(voice.encode())
    why = "(Invalid data found when processing input); damaged, cut short or of another kind: get it again"
    for name, line in {
        "picture.mp4": f"not a readable MP4 file {why}",
        "empty.mkv": f"not a readable MKV file {why}",
        "sound.mp4": "has no video, only sound",
        "nothing.mp4": "no such file",
    }.items():
        with pytest.raises(InputError) as told:
            read_clip(tmp_path / name)
        assert str(told.value) == f"{tmp_path / name}: {line}"


def test_frames_without_times_are_refused(tmp_path):
    """AVI has no place for the order in which H.264's frames are shown."""
    write_container(tmp_path / "a.avi", pictures(12), 25, options={"bf": "2"})
    with pytest.raises(InputError, match=r"a.avi: frame \d+ has no time of its own; give it one first: ffmpeg -i "):
        read_clip(tmp_path / "a.avi")


# Whole or not at all.


def test_a_clip_that_fails_leaves_nothing(tmp_path):
    clip = clip_of(pictures(6))
    media = [Media(f, "RGB", "-", "") for f in pictures(6)]

    def breaks():
        yield from media[:4]
        raise KeyboardInterrupt

    for name in ("a.mp4", "a.mkv", "folder", "a.tif", "a.npy", "a.gif", "a.png", "a.webp"):
        with pytest.raises(KeyboardInterrupt):
            write_clip(breaks(), tmp_path / name, clip)
        with pytest.raises(ValueError, match=r"5 frames for a clip of 6"):
            write_clip(media[:5], tmp_path / name, clip)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.tif", "a.webp"])
def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch, capfd, name):
    class Full:
        """A file that has room for a thousand bytes."""

        def __init__(self, file):
            self._file, self._room = file, 1000

        def write(self, content):
            self._room -= len(content)
            if self._room < 0:
                raise OSError(28, "No space left on device")
            return self._file.write(content)

        def seek(self, *where):
            if self._room < 0:  # what waits to be written cannot be
                raise OSError(28, "No space left on device")
            return self._file.seek(*where)

        def __getattr__(self, name):
            return getattr(self._file, name)

    fill = parts.Part.fill
    monkeypatch.setattr(parts.Part, "fill", lambda part, how: fill(part, lambda file: how(Full(file))))
    with pytest.raises(OutputError, match=rf"{name}: cannot be written \(No space left on device\)$"):
        written(pictures(20), tmp_path / name)
    assert not list(tmp_path.iterdir()) and capfd.readouterr().err == ""


def test_clips_appear_together_with_the_rest(tmp_path):
    from tdc_cli.media.files import together, write_bytes

    clip = clip_of(pictures(3))
    media = [Media(f, "RGB", "-", "") for f in pictures(3)]
    with together():
        write_clip(media, tmp_path / "a.mp4", clip)
        write_clip(media, tmp_path / "folder", clip)
        write_bytes(tmp_path / "a.json", b"{}")
        assert not (tmp_path / "a.mp4").exists() and not (tmp_path / "folder").exists()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.json", "a.mp4", "folder"]
    with pytest.raises(OutputError, match=r"a.mp4: exists already; give `overwrite` to replace it"):
        write_clip(media, tmp_path / "a.mp4", clip)
    write_clip(media, tmp_path / "a.mp4", clip, replace=True)
