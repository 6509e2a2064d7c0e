"""Settings: defaults, bounds, and messages that never quote a value."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from app.access import ApiKey
from app.settings import PREFIX, BadSettings, Settings, demo_checkpoint
from tests.app.canary import CANARY

KEY = "k" * 32


@dataclass(frozen=True)
class Setting:
    """A setting: its default, texts that are taken with what they become, texts that are refused."""

    name: str
    default: Any
    taken: dict[str, Any]
    refused: tuple[str, ...]


def bounded(name: str, default: Any, low: int, high: int) -> Setting:
    """An integer setting, tried at and just outside its bounds."""
    refused = (str(low - 1), str(high + 1), "", CANARY, "0.5", "9" * 5000)
    return Setting(name, default, {str(low): low, str(high): high}, refused)


def one_of(name: str, default: str, *names: str) -> Setting:
    """A setting that is one of several words."""
    return Setting(name, default, {word: word for word in names}, ("", CANARY, names[0].swapcase(), names[0] + " "))


SETTINGS = (
    Setting("host", "127.0.0.1", {"0.0.0.0": "0.0.0.0", "::1": "::1", "localhost": "localhost"}, ("", " ")),
    bounded("port", 8000, 1, 65535),
    one_of("engine", "vllm", "vllm", "fake"),
    Setting("model", "", {"google/diffusiongemma-26B-A4B-it": "google/diffusiongemma-26B-A4B-it"}, ("", " ")),
    Setting("revision", None, {"main": "main"}, ("", " ")),
    one_of("dtype", "auto", "auto", "bfloat16", "float32"),
    bounded("max_model_len", 4096, 64, 262_144),
    bounded("canvas_length", 64, 16, 1024),
    bounded("max_num_seqs", 16, 1, 256),
    bounded("max_batched_tokens", 8192, 64, 262_144),
    bounded("kv_cache_gib", None, 1, 1024),
    bounded("block_size", 32, 16, 256),
    Setting("entropy_threshold", 0.3, {"0": 0.0, "1": 1.0, "0.25": 0.25}, ("-0.1", "1.1", "nan", "inf", "", CANARY)),
    bounded("max_reads", 8, 1, 64),
    Setting("label_mass_share", 0.01, {"0": 0.0, "1": 1.0, "0.25": 0.25}, ("-0.1", "1.1", "nan", "inf", "", CANARY)),
    Setting("calibration", None, {"/etc/calibration.json": "/etc/calibration.json"}, ("", " ")),
    Setting("fused_reads", 1, {"0": 0, "1": 1}, ("-1", "2", "", CANARY, "0.5", "true", "on", "True")),
    bounded("bundle_tokens", 2048, 8, 65_536),
    Setting(
        "api_keys",
        (),
        {f"a:{KEY}, a:{KEY}2,b:{KEY}3": tuple(map(ApiKey.parse, (f"a:{KEY}", f"a:{KEY}2", f"b:{KEY}3")))},
        ("", ",", KEY, f"a:{KEY},", f"a:{CANARY}", f"a:{KEY},b:{KEY}", ",".join(f"a:{KEY}{n}" for n in range(257))),
    ),
    Setting("allow_anonymous", 0, {"0": 0, "1": 1}, ("-1", "2", "", CANARY, "true")),
    bounded("max_inflight", 64, 1, 10_000),
    bounded("tenant_inflight", None, 1, 10_000),
    bounded("inflight_tokens", 65_536, 64, 1 << 30),
    Setting("deadline_seconds", 30.0, {"0.01": 0.01, "3600": 3600.0}, ("0", "3601", "nan", "inf", "", CANARY)),
    Setting("drain_delay_seconds", 5.0, {"0": 0.0, "600": 600.0}, ("-1", "601", "nan", "inf", "", CANARY)),
    Setting("stall_seconds", 30.0, {"1": 1.0, "3600": 3600.0}, ("0.9", "3601", "nan", "inf", "", CANARY)),
    bounded("body_limit_bytes", 1 << 20, 1024, 1 << 28),
    Setting("body_seconds", 10.0, {"0.01": 0.01, "3600": 3600.0}, ("0", "3601", "nan", "inf", "", CANARY)),
    bounded("receiving_bytes", 1 << 26, 1024, 1 << 34),
    bounded("branch_tokens", 16_384, 64, 1 << 20),
    bounded("rubric_text_chars", 4096, 16, 1 << 20),
    bounded("rubric_chars", 65_536, 64, 1 << 24),
    bounded("rubric_questions", 64, 1, 64),
    bounded("rubric_options", 255, 2, 255),
    bounded("rubric_depth", 24, 4, 64),
    bounded("rubric_nodes", 4096, 16, 65_536),
    bounded("rubric_cache_entries", 256, 1, 100_000),
    one_of("log_level", "INFO", "DEBUG", "INFO", "WARNING", "ERROR"),
)
# Settings that go with each other, at values that leave the one under test free.
COMPANIONS = {
    "host": {"DECIDE_ALLOW_ANONYMOUS": "1"},
    "max_model_len": {"DECIDE_CANVAS_LENGTH": "16", "DECIDE_MAX_BATCHED_TOKENS": "262144"},
    "max_batched_tokens": {"DECIDE_CANVAS_LENGTH": "16", "DECIDE_MAX_MODEL_LEN": "64"},
}


def variable(setting: Setting) -> str:
    """The environment variable of a setting."""
    return f"DECIDE_{setting.name.upper()}"


def test_every_setting_is_in_the_table() -> None:
    """The table is complete, and its defaults are the service's."""
    assert {setting.name: setting.default for setting in SETTINGS} == {
        field.name: getattr(Settings(), field.name) for field in fields(Settings)
    }


def test_an_empty_environment_gives_the_defaults() -> None:
    """So does one of other people's variables."""
    assert Settings.from_env({"PATH": "/bin", "decide_port": "1", "XDECIDE_PORT": "1"}) == Settings()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_taken(setting: Setting) -> None:
    """Each accepted text, the bounds included, becomes a value of the right type; the rest keeps its default."""
    for text, value in setting.taken.items():
        read = Settings.from_env({**COMPANIONS.get(setting.name, {}), variable(setting): text})
        assert (getattr(read, setting.name), type(getattr(read, setting.name))) == (value, type(value))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_refused(setting: Setting) -> None:
    """The message names the variable and the rule, never the value, which may be a secret in the wrong place."""
    for text in setting.refused:
        with pytest.raises(BadSettings, match=f"^{variable(setting)} must be .+") as refusal:
            Settings.from_env({**COMPANIONS.get(setting.name, {}), variable(setting): text})
        assert CANARY not in str(refusal.value)


def test_bounds_are_in_the_message() -> None:
    """An operator reads what would be taken."""
    with pytest.raises(BadSettings) as refusal:
        Settings.from_env({"DECIDE_PORT": "0", "DECIDE_ENTROPY_THRESHOLD": "2", "DECIDE_DTYPE": "int8"})
    assert str(refusal.value) == (
        "DECIDE_DTYPE must be one of auto, bfloat16, float32; "
        "DECIDE_ENTROPY_THRESHOLD must be a number from 0 to 1; "
        "DECIDE_PORT must be an integer from 1 to 65535"
    )


def test_an_unknown_variable_is_refused() -> None:
    """A setting that looks set and is not would be found out in production."""
    with pytest.raises(BadSettings, match=r"^DECIDE_PROT is not a setting of this version$"):
        Settings.from_env({"DECIDE_PROT": CANARY})


@dataclass(frozen=True)
class Conflict:
    id: str
    conflicting: dict[str, str]
    fitting: dict[str, str]


CONFLICTS = (
    Conflict(
        "a prompt longer than an engine step",
        {"DECIDE_MAX_BATCHED_TOKENS": "4095"},
        {"DECIDE_MAX_BATCHED_TOKENS": "4096"},
    ),
    Conflict(
        "a canvas as long as the context",
        {"DECIDE_CANVAS_LENGTH": "100", "DECIDE_MAX_MODEL_LEN": "100"},
        {"DECIDE_CANVAS_LENGTH": "99", "DECIDE_MAX_MODEL_LEN": "100"},
    ),
    Conflict(
        "any address without keys",
        {"DECIDE_HOST": "0.0.0.0"},
        {"DECIDE_HOST": "0.0.0.0", "DECIDE_API_KEYS": f"a:{KEY}"},
    ),
    Conflict("a name without keys", {"DECIDE_HOST": "box"}, {"DECIDE_HOST": "box", "DECIDE_ALLOW_ANONYMOUS": "1"}),
    Conflict("a block that is no multiple of 16", {"DECIDE_BLOCK_SIZE": "40"}, {"DECIDE_BLOCK_SIZE": "48"}),
)


@pytest.mark.parametrize("case", CONFLICTS, ids=lambda case: case.id)
def test_settings_that_do_not_go_together(case: Conflict) -> None:
    """Refused with the variable's name, at the exact bound."""
    with pytest.raises(BadSettings, match=next(iter(case.conflicting))):
        Settings.from_env(case.conflicting)
    assert Settings.from_env(case.fitting)


def test_every_setting_says_what_it_is_about() -> None:
    """README and docs are written from it."""
    assert all(field.metadata["about"] for field in fields(Settings))
    assert PREFIX == "DECIDE_"


def test_settings_do_not_change() -> None:
    """Read once, at start."""
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


def test_the_demo_checkpoint_is_served_when_no_model_is_named() -> None:
    """It is in the box, complete, and answers are signed with its name instead of a path."""
    settings = Settings()
    assert (settings.checkpoint, settings.model_name) == (demo_checkpoint(), "onestep-demo")
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= {
        file.name for file in Path(demo_checkpoint()).iterdir()
    }


def test_a_model_is_called_by_its_name(tmp_path: Path) -> None:
    """A repository by its own, a folder by its last part: no path of this machine leaves it."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    assert Settings(model="google/diffusiongemma-26B-A4B-it").model_name == "google/diffusiongemma-26B-A4B-it"
    assert Settings(model=str(folder)).model_name == "my-model"
    assert Settings(model=f"{folder}/").model_name == "my-model"
    assert Settings(model=str(folder)).checkpoint == str(folder)
