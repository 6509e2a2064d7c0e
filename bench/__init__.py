"""Measurements: of a running service, and of engines started for the purpose. `python -m bench --help` lists them."""
