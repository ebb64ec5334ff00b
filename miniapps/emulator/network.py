"""A small neural network in NumPy that learns by the method Adam, and its export to ONNX."""

from itertools import pairwise
from pathlib import Path

import numpy as np


class Network:
    """A perceptron with hidden layers of tanh, for some inputs and one output.

    It learns from one batch of samples after the other, by their gradients and the method Adam (Kingma and Ba, 2015).
    """

    def __init__(self, hidden, inputs, outputs, seed):
        """The first samples, one in each row, say how many inputs there are, and the scale of inputs and output."""
        random = np.random.default_rng(seed)
        sizes = [inputs.shape[1], *hidden, 1]
        self.weights = [random.normal(0, 1 / np.sqrt(a), (a, b)) for a, b in pairwise(sizes)]
        self.biases = [np.zeros(b) for b in sizes[1:]]
        self.mean_in, self.scale_in = inputs.mean(axis=0), inputs.std(axis=0)
        self.mean_out, self.scale_out = outputs.mean(), outputs.std()
        self.batches = 0
        self.moments = [(np.zeros_like(each), np.zeros_like(each)) for each in self.weights + self.biases]

    def __call__(self, inputs):
        """The outputs for samples, one in each row."""
        return self.layers(inputs)[-1][:, 0] * self.scale_out + self.mean_out

    def layers(self, inputs):
        values = [(inputs - self.mean_in) / self.scale_in]
        for weights, biases in zip(self.weights[:-1], self.biases[:-1]):
            values.append(np.tanh(values[-1] @ weights + biases))
        values.append(values[-1] @ self.weights[-1] + self.biases[-1])
        return values

    def learn(self, inputs, outputs, rate):
        """One step against the gradient of the mean squared error of these samples."""
        layers = self.layers(inputs)
        error = (layers[-1] - ((outputs - self.mean_out) / self.scale_out)[:, None]) / len(inputs)
        gradients = []
        for weights, below in zip(self.weights[::-1], layers[-2::-1]):
            gradients.append((below.T @ error, error.sum(axis=0)))
            error = (error @ weights.T) * (1 - below**2)
        of_weights, of_biases = zip(*gradients[::-1])

        first, second, small = 0.9, 0.999, 1e-8  # those of the paper
        self.batches += 1
        rate *= np.sqrt(1 - second**self.batches) / (1 - first**self.batches)
        for values, gradient, (m, v) in zip(self.weights + self.biases, of_weights + of_biases, self.moments):
            m += (1 - first) * (gradient - m)
            v += (1 - second) * (gradient**2 - v)
            values -= rate * m / (np.sqrt(v) + small)

    def plain(self):
        """Weights and biases of each layer such that inputs and outputs need no scaling."""
        weights, biases = self.weights.copy(), self.biases.copy()
        biases[0] = biases[0] - (self.mean_in / self.scale_in) @ weights[0]
        weights[0] = weights[0] / self.scale_in[:, None]
        weights[-1], biases[-1] = weights[-1] * self.scale_out, biases[-1] * self.scale_out + self.mean_out
        return list(zip(weights, biases))

    def export(self, path):
        """Writes the network as an ONNX file: inputs `x` of float32, a sample in each row, and outputs `y`."""
        Path(path).write_bytes(onnx_model(self.plain()))


# ONNX files are protocol buffers. These are the few messages of onnx.proto that a perceptron needs, by the numbers of
# their fields, in the version of the format (8) and of the operators (17) that every onnxruntime since 1.12 reads.
FORMAT, OPERATORS, FLOAT = 8, 17, 1


def onnx_model(layers):
    nodes, parameters, last = [], [], "x"
    for number, (weights, biases) in enumerate(layers, 1):
        parameters += [tensor(f"w{number}", weights), tensor(f"b{number}", biases)]
        is_last = number == len(layers)
        nodes.append(node("Gemm", [last, f"w{number}", f"b{number}"], "y" if is_last else f"a{number}"))
        if not is_last:
            nodes.append(node("Tanh", [f"a{number}"], last := f"h{number}"))
    graph = message(
        *((1, each) for each in nodes),
        (2, "perceptron"),
        *((5, each) for each in parameters),
        (11, rows("x", len(layers[0][0]))),
        (12, rows("y", 1)),
    )
    return message((1, FORMAT), (2, "titin miniapps/emulator"), (7, graph), (8, message((1, ""), (2, OPERATORS))))


def node(operator, inputs, output):
    return message(*((1, name) for name in inputs), (2, output), (4, operator))


def tensor(name, values):
    return message(*((1, n) for n in values.shape), (2, FLOAT), (8, name), (9, values.astype("<f4").tobytes()))


def rows(name, width):
    """The description of an array of float32 with any number of rows."""
    shape = message((1, message((2, "samples"))), (1, message((1, width))))
    return message((1, name), (2, message((1, message((1, FLOAT), (2, shape))))))


def message(*fields):
    """A message of protocol buffers: numbered fields, which are integers, text, or bytes such as other messages."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def varint(value):
    """An integer, seven bits in each byte, the lowest first."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
