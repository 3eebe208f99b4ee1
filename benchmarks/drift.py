"""How often an audit calls two samples of one subject two distributions, measured on certificates with other seeds.

    python benchmarks/drift.py [SEEDS]

The subjects are the same in all runs, so every drift is a false alarm. The level of one audit is 0.001, so there should
be none in some hundred pairs; how close the pairs come to the threshold tells how much wider it is than chance.
"""

from __future__ import annotations

import sys
from itertools import combinations

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.upgrades.drift import LEVEL, drift

TARGETS = ("numpy.softmax-where", "numpy.fill-inf")


def main(seeds: int) -> None:
    """Print the number of alarms, and the largest distance in units of the noise."""
    samples = []
    for seed in range(seeds):
        request = Request(TARGETS, effort="smoke", dtypes=("float32", "float16"), seed=seed)
        samples.append(certify(request, minimise=False).certificate.errors)
    alarms, shares, pairs = 0, [], 0
    for old, new in combinations(samples, 2):
        pairs += 1
        known = {(e.subject, e.declaration, e.dtype): e for e in old}
        both = [(known[key], e) for e in new if (key := (e.subject, e.declaration, e.dtype)) in known]
        found = [d for a, b in both if (d := drift(a, b, LEVEL / len(both))) is not None]
        alarms += any(d.distance > d.noise for d in found)
        shares += [d.distance / d.noise for d in found]
    print(f"{pairs} pairs of runs, {len(shares)} pairs of distributions, {alarms} audits with a false alarm")
    print(f"largest distance: {max(shares):.2f} of the noise; on average {sum(shares) / len(shares):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
