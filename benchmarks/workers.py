"""What workers cost: the same runs of ``hardmask certify``, with workers and in process, in turn.

    python benchmarks/workers.py [--repeat N] [TARGETS ...]

Each target is certified N times either way, in the order with, without, without, with, and so on, so that what else the
machine does falls on both. Wall-clock seconds; the median of each, and by how much workers are slower.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

TARGETS = ("numpy", "torch.softmax-where", "torch")


def seconds(arguments: list[str]) -> float:
    """How long a run takes; its verdict does not matter."""
    command = [sys.executable, "-m", "hardmask.conformance", "certify", *arguments]
    since = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}: {done.stderr.strip()[-300:]}")
    return time.perf_counter() - since


def main() -> None:
    """Print one line for each target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--effort", default="default")
    options = parser.parse_args()
    print(f"{'target':<24}{'workers':>10}{'in process':>12}{'more':>8}")
    for target in options.targets:
        base = [target, "--effort", options.effort]
        taken: dict[bool, list[float]] = {True: [], False: []}
        for number in range(options.repeat):
            for there in (True, False) if number % 2 == 0 else (False, True):
                taken[there].append(seconds(base if there else [*base, "--in-process"]))
        workers, here = (statistics.median(taken[there]) for there in (True, False))
        print(f"{target:<24}{workers:>8.1f} s{here:>10.1f} s{100 * (workers / here - 1):>+7.1f}%", flush=True)


if __name__ == "__main__":
    main()
