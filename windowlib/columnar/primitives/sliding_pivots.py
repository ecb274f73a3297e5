"""The k-th smallest keys of a window that slides from key to key and changes little, with numpy.

With a block of neighbouring windows goes a *pivot*, a little below the k-th smallest key of the
window in the middle. A window's k-th smallest is as many keys from the pivot on as it has fewer
than k below. That number changes only where one of the keys that enter and leave is below the
pivot and the other is not, which is rare if k is small or nearly all keys are below it.

The keys from the pivot on are the *candidates* of a block, at most 64, each of them a bit. A word
says which of them a window has. It changes only where a candidate enters or leaves. So there is
work to do for the few windows where the number or the word changes, the *events*, and the others
have what the last event found.

Where keys do not stay about as large as they are, a window may want what is no candidate. A few
runs of such blocks are left to `sliding_ranks`, which takes longer and works with all keys. From
where there are more of them, all windows are left to the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from windowlib.columnar.primitives import sliding_ranks
from windowlib.columnar.primitives.grouping import Array, Places
from windowlib.columnar.primitives.reductions import limits

BITS = 64
"""The most candidates: as many as a word has bits."""
REACH = 16
"""The pivot is so many keys below the k-th smallest, and candidates end so many above."""
STEADY = 16
"""Of the number of keys below the pivot, the variance in a block if keys come at random."""
SHARES = 3 / 8, 1 / 6
"""Windows in a block for each key of a window, at most and at least: else candidates are too
many, or blocks."""
SHORTEST = 256
"""Of windows: with shorter ones there are too many blocks."""
PROBE = 8
"""Of about so many blocks all over the keys, only one may be lost."""
AT_ONCE = 1 << 19
"""About how many keys are worked on at once, in rows of blocks."""
RUN = 10
"""A run of lost blocks takes as long as so many blocks take in other ways."""

WORD = np.uint64


def block_size(length: int, place: int) -> int:
    """How many windows a block has; 0: keys change places too often for this."""
    share = max(min(place, length - place), 1) / length
    size = min(STEADY / (share * (1 - share)), SHARES[0] * length)
    return int(size) if length >= SHORTEST and size >= SHARES[1] * length else 0


def ranked(keys: Array, length: int, place: int, count: int) -> Array:
    """For the first windows the keys that are sorted into the places from `place` on, one or two.

    As many windows as keys stay about as large; all of them, or none, as a rule.

    >>> ranked(np.arange(9000) * 7 % 1000, 1000, 950, 2)[:2].tolist()
    [[950, 951], [950, 951]]
    """
    size, windows = block_size(length, place), len(keys) - length + 1
    if not size:
        return np.empty((0, count), keys.dtype)
    last = int(place == length - 1)  # nothing follows it: it is what follows the one before
    more = -windows % size
    every = np.append(keys, keys[-more:]) if more else keys  # keys like these, for whole blocks
    rows = sliding_window_view(every, size + length - 1)[::size]
    if not _steady(rows, length, place - last):
        return np.empty((0, count), keys.dtype)
    found, done = np.empty((2, len(rows), size), keys.dtype), 0
    values, step = found.reshape(2, -1), max(AT_ONCE // rows.shape[1], 1)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        (one, next_), lost = _blocks(rows[part], length, place - last)
        runs = np.flatnonzero(np.diff(lost, prepend=False, append=False)).reshape(-1, 2)
        if RUN * len(runs) + np.count_nonzero(lost) > len(lost):
            break
        found[0, part], found[1, part] = one, next_
        for lo, hi in ((runs + start) * size).tolist():
            own = every[lo : hi + length - 1]
            values[:, lo:hi] = sliding_ranks.ranked(own, length, place - last, 2).T
        done = min((start + step) * size, windows)
    return values[last : last + count, :done].T


def _steady(rows: Array, length: int, place: int) -> bool:
    """Whether few blocks are lost; of not many blocks there need not be a sample."""
    some = rows[:: max(len(rows) // PROBE, 1)]
    if len(rows) < 2 * len(some):
        return True
    _, lost = _blocks(some, length, place)
    return bool(PROBE * np.count_nonzero(lost) <= len(some))


class _Candidates(NamedTuple):
    """The candidates of blocks: a row for each, from small to large, filled up with none."""

    keys: Array
    places: Places
    """Where they are among the keys of the block."""
    lost: Array
    """Blocks that would have too many; they have none."""


def _blocks(rows: Array, length: int, place: int) -> tuple[tuple[Array, Array], Array]:
    """The keys at a place and the next of all windows of blocks; and the blocks that are lost.

    A row has the keys of all windows of a block, and so have the results.
    """
    blocks, width = rows.shape
    size = width - length + 1
    low, high = _around(rows, length, place)
    below, inside = rows < low, rows <= high
    np.greater(inside, below, out=inside)
    own = _candidates(rows, inside)
    changes = np.ones((blocks, size), bool)
    np.not_equal(below[:, : size - 1], below[:, length:], out=changes[:, 1:])
    gone, come = _turns(own.places, length, size)
    changes.ravel()[gone.windows] = True
    changes.ravel()[come.windows] = True
    events = np.flatnonzero(changes)
    number = np.empty(changes.size, np.intp)  # of the event at a window, if there is one
    number[events] = np.arange(len(events))
    first = number[::size]
    block = np.repeat(np.arange(blocks), np.diff(first, append=len(events)))
    # Which candidates windows have: at first each word is what differs from the one before.
    words = np.zeros(len(events), WORD)
    words[number.take(gone.windows)] = gone.bits
    words[number.take(come.windows)] ^= come.bits
    words[first] = _packed(own.places < length)
    words[first[1:]] ^= _packed((own.places >= size - 1) & (own.places < width))[:-1]
    np.bitwise_xor.accumulate(words, out=words)
    before, lost = _before(below, events, block, first, length, place), own.lost
    there = (before >= 0) & (before + 1 < np.bitwise_count(words))
    if not there.all():
        lost = lost | np.logical_or.reduceat(~there, first)
        before[~there] = 0
    pair = sliding_ranks.bits(words, before)
    keys, windows = own.keys.ravel(), np.diff(events, append=changes.size)
    block *= BITS
    one, next_ = (np.repeat(keys.take(block + bit, mode="clip"), windows) for bit in pair)
    return (one.reshape(blocks, size), next_.reshape(blocks, size)), lost


class _Turns(NamedTuple):
    """Where candidates leave, or enter."""

    windows: Places
    """The first window without each, or with it, among those of all blocks."""
    bits: Array
    """What stands for each in the word of a window."""


def _turns(places: Array, length: int, size: int) -> tuple[_Turns, _Turns]:
    """The candidates that leave windows of their block, and those that enter one."""
    last = size + length - 1
    leaving = np.flatnonzero(places < size - 1)
    entering = np.flatnonzero((places >= length) & (places < last))
    gone, come = (
        _Turns(places.take(some) + some // BITS * size + shift, WORD(1) << (some % BITS).view(WORD))
        for some, shift in ((leaving, 1), (entering, 1 - length))
    )
    return gone, come


def _before(
    below: Array, events: Places, block: Places, first: Places, length: int, place: int
) -> Places:
    """How many candidates come before the wanted key, at each event."""
    flat, left = below.ravel().view(np.int8), events + block * (length - 1) - 1
    more = flat.take(left, mode="wrap") - flat.take(left + length, mode="wrap")
    more[first] = 0
    before = np.cumsum(more, dtype=np.intp)
    lower = np.bitwise_count(np.packbits(below[:, :length], axis=1)).sum(1, np.intp)
    before += (place - lower - before[first]).take(block)
    return before


def _around(rows: Array, length: int, place: int) -> tuple[Array, Array]:
    """For each block a pivot, and the greatest candidate."""
    low, high = place - REACH, place + 1 + REACH
    middle = rows[:, (rows.shape[1] - length) // 2 :][:, :length]
    if low < 0:
        return rows.min(axis=1, keepdims=True), _smallest(middle, high)[:, -1:]
    if high >= length:
        return np.partition(middle, low, axis=1)[:, low, None], rows.max(axis=1, keepdims=True)
    if low < length // 2:
        few = _smallest(middle, high)
        return np.partition(few, low, axis=1)[:, low, None], few[:, -1:]
    few = np.partition(middle, low, axis=1)[:, low:]
    return few[:, :1], _smallest(few, high - low)[:, -1:]


def _smallest(rows: Array, place: int) -> Array:
    """The keys of each row up to a place, with the greatest of them behind the others.

    One place at a time: numpy has no vector code for several.
    """
    return np.partition(rows, place, axis=1)[:, : place + 1]


def _candidates(rows: Array, inside: Array) -> _Candidates:
    """The keys that are inside, sorted."""
    blocks, width = rows.shape
    lost = np.zeros(blocks, bool)
    while True:
        flat = np.flatnonzero(inside)
        ends = np.searchsorted(flat, np.arange(0, inside.size + 1, width))
        counts = np.diff(ends)
        if counts.max() <= BITS:
            break
        lost |= counts > BITS
        inside[lost] = False
    block = np.repeat(np.arange(blocks), counts)
    flat -= block * width
    slots = np.arange(len(flat)) + np.repeat(np.arange(0, blocks * BITS, BITS) - ends[:-1], counts)
    highest = np.inf if rows.dtype.kind == "f" else limits(rows)[1]
    keys, places = np.full(blocks * BITS, highest, rows.dtype), np.full(blocks * BITS, width)
    keys[slots], places[slots] = rows[block, flat], flat
    order = np.argsort(keys.reshape(blocks, BITS), axis=1)
    order += np.arange(0, blocks * BITS, BITS)[:, None]
    return _Candidates(keys.take(order), places.take(order), lost)


def _packed(flags: Array) -> Array:
    """A word for each row of flags."""
    return np.packbits(flags, axis=1, bitorder="little").view("<u8").ravel()
