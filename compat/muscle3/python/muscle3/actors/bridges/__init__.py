"""Bridges between timelines. A description imports them: ``from muscle3.actors.bridges import implementation ...``."""

import sys

YMMSL_CONFIG = f"""
ymmsl_version: v0.2
programs:
  unidirectional_bridge:
    description: passes messages on from one timeline to another
    executable: {sys.executable}
    args: -m muscle3.actors.bridges.unidirectional_bridge
"""
