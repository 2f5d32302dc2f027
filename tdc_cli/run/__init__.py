"""One way through the house for a picture, a clip and a tensor.

A `request.Request` says what is wanted. `plan.prepare` finds all that can be found before any work: a source that
reads, holes that say what is missing, a sink that writes, and the regions between them. `execute.execute` completes
region by region (`solve`), goes through what is completed frame by frame, measures it (`measure`), writes it (`sinks`)
and reports (`reporting`). Folders of pictures are `folders` and `batch`.
"""
