"""Onestep: decisions from one read of a canvas, over HTTP."""

__version__ = "0.1.0"
# Of this version; before it is released, of its last change to what is answered.
__release_date__ = "2026-11-30"
