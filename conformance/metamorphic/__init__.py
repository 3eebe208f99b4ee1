"""Judge a subject by its own answers alone: no oracle, and so rows of any length.

:func:`hardmask.conformance.metamorphic.request.metamorphic` runs it; ``hardmask metamorphic`` on the command line.
"""
