"""How the result of ``hardmask prove`` is shown: a table for people, plain data for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from .prove import ProofResult, exit_code

_COLOURS = {"pass": "green", "fail": "red", "error": "bold red"}


def proof_table(results: Sequence[ProofResult]) -> Table:
    """A rich table, one line per declaration."""
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("declaration", overflow="fold")
    for heading in ("every n", "masks", "identities", "rows", "residual", "enclosure", "controls", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for r in results:
        rejected = sum(c.symbolic and c.numeric for c in r.controls)
        table.add_row(
            r.declaration.name.rsplit(".", 1)[-1],
            "no" if r.symbolic.failure else str(r.symbolic.generic or "-"),
            f"{r.symbolic.masks} (n <= {r.symbolic.max_n})",
            str(r.symbolic.identities),
            str(r.numeric.rows),
            _power(r.numeric.residual),
            _power(r.numeric.width),
            f"{rejected}/{len(r.controls)}",
            f"{sum(r.seconds):.2f}",
            Text(r.verdict, style=_COLOURS[r.verdict]),
        )
    return table


def proof_notes(results: Sequence[ProofResult]) -> list[str]:
    """What the table does not say, as sentences: failures first, then what its columns mean."""
    notes = [f"{r.declaration.name}: {failure}." for r in results for failure in r.failures]
    if results:
        # The lemma that makes them general differs between rows and heads of attention.
        rows, heads = (
            max((r.symbolic.collapse for r in results if r.attention == wanted), default=0) for wanted in (False, True)
        )
        lemmas = [f"collapse lemma for rows: {rows} identities"] * bool(rows)
        lemmas += [f"locality lemma for attention: {heads} identities"] * bool(heads)
        notes.append(
            f"every n: identities on small rows or heads, which stand for all ({'; '.join(lemmas)}). "
            "masks: all masks of all lengths up to n, with every choice of the subtracted maximum; a table that its "
            "length determines counts once per length."
        )
        notes.append(
            "residual, enclosure: the worst relative residual and the widest interval, below 1e-45 and 1e-40. "
            "controls: deliberate mistakes that both legs reject."
        )
    for r in results:
        if r.numeric.remainder is not None:
            m = r.numeric.remainder
            notes.append(
                f"{r.declaration.name}: the remainder stays below {m.bound} on {m.rows} rows at {m.steps} steps "
                f"down to {m.smallest_step:.0e} (at most {m.share:.3f} of the bound); rows of order 2: {m.orders[2]}, "
                f"of order 3 (two-way ties): {m.orders[3]}, exactly 0: {m.orders[0]}."
            )
    return notes


def proof_data(results: Sequence[ProofResult]) -> dict[str, Any]:
    """The results as plain JSON data; an infinite or missing number is null."""
    return {
        "schema": "hardmask-proofs-1",
        "exit_code": exit_code(results),
        "declarations": [_result_data(r) for r in results],
    }


def _result_data(r: ProofResult) -> dict[str, Any]:
    d, s, n = r.declaration, r.symbolic, r.numeric
    remainder = n.remainder and {
        "rows": n.remainder.rows,
        "steps": n.remainder.steps,
        "smallest_step": n.remainder.smallest_step,
        "digits": n.remainder.digits,
        "share_of_bound": _finite(n.remainder.share),
        "rows_by_order": {str(order): count for order, count in n.remainder.orders.items()},
    }
    return {
        "key": d.key,
        "name": d.name,
        "kind": d.kind,
        "module": d.module,
        "statement": d.statement,
        "plain": d.plain,
        "hypotheses": {h.name: h.statement for h in d.hypotheses},
        "derivation": d.derivation,
        "fingerprint": d.fingerprint,
        "verdict": r.verdict,
        "suite_fault": r.suite_fault,
        "symbolic": {
            "verdict": "pass" if s.passed else "fail",
            "generic_identities": s.generic,
            "collapse_identities": s.collapse,
            "max_n": s.max_n,
            "masks": s.masks,
            "rows": s.rows,
            "identities": s.identities,
            "failure": s.failure,
            "seconds": round(r.seconds[0], 4),
        },
        "numeric": {
            "verdict": "pass" if n.passed else "fail",
            "seed": n.seed,
            "rows": n.rows,
            "claims": n.claims,
            "worst_residual": _finite(n.residual),
            "enclosures": n.enclosures,
            "widest_enclosure": _finite(n.width),
            "remainder": remainder,
            "failure": n.failure,
            "seconds": round(r.seconds[1], 4),
        },
        "controls": [
            {"name": c.name, "rejected_by_symbolic": c.symbolic, "rejected_by_numeric": c.numeric} for c in r.controls
        ],
        "controls_seconds": round(r.seconds[2], 4),
    }


def _power(value: float) -> str:
    """A small number for the table: 0, or one digit and an exponent."""
    return "0" if value == 0 else f"{value:.0e}" if math.isfinite(value) else "-"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
