"""Templates to text: everything is escaped, and the page allows only the styles and scripts that it was made with."""

import base64
import functools
import hashlib
import json
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...names import shown

DASH = "\N{EN DASH}"


def render(template, scripts, **values):
    """Text of a page.

    Parameters
    ----------
    template : str
        File in ``templates``; extends ``base.html``.
    scripts : sequence of str
        Files in ``templates``, run at the end of the page in this order.
    **values
        For the template.

    Returns
    -------
    str
    """
    style = _static("style.css")
    codes = [_static(name) for name in ("theme.js", *scripts)]
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src {_allowed(style)}",
            f"script-src {' '.join(_allowed(code) for code in codes)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        _environment()
        .get_template(template)
        .render(policy=Markup(policy), style=Markup(style), scripts=map(Markup, codes), **values)
    )


def number(value, digits=None, unit=""):
    """`value` for a reader: a dash for None, thousands apart, `digits` after the point or four that count."""
    if value is None:
        return DASH
    if isinstance(value, int) and digits is None:
        return f"{value:,}{unit}"
    return (f"{value:,.{digits}f}" if digits is not None else f"{value:.4g}") + unit


def percent(value):
    """Share as a percentage."""
    return DASH if value is None else f"{value:.1%}"


def plain(value):
    """Parameter as text: strings as they are, numbers with six digits that count, everything else as JSON."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@functools.cache
def _environment():
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: shown(value) if type(value) is str else value,  # our own styles and scripts are no str
    )
    made.filters |= {"number": number, "percent": percent, "plain": plain}
    return made


@functools.cache
def _static(name):
    """Content of a style sheet or a script."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _allowed(content):
    """Source expression of a Content-Security-Policy that allows an element with exactly this content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
