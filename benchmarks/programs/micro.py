"""The micro side of a pair, for titin and for MUSCLE3: receives on F_INIT and sends the same on O_F.

With "titin-loan" it sends memory that titin lends: it is told how many numbers the next answer has, and which.
"""

import sys


def main() -> None:
    if sys.argv[1] == "titin":
        import titin

        with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
            while instance.reuse():
                message = instance.receive("in")
                instance.send("out", message.data, timestamp=message.timestamp)
    elif sys.argv[1] == "titin-loan":
        import titin

        with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
            answer = None
            while instance.reuse():
                message = instance.receive("in")
                if isinstance(message.data, list):
                    count, value = message.data
                    answer = instance.loan("out", count, float)
                    answer[:] = value
                    instance.send("out", None, timestamp=message.timestamp)
                else:
                    instance.send("out", answer, timestamp=message.timestamp)
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator

        instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["out"]})
        while instance.reuse_instance():
            message = instance.receive("in")
            instance.send("out", Message(message.timestamp, None, message.data))


main()
