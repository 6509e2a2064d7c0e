"""Block tables, through vLLM's own `BlockTables`: every table and slot mapping as Triton's source leaves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from engine.kernels.block_table import compute_slot_mappings
from tests.engine.kernels.batches import MAX_MODEL_LEN, MAX_NUM_REQS, SEEDS, random_batch
from tests.engine.kernels.comparison import SENTINEL, Sides, assert_same, filled

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

MAX_NUM_TOKENS = MAX_NUM_REQS * MAX_MODEL_LEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """KV cache groups; one without slot mapping keeps something else than keys by position, and few blocks of it."""

    id: str
    block_sizes: list[int]
    widths: list[int]
    has_slots: list[bool]


CASES = [
    Case(id="one group", block_sizes=[16], widths=[4], has_slots=[True]),
    Case(id="sizes and widths differ", block_sizes=[16, 4, 8], widths=[5, 16, 9], has_slots=[True] * 3),
    Case(id="one without slots", block_sizes=[8, 32], widths=[8, 1], has_slots=[True, False]),
]


@dataclass(frozen=True, slots=True)
class Tables:
    """vLLM's block tables on both sides."""

    sides: tuple[Any, Any]

    def both(self, call: Callable[[Any], Any]) -> None:
        """Do the same on both: results and all memory must be equal."""
        assert_same(*map(call, self.sides))
        assert_same(*map(_memory, self.sides))

    def append(self, row: int, block_ids: tuple[list[int], ...], *, overwrite: bool) -> None:
        """Give blocks to a request, or give it others."""
        self.both(lambda tables: tables.append_block_ids(row, block_ids, overwrite=overwrite))

    def apply(self) -> None:
        """Write what was given."""
        self.both(lambda tables: tables.apply_staged_writes())


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Case:
    """The groups."""
    assert isinstance(request.param, Case)
    return request.param


@pytest.fixture
def tables(block_table: Sides, case: Case) -> Tables:
    """Tables without blocks, over buffers of sentinels."""
    return Tables((_new_tables(block_table.host, case), _new_tables(block_table.oracle, case)))


def _new_tables(module: ModuleType, case: Case) -> Any:
    tables = module.BlockTables(
        block_sizes=case.block_sizes,
        max_num_reqs=MAX_NUM_REQS,
        max_num_batched_tokens=MAX_NUM_TOKENS,
        max_num_blocks_per_group=case.widths,
        device=torch.device("cpu"),
        slot_mapping_enabled=case.has_slots,
    )
    for buffer in _memory(tables):
        buffer.fill_(SENTINEL)
    return tables


def _memory(tables: Any) -> list[torch.Tensor]:
    return [*(table.gpu for table in tables.block_tables), *tables.input_block_tables, tables.slot_mappings]


@pytest.mark.parametrize("seed", SEEDS)
def test_block_tables(tables: Tables, case: Case, seed: int) -> None:
    """Blocks given to requests reach the step's table and the slots of its tokens; what is no request's has none."""
    generator = np.random.default_rng(seed)
    batch = random_batch(generator)
    for row in range(MAX_NUM_REQS):
        blocks = [generator.integers(0, 1000, width).tolist() for width in case.widths]
        first = int(generator.integers(0, min(case.widths) + 1))
        tables.append(row, tuple(ids[:first] for ids in blocks), overwrite=True)
        tables.append(row, tuple(ids[first:] for ids in blocks), overwrite=False)
    tables.apply()

    # A request that comes back with fewer blocks: the step's table must not take the old ones behind them.
    tables.append(0, tuple([7] * int(generator.integers(1, width + 1)) for width in case.widths), overwrite=True)
    tables.apply()

    tables.both(lambda t: t.gather_block_tables(batch.idx_mapping, batch.num_reqs_padded))
    idx_mapping = batch.with_skipped_rows(generator)
    positions = torch.from_numpy(generator.integers(0, MAX_MODEL_LEN, batch.num_tokens + 5))
    tables.both(lambda t: t.compute_slot_mappings(idx_mapping, batch.query_start_loc, positions, batch.num_tokens + 1))


def test_given_outputs(tables: Tables, case: Case) -> None:
    """A table and a slot mapping that the caller brings are written instead of vLLM's own."""
    idx_mapping, starts = torch.tensor([3, 1]), torch.tensor([0, 2, 5], dtype=torch.int32)
    for row in (1, 3):
        tables.append(row, tuple([row + 4] * width for width in case.widths), overwrite=True)
    tables.apply()

    def gather(side: Any) -> Any:
        out = tuple(filled(MAX_NUM_REQS, width) for width in case.widths)
        return side.gather_block_tables(idx_mapping, 4, out, side._make_ptr_tensor(out))

    tables.both(gather)
    # Narrower than vLLM's own: padding ends with the buffer that is written.
    tables.both(lambda t: t.compute_slot_mappings(idx_mapping, starts, torch.arange(5), 6, filled(len(case.widths), 9)))


def test_context_parallelism_is_refused() -> None:
    """The host kernel knows one rank only, and says so."""
    arguments = [None] * 11
    with pytest.raises(NotImplementedError, match="context parallel size 1"):
        compute_slot_mappings[(1, 2)](*arguments, 0, CP_SIZE=2, CP_INTERLEAVE=1, PAD_ID=-1)
