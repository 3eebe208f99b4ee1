"""How declarations are proved: the symbolic leg and the arbitrary-precision leg, over one residual.

Only :mod:`~hardmask.spec.proofs.polynomials`, :mod:`~hardmask.spec.proofs.symbolic`,
:mod:`~hardmask.spec.proofs.collapse` and the numeric modules load sympy or mpmath, and only when a proof runs.
"""
