"""Which files are pictures to complete, what their results are called, and which mask belongs to which.

Every result has a *place*, a relative path that is the same below the output folder, below the folders of the further
results, and below that of the masks. Everything here looks at names only; nothing is opened.
"""

import os
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from .. import media, methods
from ..errors import ConfigError, InputError, MaskError, OutputError, TdcError
from ..media import files
from ..names import ALPHA, INFRARED
from . import configure, holes
from .request import Request, check
from .written import is_ours

# What follows a picture's name in that of its mask, where the user does not say otherwise and no mask has the name
# itself.
USUAL_SUFFIX = "_mask"
# Request's field -> what is appended to the name of the picture, which thereby stays the only one of its name:
# a.png.json.
APPENDED = {"report": ".json", "html": ".html", "uncertainty": ".npy", "panel": ".png", "save_incomplete": ""}


@dataclass(frozen=True)
class Task:
    """A file of a batch: a request, or the reason why there is none.

    Attributes
    ----------
    path : Path
        The picture, as it is reached from the inputs.
    request : Request or None
    error : str or None
        What was found before any work.
    """

    path: Path
    request: Request | None = None
    error: str | None = None


@dataclass(frozen=True)
class Batch:
    """All files of a batch.

    Attributes
    ----------
    tasks : tuple of Task
        In natural order.
    ignored : dict of str to int
        What was passed over: ``hidden`` files and folders, files of ``other`` kinds, ``masks`` beside their pictures,
        ``folders`` that were not entered.
    summaries : tuple of Path
        Where the summary goes as JSON and as a table; empty if it is not asked for.
    index : Path or None
        Where the index of the pages goes.
    """

    tasks: tuple
    ignored: dict
    summaries: tuple = ()
    index: Path | None = None


def natural(path):
    """Sort key of a path that puts ``frame2`` before ``frame10``."""
    # The extension comes last: `cat.png` before `cat10.jpg`.
    *folders, name = Path(path).parts
    key = files.natural
    return [
        *((key(folder), key(""), folder) for folder in folders),
        (key(Path(name).stem), key(Path(name).suffix), name),
    ]


def plan(template, inputs, *, recursive=False, mask_suffix="", extension=None):
    """Jobs for every picture of `inputs`, with everything checked that names alone can tell.

    Parameters
    ----------
    template : Request
        Holds the options. `output` and the further outputs are folders; `mask` and `reference` files or folders;
        `input` is not used.
    inputs : sequence of path-like
        Files and folders. One folder alone is mirrored by the output folder; of several inputs each is put there under
        its own name.
    recursive : bool
        Whether folders in folders are entered. Links to folders never are.
    mask_suffix : str
        What the name of a mask has after that of its picture: ``_mask`` for ``a_mask.png``.
    extension : str or None
        Format of the pictures written, such as ``.png``; None for that of each input.

    Returns
    -------
    Batch

    Raises
    ------
    ConfigError, InputError, MaskError, OutputError
        Contradictory options; an input that is not there; no pictures; outputs that share a name, that would replace an
        input, or that are folders named like files. Those that exist: `check_free`.
    """
    check(template)
    for path in inputs:  # what is damaged ends no run, but a slip in a name is told before the work on the others
        nothing = files.absence(path)
        if nothing:
            raise InputError(f"{path}: {nothing}")
    if template.variants is not None:
        raise ConfigError("`variants` is for one picture, not for several or a folder; give one, or leave it out")
    configure.check_method(template, methods.get(template.method))
    if template.source is not None:
        holes.marked(template.source)  # what is wrong with it is told once, not of every picture
    folders = {
        key: path for key, path in template.outputs.items() if key != "mask"
    }  # which goes beside the incomplete picture
    _check_folders(folders, inputs)
    found = _Search(recursive, _passed_over(template, inputs, mask_suffix, folders.values()))
    for path in inputs:
        found.add(Path(path), alone=len(inputs) == 1)
    masks, references = Companions(template.mask, mask_suffix, "mask"), Companions(template.reference, "", "reference")
    tasks = [Task(path, error=error) for path, error in found.unreadable]
    for path, place in found.pictures:
        name = place if extension is None else place.with_suffix(extension)
        outputs = {"output": folders["image"] / name}
        for field, tail in APPENDED.items():
            if getattr(template, field) is not None:
                outputs[field] = getattr(template, field) / name.with_name(name.name + tail)
        try:
            given = {"mask": masks.of(place, path), "reference": references.of(place, path)}
        except TdcError as error:
            tasks.append(Task(path, error=str(error)))
            continue
        tasks.append(Task(path, replace(template, input=path, make_folders=True, **outputs, **given)))
    if not tasks:
        raise InputError(f"{', '.join(map(str, inputs))}: {_nothing(found.ignored, recursive)}")
    if not (template.names_holes or any(_may_hold_nan(path) for path, _ in found.pictures)):
        raise ConfigError(
            "nothing says what is missing; give `mask=FOLDER` (a mask for every picture, white = missing), "
            "`mask=FILE` (one for all), or `missing_ratio=0.5` to hide half of whole pictures"
        )
    tasks.sort(key=lambda task: natural(task.path))
    summaries = () if template.report is None else (template.report / "summary.json", template.report / "summary.csv")
    index = None if template.html is None else template.html / "index.html"
    _check_names([task.request for task in tasks if task.request], folders["image"])
    return Batch(tuple(tasks), dict(found.ignored), summaries, index)


def check_free(batch, template):
    """OutputError if results exist that are to be neither replaced nor skipped, or a summary or index that no run has
    written.
    """
    of_all = [*batch.summaries, *([batch.index] if batch.index else [])]
    results = [path for task in batch.tasks if task.request for path in task.request.outputs.values()]
    there = [path for path in (*results, *of_all) if path.exists()]
    if there and not (template.overwrite or template.skip_existing):
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise OutputError(
            f"{there[0]}: exists already{more}; give `skip_existing` to do the others, or `overwrite` to replace it"
        )
    for path in of_all:
        if path.exists() and not is_ours(path):
            raise OutputError(
                f"{path}: is there and no run of tdc has written it; move it away, or name another folder"
            )


def _may_hold_nan(path):
    form = media.EXTENSIONS.get(path.suffix.lower())
    return form is not None and "float32" in form.types


def _nothing(ignored, recursive):
    """Why no picture was found, and what to try."""
    passed = ", ".join(f"{kind} {count}" for kind, count in ignored.items() if count)
    hint = f"pictures end in {', '.join(media.extensions())}"
    if ignored["folders"] and not recursive:
        hint = "`recursive` enters folders in folders"
    return f"no pictures found{f' (passed over: {passed})' if passed else ''}; {hint}"


def _check_folders(folders, inputs):
    """OutputError if one of the output folders is no folder, cannot be made, or is one that is read."""
    read = {os.path.realpath(path): path for path in inputs if Path(path).is_dir()}
    for folder in folders.values():
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file; for several pictures, name a folder")
        if not folder.exists() and folder.suffix.lower() in (*media.EXTENSIONS, *APPENDED.values()) and folder.suffix:
            given = f"{inputs[0]} and {len(inputs) - 1} more" if len(inputs) > 1 else f"the folder {inputs[0]}"
            raise OutputError(
                f"{folder}: named like a file, and results of {given} go into a folder: name one, or make this first"
            )
        in_the_way = None if folder.exists() else files.hindrance(folder)
        if in_the_way:
            raise OutputError(f"{folder}: {in_the_way}")
        if not folder.exists() and not folder.absolute().parent.is_dir():
            raise OutputError(f"{folder}: folder {folder.parent} does not exist; create it first")
        if os.path.realpath(folder) in read:
            raise OutputError(f"{folder}: is the folder of the inputs itself; name another folder")


def _passed_over(template, inputs, mask_suffix, folders):
    """Function that says why a file or folder is passed over, ``masks`` or ``outputs``, or None if it is not."""
    outputs = {os.path.realpath(folder) for folder in folders}
    read = {os.path.realpath(path) for path in inputs if Path(path).is_dir()}
    companions = [path for path in (template.mask, template.reference, template.source) if path is not None]
    masks = {os.path.realpath(path) for path in companions if Path(path).exists()} - read
    beside = template.mask is not None and os.path.realpath(template.mask) in read
    if beside and not mask_suffix:
        raise ConfigError(
            f"{template.mask}: holds both the pictures and their masks; give `mask_suffix=TEXT`, what the masks' names "
            "end in"
        )

    def why(path):
        real = os.path.realpath(path)
        if real in outputs:
            return "outputs"
        return "masks" if real in masks or (beside and path.stem.endswith(mask_suffix)) else None

    return why


class _Search:
    """Pictures below files and folders.

    Attributes
    ----------
    pictures : list of (Path, Path)
        Where each is read, and its place.
    unreadable : list of (Path, str)
        Folders that could not be listed, and why.
    ignored : Counter
    """

    def __init__(self, recursive, passed_over):
        self.pictures, self.unreadable, self.ignored = [], [], Counter(hidden=0, other=0, masks=0, folders=0)
        self._recursive, self._passed_over = recursive, passed_over

    def add(self, path, *, alone):
        """Add an input: a folder with what is in it, or a file whatever it is called."""
        if path.is_dir():
            self._list(path, Path() if alone else Path(os.path.basename(path.resolve())))
        elif (path, Path(path.name)) not in self.pictures:
            self.pictures.append((path, Path(path.name)))

    def _list(self, folder, place):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.unreadable.append((folder, f"{folder}: cannot be read ({error.strerror or error})"))
            return
        for entry in entries:
            path, hidden = folder / entry.name, entry.name.startswith(".")
            reason = "hidden" if hidden else self._passed_over(path)
            if reason:
                self.ignored.update([reason] if reason != "outputs" else [])
            elif not path.is_dir():
                if path.suffix.lower() in media.extensions():
                    self.pictures.append((path, place / entry.name))
                else:
                    self.ignored["other"] += 1
            elif self._recursive and not entry.is_symlink():  # a link may lead back up
                self._list(path, place / entry.name)
            else:
                self.ignored["folders"] += 1


class Companions:
    """Files that belong to pictures, masks or references: one for all, or one of the same place in a folder.

    There it is called as the picture is, with or without the picture's extension in the name, and then the suffix; a
    mask without a suffix may also be called as with `USUAL_SUFFIX`. Of these names the first that is there counts.

    Parameters
    ----------
    given : path-like or None
        File or folder.
    suffix : str
        What follows the stem.
    kind : str
        For messages.
    """

    def __init__(self, given, suffix, kind):
        self._given, self._suffix, self._kind = given, suffix, kind
        self._listed = {}

    def of(self, place, picture):
        """Path of the file for the picture at `place`; MaskError or InputError if there is not exactly one."""
        if self._given is None or str(self._given) in (ALPHA, INFRARED) or not Path(self._given).is_dir():
            return self._given
        folder = Path(self._given) / place.parent
        if folder not in self._listed:
            self._listed[folder] = _by_name(folder, self._suffix)
        suffixes = [self._suffix] if self._suffix or self._kind != "mask" else ["", USUAL_SUFFIX]
        names = [_name(name, suffix) for suffix in suffixes for name in (place.name, place.stem)]
        there = next((self._listed[folder][name] for name in names if name in self._listed[folder]), [])
        error = MaskError if self._kind == "mask" else InputError
        if not there:
            raise error(
                f"{picture}: no {self._kind} {folder / (place.stem + self._suffix)}.* ({', '.join(media.extensions())})"
            )
        if len(there) > 1:
            raise error(
                f"{picture}: several files could be its {self._kind}: {', '.join(map(str, there))}; leave one of them"
            )
        return there[0]


def _name(name, suffix=""):
    """What a file is called, and its suffix, whatever the case of its extension and however its accents were typed."""
    stem, extension = os.path.splitext(name)
    return unicodedata.normalize(
        "NFC", stem + (extension.lower() if extension.lower() in media.EXTENSIONS else extension) + suffix
    )


def _by_name(folder, suffix):
    """Picture files of a folder by their names without extension."""
    found = {}
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in media.EXTENSIONS and not path.name.startswith("."):
                for name in {
                    _name(path.stem.removesuffix(tail), tail)
                    for tail in (suffix, USUAL_SUFFIX, "")
                    if path.stem.endswith(tail)
                }:
                    found.setdefault(name, []).append(path)
    return found


def _check_names(requests, folder):
    """OutputError if two results share a name, or if one would replace what is read."""
    fold = str.casefold if _folds_case(folder) else str
    sources = {
        path
        for request in requests
        for path in (*request.sources.values(), *request.consulted.values())
        if path is not None
    }
    read, seen = {_identity(path) for path in sources} - {None}, {}
    for request in requests:
        for path in request.outputs.values():
            # Names that differ in the form of their accents only are one file on some systems, and look like one on
            # all.
            key = fold(unicodedata.normalize("NFC", os.path.abspath(path)))
            if key in seen:
                both = f"{seen[key]} and {request.input}"
                raise OutputError(f"{path}: would be the result of both {both}; rename one, or complete them apart")
            seen[key] = request.input
            if _identity(path) in read:
                raise OutputError(f"{path}: is one of the inputs itself; name another folder")


def _identity(path):
    """What all names and links of a file have in common; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _folds_case(folder):
    """Whether the file system of `folder`, or of where it will be, takes names that differ in case for the same."""
    for part in (Path(os.path.realpath(folder)), *Path(os.path.realpath(folder)).parents):
        swapped = part.parent / part.name.swapcase()
        if part.exists() and swapped != part:
            return swapped.exists() and os.path.samefile(part, swapped)
    return False
