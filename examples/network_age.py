"""Network traffic per address pair, where pairs come and go for ever.

Shows a key of two columns, a clock moved by the data, and partition age: a pair that has been
silent for 30 seconds is forgotten, so memory follows the pairs that are alive.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from windowlib import Count, PartitionAge, Sliding, SlidingWindow, Window, WindowEvents

Pair = tuple[str, str]


class Packet(NamedTuple):
    at: float
    src: str
    dst: str
    size: int


class Traffic(WindowEvents[Packet, Pair]):
    """Reports the rate of a pair over its last 4 packets, and pairs that fell silent."""

    def on_trigger(self, window: Window[Packet, Pair], pair: Pair) -> None:
        packets = window[pair]
        seconds = packets[-1].at - packets[0].at
        rate = sum(p.size for p in packets) / seconds
        if rate > 1000:
            print(f"{window.now:6.1f} s  {' > '.join(pair)}  {rate:.0f} bytes/s")

    def on_partitions_evicted(self, window: Window[Packet, Pair], pairs: Sequence[Pair]) -> None:
        for pair in pairs:
            idle = window.now - window.newest(pair).at
            print(f"{window.now:6.1f} s  {' > '.join(pair)}  silent for {idle:.0f} s, forgotten")


def packets(n: int = 120) -> Iterator[Packet]:
    """A host that moves on to another server every 40 packets."""
    draw, at = Random(3), 0.0
    for number in range(n):
        at += draw.uniform(0.5, 2.5)
        yield Packet(at, "10.0.0.7", f"10.0.9.{number // 40 + draw.choice((1, 1, 2))}", 1400)


def main() -> None:
    spec = Sliding(Count(4), every=Count(4), by=("src", "dst"), forget=PartitionAge("30s"))
    window: SlidingWindow[Packet, Pair] = SlidingWindow(spec, events=Traffic())
    for packet in packets():
        window.advance(packet.at)
        window.insert(packet)
    alive = ", ".join(" > ".join(pair) for pair in window)
    print(f"{window.seen} packets; still alive: {alive}")


if __name__ == "__main__":
    main()
