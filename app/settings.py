"""Every setting, read once from the environment at start.

A field is one `DECIDE_*` variable. A variable that is not a field is refused rather than ignored: a setting that looks
set and is not would be found out in production.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, get_args

from app.access import MOST_KEYS, SHORTEST_KEY_CHARS, ApiKey
from app.canvas.policy import MOST_READS

PREFIX = "DECIDE_"

EngineName = Literal["vllm", "fake"]
DtypeName = Literal["auto", "bfloat16", "float32"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class BadSettings(ValueError):
    """The environment holds settings that cannot be used, alone or together; the message names them."""


def demo_checkpoint() -> str:
    """The folder of the checkpoint in the box."""
    return str(files("engine.demo") / "checkpoint")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ValueError
        return int(text)

    parse.__doc__ = f"an integer from {low} to {high}"
    return parse


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    parse.__doc__ = f"a number from {low:g} to {high:g}"
    return parse


def _one_of(literal: Any) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in get_args(literal):
            raise ValueError
        return text

    parse.__doc__ = "one of " + ", ".join(get_args(literal))
    return parse


def _text(text: str) -> str:
    """some text, not empty"""
    if not text.strip():
        raise ValueError
    return text


def _keys(text: str) -> tuple[ApiKey, ...]:
    keys = tuple(map(ApiKey.parse, text.split(",")))
    if len(keys) > MOST_KEYS or len({key.digest for key in keys}) < len(keys):
        raise ValueError
    return keys


_keys.__doc__ = (
    f"`tenant:key`, up to {MOST_KEYS} of them separated by commas, no key twice and none below {SHORTEST_KEY_CHARS} "
    "characters; a key may be `sha256:` and its digest in hexadecimal"
)


def _setting(default: Any, parse: Callable[[str], Any], about: str) -> Any:
    return field(default=default, metadata={"parse": parse, "about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The service's settings. `about` of each field is what README and docs say of it."""

    host: str = _setting("127.0.0.1", _text, "address to listen on")
    port: int = _setting(8000, _integer(1, 65535), "port to listen on")
    engine: EngineName = _setting("vllm", _one_of(EngineName), "`fake` answers without a model, for clients' tests")
    model: str = _setting("", _text, "checkpoint folder or Hugging Face repository; the demo checkpoint when unset")
    revision: str | None = _setting(None, _text, "revision of the repository")
    dtype: DtypeName = _setting(
        "auto",
        _one_of(DtypeName),
        "`auto`: bfloat16 where the CPU computes in it, else float32 if the weights fit",
    )
    max_model_len: int = _setting(4096, _integer(64, 262_144), "prompt plus canvas, in tokens")
    canvas_length: int = _setting(64, _integer(16, 1024), "widest canvas, in tokens")
    max_num_seqs: int = _setting(16, _integer(1, 256), "reads in one engine step")
    max_batched_tokens: int = _setting(8192, _integer(64, 262_144), "tokens in one engine step")
    kv_cache_gib: int | None = _setting(
        None,
        _integer(1, 1024),
        "memory for the KV cache, in GiB; unset: 1 for checkpoints below 1 GiB, else 8",
    )
    block_size: int = _setting(32, _integer(16, 256), "tokens in a KV block; prefix-cache hits come in whole blocks")
    entropy_threshold: float = _setting(0.3, _number(0, 1), "answers above it are `uncertain`")
    max_reads: int = _setting(8, _integer(1, MOST_READS), "reads of a decision, at most; a request may ask for fewer")
    label_mass_share: float = _setting(
        0.01, _number(0, 1), "share of decisions that also tell how likely anything but a label was"
    )
    calibration: str | None = _setting(
        None, _text, "file of temperatures per kind of question, as `python -m bench calibrate` writes it"
    )
    fused_reads: int = _setting(1, _integer(0, 1), "prompt and canvas in one engine step; 0: vLLM's own two")
    bundle_tokens: int = _setting(
        2048, _integer(8, 65_536), "reads that share a prompt run together up to this many tokens behind it"
    )
    branch_tokens: int = _setting(
        16_384, _integer(64, 1 << 20), "tokens that one read of a request may have behind its prompt, in all"
    )
    api_keys: tuple[ApiKey, ...] = _setting(
        (), _keys, "who may ask, as `tenant:key`, separated by commas; needed to listen beyond loopback"
    )
    allow_anonymous: int = _setting(
        0, _integer(0, 1), "1: listen beyond loopback without keys, where something in front authenticates"
    )
    max_inflight: int = _setting(64, _integer(1, 10_000), "requests served at once; the next gets 429")
    tenant_inflight: int | None = _setting(
        None, _integer(1, 10_000), "requests of one tenant served at once; the next gets 429"
    )
    inflight_tokens: int = _setting(
        65_536, _integer(64, 1 << 30), "tokens of requests served at once, prompts and canvases; more get 429"
    )
    deadline_seconds: float = _setting(30.0, _number(0.01, 3600), "a request not finished by then gets 504")
    drain_delay_seconds: float = _setting(
        5.0, _number(0, 600), "after SIGTERM: how long `/health` says 503 before the port closes"
    )
    stall_seconds: float = _setting(
        30.0, _number(1, 3600), "an engine that finishes nothing for so long, and then no read of ours either, is dead"
    )
    body_limit_bytes: int = _setting(1 << 20, _integer(1024, 1 << 28), "longest request body, in bytes")
    body_seconds: float = _setting(10.0, _number(0.01, 3600), "a body not there by then gets 408")
    receiving_bytes: int = _setting(
        1 << 26, _integer(1024, 1 << 34), "bodies that arrive at once, in bytes, together; more get 429"
    )
    rubric_text_chars: int = _setting(4096, _integer(16, 1 << 20), "longest single text in a rubric")
    rubric_chars: int = _setting(65_536, _integer(64, 1 << 24), "all texts of a rubric together")
    rubric_questions: int = _setting(64, _integer(1, 64), "questions of a rubric")
    rubric_options: int = _setting(255, _integer(2, 255), "options of a question, if the tokenizer has as many labels")
    rubric_depth: int = _setting(24, _integer(4, 64), "schemas within schemas, references included")
    rubric_nodes: int = _setting(4096, _integer(16, 65_536), "schemas and options of a rubric")
    rubric_cache_entries: int = _setting(256, _integer(1, 100_000), "compiled rubrics kept")
    log_level: LogLevel = _setting("INFO", _one_of(LogLevel), "our own log lines; vLLM's level is pinned")

    def __post_init__(self) -> None:
        if self.max_batched_tokens < self.max_model_len:
            raise BadSettings(
                "DECIDE_MAX_BATCHED_TOKENS must be at least DECIDE_MAX_MODEL_LEN, so that any prompt fits one step"
            )
        if self.block_size % 16:
            raise BadSettings("DECIDE_BLOCK_SIZE must be a multiple of 16")
        if self.canvas_length >= self.max_model_len:
            raise BadSettings("DECIDE_CANVAS_LENGTH must be less than DECIDE_MAX_MODEL_LEN")
        if not (self.api_keys or self.allow_anonymous or _is_loopback(self.host)):
            raise BadSettings(
                "DECIDE_HOST is not a loopback address: set DECIDE_API_KEYS, or DECIDE_ALLOW_ANONYMOUS=1 if something "
                "in front of the service authenticates"
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read every `DECIDE_*` variable.

        Raises:
            BadSettings: naming each variable that is unknown or out of range, never its value.
        """
        known = {PREFIX + setting.name.upper(): setting for setting in fields(cls)}
        values: dict[str, Any] = {}
        problems = []
        for variable in sorted(name for name in environ if name.startswith(PREFIX)):
            if variable not in known:
                problems.append(f"{variable} is not a setting of this version")
                continue
            parse = known[variable].metadata["parse"]
            try:
                values[known[variable].name] = parse(environ[variable])
            except ValueError:
                problems.append(f"{variable} must be {parse.__doc__}")
        if problems:
            raise BadSettings("; ".join(problems))
        return cls(**values)

    @property
    def checkpoint(self) -> str:
        """What to serve."""
        return self.model or demo_checkpoint()

    @property
    def model_name(self) -> str:
        """What answers call the model: the repository, or the folder's own name; never a path of this machine."""
        if not self.model:
            return "onestep-demo"
        return Path(self.model).name if Path(self.model).exists() else self.model
