"""The recipes of PyTorch's entry points."""

from __future__ import annotations

from .recipe import Recipe

COMPILE = "torch.compile(function, fullgraph=True)"

FILL = "def forward(scores, mask):\n    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)"

FILL_WHERE = """
def forward(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)
    return torch.where(mask, weights, torch.zeros_like(scores))
"""

WHERE = """
def forward(scores, mask, dim=-1):
    zero = torch.zeros_like(scores)
    blocked = torch.where(mask.any(dim, keepdim=True), torch.full_like(scores, -torch.inf), zero)
    return torch.where(mask, torch.softmax(torch.where(mask, scores, blocked), dim), zero)
"""

ADDED = """
def forward(scores, mask):
    return torch.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, {penalty}), -1)
"""

FIRST_AXIS = """
def forward(scores, mask):
    columns, allowed = scores.t().contiguous(), mask.t().contiguous()
    return torch.softmax(columns.masked_fill(~allowed, -torch.inf), 0).t()
"""

WHERE_FIRST_AXIS = (
    WHERE.replace("def forward", "def along")
    + """

def forward(scores, mask):
    return along(scores.t().contiguous(), mask.t().contiguous(), dim=0).t()
"""
)

MASKED = "def forward(scores, mask):\n    return torch.masked.softmax(scores, -1, mask=mask)"

SDPA = """
from torch.nn.functional import scaled_dot_product_attention


def forward(q, k, v, mask, scale):
    {bias}return scaled_dot_product_attention(q, k, v, {told}, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
"""

FORCED = """
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def forward(q, k, v, mask, scale):
    {bias}with sdpa_kernel([SDPBackend.{kernel}]):
        return scaled_dot_product_attention(q, k, v, {told}, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
"""

COMPILED_SDPA = """
from torch.nn.functional import scaled_dot_product_attention

attend = torch.compile(lambda q, k, v, mask: scaled_dot_product_attention(q, k, v, mask), fullgraph=True, dynamic=True)


def forward(q, k, v, mask, scale):
    return attend(q, k, v, mask.expand(*q.shape[:3], k.shape[2]))
"""

MHA = """
from torch.nn.attention import SDPBackend, sdpa_kernel


def forward(q, k, v, mask, scale):
    (batch, heads, queries, width), keys = q.shape, k.shape[2]
    module = torch.nn.MultiheadAttention(heads * width, heads, batch_first=True, dtype=q.dtype)
    one = torch.eye(heads * width, dtype=q.dtype)  # projections that change nothing
    ones = {{"in_proj_weight": one.repeat(3, 1), "out_proj.weight": one}}  # biases are 0
    blocked = {blocked}
    flat = [x.transpose(1, 2).reshape(batch, x.shape[2], heads * width) for x in (q, k, v)]
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        told = {{"{name}": blocked, "need_weights": {weights}, "average_attn_weights": False}}
        output, weights = torch.func.functional_call(module, ones, tuple(flat), told)
    output = output.reshape(batch, queries, heads, width).transpose(1, 2)
    return {returned}
"""

MHA_EVAL = """
from torch.nn.functional import pad


def forward(q, k, v, mask, scale):
    (batch, heads, queries, width), keys = q.shape, k.shape[2]
    more, length = {more}, max(queries, keys)
    mask = pad(mask.expand(batch, heads, queries, keys), (0, 0, 0, length - queries, 0, more), value=True)
    mask, heads, size = pad(mask, (0, length - keys)), heads + more, (heads + more) * width
    module = torch.nn.MultiheadAttention(4 * size, heads, batch_first=True, dtype=q.dtype).eval()
    row = (column := torch.arange(size)) // width * 4 * width + column % width
    weight = torch.zeros(4, 4 * size, 4 * size, dtype=q.dtype)  # picks q, k and v out of one input; biases are 0
    weight[3, column, row] = 1.0
    for part, factor in enumerate((2.0, 1.0, 1.0)):  # heads are 4 times as wide: 2 keeps the scale
        weight[part, row, part * size + column] = factor
    module.load_state_dict({{"in_proj_weight": weight[:3].flatten(0, 1), "out_proj.weight": weight[3]}}, strict=False)
    padded = [pad(x, (0, 0, 0, length - x.shape[2], 0, more)) for x in (q, k, v, torch.zeros_like(q))]
    x = torch.cat([x.transpose(1, 2).reshape(batch, length, size) for x in padded], -1)
    output, weights = module(x, x, x, {name}={blocked}, need_weights={weights}, average_attn_weights=False)
    output = output[..., :size].reshape(batch, length, heads, width).transpose(1, 2)[:, : q.shape[1], :queries]
    return {returned}
"""

BY_MASK = "~mask.expand(batch, heads, queries, keys).reshape(batch * heads, queries, keys)"
BY_PADDING = "~mask[:, 0, :1].all(1).expand(batch, keys)"

FLEX = """
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def forward(q, k, v, mask, scale):
    shape = (*q.shape[:3], k.shape[2])
    whole = mask.expand(shape)
    blocks = create_block_mask(lambda b, h, i, j: whole[b, h, i, j], *shape, device="cpu")
    return flex_attention(q, k, v, block_mask=blocks, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
"""


def _filled(value: str) -> tuple[str, str]:
    bias = f"bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, {value})\n    "
    return bias, "bias"


FORMS = {
    "": ("", "mask"),
    "grad": ("", "mask"),
    "-inf": _filled("-torch.inf"),
    "causal": ("", "is_causal=True"),
    "-1e4": _filled("-1e4"),
    "-1e9": _filled("-1e9"),
    "finfo.min": _filled("torch.finfo(q.dtype).min"),
    "0/1": ("", "mask.to(q.dtype)"),
}
"""How scaled_dot_product_attention is told of the mask, by what the id says."""


def _sdpa() -> dict[str, Recipe]:
    bias, told = FORMS[""]
    found = {"torch.sdpa": Recipe("torch", SDPA.format(bias=bias, told=told))}
    for kernel, name in (("math", "MATH"), ("flash", "FLASH_ATTENTION")):
        for form, (bias, told) in FORMS.items():
            source = FORCED.format(kernel=name, bias=bias, told=told)
            recipe = Recipe("torch", source, grad=form == "grad")
            found[f"torch.sdpa[{kernel}{form and ','}{form}]"] = recipe
    return found


def _mha() -> dict[str, Recipe]:
    found = {}
    for padding, blocked, name in (("", BY_MASK, "attn_mask"), (",key-padding", BY_PADDING, "key_padding_mask")):
        for weights in (True, False):
            source = MHA.format(
                blocked=blocked, name=name, weights=weights, returned="(output, weights)" if weights else "output"
            )
            variant = f"train{',weights' if weights else ''}{padding}"
            found[f"torch.multihead_attention[{variant}]"] = Recipe("torch", source, several=weights)
        for even, weights in ((True, True), (True, False), (False, False)):
            source = MHA_EVAL.format(
                more="heads % 2" if even else "1 - heads % 2",
                name=name,
                weights=weights,
                blocked="~mask[:, 0, :1].all(1)" if padding else "~mask.reshape(-1, length, length)",
                returned="(output, weights[:, : q.shape[1], :queries, :keys])" if weights else "output",
            )
            variant = f"eval,{'even' if even else 'odd'}-heads{',weights' if weights else ''}{padding}"
            found[f"torch.multihead_attention[{variant}]"] = Recipe("torch", source, several=weights)
    return found


RECIPES: dict[str, Recipe] = {
    "torch.masked-fill": Recipe("torch", FILL),
    "torch.masked-fill-where": Recipe("torch", FILL_WHERE),
    "torch.additive-inf": Recipe("torch", ADDED.format(penalty="-torch.inf")),
    "torch.masked-softmax": Recipe("torch", MASKED),
    "torch.softmax-where": Recipe("torch", WHERE),
    "torch.masked-fill[dim=0]": Recipe("torch", FIRST_AXIS),
    "torch.softmax-where[dim=0]": Recipe("torch", WHERE_FIRST_AXIS),
    "torch.masked-fill[compile]": Recipe("torch", FILL, compiled=COMPILE),
    "torch.softmax-where[compile]": Recipe("torch", WHERE, compiled=COMPILE),
    "torch.additive-1e9": Recipe("torch", ADDED.format(penalty="-1e9")),
    "torch.additive-min": Recipe("torch", ADDED.format(penalty="torch.finfo(scores.dtype).min")),
    "torch.unguarded-inf": Recipe("torch", FILL),
    **_sdpa(),
    "torch.sdpa[compile]": Recipe("torch", COMPILED_SDPA),
    **_mha(),
    "torch.flex_attention": Recipe("torch", FLEX),
}
"""By the id of the subject."""
