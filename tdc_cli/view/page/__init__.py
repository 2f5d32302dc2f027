"""Pages to look at in a browser: one for a run, one for a clip, an index of many, and the report of an experiment.

Every page is one file that needs nothing else: pictures, styles and scripts are in it, and its Content-Security-Policy
forbids everything from outside. Without scripts all pictures and tables are there; scripts add comparing, zooming and
sorting. The same arguments give the same text.
"""

from .bench import Figure, Table, bench
from .index import Entry, index
from .pictures import thumbnail
from .player import Film, clip
from .reel import Reel
from .run import Pictures, run

__all__ = ["Entry", "Figure", "Film", "Pictures", "Reel", "Table", "bench", "clip", "index", "run", "thumbnail"]
