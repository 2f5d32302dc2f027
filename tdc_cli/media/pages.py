"""Which page of a file is meant, and which is an infrared scan of it."""

from dataclasses import dataclass

from ..errors import InputError


@dataclass(frozen=True)
class Pages:
    """What the user says of the pages of a file.

    Attributes
    ----------
    number : int or None
        Of the page that is meant, counted from 0 among all that the file has; None: the only one that is a picture of
        its own.
    infrared : bool
        Whether a further page is an infrared scan of it, which is read too.
    all : bool
        Whether the others are read as well, one after another.
    """

    number: int | None = None
    infrared: bool = False
    all: bool = False

    @property
    def named(self):
        """The field that says something; empty where none does."""
        said = {"`pages`": self.all, "`page`": self.number is not None, "`mask=ir`": self.infrared}
        return next((name for name, given in said.items() if given), "")

    def chosen(self, pages, path):
        """The page that is meant, and the one that is its infrared scan or None.

        Parameters
        ----------
        pages : list of tifffile.TiffPage
            Those that are no thumbnails, reduced copies or masks.
        path : path-like

        Raises
        ------
        InputError
            It is not clear which is meant.
        """
        if self.infrared:
            _check_sizes(pages, path)
        page = self._page(pages, path)
        scans = [other for other in pages if other is not page and _is_infrared(other, page)]
        if not self.infrared:
            return page, None
        if len(scans) != 1:
            have = f"pages {_listed(scans)} may both be" if scans else "no page is"
            raise InputError(
                f"{path}: `mask=ir` needs one further page that is grey and of the same size as the colours, and "
                f"{have}; save the infrared scan as a picture with dust in white and give it as `mask`"
            )
        return page, scans[0]

    def _page(self, pages, path):
        if self.number is not None:
            found = [page for page in pages if page.index == self.number]
            if not found:
                raise InputError(
                    f"{path}: page {self.number} is no picture of its own; give `page={_listed(pages, ' or ')}`"
                )
            return found[0]
        likely = [page for page in pages if any(_is_infrared(other, page) for other in pages)]
        if self.infrared and len(likely) == 1:
            return likely[0]
        if len(pages) > 1:
            scan = "; if one of them is an infrared scan of the other, `mask=ir` finds dust by it" if likely else ""
            raise InputError(
                f"{path}: holds {len(pages)} pages; give `page={_listed(pages, ' or ')}`, or `pages=all`{scan}"
            )
        return pages[0]


def _is_infrared(page, other):
    """Whether a page may be an infrared scan of another: grey, of the size of a page in colours."""
    alike = (page.imagelength, page.imagewidth) == (other.imagelength, other.imagewidth)
    return alike and page.samplesperpixel == 1 and other.samplesperpixel >= 3


def _check_sizes(pages, path):
    """Raise InputError where pages in grey and in colours are there, but none of the same size."""
    greys = [page for page in pages if page.samplesperpixel == 1]
    colours = [page for page in pages if page.samplesperpixel >= 3]
    if greys and colours and not any(_is_infrared(grey, page) for grey in greys for page in colours):
        sizes = [f"{page.imagewidth}x{page.imagelength}" for page in (greys[0], colours[0])]
        raise InputError(
            f"{path}: page {greys[0].index}, in grey, is {sizes[0]} pixels and page {colours[0].index}, in colours, "
            f"{sizes[1]}; `mask=ir` needs an infrared scan of the size of the colours: scale it, or save it as a "
            "picture with dust in white and give it as `mask`"
        )


def _listed(pages, last=" and "):
    numbers = [str(page.index) for page in pages]
    return last.join([", ".join(numbers[:-1]), numbers[-1]]) if len(numbers) > 1 else "".join(numbers)
