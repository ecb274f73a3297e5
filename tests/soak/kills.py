"""Three queries that are killed many times: `python -m tests.soak.kills [KILLS] [SEED]`.

Each round writes new input, and kills the program after random steps of its queries until they are
done. Whatever was committed must be what an uninterrupted run writes, row for row.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.spark import job
from tests.spark import killed_job as killing


def round_of(seed: int) -> int:
    """Kill a program until it is done; how often that was."""
    rng, kills = random.Random(seed), 0
    with tempfile.TemporaryDirectory(prefix="windowlib-kills-") as name:
        directory = Path(name)
        job.write_input(directory, seed)
        while killing.killed_somewhere(directory, rng):
            kills += 1
        with killing.started(directory) as process:  # there is nothing left to do
            assert killing.ends(process) == 0, killing.log_of(directory)
        killing.check(directory, seed)
    return kills


def main(kills: int = 100, seed: int = 1) -> None:
    """Rounds, until there were enough kills."""
    done = 0
    while done < kills:
        done += round_of(seed)
        print(f"seed {seed}: the same rows; {done} kills so far", flush=True)
        seed += 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
