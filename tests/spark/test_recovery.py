"""Queries that die and start again from their checkpoint, as if nothing had happened."""

from __future__ import annotations

import random

import pytest

from tests.spark import job, killing


# -- the whole program dies -----------------------------------------------------------------------


def test_a_program_that_is_killed_again_and_again_writes_the_same_rows(tmp_path):
    job.write_input(tmp_path)
    for number, (name, stage) in enumerate(zip(job.operators(), job.STAGES, strict=True)):
        with killing.started(tmp_path, "--die", f"{name}:{number}:{stage}") as process:
            assert killing.ends(process) == -9, killing.log_of(tmp_path)
    killing.killed_somewhere(tmp_path, random.Random(1))
    with killing.started(tmp_path) as process:
        assert killing.ends(process) == 0, killing.log_of(tmp_path)
    killing.check(tmp_path)
