"""How a script ends: returned beside true, one sentence, and the exit code."""

from __future__ import annotations

from .literals import number

ENTRIES = [
    'print("returned", returned)',
    'print("true    ", true)',
    "if not np.all(np.abs(returned[at] - true[at]) <= budget):  # NaN is beyond every budget",
    '    raise SystemExit(f"The fault shows: {returned[at]} came back, {true[at]} is true; {budget:.3g} is allowed.")',
    'print("The fault does not show.")',
]

MANY = [line.replace("{budget:.3g}", "{budget}") for line in ENTRIES]
"""The same with a budget of each entry."""

NOT_NAN = [
    'print("returned", returned)',
    "if not np.all(np.isnan(returned)):",
    '    raise SystemExit("The fault shows: a row without an allowed key should be NaN.")',
    'print("The fault does not show.")',
]

NOT_NAN_OR_ZERO = [
    'print("returned", returned)',
    "if not np.all(np.isnan(returned) | (returned == 0)):",
    '    raise SystemExit("The fault shows: the derivative of a row without an allowed key should be NaN or 0.")',
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


def apart(diagnosis: str, one: str, two: str, at: str, budget: float, *, nan: bool = False) -> list[str]:
    """The end of a script that compares one entry of two answers, ``returned`` and ``other``, described in words.

    ``nan``: two NaNs are one answer, where whether it may be NaN is the business of another theorem.
    """
    same = [] if not nan else ["same = np.isnan(returned[at]) and np.isnan(other[at])"]
    difference = f"{'same or ' if nan else ''}abs(returned[at] - other[at]) <= budget"
    width = max(len(one), len(two))
    return [
        f'print("{one:<{width}}", returned)',
        f'print("{two:<{width}}", other)',
        f"budget, at = {number(budget)}, {at}",
        *same,
        f"if not ({difference}):  # NaN is beyond every budget",
        f'    raise SystemExit(f"The fault shows: {diagnosis}. Entry {{at}} is {{returned[at]}} {one}, "',
        f'        f"and {{other[at]}} {two}; {{budget:.3g}} is allowed between them.")',
        'print("The fault does not show.")',
    ]


def small(diagnosis: str, what: str, budget: float) -> list[str]:
    """The end of a script that has a number ``apart`` which is zero but for rounding."""
    return [
        f"budget = {number(budget)}",
        f'print("{what} is", apart)',
        "if not apart <= budget:  # NaN is beyond every budget",
        f'    raise SystemExit(f"The fault shows: {diagnosis}. {what} is {{apart:.3g}}, not 0; "',
        '        f"{budget:.3g} is allowed.")',
        'print("The fault does not show.")',
    ]
