"""`tdc report-schema`."""

import click


@click.command()
def report_schema():
    """Print the JSON Schema of reports."""
    import json

    from ..report import SCHEMA

    click.echo(json.dumps(SCHEMA, indent=2))
