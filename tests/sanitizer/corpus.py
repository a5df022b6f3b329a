"""The CUDA sources of tests/emulator: how each is launched, on what data, and what must come of it.

The same as tests/src/emulated.rs, for machines without Rust; `side_by_side.py --fingerprints` shows that both make the
same data.
"""

import re
import struct
from pathlib import Path

FORMATS = {
    "u8": "B", "u16": "H", "i16": "h", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d",
}
WORD = (1 << 64) - 1


def fnv(data, state=0xCBF29CE484222325):
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & WORD
    return state


def draw(stream, index):
    """Number `index` of the random numbers of that name: 64 bits."""
    z = (fnv(stream.encode()) + index + 0x9E3779B97F4A7C15) & WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def fraction(stream, index):
    """A multiple of 1/128 from -1 on, less than 1: sums of products are exact in single precision."""
    return (draw(stream, index) >> 56) / 128 - 1


def encode(kind, numbers):
    if kind == "bf16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    if kind not in ("f16", "f32", "f64"):
        numbers = [int(number) for number in numbers]
    return struct.pack(f"<{len(numbers)}{FORMATS[kind]}", *numbers)


def decode(kind, data):
    return [float(number) for (number,) in struct.iter_unpack("<" + FORMATS[kind], data)]


def size(kind):
    return 2 if kind == "bf16" else struct.calcsize("<" + FORMATS[kind])


class Matrix:
    def __init__(self, text):
        options = {key: int(number) for key, number in (word.split("=") for word in text.split())}
        self.num_rows, self.num_columns = options["rows"], options["columns"]
        self.rows = []
        entry = 0
        for row in range(self.num_rows):
            low, high = 0, self.num_columns
            if "band" in options:
                low, high = max(0, row - options["band"]), min(high, row + options["band"] + 1)
            width = max(0, high - low)
            length = min(draw("lengths", row) % (2 * options["mean"] + 1), width)
            entries = []
            for k in range(length):
                begin, end = k * width // length, (k + 1) * width // length
                column = low + begin + draw("columns", row * 4096 + k) % (end - begin)
                entries.append((column, fraction("values", entry)))
                entry += 1
            self.rows.append(entries)

    def product(self, x, width):
        y = []
        for entries in self.rows:
            y += [sum(value * x[column * width + k] for column, value in entries) for k in range(width)]
        return y

    def layout(self, name, parameter):
        """The numbers of an array of a layout."""
        rows = self.rows
        layout, part = name.split("-", 1)
        if layout in ("csr", "coo"):
            return {
                "rows": lambda: [row for row, entries in enumerate(rows) for _ in entries],
                "offsets": lambda: offsets(len(entries) for entries in rows),
                "columns": lambda: [column for entries in rows for column, _ in entries],
                "values": lambda: [value for entries in rows for _, value in entries],
                "entries": lambda: [sum(len(entries) for entries in rows)],
            }[part]()
        if layout == "ell":
            width = max(len(entries) for entries in rows)
            if part == "width":
                return [width]
            return padded(rows, width, part, -1)
        if layout == "sell":
            slices = [rows[i : i + parameter] for i in range(0, len(rows), parameter)]
            slices = [slice + [[]] * (parameter - len(slice)) for slice in slices]
            widths = [max(len(entries) for entries in slice) for slice in slices]
            if part == "offsets":
                return offsets(width * parameter for width in widths)
            return [n for slice, width in zip(slices, widths) for n in padded(slice, width, part, 0)]
        if layout == "dia":
            diagonals = sorted({column - row for row, entries in enumerate(rows) for column, _ in entries})
            if part == "count":
                return [len(diagonals)]
            if part == "offsets":
                return diagonals
            return [dict(entries).get(row + d, 0) for d in diagonals for row, entries in enumerate(rows)]
        if layout == "bsr":
            bands = [rows[i : i + parameter] for i in range(0, len(rows), parameter)]
            blocks = [sorted({column // parameter for entries in band for column, _ in entries}) for band in bands]
            if part == "offsets":
                return offsets(len(columns) for columns in blocks)
            if part == "columns":
                return [column for columns in blocks for column in columns]
            return [
                dict(entries).get(column * parameter + k, 0)
                for band, columns in zip(bands, blocks)
                for column in columns
                for entries in band
                for k in range(parameter)
            ]
        raise ValueError(f"no layout {name}")


def offsets(lengths):
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + length)
    return sums


def padded(rows, width, part, no_column):
    """Column by column."""
    index, filler = (0, no_column) if part == "columns" else (1, 0)
    return [entries[k][index] if k < len(entries) else filler for k in range(width) for entries in rows]


class Argument:
    def __init__(self, text, matrix):
        words = text.split()
        self.name = words[0]
        self.is_buffer = words[1] in ("read-only", "input", "writable", "output")
        self.kind = words[2] if self.is_buffer else words[1]
        fill = words[3:] if self.is_buffer else words[2:]
        if words[1] == "output":
            self.count = int(fill[0]) if fill[0].isdigit() else matrix.layout(fill[0], 0)[0]
            self.numbers = None
            self.bytes = bytes(self.count * size(self.kind))
            return
        count = int(fill.pop(0)) if fill[0].isdigit() else None
        parameter = fill[1] if len(fill) > 1 else None
        if not self.is_buffer:
            count = 1
        match fill[0]:
            case "zero":
                self.numbers = [0] * count
            case "value":
                self.numbers = [float(parameter)] * count
            case "iota":
                self.numbers = [int(parameter) + i for i in range(count)]
            case "random" if parameter is None:
                self.numbers = [fraction(self.name, i) for i in range(count)]
            case "random":
                self.numbers = [(draw(self.name, i) >> 33) % int(parameter) for i in range(count)]
            case layout:
                self.numbers = matrix.layout(layout, int(parameter or 0))
        self.count = len(self.numbers)
        self.bytes = encode(self.kind, self.numbers)


class Case:
    def __init__(self, path):
        self.path = Path(path)
        self.name = self.path.stem
        self.set = self.path.parent.name
        lines = self.path.read_text().splitlines()
        header = re.compile(r"// (launch|matrix|argument|expect): (.*)")
        found = [match.groups() for match in map(header.fullmatch, lines) if match]
        launch = next(text for key, text in found if key == "launch")
        self.grid, self.block, self.shared = configuration(launch)
        matrices = [Matrix(text) for key, text in found if key == "matrix"]
        self.matrix = matrices[0] if matrices else None
        self.arguments = [Argument(text, self.matrix) for key, text in found if key == "argument"]
        self.expectation = next((text.split() for key, text in found if key == "expect"), None)
        self.bugs = {}
        for number, line in enumerate(lines, 1):
            mark = re.search(r"// BUG: ([a-z, -]+)", line)
            if mark:
                self.bugs[number] = [kind.strip() for kind in mark[1].split(",")]

    def kinds(self):
        return list(dict.fromkeys(kind for kinds in self.bugs.values() for kind in kinds))

    def argument(self, name):
        return next(argument for argument in self.arguments if argument.name == name)

    def expected(self):
        """The argument that holds the result, and what it must hold."""
        result, rule, source, *rest = self.expectation
        x = self.argument(source).numbers
        result = self.argument(result)
        match rule:
            case "spmv":
                numbers = self.matrix.product(x, 1)
            case "spmm":
                numbers = self.matrix.product(x, int(rest[0]))
            case "sum":
                numbers = [sum(x)]
            case "max":
                numbers = [max(x)]
            case "prefix-sum":
                numbers = offsets(x)[1:]
            case "positive":
                numbers = [number for number in x if number > 0]
                numbers += [0] * (result.count - len(numbers))
            case "histogram":
                numbers = [x.count(number) for number in range(result.count)]
            case _:
                raise ValueError(f"no rule {rule}")
        return result, numbers

    def fingerprint(self):
        state = fnv(b"")
        for argument in self.arguments:
            state = fnv(argument.bytes, state)
        return f"{self.set}/{self.name} {state:016x}"


def configuration(launch):
    """Grid, block and bytes of shared memory of `<<<dim3(4, 2), 128, 1024>>>`."""
    inside = re.fullmatch(r"\w*<<<(.*)>>>", launch)[1]
    grid, block, *shared = re.findall(r"dim3\([^)]*\)|[^,\s]+", inside)
    return extent(grid), extent(block), int(shared[0]) if shared else 0


def extent(text):
    numbers = [int(number) for number in re.findall(r"(?<!\w)\d+", text)]
    return numbers + [1] * (3 - len(numbers))


def load(folder):
    """All cases, bugs first, each set by name."""
    return [Case(path) for part in ("bugs", "kernels") for path in sorted((folder / part).glob("*.cu"))]
