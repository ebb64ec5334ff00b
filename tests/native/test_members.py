"""Drivers in C, C++ and Fortran are told of a failed member, and go on with the others, or with the member itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import HERE, Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  study:
    components:
      driver: {{ports: {{o_i: out, s: back}}, implementation: driver}}
      micro: {{ports: {{f_init: in, o_f: out}}, implementation: micro, multiplicity: 4}}
    conduits: {{driver.out: micro.in, micro.out: driver.back}}
programs:
  driver: {{executable: {driver}, env: {{{env}}}}}
  micro: {{executable: python3, args: [{here}/../ensembles/member.py]}}
settings: {{micro.how: fine, 'micro[1].how': exit}}
titin: {{ensemble: {{micro: {{allow_failures: 1}}}}}}
"""


def model(driver: Path, env: str = "") -> str:
    return MODEL.format(driver=driver, here=HERE, env=env)


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_the_driver_is_told_in_its_language(build: Build, tmp_path: Path, language: str) -> None:
    run(tmp_path, model(build("members", language)))


AGAIN = """\
ymmsl_version: v0.2
models:
  study:
    components:
      driver: {{ports: {{o_i: out, s: back}}, implementation: driver}}
      micro: {{ports: {{f_init: in, o_f: out}}, implementation: micro, multiplicity: 2}}
    conduits: {{driver.out: micro.in, micro.out: driver.back}}
programs:
  driver: {{executable: {driver}}}
  micro: {{executable: python3, args: [{here}/../ensembles/fragile.py], env: {{DOUBLES: '1'}}}}
settings: {{micro.how: signal}}
titin: {{ensemble: {{micro: {{retry: 2}}}}}}
"""


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_member_that_is_started_again_is_sent_to_again(build: Build, tmp_path: Path, language: str) -> None:
    # Each member fails twice, each time at the second message of a process.
    run(tmp_path, AGAIN.format(driver=build("again", language), here=HERE))
