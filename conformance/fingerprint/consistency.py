"""Compare the paths of one framework with each other: subjects that share a ``group`` should agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...adapters.attention import Attention
from ...adapters.subject import METHODS, Method
from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ..attention.calls import call_attention, limit_of, takes
from ..attention.masks import MASKS
from ..attention.plan import GROUPED, SMALL, SQUARE, AttentionCase, Shape
from ..attention.smallest import smallest
from ..calls import Fault
from .agreement import Compared, Kind, Posed, compare
from .layouts import wave
from .probe import arguments, text
from .record import Disagreement, PathRecord

TRIALS = 40
"""Problems that are tried at most to shrink one: every new shape may have to be compiled."""

SHAPES: tuple[Shape, ...] = tuple(
    (batch, heads, heads, queries, keys, d, d)
    for batch, heads, queries, keys in (
        (1, 1, 1, 1),
        (1, 1, 1, 2),
        (1, 1, 2, 2),
        (1, 2, 2, 2),
        (2, 1, 2, 2),
        (1, 1, 3, 4),
    )
    for d in (1, 4, 16)
)
"""The shapes, from the smallest on, in which a disagreement is looked for again."""


ONE: Shape = (2, 2, 2, 1, 7, 4, 4)
"""One query, as in a decoding step."""


BROADCAST = ("heads alike", "batch alike", "keys alone")
"""Families whose masks are handed over as small as they are. The others are expanded: to a compiler, a mask of another
shape is another program."""


def problems(dtype: str, seed: int, *, square: bool) -> Iterator[Problem]:
    """What all paths of a group are given: every mask in one small shape, some with one query, and some where heads are
    grouped and lengths beyond a tile; and in a ``square`` shape, where some path takes no other."""
    for shape, masks, content in (
        (SMALL, tuple(MASKS), "plain"),
        (SQUARE, ("full", "causal top-left", "padding", "all padding", "random", "one empty query"), "plain"),
        (ONE, ("full", "causal bottom-right", "padding", "random"), "plain"),
        (GROUPED, ("full", "causal top-left", "padding", "random", "one empty query", "first tile blocked"), "peaked"),
    ):
        for mask in masks if square or shape != SQUARE else ():
            made = AttentionCase(dtype, shape, mask, content, seed).build()
            yield made if mask in BROADCAST else replace(made, mask=made.full_mask.copy())


@dataclass
class _Seen:
    """One kind of disagreement of one path, over all problems."""

    problem: Problem
    method: Method
    name: str
    against: dict[str, Attention] = field(default_factory=dict)
    dtypes: dict[str, None] = field(default_factory=dict)
    quantities: dict[str, None] = field(default_factory=dict)
    families: dict[str, None] = field(default_factory=dict)
    count: int = 0


def consistency(
    subjects: Sequence[Attention],
    dtypes: Sequence[str],
    *,
    seed: int = 0,
    listen: Callable[[str], None] = lambda what: None,
) -> tuple[list[PathRecord], list[Disagreement]]:
    """Give the paths of each group the same problems; how far each agrees with the others, and where it does not.

    On each problem the paths that agree with each other form camps. The largest (of equals, that of a reference or of
    the first subject) is what the others are said to disagree with: a majority, not the truth.
    """
    records: list[PathRecord] = []
    found: list[Disagreement] = []
    for group in dict.fromkeys(s.group for s in subjects if s.group):
        members = [s for s in subjects if s.group == group]
        if len(members) < 2:
            continue
        run = _Group(group, members)
        for dtype in dtypes:
            listen(f"{group} {dtype}")
            run.compare(dtype, seed)
        records += run.records()
        for path, kind, seen in run.seen():
            listen(f"{path.id}: the smallest input")
            found.append(_disagreement(group, path, kind, seen, seed))
    return records, found


class _Group:
    def __init__(self, name: str, members: list[Attention]) -> None:
        self.name, self.members = name, members
        self._seen: dict[tuple[str, Kind], _Seen] = {}
        self._records: dict[tuple[str, str], PathRecord] = {}

    def records(self) -> list[PathRecord]:
        """How far each path agrees, dtype by dtype."""
        return list(self._records.values())

    def seen(self) -> Iterator[tuple[Attention, Kind, _Seen]]:
        """Each path with each kind of disagreement."""
        by_id = {s.id: s for s in self.members}
        for (id, kind), seen in self._seen.items():
            yield by_id[id], kind, seen

    def compare(self, dtype: str, seed: int) -> None:
        """Give all members the problems of a dtype."""
        members = [s for s in self.members if dtype in s.dtypes]
        square = any("queries other than keys" in s.limits for s in members)
        for problem in problems(dtype, seed, square=square) if len(members) > 1 else ():
            able = [s for s in members if takes(s, problem) and not limit_of(s, problem)]
            posed = Posed(problem)
            for method in METHODS:
                asked = [s for s in able if method in s.methods]
                if len(asked) > 1:
                    self._method(posed, method, asked)

    def _method(self, posed: Posed, method: Method, asked: list[Attention]) -> None:
        answers = [(s, call_attention(s, method, posed.problem)) for s in asked]
        raised = [s for s, a in answers if isinstance(a, Fault)]
        good = [(s, a.raw) for s, a in answers if not isinstance(a, Fault)]
        for s in raised if good else ():
            self._note(posed.problem, method, next(iter(good[0][1])), s, [g for g, _ in good], "raises")
        for name in good[0][1] if len(good) > 1 else ():
            self._camps(posed, method, name, [(s, raw[name]) for s, raw in good])

    def _camps(self, posed: Posed, method: Method, name: str, answers: list[tuple[Attention, Array]]) -> None:
        camps: list[list[tuple[Attention, Array]]] = []
        for s, array in answers:
            for camp in camps:
                other, theirs = camp[0]
                if compare(posed, method, name, (other, s), (theirs, array)).kind is None:
                    camp.append((s, array))
                    break
            else:
                camps.append([(s, array)])
        best = max(camps, key=lambda camp: (len(camp), any(s.role == "reference" for s, _ in camp)))
        head, values = best[0]
        for s, array in answers:
            result = compare(posed, method, name, (head, s), (values, array))
            self._count(s, posed.problem.dtype, result)
            if result.kind is not None:
                self._note(posed.problem, method, name, s, [other for other, _ in best], result.kind)

    def _count(self, s: Attention, dtype: str, result: Compared) -> None:
        key = s.id, dtype
        old = self._records.get(key) or PathRecord(group=self.name, subject=s.id, dtype=dtype)
        self._records[key] = PathRecord(
            group=self.name,
            subject=s.id,
            dtype=dtype,
            arrays=old.arrays + 1,
            identical=old.identical + result.identical,
            disagreeing=old.disagreeing + (result.kind is not None),
            share=max(old.share, result.share),
        )

    def _note(
        self, problem: Problem, method: Method, name: str, s: Attention, others: list[Attention], kind: Kind
    ) -> None:
        seen = self._seen.setdefault((s.id, kind), _Seen(problem, method, name))
        seen.against.update({o.id: o for o in others})
        seen.dtypes[problem.dtype] = seen.quantities[name] = seen.families[problem.family] = None
        seen.count += 1


def _disagreement(group: str, path: Attention, kind: Kind, seen: _Seen, seed: int) -> Disagreement:
    """The record, with the smallest problem that shows it to this path and the first of the others that takes it."""
    others = list(seen.against.values())
    other = next(o for o in others if takes(o, seen.problem) and not limit_of(o, seen.problem))

    def shows(problem: Problem) -> bool:
        return _result(problem, seen.method, seen.name, other, path)[0] == kind

    problem = next((p for p in _small(seen.problem, seed) if shows(p)), None)
    problem = problem or smallest(seen.problem, shows, trials=TRIALS)
    _, compared, arrays, sentence = _result(problem, seen.method, seen.name, other, path)
    values = [float(a[compared.at]) for a in arrays] if compared.at or (arrays and kind != "raises") else []
    return Disagreement(
        group=group,
        subject=path.id,
        against=list(seen.against),
        kind=kind,
        dtypes=list(seen.dtypes),
        quantities=list(seen.quantities),
        families=list(seen.families),
        arrays=seen.count,
        pair=[other.id, path.id],
        method=seen.method,
        quantity=seen.name,
        dtype=problem.dtype,
        at=list(compared.at),
        values=[text(v) for v in values],
        bound=compared.bound,
        sizes=dict(zip(("B", "H", "G", "Lq", "Lk", "d", "dv"), problem.sizes, strict=True)),
        input=arguments(problem, seen.method),
        detail=sentence,
    )


def _small(problem: Problem, seed: int) -> Iterator[Problem]:
    """Problems of the same family, from the smallest shape on, that hold small whole numbers."""
    form = problem.format.dtype
    for shape in SHAPES:
        made = AttentionCase(problem.dtype, shape, problem.family, "plain", seed).build()
        q, k, v, g = (wave(a.shape, form, n) for n, a in enumerate((made.q, made.k, made.v, made.cotangent)))
        yield replace(made, q=q, k=k, v=v, cotangent=g, tangents=(wave(q.shape, form, 4), wave(k.shape, form, 5), v))


def _result(
    problem: Problem, method: Method, name: str, other: Attention, path: Attention
) -> tuple[Kind | None, Compared, tuple[Array, ...], str]:
    """How the two paths compare on a problem: the kind of disagreement, the comparison, the arrays, what was raised."""
    if any(not takes(s, problem) or limit_of(s, problem) for s in (other, path)):
        return None, Compared(), (), ""
    first, second = (call_attention(s, method, problem) for s in (other, path))
    if isinstance(first, Fault):
        return None, Compared(), (), ""
    if isinstance(second, Fault):
        return "raises", Compared(), (), second.sentence
    arrays = first.raw[name], second.raw[name]
    result = compare(Posed(problem), method, name, (other, path), arrays)
    return result.kind, result, arrays, ""
