"""Receives messages of which all but the last are malformed, by each call in turn; prints the error of each."""

import sys

import numpy as np
import titin


def receive(instance: titin.Instance, turn: int) -> None:
    """One call that takes a message."""
    if turn == 0:
        instance.receive("in")
    if turn == 1:
        instance.receive_any("in")
    if turn == 2:
        instance.receive_into("in", np.zeros(()))
    while turn == 3:
        assert instance.try_receive("in") is None


def passes(message: titin.Message) -> titin.Message:
    """A filter that no message passes."""
    raise AssertionError(message)


if __name__ == "__main__":
    filtered = "filtered" in sys.argv
    refusal: type[titin.Error] = titin.FilterError if filtered else titin.TypeMismatch
    with titin.Instance(s="in") as instance:
        while instance.reuse():
            for number in range(int(sys.argv[1])):
                try:
                    receive(instance, number % 4)
                except refusal as error:
                    print(error)
                else:
                    raise AssertionError("a malformed message")
            assert filtered or instance.receive("in").data == "well"
