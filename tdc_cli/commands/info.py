"""`tdc info`."""

import click

_LIBRARIES = ("numpy", "scipy", "numba", "scikit-image", "pillow", "tifffile", "imagecodecs", "matplotlib")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json):
    """Print versions, threads, the cache of compiled code, and the file formats."""
    import json
    import platform
    from importlib import metadata

    from .. import __version__, media, threads

    facts = {
        "tdc": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": threads.available(),
        "cache": _cache(),
        "formats": media.extensions(),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        click.echo(f"{key}: {' '.join(value) if isinstance(value, list) else value}")


def _cache():
    """Where compiled kernels are kept, as numba decides it, in words."""
    import os
    from pathlib import Path

    from .. import __file__ as package

    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return folder
    beside = Path(package).parent / "model"
    return f"{beside / '__pycache__'}" if os.access(beside, os.W_OK) else "in the user's cache folder, as numba chooses"
