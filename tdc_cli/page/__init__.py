"""Pages to look at in a browser: one for a run, and an index of many.

Every page is one file that needs nothing else: pictures, styles and scripts are in it, and its Content-Security-Policy forbids everything
from outside. Without scripts all pictures and tables are there; scripts add comparing, zooming and sorting. The same arguments give the
same text.
"""

from .index import Entry, index
from .pictures import thumbnail
from .run import Pictures, run

__all__ = ["Entry", "Pictures", "index", "run", "thumbnail"]
