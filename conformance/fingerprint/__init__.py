"""What each entry point does where the formula does not decide, read from its answers; and paths that disagree.

:func:`hardmask.conformance.fingerprint.run.fingerprint` runs it; ``hardmask fingerprint`` on the command line.
"""
