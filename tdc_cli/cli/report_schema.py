"""`tdc report-schema`."""

import click


@click.command()
@click.option("--batch", is_flag=True, help="That of the summary of several pictures.")
def report_schema(batch):
    """Print the JSON Schema of reports."""
    import json

    from ..run import report, summary

    click.echo(json.dumps(summary.SCHEMA if batch else report.SCHEMA, indent=2))
