"""How a script ends: returned beside true, one sentence, and the exit code."""

from __future__ import annotations

ENTRIES = [
    'print("returned", returned)',
    'print("true    ", true)',
    "if not np.all(np.abs(returned[at] - true[at]) <= budget):  # NaN is beyond every budget",
    '    raise SystemExit(f"The fault shows: {returned[at]} came back, {true[at]} is true; {budget:.3g} is allowed.")',
    'print("The fault does not show.")',
]

TWO = [
    'print("returned", returned)',
    'print("with 0  ", other)',
    "if not np.all(np.abs(returned - other) <= budget):  # NaN is beyond every budget",
    '    raise SystemExit("The fault shows: what stands at a blocked key changes the answer.")',
    'print("The fault does not show.")',
]

NOT_NAN = [
    'print("returned", returned)',
    "if not np.all(np.isnan(returned)):",
    '    raise SystemExit("The fault shows: a row without an allowed key should be NaN.")',
    'print("The fault does not show.")',
]


def ending(found: str, true: str, what: str, budget: str) -> list[str]:
    """The end of a script that compares one number."""
    return [
        f"found, true = {found}, {true}",
        'print("returned", found, "true", true)',
        f"if not abs(found - true) <= {budget}:  # NaN is beyond every budget",
        f'    raise SystemExit(f"The fault shows: {what} is {{found}}, not {{true}}; {{{budget}:.3g}} is allowed.")',
        'print("The fault does not show.")',
    ]
