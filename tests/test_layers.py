"""Imports go downwards only, and each heavy or special library stays in its place; see docs/design.md."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tdc_cli

PACKAGE = Path(tdc_cli.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# A part of the package may import parts of a lower level, and its own.
LEVELS = (
    {"bounds", "compiled", "errors", "interrupts", "listed", "names"},
    {"memory", "library_threads"},
    {"tensor", "kernels"},
    {"media"},
    {"holes", "metrics", "view"},
    {"field", "model"},
    {"patches", "exemplar"},
    {"methods"},
    {"peers"},
    {"run"},
    {"arrays"},
    {"bench"},
    {"cli"},
)
# Arrays only: these know no files and no pictures.
ALGORITHMS = {"field", "model", "patches", "exemplar", "methods", "peers"}
# Library -> the only parts or modules that may import it.
PLACES = {
    "click": {"cli"},
    "tqdm": {"cli"},
    "tifffile": {"media"},
    "h5py": {"media"},
    "imagecodecs": {"media"},
    "imageio": {"media"},
    "av": {"media"},
    # holes and view draw letters and lines with it, scale down and encode; none of them opens a file.
    "PIL": {"media", "holes", "view"},
    "matplotlib": {"view", "bench"},
    "jinja2": {"view"},
    "markupsafe": {"view"},
    "cv2": {"methods"},
    "tensorly": {"peers"},
    "dask": {"run"},
    "distributed": {"run"},
}
# Modules that may import NumPy only inside functions, because `tdc --help` imports them.
QUICK = {"cli", "errors", "names", "__init__", "__main__"}


def part(path):
    """Name of the part of the package that a module belongs to: `media` for media/image.py, `errors` for errors.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """(level, name, at_top) of every import: level 0 with the first name of a library, or 1 with a part of this
    package.
    """
    depth = len(path.relative_to(PACKAGE).parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in ast.walk(tree) if not isinstance(node, ast.FunctionDef)} - {
        id(inner) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name.split(".")[0], id(node) in top
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield 0, node.module.split(".")[0], id(node) in top
            elif node.level == depth:  # from the top of the package
                names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                for name in names:
                    if name not in ("__version__", "__file__"):
                        yield 1, name, id(node) in top


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_keep_to_the_layers(path):
    own = part(path)
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    if own not in ("__init__", "__main__"):
        assert own in level, f"{own} has no place in LEVELS: give it one"
    for kind, name, at_top in imports(path):
        if kind == 1 and own in level and name != own:
            assert level[name] < level[own], f"{own} imports {name}, which is not below it"
            if own in ALGORITHMS:
                below = {"bounds", "tensor", "kernels", "errors", "listed", "metrics", "library_threads"}
                assert name in ALGORITHMS | below, f"{own} imports {name}, but it should know arrays only"
        if kind == 0:
            assert name != "tdc_cli", "imports inside the package are relative"
            assert own in PLACES.get(name, {own}), f"{name} is imported in {own}"
            if name == "numba":
                assert path.name.startswith("kernels"), f"numba is imported in {path.name}, which is no kernel module"
            if own in QUICK and name in ("numpy", "scipy", "skimage", "PIL", "numba", "matplotlib"):
                assert not at_top, f"{name} makes tdc --help slow"


def test_the_check_sees_imports(tmp_path):
    """A check that finds nothing anywhere would pass as well."""
    found = {(kind, name) for path in MODULES for kind, name, _ in imports(path)}
    assert {(0, "numpy"), (0, "click"), (0, "PIL"), (1, "errors"), (1, "media")} <= found
    tops = {name for kind, name, at_top in imports(PACKAGE / "run" / "sinks" / "picture.py") if at_top}
    assert "numpy" in tops and "panel" not in tops


def test_what_finds_mistakes_loads_nothing_that_only_work_needs():
    heavy = ("scipy", "numba", "skimage", "matplotlib", "av", "h5py", "tifffile")
    code = f"import sys, tdc_cli.run.batch\nprint([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"
