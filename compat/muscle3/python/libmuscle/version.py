"""The version: that of MUSCLE3 whose interface this is, and that of titin behind it."""

import titin

__version__ = f"0.11.0+titin.{titin.__version__}"
