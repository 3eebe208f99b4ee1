"""Draw docs/figures/empty-row.svg: what five policies make of one row of scores, (0, 1, 2).

Run ``python docs/figures/empty_row.py`` where hardmask and matplotlib are installed. The bars are what hardmask's own
NumPy subjects return, not numbers typed in here.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hardmask.adapters import Answer, resolve

SCORES, VALUES = (0.0, 1.0, 2.0), (10.0, 20.0, 90.0)
PARTIAL, EMPTY = (True, False, True), (False, False, False)

PANELS = (
    ("key 1 blocked:\nany correct code", "numpy.softmax-where", PARTIAL),
    ("all blocked:\nscores replaced by\na finite number", "numpy.replace-min", EMPTY),
    ("all blocked:\nfinite penalty added\nto the scores", "numpy.additive-1e9", EMPTY),
    ("all blocked:\nfilled with −∞\nand normalised", "numpy.fill-inf", EMPTY),
    ("all blocked:\nzeros, and a flag", "numpy.zero-with-flag", EMPTY),
)


@dataclass(frozen=True)
class Panel:
    """One policy on one row: the weights, the output ``sum w_i v_i``, and the flag if there is one."""

    title: str
    mask: tuple[bool, ...]
    weights: tuple[float, ...]
    output: float
    valid: bool | None

    @property
    def caption(self) -> str:
        """The output as the figure shows it."""
        shown = "NaN" if np.isnan(self.output) else f"{self.output:.4g}" if self.output else "0"
        flag = "" if self.valid is None else f"\nvalid = {self.valid}"
        return f"output {shown}{flag}"


def panels() -> list[Panel]:
    """Call the subjects on the row."""
    made = []
    for title, subject_id, mask in PANELS:
        (subject,) = resolve([subject_id])
        answer = subject.forward(np.array([SCORES]), np.array([mask]))
        weights, valid = answer, None
        if isinstance(answer, Answer):
            weights, valid = answer.weights, answer.valid
        assert isinstance(weights, np.ndarray)
        flag = None if valid is None else bool(valid[0])
        made.append(Panel(title, mask, tuple(weights[0].tolist()), float(weights[0] @ np.array(VALUES)), flag))
    return made


def draw(target: Path) -> None:
    """Write the figure; the file name's ending chooses the format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    # The same bytes each time: element ids are drawn from the salt, and no date is written.
    pyplot.rcParams.update({"svg.hashsalt": "hardmask", "font.size": 9, "hatch.linewidth": 0.8})
    allowed, blocked = {"facecolor": "0.35"}, {"facecolor": "0.9", "hatch": "////"}
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(9.6, 3.4), sharey=True)
    for axis, panel in zip(axes, panels(), strict=True):
        for key, (weight, is_allowed) in enumerate(zip(panel.weights, panel.mask, strict=True)):
            style = allowed if is_allowed else blocked
            if np.isnan(weight):
                axis.text(key, 0.03, "NaN", ha="center", va="bottom")
                continue
            axis.bar(key, weight, width=0.7, edgecolor="black", linewidth=0.8, **style)
            axis.text(key, weight + 0.02, f"{weight:.2f}" if weight else "0", ha="center", va="bottom")
        axis.set_title(panel.title, fontsize=9)
        axis.set_xticks(range(3), [f"key {k}\nv = {v:g}" for k, v in enumerate(VALUES)], fontsize=8)
        axis.set_xlim(-0.6, 2.6)
        axis.set_ylim(0, 1)
        axis.tick_params(bottom=False)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlabel(panel.caption, fontweight="bold", labelpad=6)
    axes[0].set_ylabel("weight")
    kinds = [
        Patch(edgecolor="black", label=label, **style)
        for label, style in (("allowed key", allowed), ("blocked key", blocked))
    ]
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(handles=kinds, loc="lower center", ncols=2, frameon=False)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("empty-row.svg"))
