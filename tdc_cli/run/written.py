"""Whether a file that no option names is one that this program has written, as far as its beginning tells."""

_BEGINNINGS = (b'{\n  "schema": "tdc-report/', b'{\n  "schema": "tdc-batch/', b"path,status,error,width,height,")
_PAGE = b'<meta name="generator" content="tdc">'
_ENOUGH = 4096  # bytes


def is_ours(path):
    """Whether there is a report, a summary or a page of this program at `path`; of anything else nobody can tell."""
    try:
        with open(path, "rb") as file:
            begin = file.read(_ENOUGH)
    except OSError:
        return False
    return begin.startswith(_BEGINNINGS) or (begin.startswith(b"<!DOCTYPE html>") and _PAGE in begin)
