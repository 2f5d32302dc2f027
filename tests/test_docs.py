"""The documentation is true: its commands run, its options are the ones there are."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import ROOT, put_between

from tdc_cli.cli.main import COMMANDS, main

TDC = Path(sys.executable).with_name("tdc")
# Outputs of sessions that take minutes; `make sessions` runs these too.
LONG = {"il2_filled.npy"}
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def sessions(text):
    """(command, output) of every `tdc` or `python` line after a `$` in the console blocks of `text`, continued lines
    joined.
    """
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.M)[1:]:
            line, _, output = part.partition("\n")
            if line.startswith(("tdc ", "python ")):
                yield line, output


def skeleton(output):
    """Output without its numbers, which differ a little between machines; a line for each line."""
    return NUMBER.sub("0", output)


def stale(page, output):
    """Numbers of a page that are no longer those of the output, with the words behind them, a list.

    Time and memory are those of another machine; figures of quality may differ by a few percent, as they do between
    processors, decibels by 0.3; what is counted is exact, but for the pixels that are invented.
    """
    found = []
    for told, true in zip(NUMBER.finditer(page), NUMBER.finditer(output), strict=True):
        behind = page[told.end() :].split("\n")[0]
        if re.match(r" ?(s|min|h|[kMG]i?B)\b", behind):
            continue
        one, other = float(told[0]), float(true[0])
        if behind.startswith(" dB"):
            room = 0.3
        elif "." in told[0] or "." in true[0] or behind.startswith(("%", " pixels invented")):
            # One unit of the last place is what rounding alone may change.
            room = max(0.04 * abs(one), 1.5 * 10.0 ** -len(told[0].partition(".")[2]))
        else:
            room = 0
        if abs(one - other) > room:
            found.append(f"{told[0]} is {true[0]}:{behind}")
    return found


def test_stale_figures_are_found():
    page = "a.png: 10 of 100 pixels missing (10.0%), auto, 0.5 s\n  PSNR 29.45 dB, SSIM 0.9602, 800 pixels invented"
    assert not stale(page, page)
    near = page.replace("0.5 s", "9.5 s").replace("29.45", "29.7").replace("0.9602", "0.951").replace("800", "810")
    assert not stale(page, near)
    for part, other in (("10 of", "11 of"), ("10.0%", "11.0%"), ("29.45", "29.8"), ("0.9602", "0.90"), ("800", "700")):
        assert len(stale(page, page.replace(part, other))) == 1


@pytest.mark.parametrize("page", ["README.md", "docs/methods.md", "docs/tensors.md"])
def test_the_sessions_are_real(tmp_path, page):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    (tmp_path / "demo-output").mkdir()  # as `make demo` does
    found = list(sessions((ROOT / page).read_text(encoding="utf-8")))
    if "TDC_LONG" not in os.environ:
        found = [(line, output) for line, output in found if LONG.isdisjoint(shlex.split(line))]
    assert found
    for line, output in found:
        words = shlex.split(line)
        program = TDC if words[0] == "tdc" else sys.executable
        done = subprocess.run([program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=900)
        refused = re.match(r"tdc: (?!note: |warning: )", output) is not None
        assert done.returncode == (2 if refused else 0), f"{line}: {done.stderr}"
        if output:
            # How long compiling took is told by the first run on a machine only.
            noted = re.findall(r"^tdc: (?:note|warning): (?!.* went into compiling).*\n", done.stderr, re.M)
            told = done.stderr if refused else "".join(noted) + done.stdout
            assert skeleton(told) == skeleton(output)
            assert not stale(output, told)
        if "-o" in words and not refused:
            made = tmp_path / words[words.index("-o") + 1]
            assert made.is_file() or any(made.iterdir())


def test_the_make_targets_of_the_readme_exist():
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|\$ )make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"))):
        assert re.search(rf"^{target}:", rules, re.M), target


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_names_every_option_and_no_other(name):
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = re.search(rf"^## tdc {name}\b.*?\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert section, f"docs/cli.md has no section '## tdc {name}'"
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section[1]))
    command = main.get_command(click.Context(main), name)
    there = {opt for p in command.params for opt in (*p.opts, *p.secondary_opts) if opt.startswith("--")}
    assert told == there


def option_table(name):
    """Lines of the table of a command's options, made from their declarations."""
    command = main.get_command(click.Context(main), name)
    rows = ["| option | meaning |", "|---|---|"]
    for option in (p for p in command.params if isinstance(p, click.Option)):
        value = "" if option.is_flag or option.secondary_opts else f" {option.make_metavar(click.Context(command))}"
        names = ", ".join(
            f"`{flag}{value if flag.startswith('--') else ''}`" for flag in (*option.opts, *option.secondary_opts)
        )
        words = option.help.replace("|", "\\|")
        default = f"  [default: {option.default}]" if option.show_default else ""
        rows.append(f"| {names.replace('|', chr(92) + '|')} | {words}{default} |")
    return rows


TABLED = ("complete-image", "complete-video", "complete-tensor")


@pytest.mark.parametrize("name", TABLED)
def test_the_tables_of_options_are_those_of_their_declarations(name):
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert "\n".join(option_table(name)) in text, "run: python tests/test_docs.py"


def test_every_option_has_help():
    for name in COMMANDS:
        for parameter in main.get_command(click.Context(main), name).params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", [*TABLED, "synth", "bench"])
def test_every_option_stands_once_below_a_heading_of_the_help(name):
    command = main.get_command(click.Context(main), name)
    text = command.get_help(click.Context(command, info_name=name))
    sections = dict(re.findall(r"^(\w[^\n]*):\n(.*?)(?=^\w|\Z)", text.partition("\n\n")[2], re.S | re.M))
    found = {heading: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", lines, re.M) for heading, lines in sections.items()}
    wanted = {p.opts[-1] for p in command.params if isinstance(p, click.Option)}
    listed = [option for options in found.values() for option in options]
    assert wanted | {"--help"} == set(listed) and len(listed) == len(set(listed)) and len(found) > 2
    assert set(found["Messages and checks"]) <= {
        "--dry-run", "--json", "--quiet", "--verbose", "--progress", "--config", "--help",
    }  # fmt: skip


def test_relative_links_lead_somewhere():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_are_named_are_there():
    written = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *(ROOT / "tdc_cli").rglob("*.py")]
    named = r"\b(?:tdc_cli|tests|benchmarks|docs|sample_data)/[\w/]+\.(?:py|md|txt|json|jpg|png|mp4)\b"
    lost = {(page.name, name) for page in written for name in re.findall(named, page.read_text("utf-8"))
            if not (ROOT / name).exists()}  # fmt: skip
    assert written and not lost


def test_the_scripts_for_python_run(tmp_path):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    script = "\n".join(
        re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.S)
    )
    checks = """
assert error < 0.03 and 0.8 < inside.mean() < 0.98
from click.testing import CliRunner
from tdc_cli.cli.main import main
words = "sample_data/camera.png -o other.png --mask sample_data/mask_scratches.png --method field --seed 3"
assert CliRunner().invoke(main, ["complete-image", *words.split()]).exit_code == 0
assert np.array_equal(np.asarray(Image.open("filled.png")), np.asarray(Image.open("other.png")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script + checks], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 ")


if __name__ == "__main__":
    for name in TABLED:
        put_between(
            ROOT / "docs" / "cli.md", f"<!-- options of {name} -->", "<!-- end of options -->", option_table(name)
        )
