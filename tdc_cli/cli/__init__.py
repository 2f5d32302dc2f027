"""The command line: parse options, build a job, call, print. Nothing here computes, and only here is click imported.

Modules of this package import NumPy and all that needs it inside functions, so that ``tdc --help`` stays quick.
"""
