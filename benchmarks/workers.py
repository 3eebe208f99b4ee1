"""What workers cost: the same runs of ``hardmask certify``, with workers and in process, in turn.

    python benchmarks/workers.py [--repeat N] [TARGETS ...]

Each target is certified N times either way, in the order with, without, without, with, and so on, so that what else the
machine does falls on both. The median of the seconds of processor time, of all processes together, and of the seconds
that passed; each with by how much workers are slower. ``--jobs 1``, the default here, keeps all processes countable.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

TARGETS = ("numpy", "torch.softmax-where", "torch")


def seconds(arguments: list[str]) -> tuple[float, float]:
    """How much processor time and how much time a run takes; its verdict does not matter."""
    command = [sys.executable, "-m", "hardmask.conformance", "certify", *arguments]
    before, since = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}: {done.stderr.strip()[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - since


def main() -> None:
    """Print one line for each target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--effort", default="default")
    parser.add_argument("--jobs", default="1")
    options = parser.parse_args()
    print(f"{'target':<24}{'':<12}{'workers':>10}{'in process':>12}{'more':>9}")
    for target in options.targets:
        base = [target, "--effort", options.effort, "--jobs", options.jobs]
        taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for number in range(options.repeat):
            for there in (True, False) if number % 2 == 0 else (False, True):
                taken[there].append(seconds(base if there else [*base, "--in-process"]))
        for which, what in enumerate(("processor", "passed")):
            workers, here = (statistics.median(run[which] for run in taken[there]) for there in (True, False))
            more = 100 * (workers / here - 1)
            print(f"{target:<24}{what:<12}{workers:>8.1f} s{here:>10.1f} s{more:>+8.1f}%", flush=True)


if __name__ == "__main__":
    main()
