"""How much of its error budgets each attention kernel uses, tier by tier, on as many outputs as asked for.

Prints a line for each subject, dtype, quantity and tier: entries judged, entries beyond the budget, the largest share
of a budget that was used, and the problem where that was. Below, the share of the strictest budgets that the oracle's
own error takes. Queries without an allowed key are left out, and so are gradients of keys where a problem has such ones
and the subject does not return zeros there: contracts, not budgets, judge those. Exits 1 if an answer exceeds the
declared tier of its subject.

    OMP_NUM_THREADS=1 python benchmarks/attention.py
    OMP_NUM_THREADS=1 python benchmarks/attention.py --targets numpy torch --dtypes float32 --entries 100000
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from hardmask.adapters.attention import Attention
from hardmask.adapters.registry import resolve_all
from hardmask.conformance.attention.calls import AttentionReturned, call_attention, limit_of, takes
from hardmask.conformance.attention.plan import plan_attention
from hardmask.spec.attention.oracle import AttentionTruth
from hardmask.spec.attention.problem import Problem
from hardmask.spec.attention.rounding import attention_budget
from hardmask.spec.attention.tiers import canonical, ladder, model
from hardmask.spec.formats import DTYPES

METHOD = {"output": "forward", "weights": "forward", "dq": "vjp", "dk": "vjp", "dv": "vjp", "jvp": "jvp"}


@dataclass
class Used:
    """What one line of the table says."""

    judged: int = 0
    beyond: int = 0
    share: float = 0.0
    where: str = ""


def main() -> int:
    """Judge the subjects of the command line until each dtype has enough outputs; return the exit code."""
    options = _options()
    subjects = [s for s in resolve_all(options.targets) if isinstance(s, Attention)]
    lines: dict[tuple[str, str, str, str], Used] = defaultdict(Used)
    oracle: dict[str, float] = defaultdict(float)
    for dtype in options.dtypes:
        taking = [s for s in subjects if dtype in s.dtypes and dtype not in s.unsupported]
        for turn in range(options.rounds):
            for case in plan_attention(options.effort, options.seed + turn, [dtype]):
                _judge(case.build(), taking, lines, oracle)
            least = min((lines[s.id, dtype, "output", ladder(dtype)[0]].judged for s in taking), default=0)
            print(f"{dtype}: round {turn + 1}, at least {least} outputs of each subject", file=sys.stderr, flush=True)
            if least >= options.entries:
                break
    tiers = {s.id: s for s in subjects}
    failed = 0
    for (name, dtype, quantity, tier), used in lines.items():
        declared = canonical(tiers[name].tier_for(METHOD[quantity], dtype), dtype)  # type: ignore[arg-type]
        mark = "*" if tier == declared else " "
        failed += used.beyond if tier == declared else 0
        counts = f"{used.judged:9d} {used.beyond:8d} {used.share:10.4g}"
        print(f"{name:44} {dtype:8} {quantity:7} {tier:8}{mark} {counts}  {used.where}")
    for dtype, share in oracle.items():
        print(f"The oracle's own error is at most {share:.1e} of the strictest budget ({dtype}).")
    return 1 if failed else 0


def _judge(
    problem: Problem, subjects: list[Attention], lines: dict[tuple[str, str, str, str], Used], oracle: dict[str, float]
) -> None:
    truth, dtype = AttentionTruth(problem), problem.dtype
    budgets = {tier: attention_budget(model(tier, dtype), truth) for tier in ladder(dtype)}
    for quantity in METHOD:
        strict = getattr(budgets[ladder(dtype)[0]], quantity)
        error = getattr(truth, quantity).error
        # Weights so small that they underflow are left to the referee.
        used = np.divide(error, strict, out=np.zeros_like(error), where=strict > 0.0)
        oracle[dtype] = max(oracle[dtype], float(used.max(initial=0.0)))
    for subject in subjects:
        if limit_of(subject, problem) or not takes(subject, problem):
            continue
        for quantity, answer in _answers(subject, problem).items():
            to_key = quantity in ("dk", "dv")
            if to_key and subject.contract != "zero" and problem.empty.any():
                continue
            left_out = False if to_key else problem.empty[..., None]
            distance, slack = getattr(truth, quantity).distance(answer)
            for tier, budget in budgets.items():
                allowed = getattr(budget, quantity)
                with np.errstate(invalid="ignore"):
                    beyond = ~(distance - slack <= allowed) & ~np.asarray(left_out)
                share = np.divide(distance, allowed, out=np.zeros_like(distance), where=allowed > 0.0)
                share = np.where(np.isfinite(share) & ~np.asarray(left_out), share, 0.0)
                line, most = lines[subject.id, dtype, quantity, tier], float(share.max(initial=0.0))
                line.judged += distance.size
                line.beyond += int(beyond.sum())
                if most > line.share:
                    line.share, line.where = most, problem.key
                if beyond.any() and not line.where:
                    line.where = problem.key


def _answers(subject: Attention, problem: Problem) -> dict[str, np.ndarray]:
    """What the subject returns, in float64, by quantity; a call that fails prints its reason and gives nothing."""
    found: dict[str, np.ndarray] = {}
    for method in subject.methods:
        if method in subject.unsupported:
            continue
        returned = call_attention(subject, method, problem)
        if not isinstance(returned, AttentionReturned):
            print(f"{problem.key}: {returned}", file=sys.stderr)
            continue
        found |= {("jvp" if name == "tangent" else name): returned.values(name) for name in returned.raw}
        if returned.weights is not None:
            found["weights"] = returned.weights
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=["numpy", "torch", "jax"])
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--entries", type=int, default=1_000_000, help="outputs of each subject and dtype")
    parser.add_argument("--rounds", type=int, default=100, help="at most so many rounds of the plan")
    parser.add_argument("--effort", default="deep", choices=("smoke", "default", "deep"))
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
