"""A graph convolutional network of two layers (Kipf and Welling, 2017), forward and backward, on three graphs:
by SparseRL, by torch.sparse, and by PyG where it is installed. All must agree; then they are timed in turn: as
PyTorch runs them, which on graphs of this size waits for Python, and on a GPU in CUDA graphs, which do not.
`python3 gcn.py [NODES]`, with PyTorch and SciPy; on a GPU where there is one.
"""

import statistics
import sys
import time

import numpy
import scipy.sparse
import torch

import sparserl

try:
    from torch_geometric.nn import GCNConv
except ImportError:
    GCNConv = None

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FEATURES, HIDDEN, CLASSES = 64, 32, 16
ROUNDS, STEPS = 5, 20


def graphs(nodes):
    """Edges of a grid, of a graph whose nodes have about equally many, and of one where few have most."""
    draw, side = numpy.random.default_rng(1), int(nodes**0.5)
    node = numpy.arange(side * side).reshape(side, side)
    right, below = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    grid = [numpy.concatenate([right[end].ravel(), below[end].ravel()]) for end in (0, 1)]
    uniform = draw.integers(0, nodes, (2, 8 * nodes))
    skewed = (nodes * draw.random((2, 8 * nodes))**3).astype(int)
    return {"grid": (side * side, grid), "uniform": (nodes, uniform), "skewed": (nodes, skewed)}


def normalised(nodes, edges):
    """D^-1/2 (A + I) D^-1/2, in both directions of each edge."""
    one = scipy.sparse.coo_array((numpy.ones(len(edges[0])), tuple(edges)), shape=(nodes, nodes)).tocsr()
    A = ((one + one.T + scipy.sparse.eye_array(nodes)) > 0).astype(numpy.float32).tocsr()
    scale = scipy.sparse.diags_array(1 / numpy.sqrt(A.sum(axis=1))).astype(numpy.float32)
    A = (scale @ A @ scale).tocsr()
    A.sort_indices()
    return A


class Network(torch.nn.Module):
    """Two layers; `products` multiply by the graph's matrix, one for each layer."""

    def __init__(self, products):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(FEATURES, HIDDEN, bias=False)
        self.second = torch.nn.Linear(HIDDEN, CLASSES, bias=False)
        self.biases = torch.nn.ParameterList([torch.zeros(HIDDEN), torch.zeros(CLASSES)])
        self.products = products

    def forward(self, x):
        x = torch.relu(self.products[0](self.first(x)) + self.biases[0])
        return self.products[1](self.second(x)) + self.biases[1]


def by_sparserl(A):
    # The derivative is the product with the transposed matrix.
    plans = [sparserl.plan(A, op="spmm", cols=cols, transpose_too=True) for cols in (HIDDEN, CLASSES)]
    return [plan.wait() for plan in plans]


class TorchProduct(torch.autograd.Function):
    """A X by torch.sparse, whose derivative is a product with the transposed matrix, made before."""

    @staticmethod
    def forward(ctx, x, matrix, transposed):
        ctx.transposed = transposed
        return matrix @ x

    @staticmethod
    def backward(ctx, gradient):
        return ctx.transposed @ gradient, None, None


def by_torch(A):
    def tensor(A):
        arrays = (torch.from_numpy(array) for array in (A.indptr, A.indices, A.data))
        return torch.sparse_csr_tensor(*arrays, size=A.shape, device=DEVICE)

    matrix, transposed = tensor(A), tensor(A.T.tocsr())
    return [lambda x: TorchProduct.apply(x, matrix, transposed)] * 2


def by_pyg(A):
    A = A.tocoo()
    # From the nodes of columns to those of rows.
    edges = torch.from_numpy(numpy.stack([A.col, A.row]).astype(numpy.int64)).to(DEVICE)
    weights = torch.from_numpy(A.data).to(DEVICE)

    def product(cols):
        # Only what passes messages: the weights are the network's own.
        layer = GCNConv(cols, cols, normalize=False, bias=False)
        layer.lin = torch.nn.Identity()
        return lambda x: layer(x, edges, weights)

    return [product(HIDDEN), product(CLASSES)]


def step(network, x, labels):
    """A step of training, up to the gradients."""
    network.zero_grad()
    loss = torch.nn.functional.cross_entropy(network(x), labels)
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in network.parameters())]


def captured(network, x, labels):
    """The same step in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # What is made ready at first use must not be captured.
        for _ in range(3):
            step(network, x, labels)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step(network, x, labels)
    graph.replay()
    return graph, result


def timed(acts):
    """Seconds of a step of each, the median of rounds in which they take turns."""
    def seconds(act):
        start = time.perf_counter()
        for _ in range(STEPS):
            act()
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / STEPS

    # A GPU that had nothing to do runs slowly at first, so the first round does not count.
    rounds = [[seconds(act) for act in acts] for _ in range(1 + ROUNDS)][1:]
    return [statistics.median(of_one) for of_one in zip(*rounds)]


def main():
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000 if DEVICE.type == "cuda" else 5_000
    ways = {"SparseRL": by_sparserl, "torch.sparse": by_torch} | ({"PyG": by_pyg} if GCNConv else {})
    for name, (count, edges) in graphs(nodes).items():
        A = normalised(count, edges)
        draw = torch.Generator().manual_seed(2)
        x = torch.randn(count, FEATURES, generator=draw).to(DEVICE)
        labels = torch.randint(CLASSES, (count,), generator=draw).to(DEVICE)
        print(f"{name}: {count} nodes, {A.nnz} entries")
        networks = [Network(products(A)).to(DEVICE) for products in ways.values()]
        expected = step(networks[0], x, labels)
        for network in networks[1:]:
            torch.testing.assert_close(step(network, x, labels), expected, rtol=1e-3, atol=1e-5)
        acts = [lambda network=network: step(network, x, labels) for network in networks]
        times = [timed(acts)]
        if DEVICE.type == "cuda":
            graphs_of = [captured(network, x, labels) for network in networks]
            for _, result in graphs_of:
                torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-5)
            times.append(timed([graph.replay for graph, _ in graphs_of]))
        for way, *seconds in zip(ways, *times):
            print(f"  {way}: {', in a CUDA graph '.join(f'{1e3 * one:.3f}' for one in seconds)} ms a step")


if __name__ == "__main__":
    main()
