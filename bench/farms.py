"""Farms: how they scale, what panes save, and where bursts and skew hurt.

`--pay` compares them with the operator alone and with a pool of processes. `--virtual` runs what is
measured in virtual time: the same figures on every machine. `--kernels`, `--real` and `--spark` run
the other parts; without an option all of them are run.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import farms_balance, farms_kernels, farms_pay, farms_real, farms_virtual
from bench.harness import Measure


def run() -> list[Measure]:
    """Everything."""
    return [measure for part in OPTIONS.values() for measure in part()]


def pay() -> list[Measure]:
    """Against the operator alone and a pool of processes."""
    return list(farms_pay.run())


def virtual() -> list[Measure]:
    """In virtual time."""
    return [*farms_virtual.run(), *farms_balance.run()]


def kernels() -> list[Measure]:
    """In one process."""
    return list(farms_kernels.run())


def real() -> list[Measure]:
    """With two worker processes."""
    return list(farms_real.run())


def spark() -> list[Measure]:
    """With two cores of Spark's."""
    from bench.farms_spark import run as on_spark  # pyspark is not needed for the others

    return list(on_spark())


OPTIONS: dict[str, Callable[[], list[Measure]]] = {
    "--pay": pay,
    "--virtual": virtual,
    "--kernels": kernels,
    "--real": real,
    "--spark": spark,
}
