"""Runs a model whose implementations are Python functions, each instance in a process of its own."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

__all__ = ["run_instances", "run_simulation"]

#: Seconds that processes have to end by themselves, once one of them has failed the run.
_PATIENCE = 5.0
_LAST_LINES = 20


def run_simulation(configuration: Any, implementations: Mapping[str, Callable[[], Any]]) -> None:
    """Runs a model with a function for each implementation, and returns once all instances have ended well.

    ``configuration``: a description of the package ``ymmsl``, of version 0.1 or 0.2. ``implementations``: a function
    without arguments for each name of an implementation; it makes its :class:`libmuscle.Instance` itself. Each instance
    is a process of ``multiprocessing``, and writes its log to ``muscle3.<instance>.log`` in the current folder. The log
    of the manager, ``muscle3_manager.log``, and the profile, ``performance.sqlite``, are there once the run is over.

    Raises ValueError if a function is missing, and RuntimeError with the last lines of their logs if instances fail, or
    if the description has imports or is not consistent.
    """
    configuration = _as_v0_2(configuration)
    if configuration.imports:
        raise RuntimeError("Imports are not supported when running from Python: run the model by `muscle_manager`")
    configuration.check_consistent(False)
    model = configuration.root_model()
    instances = {
        name + "".join(f"[{number}]" for number in index): _function(implementation, implementations)
        for name, dimensions, implementation in _programs(configuration, model)
        for index in product(*map(range, dimensions))
    }
    from libmuscle.serving import Serving

    with tempfile.TemporaryDirectory(prefix="muscle3_") as folder:
        arguments = ["manager", "--trace", "--run-dir", f"{folder}/run", "--model", str(model.name), "--", "-"]
        try:
            with Serving(arguments, _description(configuration)) as serving:
                run_instances(instances, serving.location)
                serving.end()
        finally:
            _keep(Path(folder, "run", "titin_manager.log"), "muscle3_manager.log")
            _keep(Path(folder, "run", "performance.sqlite"), "performance.sqlite")


def _keep(file: Path, name: str) -> None:
    """Copies a file of the run into the current folder, in place of that of an earlier run."""
    if file.exists():
        part = f".{name}.part"
        shutil.copyfile(file, part)
        os.replace(part, name)


def run_instances(instances: Mapping[str, Callable[[], Any]], manager_location: str) -> None:
    """Runs a function for each instance, in a process of its own, with a manager that serves already.

    Raises RuntimeError with the last lines of their logs if instances fail.
    """
    # The end of this pipe tells the processes that this one is gone.
    reader, writer = multiprocessing.Pipe(duplex=False)
    processes: dict[BaseProcess, str] = {
        multiprocessing.Process(
            target=_run_instance, args=(name, manager_location, function, reader, writer), name=name
        ): name
        for name, function in instances.items()
    }
    with reader, writer:
        try:
            for process in processes:
                process.start()
            failed = _wait(list(processes))
        except BaseException:
            # As after Ctrl-C: else the end of the interpreter would wait for them.
            for process in processes:
                if process.pid is not None:
                    process.kill()
            raise
    if failed:
        raise RuntimeError(_report([processes[process] for process in failed]))


def _run_instance(name: str, manager: str, function: Callable[[], Any], reader: Connection, writer: Connection) -> None:
    """The main function of the process of an instance, which ends with the process that has started it."""
    writer.close()
    threading.Thread(target=_end_after, args=(reader,), daemon=True).start()
    sys.argv[1:] = [word for word in sys.argv[1:] if not word.startswith(("--muscle-instance=", "--muscle-manager="))]
    sys.argv += [f"--muscle-instance={name}", f"--muscle-manager={manager}"]
    to_file = logging.FileHandler(f"muscle3.{name}.log", "w")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(filename)s:%(lineno)d %(message)s"))
    logging.getLogger().addHandler(to_file)
    from libmuscle.instance import Instance

    Instance._joined = False
    try:
        function()
        if not Instance._joined:
            raise RuntimeError(f"the function of {name} has ended without an Instance, for which all others wait")
    except Exception as raised:
        from libmuscle import uncaught

        traceback.print_exc()
        uncaught.tell(raised)
        logging.getLogger(__name__).exception("%s has failed", name)
        # Without the handlers of the interpreter's end, which would wait for an instance that is open.
        sys.stdout.flush()
        logging.shutdown()
        os._exit(1)


def _end_after(reader: Connection) -> None:
    """Ends this process at once when all writers of a pipe are gone."""
    reader.poll(None)
    os._exit(1)


def _wait(processes: list[BaseProcess]) -> list[BaseProcess]:
    """Waits until all have ended; after a failure, no longer than they need to notice. Gives those that have failed."""
    alive, failed = list(processes), list[BaseProcess]()
    while alive:
        done = wait([process.sentinel for process in alive], timeout=_PATIENCE if failed else None)
        if not done:
            for process in alive:
                process.kill()
        for process in alive:
            if process.sentinel in done:
                process.join()
                if process.exitcode != 0:
                    failed.append(process)
        alive = [process for process in alive if process.sentinel not in done]
        if not done:
            for process in alive:
                process.join()
            break
    return failed


def _report(names: list[str]) -> str:
    """What the logs of these instances end with."""
    parts = [f"Instance(s) {names} failed to shut down cleanly. Here is the final bit of the output:"]
    for name in names:
        log = Path(f"muscle3.{name}.log")
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
        parts += [f"---------- {name} ----------", *lines, f"See {log} for all of it"]
    return "\n".join(parts)


def _as_v0_2(configuration: Any) -> Any:
    import ymmsl
    from ymmsl import v0_1, v0_2

    if isinstance(configuration, v0_1.PartialConfiguration):
        with warnings.catch_warnings():
            # What a conversion cannot keep is of no use here.
            warnings.simplefilter("ignore")
            return ymmsl.convert_to(v0_2.Configuration, configuration)
    if not isinstance(configuration, v0_2.Configuration):
        raise RuntimeError(f"Invalid configuration type {type(configuration)}: it is ymmsl's, of version 0.1 or 0.2")
    return configuration


def _programs(
    configuration: Any, model: Any, prefix: str = "", dimensions: tuple[int, ...] = ()
) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Name, multiplicity and implementation of each component that no model implements, within nested models too."""
    for component in model.components.values():
        name, all_dimensions = f"{prefix}{component.name}", (*dimensions, *component.multiplicity)
        if component.implementation in configuration.models:
            inner = configuration.models[component.implementation]
            yield from _programs(configuration, inner, f"{name}.", all_dimensions)
        else:
            yield name, all_dimensions, str(component.implementation)


def _function(implementation: str, implementations: Mapping[str, Callable[[], Any]]) -> Callable[[], Any]:
    if implementation not in implementations:
        raise ValueError(
            f'The model specifies an implementation named "{implementation}" but the given set of implementations does '
            f"not include it; it has {', '.join(implementations) or 'none'}"
        )
    return implementations[implementation]


def _description(configuration: Any) -> str:
    """The description as yMMSL, without programs. ``ymmsl.dump`` fails where parts of a description are empty."""
    models = {str(model.name): _model(configuration, model) for model in configuration.models.values()}
    settings = {str(name): value for name, value in configuration.settings.as_ordered_dict().items()}
    # JSON is YAML.
    return json.dumps({"ymmsl_version": "v0.2", "models": models, "settings": settings})


def _model(configuration: Any, model: Any) -> dict[str, Any]:
    components = {}
    for component in model.components.values():
        entry: dict[str, Any] = {"description": component.description or "-", "ports": _ports(component)}
        if component.multiplicity:
            entry["multiplicity"] = list(component.multiplicity)
        if component.implementation in configuration.models:
            entry["implementation"] = str(component.implementation)
        components[str(component.name)] = entry
    conduits: dict[str, list[str]] = {}
    for conduit in model.conduits:
        filters = [one.value for one in conduit.filters]
        conduits.setdefault(str(conduit.sender), []).append(" ".join([*filters, str(conduit.receiver)]))
    known: dict[str, Any] = {"components": components, "conduits": conduits}
    if len(model.ports):
        known["ports"] = _ports(model)
    return known


def _ports(owner: Any) -> dict[str, Any]:
    ports: dict[str, Any] = {}
    for port in owner.ports.values():
        into = ports.setdefault(f"timeline {port.timeline[0]}", {}) if port.timeline else ports
        into.setdefault(port.operator.name.lower(), []).append(str(port.name))
    return ports
