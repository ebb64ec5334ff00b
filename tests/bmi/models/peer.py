"""A program of titin's that answers a model in each step, and keeps all that comes.

Ports: ``got`` (F_INIT) and ``give`` (O_F). The setting ``reply`` names a function of ``replies.py``; what has come goes
to ``kept.pickle`` in the work directory.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import replies
import titin

kept = []
with titin.Instance(f_init=["got"], o_f=["give"]) as instance:
    reply = getattr(replies, instance.setting("reply", str, default="nothing"))
    while instance.reuse():
        message = instance.receive("got")
        about, array = {}, message.data
        if isinstance(array, dict):
            about = {key: value for key, value in array.items() if key != "data"}
            array = array["data"]
        names = getattr(array, "names", None)
        kept.append((message.timestamp, message.next_timestamp, names, np.array(array, subok=False), about))
        instance.send("give", reply(np.asarray(array), message.timestamp), timestamp=message.timestamp)
Path("kept.pickle").write_bytes(pickle.dumps(kept))
