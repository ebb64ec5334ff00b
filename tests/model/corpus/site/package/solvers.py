"""The module's text, as packages write it."""

import sys

SOLVERS = f"""
ymmsl_version: v0.2
programs:
  solver:
    description: in Python
    ports: {{f_init: in}}
    executable: {sys.executable}
    args: [-m, package.solver]
"""
