"""What a run would do, before it begins."""

from .request import worded


def describe(plan):
    """What a run would do, ready for JSON.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    dict
    """
    said = {"input": plan.source.path, "shape": plan.described["shape"]}
    if plan.incomplete.in_time:
        said |= {key: plan.described[key] for key in ("frames", "rate")}
    said |= {"missing": plan.missing, "method": plan.method.name}
    if plan.incomplete.in_time:
        chunks = {region.first: region for region in plan.regions}
        said["chunks"] = [{"first": r.first, "end": r.end, "start": r.start, "stop": r.stop} for r in chunks.values()]
    if plan.tiled:
        places = dict.fromkeys((r.used[1:], r.seen[1:]) for r in plan.regions)  # the same for every chunk of a clip
        said["regions"] = [
            dict(zip(("rows", "columns", "seen_rows", "seen_columns"), (*used, *seen))) for used, seen in places
        ]
    said["workers"] = plan.workers
    outputs = {name: str(path) for name, path in plan.request.outputs.items()}
    told = [worded(text) for text in (*plan.notes, *plan.warnings)]
    return said | {"outputs": outputs, "warnings": told, "estimate": plan.estimate}
