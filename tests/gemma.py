"""A real Gemma tokenizer, as a checkpoint's folder.

The demo tokenizer has 2,048 entries, and all its added tokens are special. Gemma 3's has 262,145 entries, 6,415 of them
added tokens: line breaks, tabs and HTML tags too, and only 9 are declared special. `make setup` fetches it, for it is
too large to keep in the repository.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from app.settings import demo_checkpoint

FETCHED = Path(sys.prefix) / "tokenizers" / "gemma3" / "tokenizer.json"

# Gemma 3's turns. Its own template writes the system text into the user's turn; Gemma 4's gives it one, as here.
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for m in messages %}<start_of_turn>{{ m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
# Ids of <eos> and <end_of_turn>. <pad> and <bos> are 0 and 2, as in the demo tokenizer.
EOS_TOKEN_IDS = [1, 106]


class TokenizerNotFetched(Exception):
    """The Gemma tokenizer is not on this machine."""


def write_gemma_tokenizer(folder: Path) -> None:
    """Write the tokenizer files of a checkpoint (`tests.checkpoints.TOKENIZER_FILES`) into `folder`, which exists.

    Raises:
        TokenizerNotFetched: `make setup` has not fetched it.
    """
    if not FETCHED.exists():
        raise TokenizerNotFetched(f"no Gemma tokenizer at {FETCHED}: run `make setup`")
    shutil.copyfile(FETCHED, folder / "tokenizer.json")
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "GemmaTokenizer",
            "pad_token": "<pad>",
            "eos_token": "<eos>",
            "bos_token": "<bos>",
            "unk_token": "<unk>",
            "model_max_length": 4096,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    # The sampler's settings are the demo's.
    demo = json.loads((Path(demo_checkpoint()) / "generation_config.json").read_text())
    _write_json(folder / "generation_config.json", {**demo, "eos_token_id": EOS_TOKEN_IDS})


def _write_json(file: Path, content: dict[str, object]) -> None:
    file.write_text(json.dumps(content))
