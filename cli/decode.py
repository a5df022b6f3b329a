#!/usr/bin/env python3
"""Reads back the matrix from a folder that `sparserl-cli gen` wrote, or fills other values into it.

    decode.py FOLDER                          the entries, as a Matrix Market file
    decode.py FOLDER --values FILE -o PACKED  packed.safetensors with the values of FILE, one a line,
                                              in the order of the entries

It goes by plan.json and packed.safetensors alone, needs nothing but Python 3, and says by example
what plan.schema.json says in words.
"""
import argparse, array, json, math, struct, sys
from pathlib import Path

INTEGERS = {"U8": "B", "U16": "H", "U32": "I", "U64": "Q", "I32": "i"}
# Floating-point numbers stay bits until they are printed: bytes, and those of the exponent, all
# ones in a NaN.
FLOATS = {"F16": ("H", 0x7C00), "BF16": ("H", 0x7F80), "F32": ("I", 0xFF << 23), "F64": ("Q", 0x7FF << 52)}
CUT = 1 << 31  # chunk_rows from here on are shares of rows that have several chunks


class Packed:
    """The arrays of packed.safetensors: 8 bytes, so many bytes of JSON, and the arrays."""

    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        (length,) = struct.unpack_from("<Q", self.bytes)
        self.first = 8 + length
        self.header = json.loads(self.bytes[8 : self.first])

    def range(self, name):
        begin, end = self.header[name]["data_offsets"]
        return self.first + begin, self.first + end

    def array(self, name):
        dtype = self.header[name]["dtype"]
        begin, end = self.range(name)
        numbers = array.array(INTEGERS.get(dtype) or FLOATS[dtype][0], self.bytes[begin:end])
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers


class Part:
    """A part of the program: its rows by position, and its arrays by the layout's names."""

    def __init__(self, plan, part, packed):
        self.rows, self.fields = part["rows"], part["fields"]
        self.is_vector = plan["task"]["operation"] == "spmv"
        self.block = plan["launch"]["block"]
        self.sum_bytes = 8 if plan["task"]["dtype"].endswith("f64") else 4
        self.names = part["arrays"]
        self.arrays = {name: packed.array(argument) for name, argument in self.names.items()}
        self.first_row = part.get("first_row")
        stored = self.names.get("table") or self.names["values"]
        self.exponent = FLOATS[packed.header[stored]["dtype"]][1]

    def __getitem__(self, name):
        return self.arrays[name]

    def row(self, position):
        return self["rows"][position] if self.first_row is None else self.first_row + position

    def column(self, unit, index):
        bases = self.arrays.get("column_bases")
        return self["columns"][index] + (bases[unit] if bases else 0)

    def value(self, slot):
        coding = self.fields["values"]
        if coding == "dictionary":
            return self["table"][self["codes"][slot]]
        if coding == "constant":
            return self["values"][0]
        if coding == "plain":
            return self["values"][slot]
        sys.exit(f"error: no values={coding} are known: take decode.py of the release that wrote plan.json")

    def is_entry(self, slot):
        bits = self.value(slot)
        return bits & self.exponent != self.exponent or bits & (self.exponent & -self.exponent) - 1 == 0


# Each layout gives position, column and slot of its entries.


def csr(part):
    offsets = part["row_offsets"]
    for position in range(part.rows):
        for slot in range(offsets[position], offsets[position + 1]):
            yield position, part.column(position, slot), slot


def sell(part):
    height = part.fields["height"]
    for position in range(part.rows):
        unit = position // height
        first = part["slice_offsets"][unit] + position % height
        for slot in range(first, first + part["row_lengths"][position] * height, height):
            yield position, part.column(unit, slot), slot


def dia(part):
    per_thread = part.fields["rows"]
    width = 32 * per_thread
    stride = (part.rows + width - 1) // width * width
    for position in range(part.rows):
        within = position % width
        slot = position - within + within % 32 * per_thread + within // 32
        for diagonal in part["diagonals"]:
            if part.is_entry(slot):
                yield position, part.row(position) + diagonal, slot
            slot += stride


def bcsr(part):
    side, offsets = part.fields["side"], part["block_row_offsets"]
    for position in range(part.rows):
        unit = position // side
        for block in range(offsets[unit], offsets[unit + 1]):
            first = (block * side + position % side) * side
            for j in range(side):
                if part.is_entry(first + j):
                    yield position, part.column(unit, block) * side + j, first + j


def merge(part):
    if "row_offsets" in part.arrays:
        ends = part["row_offsets"][1:]
    else:
        words = part["row_ends"]
        items = (i for i in range(32 * len(words)) if words[i // 32] >> i % 32 & 1)
        ends = [item - row for row, item in enumerate(items)]
    unit_items = part.fields["items"] * (part.block if part.is_vector else 1)
    slot = 0
    for position, end in enumerate(ends):
        while slot < end:
            yield position, part.column((slot + position) // unit_items, slot), slot
            slot += 1


def by_fours(offsets, unit):
    begin, end = offsets[unit], offsets[unit + 1]
    return range(begin - begin % 4, end - end % 4 - begin % 4)


def chunk(part):
    offsets, rows, cuts = part["chunk_offsets"], part["chunk_rows"], part["cuts"]
    for unit, row in enumerate(rows):
        position = row if row < CUT else cuts[3 * (row - CUT) + 2]
        for slot in by_fours(offsets, unit):
            yield position, part.column(unit, slot), slot


def ell(part):
    slots = len(part["columns"]) // max(part.rows, 1)
    for position, length in enumerate(part["row_lengths"]):
        for slot in range(position * slots, position * slots + length):
            yield position, part.column(position, slot), slot


def cvse(part):
    height, offsets = part.fields["rows"], part["group_offsets"]
    for position in range(part.rows):
        unit = position // height
        for vector in by_fours(offsets, unit):
            slot = vector * height + position % height
            if part.is_entry(slot):
                yield position, part.column(unit, vector), slot


def binned(part):
    # Slots are stored by segments of column panels, and their products by bins of rows.
    of_sum = part.sum_bytes
    group, panel = 32 // of_sum, (part.fields["shared"] << 15) // of_sum
    segments, targets, bins = part["segments"], part["targets"], part["bins"]
    stored = {}
    for segment in range(0, len(segments), 3):
        for first in range(segments[segment + 1] * 4, segments[segment + 2] * 4, group):
            stored[targets[first // group]] = segments[segment], first
    for unit in range(len(bins) // 3 - 1):
        row, products, places = bins[3 * unit], bins[3 * unit + 1], bins[3 * unit + 2] * 8
        for position in range(row, bins[3 * unit + 3]):
            for entry in range(part["row_places"][position + unit], part["row_places"][position + unit + 1]):
                product = products * group + part["places"][places + entry]
                of_panel, first = stored[product // group]
                slot = first + product % group
                yield position, of_panel * panel + part.column(0, slot), slot


LAYOUTS = {"csr": csr, "sell": sell, "dia": dia, "bcsr": bcsr, "merge": merge, "chunk": chunk, "ell": ell,
           "binned": binned, "cvse": cvse}


def entries(plan, packed):
    """Row, column, part and slot of each entry, in the order of CSR."""
    found = []
    for described in plan["parts"]:
        part, layout = Part(plan, described, packed), described["layout"]
        if layout not in LAYOUTS:
            sys.exit(f"error: no layout {layout} is known: take decode.py of the release that wrote plan.json")
        for position, column, slot in LAYOUTS[layout](part):
            found.append((part.row(position), column, part, slot))
    found.sort(key=lambda entry: entry[:2])
    return found


def number(bits, dtype):
    if dtype == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    form = {"f16": "He", "f32": "If", "f64": "Qd"}[dtype]
    return struct.unpack("<" + form[1], struct.pack("<" + form[0], bits))[0]


def bytes_of(value, dtype):
    if dtype != "bf16":
        return struct.pack("<" + {"f16": "e", "f32": "f", "f64": "d"}[dtype], value)
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)


def fill(packed, found, values):
    """Puts the values, the bytes of one for each entry, into the packed arrays, in place."""
    if len(values) != len(found):
        sys.exit(f"error: {len(values)} values for {len(found)} entries")
    for (_, _, part, slot), element in zip(found, values):
        if part.fields["values"] != "plain":
            sys.exit("error: the kernel depends on the values: generate it with --values variable")
        begin, _ = packed.range(part.names["values"])
        at = begin + slot * len(element)
        packed.bytes[at : at + len(element)] = element


def read_values(path, dtype):
    """The bytes of numbers that fit the type, one a line."""
    values = []
    for number, line in enumerate(path.read_text().split(), 1):
        try:
            value = float(line)
            if not math.isfinite(value):
                raise ValueError
            values.append(bytes_of(value, dtype))
        except (ValueError, OverflowError, struct.error):
            sys.exit(f"error: {path}:{number}: {line} is no finite number in {dtype}")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--values", type=Path, metavar="FILE", help="other values, one a line")
    parser.add_argument("-o", "--output", type=Path, metavar="PACKED", help="with --values: what to write")
    arguments = parser.parse_args()
    if (arguments.values is None) != (arguments.output is None):
        parser.error("--values goes with --output")
    plan = json.loads((arguments.folder / "plan.json").read_text())
    if plan["format"] != "sparserl plan 2":
        sys.exit(f"error: plan.json is a {plan['format']}, not a sparserl plan 2")
    packed = Packed(arguments.folder / "packed.safetensors")
    # The first of the types, where there are several, is the matrix's.
    dtype = plan["task"]["dtype"].split("/")[0]
    found = entries(plan, packed)
    if arguments.values is not None:
        fill(packed, found, read_values(arguments.values, dtype))
        arguments.output.write_bytes(packed.bytes)
        return
    matrix = plan["matrix"]
    print("%%MatrixMarket matrix coordinate real general")
    print(matrix["rows"], matrix["cols"], len(found))
    for row, column, part, slot in found:
        print(row + 1, column + 1, repr(number(part.value(slot), dtype)))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever reads has seen enough.
        sys.stderr.close()
    except OSError as error:
        sys.exit(f"error: {error}")
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, struct.error) as error:
        sys.exit(f"error: not a folder as sparserl-cli gen writes it: {error!r}")
