"""Temperatures per kind of question, from the file that `python -m bench calibrate` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.canvas.question import Kind
from app.settings import BadSettings

# Far beyond what a fit finds: a number out of it is a mistake.
Temperature = Annotated[float, Field(ge=0.05, le=20)]


class CalibrationFile(BaseModel):
    """The file's content.

    Attributes:
        model: whose temperatures they are, as answers call it.
        temperatures: what logprobs are divided by; kinds that are not there keep 1.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    model: str
    temperatures: dict[Annotated[Kind, Field(strict=False)], Temperature]


def load_temperatures(file: str | None, model: str) -> Mapping[Kind, float]:
    """The temperatures of a file; none without one.

    Raises:
        BadSettings: the file cannot be read, or is for another model.
    """
    if file is None:
        return {}
    try:
        calibration = CalibrationFile.model_validate_json(Path(file).read_bytes())
    except (OSError, ValidationError) as error:
        raise BadSettings(f"DECIDE_CALIBRATION names no usable calibration file ({type(error).__name__})") from None
    if calibration.model != model:
        raise BadSettings("DECIDE_CALIBRATION names a calibration file of another model")
    return calibration.temperatures
