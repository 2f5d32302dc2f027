"""Values that a user writes with commas between, such as ``0.7,0.9``, names that are almost right, and shares."""


def parts(text):
    """The values of a list, as texts without blanks around them.

    Parameters
    ----------
    text : str

    Returns
    -------
    tuple of str
        One or more.

    Raises
    ------
    ValueError
        Nothing before, between or behind commas: a slip of the keyboard might otherwise pass for a shorter list.
    """
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise ValueError(f"{text!r} has an empty place")
    return found


def percent(share):
    """A share in words, such as ``33.3%``: 100 % is all and 0 % nothing."""
    text = f"{share:.1%}"
    nearly = {"100.0%": "more than 99.9%", "0.0%": "less than 0.1%"} if 0 < share < 1 else {}
    return nearly.get(text, text)


def likely(name, known, lists=None):
    """Words for a user who has given a name that is none of those `known`: which may be meant, and all there are, or
    the command that `lists` them.
    """
    import difflib

    close = difflib.get_close_matches(name, known, n=2, cutoff=0.7)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return meant + (f"'{lists}' lists all" if lists else f"there are: {', '.join(known)}")
