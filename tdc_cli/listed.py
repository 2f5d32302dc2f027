"""Values that a user writes with commas between, such as ``0.7,0.9``."""


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
