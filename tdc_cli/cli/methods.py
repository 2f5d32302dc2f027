"""`tdc methods`."""

import click

from ..names import DEFAULT_METHODS, PICTURE
from . import options
from .streams import echo

BY_THE_PICTURE = "by the picture"  # what a default of None means
WIDTH, INDENT = 100, " " * 6  # of the text that says what a parameter means


@click.command(short_help="List the completion methods, or one's parameters.")
@click.argument("name", required=False, shell_complete=options.method_names)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def methods_list(name, as_json):
    """List the completion methods, or the parameters of the method NAME with their defaults."""
    from .. import methods

    if name is None:
        rows = list(methods.REGISTRY.values())
        if as_json:
            _print(
                [
                    {"name": m.name, "summary": m.summary, "uncertainty": m.uncertainty, "orders": list(m.orders)}
                    for m in rows
                ]
            )
            return
        width = max(len(m.name) for m in rows)
        for method in rows:
            known = {"default": method.name == DEFAULT_METHODS[PICTURE], "with uncertainty": method.uncertainty}
            marks = [mark for mark, holds in known.items() if holds]
            echo(f"{method.name:{width}}  {method.summary}{' (' + ', '.join(marks) + ')' if marks else ''}")
        return
    method = methods.get(name)
    defaults, meanings = method.defaults(), method.meanings()
    if as_json:
        _print(
            {
                "name": method.name,
                "summary": method.summary,
                "uncertainty": method.uncertainty,
                "orders": list(method.orders),
                "parameters": defaults,
                "meanings": meanings,
            }
        )
        return
    echo(f"{method.name}: {method.summary}")
    for key, value in defaults.items():
        echo(f"  {key}={BY_THE_PICTURE if value is None else value}")
        if key in meanings:
            meaning = meanings[key].replace("None: ", f"{BY_THE_PICTURE}: ")
            echo(*click.wrap_text(meaning, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT).split("\n"))


def _print(values):
    import json

    click.echo(json.dumps(values, indent=2, ensure_ascii=False))
