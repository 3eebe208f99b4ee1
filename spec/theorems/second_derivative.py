"""``extension:second-derivative``: the second derivative of the weights, by nested dual numbers over the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..arithmetic import Arithmetic
from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_unshifted_denominator
from ..proofs.wrong_gradients import second_uncentred_covariance, second_without_covariance

DECLARATION = declare(
    "second_derivative",
    statement=(
        "D^2 w[u, v]_i = w_i ((u_i - <w,u>)(v_i - <w,v>) - Cov_w(u, v)), with Cov_w(u, v) = <w, u v> - <w,u> <w,v>."
    ),
    plain="Second-order quantities (Hessian-vector products) of the masked softmax are wrong.",
    hypotheses=(REAL_SCORES,),
    derivation=(
        "Differentiate D w_i[v] = w_i (v_i - <w,v>) along u: the first factor gives w_i (u_i - <w,u>)(v_i - <w,v>), "
        "the second gives - w_i sum_k v_k w_k (u_k - <w,u>) = - w_i Cov_w(u, v)."
    ),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The code differentiated twice, along ``v`` and then ``u``, against the formula."""

    def first(y: Sequence[Any], ar: Arithmetic) -> list[Any]:
        return along(lambda z, inner: d.hardMaskedSoftmaxVecSpec(z, row.mask, inner), y, row.v, ar)

    second = along(first, row.x, row.u, row.ar)
    for i, value in enumerate(d.second_derivative(row.mask, row.x, row.u, row.v, row.ar)):
        yield Equal(f"D^2 w[u, v][{i}]", second[i], value)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("second_derivative", second_without_covariance, second_uncentred_covariance),
            *controls("hardMaskedSoftmaxVecSpec", spec_unshifted_denominator),
        ),
        symbols=("u", "v"),
        shifted=True,
    ),
)
