"""Values that a user writes with commas between, such as ``0.7,0.9``, and names that are almost right."""


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


def likely(name, known):
    """Words for a user who has given a name that is none of those `known`: which may be meant, and all there are."""
    import difflib

    close = difflib.get_close_matches(name, known, n=2, cutoff=0.7)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}there are: {', '.join(known)}"
