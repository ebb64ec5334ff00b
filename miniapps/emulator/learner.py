#!/usr/bin/env python3
"""Learns the effect U of the fine scale on a column of the Lorenz system, from X of the column and of its neighbours.

In each step X and U of all columns come by a field, and what the network takes U to be goes back. Until the time
`learn` each step also teaches the network a batch of samples, those of the step and some of earlier ones. Then the
network is exported, and answers.
"""

import importlib.util

import numpy as np
import titin
from network import Network

BATCH = 64  # samples of a batch
FIRST = 100  # steps that are only kept, for the scale of inputs and outputs
RATE = 1e-2, 1e-4  # of learning, at the begin and at the end


def neighbourhoods(x):
    """The inputs of the network: for each column X of the column before, its own, and of the next."""
    return np.stack([np.roll(x, 1), x, np.roll(x, -1)], axis=-1)


def finished(network, runtime, instance):
    """A function that runs the network, by onnxruntime or by NumPy."""
    network.export("network.onnx")
    if runtime == "any":
        runtime = "onnxruntime" if importlib.util.find_spec("onnxruntime") else "numpy"
    if runtime == "numpy":
        instance.log("info", "the network answers, run by NumPy")
        return network

    import onnxruntime

    # On one thread: for eight samples more threads only wait for each other, and sums keep their order.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession("network.onnx", options, providers=["CPUExecutionProvider"])
    instance.log("info", f"the network answers, run by onnxruntime {onnxruntime.__version__}")
    return lambda inputs: session.run(["y"], {"x": inputs.astype(np.float32)})[0][:, 0].astype(float)


class Samples:
    """All samples so far."""

    def __init__(self, steps, columns):
        self.inputs, self.outputs = np.empty((steps * columns, 3)), np.empty(steps * columns)
        self.count = 0

    def add(self, inputs, outputs):
        end = self.count + len(outputs)
        self.inputs[self.count : end], self.outputs[self.count : end] = inputs, outputs
        self.count = end


with titin.Instance(f_init=["state"], o_f=["effect"]) as instance:
    columns = instance.setting("columns", int)
    last = round(instance.setting("learn", float) / instance.setting("dt", float))
    if last <= FIRST:
        raise ValueError(f"the setting learn is too short: it has to be more than {FIRST} steps of dt")
    runtime = instance.setting("runtime", str)
    if runtime not in ("any", "onnxruntime", "numpy"):
        raise ValueError(f"the setting runtime is '{runtime}': it has to be any, onnxruntime or numpy")
    seed = instance.setting("seed", int)
    random = np.random.default_rng(seed)
    state = instance.field("state", (columns,), [float, float])
    effect = instance.field("effect", (columns,), float)
    x, u = np.empty(columns), np.empty(columns)
    samples, network, errors = Samples(last, columns), None, []
    answer = np.zeros(columns)

    step = 0
    while instance.reuse():
        # F_INIT
        t, _ = state.receive(x, u)

        # S
        inputs = neighbourhoods(x)
        if network is not None:
            answer = network(inputs)
        if step < last:
            samples.add(inputs, u)
            if step + 1 == FIRST:
                network = Network(
                    instance.setting("hidden"), samples.inputs[: samples.count], samples.outputs[: samples.count], seed
                )
            elif network is not None:
                # What the network says of samples that it has not learned from is its true error.
                errors.append(np.mean((answer - u) ** 2))
                begin, end = RATE
                again = random.integers(0, samples.count, max(BATCH - columns, 0))
                batch = np.concatenate([again, np.arange(samples.count - columns, samples.count)])
                rate = begin + (end - begin) * step / last
                network.learn(samples.inputs[batch], samples.outputs[batch], rate)
            if step + 1 == last:
                error = np.sqrt(np.mean(errors[-len(errors) // 4 :]))
                spread = samples.outputs.std()
                instance.log(
                    "info", f"after {step + 1} steps the error of U is {error:.2f}, its deviation {spread:.2f}"
                )
                network = finished(network, runtime, instance)
        step += 1

        # O_F
        effect.send(answer, timestamp=t)
    np.savetxt("errors.txt", np.sqrt(errors))
