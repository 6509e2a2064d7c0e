"""Onestep: decisions from one read of a canvas, over HTTP."""

__version__ = "0.1.0"
