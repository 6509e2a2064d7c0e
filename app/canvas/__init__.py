"""The pure core: a rubric and a state become a prompt and a canvas, logprobs become a decision.

No input or output, no clock, no randomness of its own, no async; nothing of FastAPI, vLLM or torch.
"""
