import json

import jsonschema
import numpy as np
import pytest
from conftest import report_of

from tdc_cli.errors import InputError
from tdc_cli.run.report import SCHEMA, VERSION, Report

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLE = {
    "tool": {"name": "tdc", "version": "0.1.0"},
    "command": ["complete-image", "a.png"],
    "seed": 0,
    "input": {"path": "a.png", "sha256": "0" * 64, "shape": [256, 256, 3], "dtype": "uint8", "mode": "RGB"},
    "missing": {
        "source": "simulated",
        "pattern": "entries",
        "count": 117965,
        "pixels": 51000,
        "ratio": 0.6,
        "mask": None,
        "grey_levels": 0,
    },
    "method": {"name": "datc", "parameters": {"residual": "none"}},
    "timing": {"read": 0.02, "compile": 0.0, "complete": 8.1, "write": 0.03, "total": 8.2},
    "environment": {"python": "3.11.7", "threads": 2},
    "rank": {"value": 41, "posterior": {"40": 0.2, "41": 0.8}, "paper_count": 43},
    "mixture": {"weights": [], "means": [], "precisions": []},
    "noise_std": 0.0,
    "diagnostics": {"r_hat": {"rank": 1.0}, "ess": {"rank": 200.0}, "chains": 2, "burn_in": 200, "draws": 200},
    "uncertainty": {"mean_sd": 3.1, "coverage90": 0.9, "held_out": {"count": 3900, "coverage90": 0.9}},
    "metrics": {
        "all": {"rre": 0.05, "psnr": 30.1, "ssim": 0.91, "mae": 4.0},
        "missing": {"rre": 0.06, "psnr": 27.9, "ssim": None, "mae": 5.0},
        "incomplete": {"rre": 0.7, "psnr": 6.1, "ssim": 0.02, "mae": 60.0},
        "low_rank": None,
        "oracle_floor": None,
        "frames": None,
    },
    "outputs": {"image": "out.png"},
    "warnings": [],
}


def test_the_schema_is_one():
    VALIDATOR.check_schema(SCHEMA)


def test_json_and_back():
    report = Report(**EXAMPLE)
    text = report.to_json()
    VALIDATOR.validate(json.loads(text))
    assert next(iter(json.loads(text))) == "schema"
    assert Report.from_json(text) == report


def test_numbers_that_are_not_finite_become_null_with_a_reason():
    odd = EXAMPLE | {
        "noise_std": np.float64("nan"),
        "diagnostics": EXAMPLE["diagnostics"] | {"r_hat": {"rank": np.inf}},
    }
    values = json.loads(Report(**odd).to_json())
    VALIDATOR.validate(values)
    assert values["noise_std"] is None and values["diagnostics"]["r_hat"]["rank"] is None
    assert values["warnings"] == [
        "noise_std is null: its value was nan",
        "diagnostics.r_hat.rank is null: its value was inf",
    ]


def test_numpy_values_become_plain():
    values = json.loads(
        Report(
            **EXAMPLE | {"seed": np.int64(3), "mixture": {"weights": np.ones(2), "means": (0,), "precisions": []}}
        ).to_json()
    )
    assert values["seed"] == 3 and values["mixture"]["weights"] == [1.0, 1.0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps({"schema": "tdc-report/2"}), json.dumps({"schema": VERSION, "odd": 1})]
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError):
        Report.from_json(text)


def test_summary_counts_pixels_or_entries():
    assert Report(**EXAMPLE).summary()[0] == "out.png: 117965 of 196608 entries missing (60.0%), datc, 8.1 s"
    pixels = EXAMPLE | {"missing": EXAMPLE["missing"] | {"count": 300, "pixels": 100}}
    assert "100 of 65536 pixels missing" in Report(**pixels).summary()[0]
    settled = EXAMPLE | {"rank": {"value": 41, "posterior": {"41": 1.0}, "paper_count": 43}}
    assert "  rank 41, mean uncertainty" in Report(**settled).summary()[1]
    assert "rank 41 (80% of the draws)," in "\n".join(Report(**pixels).summary()) and "PSNR 30.10 dB" in "\n".join(
        Report(**pixels).summary()
    )


@pytest.mark.parametrize(
    "options", [["--mask", "m.png"], ["--missing-ratio", "0.5"], ["--mask", "m.png", "--reference", "a.png"]]
)
def test_real_reports_keep_to_the_schema(complete, options):
    values = report_of(complete("--json", "--report", "r.json", *options))
    VALIDATOR.validate(values)
    with open("r.json", encoding="utf-8") as file:
        assert json.load(file) == values


def test_the_schema_is_printed(tdc):
    assert json.loads(tdc("report-schema").stdout) == SCHEMA
