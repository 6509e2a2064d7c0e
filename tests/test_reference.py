"""The reference and the random checkpoints, checked against transformers' own denoising loop and loader."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from transformers import LogitsProcessor, LogitsProcessorList

from tests.checkpoints import write_random_checkpoint
from tests.reference import CheckpointRefused, HuggingFaceReference

DEMO_CHECKPOINT = Path(__file__).parents[1] / "engine" / "demo" / "checkpoint"
CANVAS_LENGTH = 64  # that of the demo checkpoint and of a random one: `generate` fills whole canvases
LABELS = (300, 301, 302, 303)
# float32 logits of up to 30 that sum the same terms in another order
ROUNDING = 1e-4

# `generate` imports torch's inductor, which still uses what torch 2.13 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

WriteCheckpoint = Callable[..., Path]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Leave the other cores alone, and sum in one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def write_checkpoint(tmp_path: Path) -> WriteCheckpoint:
    """Return `write_random_checkpoint` with the demo tokenizer, into a folder of the given name."""

    def write(name: str = "random", *, with_vision: bool = False, **options: Any) -> Path:
        folder = tmp_path / name
        write_random_checkpoint(folder, tokenizer_folder=DEMO_CHECKPOINT, with_vision=with_vision, **options)
        return folder

    return write


@pytest.fixture(scope="module")
def demo() -> HuggingFaceReference:
    """Return the reference on the demo checkpoint."""
    return HuggingFaceReference.from_checkpoint(DEMO_CHECKPOINT)


def random_token_ids(count: int, seed: int = 0) -> list[int]:
    """Return `count` ordinary tokens of the demo vocabulary (12,288 entries, control tokens first)."""
    generator = random.Random(seed)
    return [generator.randrange(300, 12_000) for _ in range(count)]


class FirstLogits(LogitsProcessor):
    """Keep what `generate` computes on its first denoising step, before its temperature."""

    def __init__(self) -> None:
        self.logits: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, cur_step: torch.Tensor) -> torch.Tensor:
        """Return the logits as they are."""
        if self.logits is None:
            self.logits = scores[0].clone()
        return scores


def generated_logits(reference: HuggingFaceReference, prompt: list[int], canvas: list[int]) -> NDArray[np.float32]:
    """Return the logits [canvas, vocabulary] of the first denoising step inside `generate`."""
    first = FirstLogits()
    reference.model.generate(
        torch.tensor([prompt]),
        decoder_input_ids=torch.tensor([canvas]),
        max_new_tokens=CANVAS_LENGTH,
        max_denoising_steps=2,
        logits_processor=LogitsProcessorList([first]),
    )
    assert first.logits is not None
    logits: NDArray[np.float32] = first.logits.numpy()
    return logits


@pytest.mark.parametrize("prompt_tokens", [1, 40, 700], ids="{}-token prompt".format)
def test_slot_logits_are_those_of_the_first_step_of_generate(demo: HuggingFaceReference, prompt_tokens: int) -> None:
    prompt, canvas = random_token_ids(prompt_tokens), random_token_ids(CANVAS_LENGTH, seed=1)

    logits = demo.slot_logits(prompt, canvas)

    assert logits.shape == (CANVAS_LENGTH, 12_288)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, generated_logits(demo, prompt, canvas), atol=ROUNDING)


def test_generate_agrees_on_a_random_checkpoint_beyond_its_sliding_window(
    write_checkpoint: WriteCheckpoint,
) -> None:
    reference = HuggingFaceReference.from_checkpoint(write_checkpoint(sliding_window=16))
    prompt, canvas = random_token_ids(40), random_token_ids(CANVAS_LENGTH, seed=1)

    logits = reference.slot_logits(prompt, canvas)

    np.testing.assert_allclose(logits, generated_logits(reference, prompt, canvas), atol=ROUNDING)


@pytest.mark.parametrize("changed", ["first of canvas", "last of canvas", "first of prompt", "last of prompt"])
def test_every_canvas_row_sees_the_whole_canvas_and_the_prompt(demo: HuggingFaceReference, changed: str) -> None:
    prompt, canvas = random_token_ids(40), random_token_ids(16, seed=1)
    before = demo.slot_logits(prompt, canvas)

    (canvas if "canvas" in changed else prompt)[0 if "first" in changed else -1] = 2001
    difference = np.abs(demo.slot_logits(prompt, canvas) - before).max(axis=1)

    assert difference.min() > 100 * ROUNDING


def test_label_probabilities_are_the_softmax_over_the_labels_alone(demo: HuggingFaceReference) -> None:
    prompt, canvas = random_token_ids(40), random_token_ids(16, seed=1)

    probabilities = demo.label_probabilities(prompt, canvas, 5, LABELS)

    slot = torch.from_numpy(demo.slot_logits(prompt, canvas)[5])
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(
        probabilities, slot.double().softmax(0)[list(LABELS)] / slot.double().softmax(0)[list(LABELS)].sum()
    )


def test_vision_weights_and_shards_do_not_change_the_logits(write_checkpoint: WriteCheckpoint) -> None:
    folders = [
        write_checkpoint("text"),
        write_checkpoint("vision", with_vision=True),
        write_checkpoint("sharded", with_vision=True, max_shard_size="1MB"),
    ]
    prompt, canvas = random_token_ids(40), random_token_ids(16, seed=1)

    text, vision, sharded = (
        HuggingFaceReference.from_checkpoint(folder).slot_logits(prompt, canvas) for folder in folders
    )

    np.testing.assert_array_equal(text, vision)
    np.testing.assert_array_equal(text, sharded)


def test_a_checkpoint_stores_a_vision_tower_only_if_asked(write_checkpoint: WriteCheckpoint) -> None:
    text, vision = write_checkpoint("text"), write_checkpoint("vision", with_vision=True)

    text_tensors = load_file(text / "model.safetensors")
    vision_tensors = load_file(vision / "model.safetensors")
    tower = vision_tensors.keys() - text_tensors.keys()

    assert text_tensors.keys() <= vision_tensors.keys()
    assert "model.encoder.vision_tower.std_scale" in tower
    assert "model.encoder.embed_vision.embedding_projection.weight" in tower
    assert all("vision" in name for name in tower)
    assert json.loads((text / "config.json").read_text())["vision_config"] is None
    assert json.loads((vision / "config.json").read_text())["vision_config"]["hidden_size"] == 64


def test_a_checkpoint_is_sharded_if_asked(write_checkpoint: WriteCheckpoint) -> None:
    folder = write_checkpoint(max_shard_size="1MB")

    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert (folder / "model.safetensors.index.json").exists()


def test_the_seed_decides_the_weights(write_checkpoint: WriteCheckpoint) -> None:
    weights = [
        (write_checkpoint(str(number), with_vision=True, seed=seed) / "model.safetensors").read_bytes()
        for number, seed in enumerate((0, 0, 1))
    ]

    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


def test_random_weights_read_different_prompts_differently(write_checkpoint: WriteCheckpoint) -> None:
    reference = HuggingFaceReference.from_checkpoint(write_checkpoint())
    canvas = random_token_ids(16)

    probabilities = np.array(
        [reference.label_probabilities(random_token_ids(60, seed), canvas, 5, LABELS) for seed in range(40)]
    )
    entropies_nats = -(probabilities * np.log(probabilities)).sum(axis=1)

    # Neither one-hot (0 nats) nor uniform (1.39 nats), and not the same distribution for every prompt.
    assert 0.3 < np.median(entropies_nats) < 1.3
    assert probabilities.std(axis=0).min() > 0.04
    assert len(set(probabilities.argmax(axis=1))) > 1


@pytest.mark.parametrize(
    ("name", "tensor", "complaint"),
    [
        ("model.decoder.norm.weight", None, "missing_keys: .*decoder.norm.weight"),
        ("model.decoder.layers.1.layer_scalar", None, "missing_keys: .*decoder.layers.1.layer_scalar"),
        ("model.decoder.layers.2.self_attn.v_proj.weight", torch.ones(2), "unexpected_keys: .*v_proj"),
        ("model.decoder.layers.1.layer_scalar", torch.ones(1) * 9, "untied weights: layers.1.layer_scalar"),
    ],
    ids=["missing weight", "missing buffer", "left-over weight", "roles that differ"],
)
def test_a_checkpoint_that_is_not_one_text_model_is_refused(
    write_checkpoint: WriteCheckpoint, name: str, tensor: torch.Tensor | None, complaint: str
) -> None:
    folder = write_checkpoint()
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(name, None)
    if tensor is not None:
        tensors[name] = tensor
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(CheckpointRefused, match=complaint):
        HuggingFaceReference.from_checkpoint(folder)
