"""An installed package that brings a yMMSL module."""
