"""The index of the pages of a batch."""

import os

from ..view import page


def index(batch, records):
    """Text of the page that leads to those of the single pictures.

    Parameters
    ----------
    batch : folders.Batch
        With an `index`.
    records : sequence of summary.Record
        One for each task of the batch, in its order.

    Returns
    -------
    str
    """
    return page.index([_entry(task, record, batch.index.parent) for task, record in zip(batch.tasks, records)])


def _entry(task, record, folder):
    there = task.request is not None and record.status in ("done", "skipped")
    return page.Entry(
        record.path,
        record.status.replace("_", " "),
        page=os.path.relpath(task.request.html, folder).replace(os.sep, "/") if there else None,
        report=record.report,
        thumbnail=record.thumbnail,
        error=record.error and record.error.removeprefix(f"{record.path}: "),
    )
