"""MUSCLE3's Fortran modules over titin: every name of theirs, data without a run, errors that stop a program."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import pytest

from ..cpp.models import TIME_LIMIT
from .conftest import Compile, Modules

SCALARS = "logical,character,int1,int2,int4,int8,real4,real8"
ELEMENTS = "logical,int4,int8,real4,real8"
READING = f"""
create_{{nil,{SCALARS},settings,copy}} create
create_grid_{{1,2,3,4,5,6,7}}_{{{ELEMENTS}}}_{{a,n}} create_grid free
is_a_{{{SCALARS},int,dict,list,byte_array,settings}} is_a_grid_of_{{{ELEMENTS}}} is_nil size
as_{{{SCALARS},int,settings,byte_array}} get_item{{,_by_key,_by_index}} num_dims shape
elements_{{1,2,3,4,5,6,7}}_{{{ELEMENTS}}} elements has_indexes index
"""
TYPES = "character,int8,real8,logical,int8array,real8array,real8array2"

#: Every public name of MUSCLE3's modules, by their types; braces are those of the shell.
NAMES = {
    "LIBMUSCLE_DataConstRef": READING,
    "LIBMUSCLE_Data": READING
    + f"""
    create_{{dict,list,nils,byte_array,byte_array_empty,byte_array_from_buf}}
    set{{,_nil,_data}} set_{{{SCALARS}}}
    set_item{{,_key_data,_index_data}} set_item_{{key,index}}_{{{SCALARS}}} key value
    """,
    "LIBMUSCLE_PortsDescription": "create free add num_ports get",
    "LIBMUSCLE_Message": """
    create{,_t,_td,_tnd,_tds,_tnds} free timestamp set_timestamp has_next_timestamp next_timestamp set_next_timestamp
    unset_next_timestamp get_data set_data{,_d,_dcr} has_settings get_settings set_settings unset_settings
    """,
    "LIBMUSCLE_Instance": f"""
    create free reuse_instance error_shutdown is_setting_a_{{{TYPES}}} get_setting_as{{,1,2}}_{{{TYPES}}}
    list_settings list_ports
    is_connected is_vector_port is_resizable get_port_length set_port_length send{{,_pm,_pms}}
    receive{{,_with_settings}}{{,_p,_pd,_on_slot,_ps,_psd}} resuming should_init load_snapshot
    should_save_snapshot save_snapshot should_save_final_snapshot save_final_snapshot
    """,
    "YMMSL_Settings": """
    create free equals size empty contains erase clear key set
    {is_a,set,get_as}_{character,int4,int8,real8,logical,real8array,real8array2}
    """,
}
CONSTANTS = """
{LIBMUSCLE,YMMSL}_{success,domain_error,out_of_range,logic_error,runtime_error,bad_cast,int1,int2,int4,int8,size,real4,real8}
YMMSL_Operator{,_NONE,_F_INIT,_O_I,_S,_B,_O_F} LIBMUSCLE_InstanceFlags
"""


def expanded(word: str) -> list[str]:
    """The words that a shell makes of braces."""
    parts = [part.split(",") if i % 2 else [part] for i, part in enumerate(re.split(r"[{}]", word))]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def public_names() -> list[str]:
    names = [name for word in CONSTANTS.split() for name in expanded(word)]
    for type, words in NAMES.items():
        names += [type, *(f"{type}_{name}" for word in words.split() for name in expanded(word))]
    return names


def test_every_name_is_there(build_fortran: Compile, tmp_path: Path) -> None:
    names = public_names()
    assert len(names) == len(set(names)) > 450
    lines = ["program names"]
    lines += [f"    use {'ymmsl' if name.startswith('YMMSL') else 'libmuscle'}, only: {name}" for name in names]
    source = tmp_path / "names.f90"
    source.write_text("\n".join([*lines, "    implicit none", "end program", ""]))
    build_fortran("names", source)


def test_the_modules_are_the_same_for_ranks(modules: Modules) -> None:
    serial, ranks = ((modules.folder / f"{name}.f90").read_text() for name in ("libmuscle", "libmuscle_mpi"))
    public = re.compile(r"^    public :: (\w+)$", re.MULTILINE)
    assert public.findall(serial) == public.findall(ranks)
    assert all(len(line) <= 132 for line in (serial + ranks).splitlines())


def test_without_a_run(build_fortran: Compile) -> None:
    done = subprocess.run([build_fortran("data")], capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("type", "these data are text, and not of the type asked for"),
        ("null", "this object was not created"),
        ("instance", "/nowhere/connection.json"),
    ],
)
def test_errors_stop_the_program(way: str, said: str, build_fortran: Compile) -> None:
    environment = os.environ | {"MUSCLE_INSTANCE": "macro", "MUSCLE_MANAGER": "/nowhere/connection.json"}
    done = subprocess.run(
        [build_fortran("stops"), way], env=environment, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
    )
    assert done.returncode == 1 and said in done.stderr and "not reached" not in done.stdout, done.stderr
