"""Measurements of a running service. `python -m bench --help` lists them."""
