"""The verdict of the ``ymmsl`` package about description files: from files to a checked model, in the steps of its
manager."""

import os
import sys
import warnings
from pathlib import Path

import ymmsl
from ymmsl import v0_1, v0_2


def configuration(files: list[Path]) -> v0_2.Configuration:
    """The files, merged from left to right, in the terms of v0.2."""
    warnings.simplefilter("ignore")
    documents = [ymmsl.load(Path(file)) for file in files]
    if all(isinstance(document, v0_1.PartialConfiguration) for document in documents):
        for document in documents[1:]:
            documents[0].update(document)
        return ymmsl.convert_to(v0_2.Configuration, documents[0])
    merged = ymmsl.convert_to(v0_2.Configuration, documents[0])
    for document in documents[1:]:
        merged.update(ymmsl.convert_to(v0_2.Configuration, document))
    return merged


def resolved(files: list[Path], search: Path, packages: Path) -> v0_2.Configuration:
    """The files with their imports, checked. Raises the exception of the package."""
    os.environ["YMMSL_PATH"] = str(search)
    if str(packages) not in sys.path:
        sys.path.append(str(packages))
    merged = configuration(files)
    v0_2.resolve(v0_2.Reference([]), merged, reuse_cached_imports=False)
    merged.check_consistent(True, None)
    for model in merged.models.values():
        v0_2.resolve_timelines(model)
    merged.root_model()
    return merged


def verdict(files: list[Path], search: Path, packages: Path) -> str | None:
    """The reason why the package refuses these files, or None if it accepts them."""
    try:
        resolved(files, search, packages)
    except Exception as error:  # whatever exception comes, the user gets no run
        return f"{type(error).__name__}: {error}"
    return None


def timelines(files: list[Path], search: Path, packages: Path) -> dict[str, str] | None:
    """The timeline of each component; None if models are nested."""
    accepted = resolved(files, search, packages)
    if len(accepted.models) > 1:
        return None
    return {str(c.name): str(c.timeline) for model in accepted.models.values() for c in model.components.values()}
