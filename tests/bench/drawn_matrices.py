#!/usr/bin/env python3
"""Draws matrices of the kinds that applications have, to measure on what no policy has seen.

Writes them to a folder as SciPy writes CSR matrices, values in f64 from the normal distribution, and
prints a line for each: name, rows, columns, entries. They follow from `--seed`, with one version of
NumPy to the bit. With `sparserl-cli bench FOLDER/*.npz` they are measured against the opponents.
"""

import argparse
from pathlib import Path

import numpy as np


def unique(rows, cols, shape):
    """A CSR pattern of these places, each once, in order: row offsets and columns."""
    places = np.unique(rows.astype(np.int64) * shape[1] + cols.astype(np.int64))
    counts = np.bincount(places // shape[1], minlength=shape[0])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return offsets, places % shape[1]


def of_lengths(rng, lengths, columns_of):
    """Places of rows with these many draws; `columns_of` draws so many columns, given their rows."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, columns_of(rng, rows)


def within(count):
    """Columns that are all alike."""
    return lambda rng, rows: rng.integers(0, count, len(rows))


def skewed(rng, count, draws, exponent):
    """Indices below `count`, of which the k-th most frequent has about k^-exponent of the draws."""
    rank = np.floor(count * rng.random(draws) ** (1 / (1 - exponent))).astype(np.int64)
    return rng.permutation(count)[np.minimum(rank, count - 1)]


def of_blocks(rows, cols, side):
    """Every entry becomes a dense block."""
    along, across = (axis.ravel() for axis in np.indices((side, side)))
    spread = lambda places, within: (places[:, None] * side + within).ravel()
    return spread(rows, along), spread(cols, across)


def with_diagonal(rows, cols, count):
    every = np.arange(count)
    return np.concatenate([rows, every]), np.concatenate([cols, every])


def both_ways(rows, cols):
    return np.concatenate([rows, cols]), np.concatenate([cols, rows])


def few_long_rows(rng):
    shape = (36, 60_000)
    return *of_lengths(rng, np.full(36, 17_600), within(shape[1])), shape


def bundle_adjustment(rng):
    cameras = 1_175
    rows, cols = (skewed(rng, cameras, 4_200, 0.5) for _ in range(2))
    rows, cols = with_diagonal(*both_ways(rows, cols), cameras)
    return *of_blocks(rows, cols, 9), (9 * cameras, 9 * cameras)


def social(count, draws, exponent):
    def draw(rng):
        ends = [skewed(rng, count, draws // 2, exponent) for _ in range(2)]
        return *both_ways(*ends), (count, count)

    return draw


def zipf_rows(rng):
    shape = (60_000, 90_000)
    return skewed(rng, shape[0], 1_700_000, 0.85), rng.integers(0, shape[1], 1_700_000), shape


def arrow(rng):
    count = 10_001
    every = np.arange(count)
    border = np.zeros(count, np.int64)
    places = [np.concatenate(parts) for parts in ([border, every, every], [every, border, every])]
    near = np.minimum(every + 1 + rng.integers(0, 3, count), count - 1)
    return np.concatenate([places[0], every]), np.concatenate([places[1], near]), (count, count)


def circuit(rng):
    count = 58_000
    rows = np.repeat(np.arange(count), 3)
    cols = np.clip(rows + rng.geometric(0.02, len(rows)) * rng.choice([-1, 1], len(rows)), 0, count - 1)
    hubs = np.repeat(rng.integers(0, count, 4), 12_000)
    rows, cols = np.concatenate([rows, hubs]), np.concatenate([cols, rng.integers(0, count, len(hubs))])
    return *with_diagonal(*both_ways(rows, cols), count), (count, count)


def co_purchase(rng):
    count, group = 260_000, 40
    rows = np.repeat(np.arange(count), 5)
    near = np.minimum(rows // group * group + rng.integers(0, group, len(rows)), count - 1)
    cols = np.where(rng.random(len(rows)) < 0.7, near, rng.integers(0, count, len(rows)))
    return rows, cols, (count, count)


def votes(rng):
    shape = (6_000, 4_000)
    draw = lambda rng, rows: skewed(rng, shape[1], len(rows), 0.4)
    return *of_lengths(rng, rng.integers(20, 400, shape[0]), draw), shape


def band(rng):
    count = 150_000
    diagonals = np.unique(np.concatenate([[0], rng.integers(-400, 400, 19)]))
    rows, shifts = (axis.ravel() for axis in np.meshgrid(np.arange(count), diagonals))
    cols = rows + shifts
    inside = (cols >= 0) & (cols < count)
    return rows[inside], cols[inside], (count, count)


def uniform(shape, entries):
    def draw(rng):
        return rng.integers(0, shape[0], entries), rng.integers(0, shape[1], entries), shape

    return draw


def road(rng):
    side = 141
    every = np.arange(side * side)
    right = every[(every % side < side - 1) & (rng.random(side * side) < 0.62)]
    down = every[(every < side * (side - 1)) & (rng.random(side * side) < 0.62)]
    rows, cols = np.concatenate([right, down]), np.concatenate([right + 1, down + side])
    return *both_ways(rows, cols), (side * side, side * side)


def linear_program(tall):
    def draw(rng):
        shape = (80_000, 3_000)
        rows, cols = of_lengths(rng, rng.integers(4, 6, shape[0]), within(shape[1]))
        return (rows, cols, shape) if tall else (cols, rows, shape[::-1])

    return draw


def finite_elements(rng):
    nodes, side = 4_000, 6
    rows = np.repeat(np.arange(nodes), 7)
    near = rng.integers(-25, 26, len(rows))
    cols = np.clip(rows + near, 0, nodes - 1)
    return *of_blocks(*with_diagonal(*both_ways(rows, cols), nodes), side), (nodes * side, nodes * side)


def lattice(_):
    sides, block = (8, 8, 12, 12), 3
    count = int(np.prod(sides))
    at = np.indices(sides).reshape(4, -1)
    rows, cols = [np.arange(count)], [np.arange(count)]
    for axis, side in enumerate(sides):
        for step in (-1, 1):
            moved = at.copy()
            moved[axis] = (moved[axis] + step) % side
            rows.append(np.arange(count))
            cols.append(np.ravel_multi_index(moved, sides))
    places = of_blocks(np.concatenate(rows), np.concatenate(cols), block)
    return *places, (count * block, count * block)


def pruned(shape, share):
    def draw(rng):
        kept = rng.random(shape) < (1 - share) * rng.uniform(0.8, 1.2, (shape[0], 1))
        return *np.nonzero(kept), shape

    return draw


KINDS = {
    "arrow": arrow,
    "band": band,
    "bundle": bundle_adjustment,
    "circuit": circuit,
    "copurchase": co_purchase,
    "fem6": finite_elements,
    "hyper": uniform((1_000_000, 1_000_000), 500_000),
    "long36": few_long_rows,
    "lp_tall": linear_program(tall=True),
    "lp_wide": linear_program(tall=False),
    "pruned1024x4096_98": pruned((1024, 4096), 0.98),
    "pruned2048x2048_95": pruned((2048, 2048), 0.95),
    "pruned2048x512_70": pruned((2048, 512), 0.70),
    "pruned512x2048_90": pruned((512, 2048), 0.90),
    "qcd3": lattice,
    "road20k": road,
    "small1500": uniform((1_500, 1_500), 13_000),
    "social100k": social(100_000, 3_300_000, 0.45),
    "social18k": social(18_660, 2_300_000, 0.45),
    "votes": votes,
    "zipfrect": zipf_rows,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the matrices go")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for number, (name, draw) in enumerate(KINDS.items()):
        rng = np.random.default_rng([arguments.seed, number])
        rows, cols, shape = draw(rng)
        offsets, columns = unique(rows, cols, shape)
        np.savez_compressed(
            arguments.folder / f"{name}.npz",
            format=np.array(b"csr"),
            shape=np.array(shape, np.int64),
            indptr=offsets.astype(np.int32),
            indices=columns.astype(np.int32),
            data=rng.standard_normal(len(columns)),
        )
        print(name, *shape, len(columns))


if __name__ == "__main__":
    main()
