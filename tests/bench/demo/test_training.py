"""Training: examples as the service lays them out, and runs that can be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch

from app.canvas.prompt import state_text
from app.tokenizer import CheckpointTokenizer
from bench.demo import training
from bench.demo.batches import BATCH_TOKENS, lessons
from bench.demo.examples import Example, ExampleMaker
from bench.demo.muon import orthogonalise
from bench.demo.network import Network
from bench.demo.training import CURRICULUM, Trainer, learning_rates_at, stage_at
from engine.demo.family import Family, Split
from engine.demo.sample import Sampler


def test_targets_are_labels_that_the_prompt_explains(examples: list[Example]) -> None:
    """Every slot is on the canvas and empty, and its labels stand in the prompt."""
    assert len(examples) > 100
    for example in examples:
        for target in example.targets:
            assert 0 <= target.position < len(example.canvas_token_ids)
            assert set(target.label_token_ids) <= set(example.prompt_token_ids)
            right = target.label_token_ids if target.right is None else (target.label_token_ids[target.right],)
            assert target.likely_token_ids == right


def test_marks_are_where_things_are_said(
    maker: ExampleMaker, families: tuple[Family, ...], tokenizer: CheckpointTokenizer
) -> None:
    """The last token of a sentence ends where the sentence does."""
    sampler, random = Sampler(families, Split.TRAINED), Random(5)
    found = 0
    for _ in range(50):
        sample = sampler.sample(random)
        prompt = tokenizer.encode(state_text(sample.state))
        texts = [one.text.rstrip(".,;")[1:] for one in sample.stated]
        for text, span in zip(texts, maker.text.spans(prompt, texts), strict=True):
            if span is not None:
                found += 1
                assert text in tokenizer.decode(prompt[span.start : span.stop])
                assert text not in tokenizer.decode(prompt[span.start : span.stop - 1])
    assert found > 50


def test_batches_hold_every_example_once(examples: list[Example]) -> None:
    """Of similar length, and not too many tokens together."""
    batched = list(lessons(examples))
    assert sorted(id(one) for lesson in batched for one in lesson.examples) == sorted(map(id, examples))
    for lesson in batched:
        assert lesson.batch.token_ids.numel() <= 1.5 * BATCH_TOKENS or len(lesson.examples) == 1
        slots = sum(len(one.targets) for one in lesson.examples)
        assert len(lesson.concepts) == len(lesson.batch.slot_reads) == slots
        shares = torch.zeros(slots).index_add(0, lesson.likely_slots, lesson.likely_shares)
        assert torch.allclose(shares, torch.ones(slots))


def test_the_curriculum_gets_harder() -> None:
    stages = [stage_at(share / 100) for share in range(100)]
    assert stages[0] == CURRICULUM[0]
    assert stages[-1] == CURRICULUM[-1]
    questions = [stage.hardness.questions for stage in stages]
    assert questions == sorted(questions)


def test_the_learning_rate_rises_and_falls() -> None:
    """While sentences are learnt, and again while the rest is; what reads sentences then learns more slowly."""
    end = CURRICULUM[0].until
    reader, other = (list(rates) for rates in zip(*(learning_rates_at(n / 100, 1000) for n in range(100)), strict=True))
    assert learning_rates_at(0.0, 0)[0] < learning_rates_at(0.0, 1000)[0] == 1.0
    assert 0.1 < learning_rates_at(end - 0.01, 1000)[0] < 0.2
    assert learning_rates_at(end, 1000) == (CURRICULUM[1].reader_rate, 1.0)
    assert other[-1] < 0.05
    assert all(0 < r <= o for r, o in zip(reader, other, strict=True))


def test_muons_updates_have_one_scale() -> None:
    """All singular values near 1, whatever they were."""
    matrices = (
        torch.randn(3, 20, 50, generator=torch.Generator().manual_seed(0))
        * torch.tensor([0.01, 1.0, 100.0])[:, None, None]
    )
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert values.min() > 0.3
    assert values.max() < 1.5


def trained(
    folder: Path,
    families: tuple[Family, ...],
    maker: ExampleMaker,
    make_network: Callable[[], Network],
    stops: tuple[int, ...],
) -> Network:
    """A small network after runs that ended, or were interrupted, after so many rounds."""
    for stop in stops:
        network = make_network()
        trainer = Trainer(network, families, maker, rounds=2)
        for line in trainer.run(folder, save_every_seconds=0.0):
            assert 0 <= line["accuracy"] <= 1
            if line["rounds"] == stop:
                break
        else:
            raise AssertionError("it ended early")
    return network


def test_an_interrupted_run_goes_on(
    tmp_path: Path,
    families: tuple[Family, ...],
    maker: ExampleMaker,
    make_network: Callable[[], Network],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was stopped and started again ends with the weights of one that was not."""
    monkeypatch.setattr(training, "ROUND_STEPS", 4)
    monkeypatch.setattr(training, "SAMPLES_TOGETHER", 16)
    whole = trained(tmp_path / "whole", families, maker, make_network, (2,))
    resumed = trained(tmp_path / "resumed", families, maker, make_network, (1, 2))
    for name, parameter in whole.named_parameters():
        assert torch.allclose(parameter, resumed.get_parameter(name), atol=1e-6), name
