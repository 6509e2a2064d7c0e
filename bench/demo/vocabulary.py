"""The tokenizer of the demo checkpoint: byte-level BPE with Gemma-4-like control tokens and single-token labels."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Iterator
from itertools import chain, product
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SIZE = 12_288
CONTROL_TOKENS = (
    *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>"),
    *("<|channel>", "<channel|>", "<|think|>", "<|image|>"),
)
# Labels in their places, so often that each becomes a token of its own, as the spaced letters of real tokenizers are.
LABEL_REPEATS = 2000
# Words beside the texts' own, as often as a text that is not quite rare has them.
WORD_REPEATS = 20

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "pad_token": "<pad>",
    "eos_token": "<eos>",
    "bos_token": "<bos>",
    "unk_token": "<unk>",
    "model_max_length": 4096,
    "chat_template": (
        "{{ bos_token }}{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
    ),
}
GENERATION_CONFIG = {
    "max_denoising_steps": 48,
    "t_min": 0.4,
    "t_max": 0.8,
    "confidence_threshold": 0.005,
    "stability_threshold": 1,
    "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
    "eos_token_id": [CONTROL_TOKENS.index("<eos>"), CONTROL_TOKENS.index("<turn|>")],
    "pad_token_id": CONTROL_TOKENS.index("<pad>"),
    "bos_token_id": CONTROL_TOKENS.index("<bos>"),
}


def train_tokenizer(texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
    """A tokenizer for texts like these and for words beside them; any other text survives it too, byte by byte."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=list(CONTROL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain(texts, _counted(words), _labels()), trainer)
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """The files of a checkpoint's tokenizer, and its generation_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG, indent=1) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(GENERATION_CONFIG, indent=1) + "\n")


def _counted(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        yield f" {word}" * WORD_REPEATS


def _labels() -> Iterator[str]:
    capitals = string.ascii_uppercase
    labels = [*capitals, *string.ascii_lowercase, *map("".join, product(capitals, repeat=2))]
    for _ in range(LABEL_REPEATS):
        yield "".join(f" {label}\n" for label in labels)
