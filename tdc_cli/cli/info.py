"""`tdc info`."""

import click

from .streams import echo

_LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-image",
    "pillow",
    "tifffile",
    "imagecodecs",
    "h5py",
    "av",
    "matplotlib",
    "click",
    "arviz-stats",
    "threadpoolctl",
)
# Packages that add something where they are installed, by the names under which they come.
_OPTIONAL = {
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless", "opencv-contrib-python"),
    "pywavelets": ("pywavelets",),
    "tensorly": ("tensorly",),
    "distributed": ("distributed",),
}
# Variables that change what a run does begin so.
_PREFIXES = ("TDC_", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "BLIS_")


@click.command(short_help="Print versions, threads, cache folder and codecs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json):
    """Print what a report of a fault needs: versions, threads, the cache of compiled code, formats and codecs."""
    import json
    import os
    import platform

    from .. import __version__, media
    from ..media import codecs, tensor, video
    from ..run import threads

    facts = {
        "tdc": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": threads.available(),
        "cache": _cache(),
        "formats": media.extensions(),
        "holds": {f.name: f"{' '.join(f.modes)} of {' '.join(f.types)}" for f in media.FORMATS.values()},
        "tensors": [extension for f in tensor.FORMATS.values() for extension in f.extensions],
        "codecs": codecs.versions(),
        "clips": video.extensions(),
        "clip_codecs": codecs.of_clips(),
        "linear_algebra": _linear_algebra(),
        "environment": {key: value for key, value in sorted(os.environ.items()) if key.startswith(_PREFIXES)},
        **{name: _version(name) for name in _LIBRARIES},
        **{name: _version(*packages) for name, packages in _OPTIONAL.items()},
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        echo(f"{key}: {_in_words(value)}")


def _cache():
    """Folders in which compiled kernels are kept; none where there is none that can be written."""
    from ..kernels import cache_folders
    from ..model import kernels as of_the_model
    from ..patches import kernels as of_patches
    from ..patches import kernels_lanes as of_lanes

    return cache_folders(of_the_model, of_patches, of_lanes) or None


def _linear_algebra():
    """Every BLAS and every pool of threads that is loaded."""
    from threadpoolctl import threadpool_info

    return sorted(
        {f"{p['internal_api']} {p['version'] or '(no version)'}, {p['num_threads']} threads" for p in threadpool_info()}
    )


def _version(*packages):
    """Version of the first of `packages` that is installed, or None."""
    from importlib import metadata

    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _in_words(value):
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(item)}" for key, item in value.items()) or "none"
    return (", " if any(" " in item for item in value) else " ").join(value) if isinstance(value, list) else value
