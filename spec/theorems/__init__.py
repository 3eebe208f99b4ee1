"""One module per theorem: its statement, its residual (written once) and its negative controls.

Every module has ``PROOFS``, a tuple of :class:`~hardmask.spec.proofs.proof.Proof`. None imports sympy or mpmath.
"""
