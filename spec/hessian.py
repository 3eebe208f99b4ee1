"""The second derivative of the weights. An extension: TorchLean states no second derivative."""

from __future__ import annotations

from typing import Any

from .arithmetic import Arithmetic, Mask, Vector
from .definitions import weights


def second_derivative(mask: Mask, x: Vector, u: Vector, v: Vector, ar: Arithmetic) -> list[Any]:
    """``D^2 w[u, v]_i = w_i ((u_i - <w,u>)(v_i - <w,v>) - Cov_w(u, v))``, coordinate by coordinate.

    ``Cov_w(u, v) = <w, u v> - <w, u> <w, v>``. Follows from the first derivative, ``D w_i[v] = w_i (v_i - <w, v>)``:
    differentiate both factors along ``u`` and use ``D <w, v>[u] = Cov_w(u, v)``.
    """
    w = weights(mask, x, ar)
    mean_u = mean_v = mean_uv = ar.zero
    for wi, ui, vi in zip(w, u, v, strict=True):
        mean_u = mean_u + wi * ui
        mean_v = mean_v + wi * vi
        mean_uv = mean_uv + wi * ui * vi
    covariance = mean_uv - mean_u * mean_v
    return [wi * ((ui - mean_u) * (vi - mean_v) - covariance) for wi, ui, vi in zip(w, u, v, strict=True)]
