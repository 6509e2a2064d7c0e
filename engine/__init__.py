"""Onestep's vLLM plugin and the owner of the embedded engine.

Importing this package is cheap: vLLM and torch are imported when `register` runs, never before.
"""

from __future__ import annotations

import logging

__version__ = "0.1.0"

ARCHITECTURE = "DiffusionGemmaForBlockDiffusion"


def register() -> None:
    """Entry point of the `vllm.general_plugins` group; vLLM calls it several times and in every process.

    Raises:
        IncompatibleVllm: see `engine.compat`.
    """
    try:
        from engine.compat import apply_ledger
        from engine.orphan import obey_parent_process

        apply_ledger()
        obey_parent_process()
        from vllm import ModelRegistry

        ModelRegistry.register_model(ARCHITECTURE, "engine.model:TextDiffusionGemma")
    except Exception:
        logging.getLogger(__name__).exception("the onestep plugin could not be registered")
        raise
