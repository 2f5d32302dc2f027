"""Finished regions, kept until the whole input is done: in memory, or in a folder beside the output.

Only what was estimated is kept. In a folder a region appears whole or not at all, so that a run that was killed goes on
behind the last one.
"""

import contextlib
import copy
import io
import json
import re
import zipfile
import zlib

import numpy as np

from .. import __version__
from ..errors import ConfigError, OutputError, OutputExists
from ..media import files, journal, locks
from .report import plain

FINGERPRINT = "run.json"
_REGION = re.compile(r"\d{8,}-\d{8,}_\d{8,}-\d{8,}_\d{8,}-\d{8,}(_\d+)?\.npz")


class Memory:
    """Finished regions of a run that is not to be resumed."""

    folder, used, spent = None, False, None

    def __init__(self):
        self._regions = {}

    def of(self, answer):
        """Store for another answer of the same run."""
        return Memory()

    def check(self, **how):
        """Nothing is left of an earlier run."""

    def open(self, resume, output):
        """Nothing is to be made."""

    def close(self):
        """Nobody else waits."""

    def remove(self):
        """Forget all regions."""
        self._regions.clear()

    def holds(self, region):
        """Whether a finished region is there."""
        return region in self._regions

    def facts(self, region):
        """What was noted of a finished region, a dict."""
        return self._regions[region][2]

    def save(self, region, values, sd, facts, invented=None):
        """Keep a region; see `Folder.save`."""
        self._regions[region] = values, sd, facts, invented

    def load(self, region):
        """Estimates and standard deviations (None where there are none) as `save` got them."""
        return self._regions[region][:2]

    def invented(self, region):
        """Which of the estimates were invented, as `save` got it."""
        return self._regions[region][3]


class Folder:
    """Finished regions of a run that may be resumed, in a folder.

    Parameters
    ----------
    folder : Path
    fingerprint : dict
        What the regions depend on, ready for JSON: regions of another one are not used. Further answers go without it:
        they follow from it and their number, which is in the names of their files.
    """

    def __init__(self, folder, fingerprint):
        self.folder = folder
        self._fingerprint = json.dumps({"version": __version__} | fingerprint, sort_keys=True)
        self._lock = None
        self._tail = ""  # of the names of files

    def of(self, answer):
        """Store for another answer of the same run, counted from 2: in the same folder, which this one opens, closes
        and removes.
        """
        other = copy.copy(self)
        other._tail = f"_{answer}"
        return other

    def check(self, *, resume, replace, output):
        """Refuse what a run that did not come to its end has left, if it is not to go on.

        Parameters
        ----------
        resume, replace : bool
            Whether it is to go on, whether it is to be thrown away.
        output : path-like
            For messages.

        Raises
        ------
        OutputError, ConfigError
        """
        if self.folder.is_symlink():
            raise OutputError(
                f"{output}: finished regions would be kept in {self.folder}, which is a link; move it away, or name "
                "another output"
            )
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise OutputError(
                f"{output}: finished regions would be kept in {self.folder}, which is a file; move it away, or name "
                "another output"
            )
        if self._busy():
            raise _taken(output)
        if not self.used:
            return
        if resume and self._known() not in (None, self._fingerprint):
            raise ConfigError(
                f"`resume`: the finished regions in {self.folder} are of another input, other options or another "
                "version; repeat those, or begin anew with `overwrite` in place of `resume`"
            )
        if not resume and not replace:
            raise OutputError(
                f"{output}: a run that did not come to its end has left finished regions in {self.folder}; go on with "
                "`resume`, or begin anew with `overwrite`"
            )

    def open(self, resume, output):
        """Make the folder, without what is not to be used; nobody else uses it until `close`.

        Parameters
        ----------
        resume : bool
            Whether finished regions stay.
        output : path-like
            For messages.

        Raises
        ------
        OutputError
            It cannot be made, or another run was quicker.
        """
        files.make_folder(self.folder)
        mark = self.folder / FINGERPRINT
        try:
            journal.sweep(self.folder)
            if not mark.exists():
                with contextlib.suppress(OutputExists):  # another run was quicker: the lock tells whether it still runs
                    files.write_bytes(mark, b"")
            self._lock = locks.hold(mark)
        finally:
            if self._lock is None:
                with contextlib.suppress(OSError):  # it holds something
                    self.folder.rmdir()
        if self._lock is None:
            raise _taken(output)
        # Only now may something be thrown away: no other run is at work on it.
        if not (resume and self.used and self._known() == self._fingerprint):
            for name in self._regions:
                (self.folder / name).unlink()
            try:
                self._lock.truncate()
                self._lock.write(self._fingerprint.encode())
                self._lock.flush()
            except OSError as error:
                raise OutputError(f"{mark}: cannot be written ({error.strerror})") from error

    def close(self):
        """Let others use the folder if this run has it, which goes if it holds no region."""
        if self._lock is None:
            return
        self._lock.close()
        self._lock = None
        if not self.used:
            self.remove()

    def remove(self):
        """Remove what this program has written into the folder, and the folder if nothing else is in it."""
        folder, names = self.spent
        with contextlib.suppress(OSError):
            for name in names:
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()

    @property
    def used(self):
        """Whether any region is there."""
        return bool(self._regions)

    @property
    def spent(self):
        """The folder, and the names of what this program has written into it, the mark last."""
        return self.folder, [*self._regions, FINGERPRINT]

    @property
    def _regions(self):
        """Names of the files of finished regions, of all answers."""
        return [path.name for path in sorted(self.folder.glob("*.npz")) if _REGION.fullmatch(path.name)]

    def holds(self, region):
        """Whether a finished region is there, without damage anywhere: all of it is read."""
        try:
            with np.load(self._path(region), allow_pickle=False) as arrays:
                held = {name: arrays[name] for name in arrays}
            json.loads(str(held["facts"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            return False
        return True

    def facts(self, region):
        """What was noted of a finished region, a dict."""
        with np.load(self._path(region), allow_pickle=False) as arrays:
            return json.loads(str(arrays["facts"]))

    def save(self, region, values, sd, facts, invented=None):
        """Keep a region.

        Parameters
        ----------
        region : Region
        values : ndarray
            Estimates of one frame after the other, as they are written.
        sd : ndarray or None
            Their standard deviations.
        facts : dict
            Ready for JSON.
        invented : ndarray of bool or None
            Which of the estimates were invented; None: none of them.

        Raises
        ------
        OutputError
            A full disk.
        """
        arrays = {"values": values, "facts": np.array(json.dumps(plain(facts)))} | ({} if sd is None else {"sd": sd})
        arrays |= {} if invented is None else {"invented": invented}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        files.write_bytes(self._path(region), buffer.getvalue(), replace=True)

    def load(self, region):
        """Estimates and standard deviations (None where there are none) as `save` got them."""
        with np.load(self._path(region), allow_pickle=False) as arrays:
            return arrays["values"], arrays.get("sd")

    def invented(self, region):
        """Which of the estimates were invented, as `save` got it."""
        with np.load(self._path(region), allow_pickle=False) as arrays:
            return arrays.get("invented")

    def _path(self, region):
        return self.folder / f"{region.name}{self._tail}.npz"

    def _busy(self):
        """Whether another process holds the folder."""
        try:
            file = locks.hold(self.folder / FINGERPRINT)
        except OSError:
            return False
        if file is not None:
            file.close()
        return file is None

    def _known(self):
        """Fingerprint of the folder, None where there is none."""
        try:
            return (self.folder / FINGERPRINT).read_text(errors="replace")
        except OSError:
            return None


def _taken(output):
    return OutputError(f"{output}: another run is at work on it; wait for its end or name another file")
