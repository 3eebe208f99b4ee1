"""How a subject calls its entry point, as plain source that runs without hardmask: what a bug report needs.

A recipe is Python source that defines ``forward`` over the arrays of one library, with the arguments of the subject's
own ``forward``: ``(scores, mask)``, or ``(q, k, v, mask, scale)``. The derivatives are those that the library makes of
it, unless the source defines them too. The tests run every recipe beside its subject and compare them bit for bit.

>>> import numpy as np
>>> ones = Recipe("numpy", "def forward(scores, mask):\\n    return np.where(mask, 1.0, 0.0)")
>>> space = {}
>>> exec(ones.script("forward"), space)
>>> space["run"](np.zeros((1, 2)), np.array([[True, False]])).tolist()
[[1.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Library = Literal["numpy", "torch", "jax"]
Which = Literal["forward", "vjp", "jvp"]

IMPORTS: dict[Library, str] = {
    "numpy": 'import numpy as np\n\nnp.seterr(all="ignore")',
    "torch": "import numpy as np\nimport torch",
    "jax": (
        "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
        'jax.config.update("jax_platforms", "cpu")\njax.config.update("jax_enable_x64", True)'
    ),
}
"""What every script begins with. JAX would compute float64 in float32 otherwise."""

MODULE: dict[Library, str] = {"numpy": "np", "torch": "torch", "jax": "jnp"}

PADDED: dict[Library, str] = {
    "numpy": "np.pad({}, ((0, 0), (0, width - n)))",
    "torch": "torch.nn.functional.pad({}, (0, width - n))",
    "jax": "jnp.pad({}, ((0, 0), (0, width - n)))",
}


@dataclass(frozen=True)
class Recipe:
    """The source of one entry point's call, and over whose arrays it is written.

    - ``library``: ``numpy``, ``torch`` or ``jax``; the source may use it as ``np``, ``torch``, ``jax`` and ``jnp``.
    - ``source``: defines ``forward``, and ``vjp`` or ``jvp`` where the library does not make them of it.
    - ``compiled``: the expression that compiles a function called ``function``, such as ``jax.jit(function)``.
    - ``grad``: whether PyTorch records a graph in the forward pass too.
    - ``several``: whether ``forward`` returns more: an attention the output and the weights, a masked softmax the
      weights and the ``valid`` flag.
    - ``rows``: the attention of ``source`` is seen through the identity, as a masked softmax; ``fixed``: its scale
      cannot be chosen.
    """

    library: Library
    source: str
    compiled: str = ""
    grad: bool = False
    several: bool = False
    rows: bool = False
    fixed: bool = False

    @property
    def attention(self) -> bool:
        """Whether ``forward`` takes queries, keys and values."""
        return "def forward(q, k, v" in self.source

    def script(self, *methods: Which) -> str:
        """Source that defines ``run``, with the arguments of the subject's method, over the library's arrays; of
        several methods ``run_forward``, ``run_vjp`` and ``run_jvp``."""
        parts = [IMPORTS[self.library], self.source.strip()]
        for method in methods:
            more = "" if len(methods) == 1 else f"_{method}"
            parts += self._method(method, f"attention{more}" if self.rows else f"run{more}")
            parts += [self._through(method, more)] if self.rows else []
        return "\n\n\n".join(dict.fromkeys(parts)) + "\n"

    def _method(self, method: Which, name: str) -> list[str]:
        given = "q, k, v" if self.attention else "scores"
        rest = "mask, scale" if self.attention else "mask"
        whole = [f"{name} = {self.compiled.replace('function', name)}"] if self.compiled else []
        if self.library == "torch":
            forward = [f"forward = {self.compiled.replace('function', 'forward')}"] if self.compiled else []
            return self._torch(method, name, given, rest, forward, whole)
        if method == "forward" or f"def {method}(" in self.source:
            return [f"{name} = {self.compiled.replace('function', method) if self.compiled else method}"]
        call = f"lambda {given}: forward({given}, {rest})"
        if method == "vjp":
            made = f"jax.vjp({call}, {given})[1](vector){'' if self.attention else '[0]'}"
        else:
            made = f"jax.jvp({call}, ({given},), {'tuple(vector)' if self.attention else '(vector,)'})[1]"
        return [f"def {name}({given}, {rest}, vector):\n    return {made}", *whole]

    def _torch(
        self, method: Which, name: str, given: str, rest: str, forward: Sequence[str], whole: Sequence[str]
    ) -> list[str]:
        first = "[0]" if self.several else ""
        if method == "forward":
            if self.grad:
                fresh = ", ".join(f"{x}.clone().requires_grad_()" for x in given.split(", "))
                return [*forward, f"def {name}({given}, {rest}):\n    return forward({fresh}, {rest})"]
            return [
                *forward,
                f"def {name}({given}, {rest}):\n    with torch.no_grad():\n        return forward({given}, {rest})",
            ]
        if method == "vjp":
            lines = [
                f"def {name}({given}, {rest}, vector):",
                f"    x = [x.clone().requires_grad_() for x in ({given},)]",
                f"    pulled = torch.autograd.grad(forward(*x, {rest}){first}, x, vector)",
                f"    return {'pulled' if self.attention else 'pulled[0]'}",
            ]
            return [*forward, "\n".join(lines)]
        vectors = "tuple(vector)" if self.attention else "(vector,)"
        call = f"lambda *x: forward(*x, {rest}){first}"
        return [
            f"def {name}({given}, {rest}, vector):\n    return torch.func.jvp({call}, ({given},), {vectors})[1]",
            *whole,
        ]

    def _through(self, method: Which, suffix: str) -> str:
        """A row as a query, with the identity for keys and values: the output is the row of weights."""
        padded, module = PADDED[self.library], MODULE[self.library]
        width = "next(16**k for k in range(6) if 16**k >= n)" if self.fixed else "max(1, n)"
        root = "width**0.5" if self.fixed else "1.0"
        vector = padded.format("vector") + "[None, None]"
        first = "[0]" if method == "vjp" or (method == "forward" and self.several) else ""
        more = {"forward": "", "vjp": f", {vector}", "jvp": f", ({vector}, 0 * k, 0 * v)"}[method]
        return "\n".join(
            [
                f"def run{suffix}(scores, mask{'' if method == 'forward' else ', vector'}):",
                "    n = scores.shape[1]",
                f"    width = {width}",
                f"    v = {module}.eye(n, width, dtype=scores.dtype)[None, None]",
                f"    q, k = {padded.format('scores')}[None, None], v * {root}",
                f"    found = attention{suffix}(q, k, v, mask[None, None], 1.0 / {root}{more})",
                f"    return found{first}[0, 0, :, :n]",
            ]
        )
