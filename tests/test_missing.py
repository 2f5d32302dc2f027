import numpy as np
import pytest

from tdc_cli import holes as missing
from tdc_cli.errors import ConfigError, MaskError
from tdc_cli.names import PATTERNS


def draw(shape, ratio, pattern, seed=0):
    return missing.simulate(shape, ratio, pattern, np.random.default_rng(seed))


def test_the_command_line_names_all_patterns():
    assert tuple(missing.PATTERNS) == PATTERNS


@pytest.mark.parametrize("pattern", missing.PATTERNS)
@pytest.mark.parametrize("shape", [(40, 31, 3), (40, 31), (7, 5, 3), (1, 9)])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.83])
def test_the_count_is_exact(pattern, shape, ratio):
    absent = ~draw(shape, ratio, pattern) if pattern != "rows" or shape[0] > 1 or ratio <= 0.5 else None
    if absent is None:
        with pytest.raises(MaskError, match="leaves nothing"):
            draw(shape, ratio, pattern)
        return
    assert absent.shape == shape and absent.dtype == bool
    counted = {"entries": absent.size, "rows": shape[0], "columns": shape[1]}.get(pattern, shape[0] * shape[1])
    if pattern == "entries":
        found = absent.sum()
    else:
        planes = absent.reshape(*shape[:2], -1)
        assert (planes == planes[..., :1]).all()  # all channels together
        plane = planes[..., 0]
        found = {"rows": plane.all(axis=1), "columns": plane.all(axis=0)}.get(pattern, plane).sum()
        whole = {"rows": found * shape[1], "columns": found * shape[0]}.get(pattern, found)
        assert plane.sum() == whole
    assert found == round(ratio * counted)


@pytest.mark.parametrize("pattern", missing.PATTERNS)
def test_the_same_seed_gives_the_same_holes_and_another_seed_others(pattern):
    one = draw((60, 50, 3), 0.4, pattern)
    assert np.array_equal(one, draw((60, 50, 3), 0.4, pattern))
    assert not np.array_equal(one, draw((60, 50, 3), 0.4, pattern, seed=1))


def test_shapes_are_shapes():
    """Neighbours of a missing pixel are missing much more often than by chance."""
    for pattern, least in (("blocks", 0.8), ("text", 0.5), ("scratches", 0.5)):
        absent = ~draw((128, 128), 0.1, pattern)
        pairs = (absent[1:] & absent[:-1]).sum() / absent[1:].sum()
        assert pairs > least, pattern


@pytest.mark.parametrize("ratio", [-0.1, 1, 1.5])
def test_impossible_ratios_are_refused(ratio):
    with pytest.raises(ConfigError, match="not in"):
        draw((4, 4), ratio, "pixels")


def test_an_unknown_pattern_names_the_known_ones():
    with pytest.raises(ConfigError, match="entries, pixels, rows"):
        draw((4, 4), 0.5, "stripes")


HOLE = np.zeros((6, 8), dtype=bool)
HOLE[1:3, 2:5] = True


def read(levels, alpha=None, **options):
    return missing.from_image(levels, alpha, (6, 8), name="m.png", picture="a.png", **options)


@pytest.mark.parametrize(
    "levels",
    [
        HOLE,
        HOLE.astype(np.uint8),
        np.where(HOLE, 255, 0).astype(np.uint8),
        np.where(HOLE, 255, 0).astype(np.uint16),
        np.where(HOLE, 65535, 0).astype(np.uint16),
        np.where(HOLE, 1, 0).astype(np.uint16),
        np.where(HOLE, 1.0, 0.0),
    ],
)
def test_every_range_of_levels_is_recognised(levels):
    mask = read(levels)
    assert np.array_equal(~mask.observed, HOLE)
    assert mask.grey_levels == 0 and not mask.warnings and not mask.notes


@pytest.mark.parametrize("options, told", [({}, True), ({"threshold": 100}, False), ({"dilate": 1}, False)])
@pytest.mark.parametrize("invert", [False, True])
def test_soft_edges_are_told(options, told, invert):
    levels = np.where(HOLE, 255, 0).astype(np.uint8)
    levels[0, 2:4] = 100
    levels[5] = 15  # as compression leaves it
    if invert:
        levels, options = 255 - levels, {**options, "threshold": 155.5} if "threshold" in options else options
    notes = read(levels, invert=invert, **options).notes
    wanted = (
        "mask m.png has soft edges: 2 grey pixels count as known; if a rim of the damage stays, give `mask_dilate=2`"
    )
    assert notes == ((wanted,) if told else ())


def test_threshold_dilation_and_grey_rim():
    levels = np.where(HOLE, 255, 0).astype(np.uint8)
    levels[0, 2:5] = 100
    assert read(levels).grey_levels == 3
    assert (~read(levels).observed).sum() == HOLE.sum()
    assert (~read(levels, threshold=100).observed).sum() == HOLE.sum() + 3
    grown = ~read(levels, dilate=1).observed
    assert np.array_equal(np.argwhere(grown).min(axis=0), (0, 1)) and np.array_equal(
        np.argwhere(grown).max(axis=0), (3, 5)
    )
    assert grown.sum() == 4 * 5


def test_a_hole_in_alpha_only():
    white = np.full((6, 8), 255, dtype=np.uint8)
    mask = read(white, np.where(HOLE, 0, 255).astype(np.uint8))
    assert np.array_equal(~mask.observed, HOLE)
    assert "alpha" in mask.notes[0]
    painted = read(white, np.where(HOLE, 255, 0).astype(np.uint8), invert=True)
    assert np.array_equal(~painted.observed, HOLE)


def test_white_paint_on_a_transparent_layer():
    levels = np.where(HOLE, 255, 0).astype(np.uint8)
    assert np.array_equal(~read(levels, levels).observed, HOLE)


def test_inverted_masks_are_suspected():
    inverted = np.where(HOLE, 0, 255).astype(np.uint8)
    assert "`invert_mask`" in read(inverted).warnings[0] and "87.5%" in read(inverted).warnings[0]
    assert np.array_equal(~read(inverted, invert=True).observed, HOLE)


def test_size_empty_full_and_faint_masks():
    with pytest.raises(
        MaskError, match=r"^mask m.png is 5x6 pixels but picture a.png is 8x6; they must have the same size$"
    ):
        read(np.zeros((6, 5)))
    assert "nothing as missing" in read(np.zeros((6, 8))).notes[0]
    with pytest.raises(MaskError, match="every pixel"):
        read(np.full((6, 8), 255))
    with pytest.raises(MaskError, match="every pixel"):
        read(np.zeros((6, 8)), invert=True)
    with pytest.raises(MaskError, match="below the threshold 128"):
        read(np.where(HOLE, 100, 0))
    with pytest.raises(MaskError, match="levels up to 1e\\+06"):
        read(np.where(HOLE, 1e6, 0))
    with pytest.raises(MaskError, match="negative"):
        read(np.where(HOLE, -1.0, 0))


@pytest.mark.parametrize(
    ("pattern", "fibers"), [("fibers:0,1,2", 60), ("fibers:3", 6), ("fibers:2,0", 15), ("fibers:0,1,2,3", 360)]
)
def test_fibers_of_a_tensor_are_hidden_whole_and_counted_exactly(pattern, fibers):
    observed = missing.simulate_tensor((3, 4, 5, 6), 0.3, pattern, np.random.default_rng(0))
    axes = missing.tensor_axes(pattern)
    rest = tuple(k for k in range(4) if k not in axes)
    assert np.array_equal(observed.any(axis=rest), observed.all(axis=rest))  # a fiber is there or it is not
    assert np.count_nonzero(~observed.any(axis=rest)) == round(0.3 * fibers)


def test_entries_of_a_tensor_are_those_of_a_picture():
    one, other = (
        f((6, 5, 4), 0.4, "entries", np.random.default_rng(3)) for f in (missing.simulate, missing.simulate_tensor)
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("pixels", "no missing pattern 'pixels' of tensors; there are: entries, and fibers:AXES such as fibers:0,1"),
        ("fibers:", "no missing pattern 'fibers:' of tensors; there are: entries, and fibers:AXES such as fibers:0,1"),
        ("fibers:1,1", "missing pattern 'fibers:1,1' names an axis twice"),
        ("fibers:0,3", "missing pattern 'fibers:0,3' names axis 3; a tensor of order 3 has axes 0 to 2"),
    ],
)
def test_patterns_that_make_no_fibers_are_refused(pattern, line):
    with pytest.raises(ConfigError) as told:
        missing.simulate_tensor((3, 4, 5), 0.5, pattern, np.random.default_rng(0))
    assert str(told.value) == line


def test_hiding_every_fiber_is_refused():
    with pytest.raises(MaskError, match="leaves none of the 3 fibers of 'fibers:0'"):
        missing.simulate_tensor((3, 4, 5), 0.9, "fibers:0", np.random.default_rng(0))


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4), (3, 4, 1), (1, 1, 5), (3,)])
def test_a_mask_of_a_tensor_holds_along_the_modes_it_leaves_out(shape):
    marked = np.zeros(shape, dtype=bool)
    marked[(0,) * len(shape)] = True
    read = missing.from_array(marked, (3, 4, 5), name="m", tensor="t")
    whole = marked.reshape(shape + (1,) * (3 - len(shape)))
    assert read.observed.shape == (3, 4, 5)
    assert all(
        read.observed[i] != whole[tuple(min(a, n - 1) for a, n in zip(i, whole.shape))] for i in np.ndindex(3, 4, 5)
    )
    turned = missing.from_array(~marked, (3, 4, 5), name="m", tensor="t", invert=True)
    assert np.array_equal(turned.observed, read.observed)


def test_masks_that_do_not_fit_a_tensor_are_refused():
    with pytest.raises(MaskError) as told:
        missing.from_array(np.zeros((4, 5), dtype=bool), (3, 4, 5), name="m", tensor="t")
    assert str(told.value) == "mask m has shape 4x5 but t has 3x4x5; a mask has the same size in every mode, or 1"
    with pytest.raises(MaskError, match="marks all of t as missing"):
        missing.from_array(np.ones((3, 4), dtype=bool), (3, 4), name="m", tensor="t")


def test_slices_without_anything_are_counted():
    observed = np.ones((3, 4, 5), dtype=bool)
    assert missing.empty_slices(observed, ~observed) == {}
    observed[1] = observed[:, :2] = False
    assert missing.empty_slices(observed, ~observed) == {0: 1, 1: 2}
