"""BLAKE2b of many short messages at once (RFC 7693), compiled by numba.

A message has one block, 128 bytes at most. The digest is the unkeyed one of 8 bytes: what
`hashlib.blake2b(message, digest_size=8)` gives.
"""

from __future__ import annotations

import numpy as np

from windowlib.columnar.primitives.compiled_loops import compiled
from windowlib.columnar.primitives.grouping import Array

BLOCK = 128
"""The longest message, in bytes."""
TOGETHER = 64  # messages that are mixed side by side, in vector registers; all fit the first cache

START = np.array(
    [
        0x6A09E667F3BCC908,
        0xBB67AE8584CAA73B,
        0x3C6EF372FE94F82B,
        0xA54FF53A5F1D36F1,
        0x510E527FADE682D1,
        0x9B05688C2B3E6C1F,
        0x1F83D9ABFB41BD6B,
        0x5BE0CD19137E2179,
    ],
    np.uint64,
)
PARAMETERS = np.uint64(0x01010008)  # one leaf, no key, 8 bytes
ROUNDS = 12
ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.int64,
)
"""Which words of the message go into the mixes of each round, two to a mix."""
MIXES = np.array(
    [
        [0, 4, 8, 12],
        [1, 5, 9, 13],
        [2, 6, 10, 14],
        [3, 7, 11, 15],
        [0, 5, 10, 15],
        [1, 6, 11, 12],
        [2, 7, 8, 13],
        [3, 4, 9, 14],
    ],
    np.int64,
)
"""Which four words of the state are mixed: columns, then diagonals."""

S1, S8, S16, S24, S32, S40, S48, S56, S63 = map(np.uint64, (1, 8, 16, 24, 32, 40, 48, 56, 63))


def digests(words: Array, sizes: Array) -> Array:
    """The digest of each message, as the number that its bytes are, the highest first.

    Args:
        words: the messages as columns of little-endian words; words that no message has are left
            out, and what follows a message is 0.
        sizes: how many bytes each message has.

    >>> import hashlib
    >>> found = digests(np.array([[int.from_bytes(b"abc", "little")]], np.uint64), np.array([3]))
    >>> int(found[0]).to_bytes(8, "big") == hashlib.blake2b(b"abc", digest_size=8).digest()
    True
    """
    found = np.empty(len(sizes), np.uint64)
    compress(words, sizes, found)
    return found.byteswap()


@compiled
def compress(words: Array, sizes: Array, found: Array) -> None:
    """The first word of each digest."""
    used, rows = words.shape
    state = np.empty((16, TOGETHER), np.uint64)
    for first in range(0, rows, TOGETHER):
        count = min(TOGETHER, rows - first)
        for i in range(8):
            state[i] = START[i]
            state[i + 8] = START[i]
        for j in range(count):
            state[0, j] ^= PARAMETERS
            state[12, j] ^= np.uint64(sizes[first + j])
            state[14, j] = ~state[14, j]
        for turn in range(ROUNDS):
            for mix in range(8):
                a, b = state[MIXES[mix, 0]], state[MIXES[mix, 1]]
                c, d = state[MIXES[mix, 2]], state[MIXES[mix, 3]]
                one, other = ORDER[turn % 10, 2 * mix], ORDER[turn % 10, 2 * mix + 1]
                if one < used:
                    word = words[one]
                    for j in range(count):
                        a[j] += word[first + j]
                for j in range(count):
                    w = a[j] + b[j]
                    z = d[j] ^ w
                    z = (z >> S32) | (z << S32)
                    y = c[j] + z
                    x = b[j] ^ y
                    x = (x >> S24) | (x << S40)
                    a[j], b[j], c[j], d[j] = w + x, x, y, z
                if other < used:
                    word = words[other]
                    for j in range(count):
                        a[j] += word[first + j]
                for j in range(count):
                    z = d[j] ^ a[j]
                    z = (z >> S16) | (z << S48)
                    y = c[j] + z
                    x = b[j] ^ y
                    b[j], c[j], d[j] = (x >> S63) | (x << S1), y, z
        for j in range(count):
            found[first + j] = START[0] ^ PARAMETERS ^ state[0, j] ^ state[8, j]


def tagged(tag: bytes, numbers: Array) -> Array:
    """The digests of messages of a byte and 64 bits, the highest first."""
    swapped = numbers.byteswap().view(np.uint64)
    words = np.empty((2, len(numbers)), np.uint64)
    np.left_shift(swapped, S8, out=words[0])
    words[0] |= np.uint64(tag[0])
    np.right_shift(swapped, S56, out=words[1])
    return digests(words, np.full(len(numbers), 9))


def texts(tag: bytes, data: Array, offsets: Array) -> Array:
    """The digests of messages of a byte and some of `data`, from each offset to the next."""
    sizes = np.diff(offsets) + 1
    words = np.zeros((int(sizes.max(initial=1) + 7) // 8, len(sizes)), np.uint64)
    fill_words(words, data, offsets, tag[0])
    return digests(words, sizes)


@compiled
def fill_words(words: Array, data: Array, offsets: Array, tag: int) -> None:
    """Bytes as columns of words, after a first one."""
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        word, place = np.uint64(tag), 1
        for i in range(begin, end):
            word |= np.uint64(data[i]) << np.uint64(8 * (place & 7))
            place += 1
            if not place & 7:
                words[(place >> 3) - 1, row] = word
                word = np.uint64(0)
        if place & 7:
            words[place >> 3, row] = word
