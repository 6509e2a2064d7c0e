"""The oracle of the kernel tests: vLLM's own Triton source, run program by program on NumPy.

Triton has an interpreter of its own, but not where there is no Triton. This one knows the few words that the thirteen
kernels use. A pointer knows the memory behind it, so a load or store outside of its tensor fails the test.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Grid = tuple[int, ...]
Shape = tuple[int, ...] | list[int]


class Block(np.ndarray[Any, np.dtype[Any]]):
    """A value of a kernel, a scalar included: an array that Triton's methods can be called on."""

    def to(self, dtype: type[np.generic]) -> Block:
        """Convert."""
        return block(self.astype(dtype))


def block(value: Any) -> Block:
    """Anything as a value of a kernel."""
    return np.asarray(value).view(Block)


@dataclass(frozen=True, slots=True)
class Pointer:
    """Offsets into the memory of one tensor, or into a table of tensors."""

    memory: NDArray[Any] | Sequence[torch.Tensor]
    offsets: Block = field(default_factory=lambda: block(0))

    @classmethod
    def to(cls, tensor: torch.Tensor) -> Pointer:
        """What Triton receives for a tensor argument: its first element and all that follows in its storage."""
        start = tensor.storage_offset()
        size = tensor.untyped_storage().size() // tensor.element_size() - start
        return cls(tensor.as_strided((size,), (1,), start).numpy())

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.memory, block(self.offsets + offset))

    def __sub__(self, offset: Any) -> Pointer:
        return self + -block(offset)

    def accessed(self, mask: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Offsets and mask in one shape.

        Raises:
            IndexError: an offset that the mask lets through lies outside of the memory.
        """
        offsets, lanes = np.broadcast_arrays(np.asarray(self.offsets, dtype=np.intp), np.asarray(mask, dtype=np.bool_))
        used = offsets[lanes]
        if used.size and (used.min() < 0 or used.max() >= len(self.memory)):
            raise IndexError("a kernel left its tensor")
        return offsets, lanes


class Language:
    """`triton.language`, as far as the kernels go."""

    int1, int32, int64, float32 = np.bool_, np.int32, np.int64, np.float32
    range = range

    def __init__(self) -> None:
        self.grid: Grid = ()
        self.program: Grid = ()

    def program_id(self, axis: int) -> Block:
        """Which program of the grid runs."""
        return block(self.program[axis])

    def num_programs(self, axis: int) -> Block:
        """The size of the grid."""
        return block(self.grid[axis])

    def load(self, pointer: Pointer, mask: Any = True, other: float = 0) -> Block | Pointer:
        """Read where the mask is set. From a table of tensors: a pointer to one of them."""
        offsets, lanes = pointer.accessed(mask)
        if not isinstance(pointer.memory, np.ndarray):
            return Pointer.to(pointer.memory[int(offsets)])
        values = np.full(offsets.shape, other, dtype=pointer.memory.dtype)
        values[lanes] = pointer.memory[offsets[lanes]]
        return block(values)

    def store(self, pointer: Pointer, value: Any, mask: Any = True) -> None:
        """Write where the mask is set."""
        assert isinstance(pointer.memory, np.ndarray)
        offsets, lanes = pointer.accessed(mask)
        pointer.memory[offsets[lanes]] = np.broadcast_to(value, offsets.shape)[lanes]

    def cast(self, value: Pointer, dtype: Any) -> Pointer:
        """Pointers have their type already; the kernels cast nothing else."""
        return value

    def pointer_type(self, dtype: type[np.generic]) -> Any:
        """See `cast`."""

    def multiple_of(self, value: Pointer, count: int) -> Pointer:
        """A hint to the compiler."""
        return value

    def arange(self, start: int, stop: int) -> Block:
        """As NumPy's; Triton refuses a size that is no power of two."""
        assert (stop - start).bit_count() == 1
        return block(np.arange(start, stop, dtype=np.int32))

    def full(self, shape: Shape, value: Any, dtype: type[np.generic]) -> Block:
        """As NumPy's."""
        return block(np.full(shape, value, dtype=dtype))

    def where(self, condition: Any, left: Any, right: Any) -> Block:
        """As NumPy's."""
        return block(np.where(condition, left, right))

    def maximum(self, left: Any, right: Any) -> Block:
        """As NumPy's."""
        return block(np.maximum(left, right))

    def max(self, values: Block) -> Block:
        """As NumPy's."""
        return block(np.max(values))

    def sum(self, values: Block) -> Block:
        """As NumPy's."""
        return block(np.sum(values))

    def exp(self, values: Block) -> Block:
        """As NumPy's."""
        return block(np.exp(values))

    def log(self, values: Block) -> Block:
        """As NumPy's."""
        return block(np.log(values))


@dataclass(frozen=True, slots=True)
class InterpretedKernel:
    """A Triton kernel that is launched as Triton launches it and runs its programs one after another."""

    source: Callable[..., None]
    language: Language

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            known = inspect.signature(self.source).parameters
            options = {name: value for name, value in options.items() if name in known}  # `num_warps` is Triton's own
            self.language.grid = grid
            for program in product(*map(range, grid)):
                self.language.program = program
                self.source(*map(_argument, arguments), **options)

        return launch


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Pointer.to(value)
    return Pointer(value) if isinstance(value, list) else value


def interpreted(module_name: str, **replaced: Any) -> ModuleType:
    """A second, private copy of a vLLM module whose kernels are interpreted.

    Args:
        module_name: the module.
        replaced: names of the copy to set to something else, such as to names of another copy.
    """
    spec = importlib.util.find_spec(module_name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    language = Language()
    names = vars(module)
    kernels = {name: InterpretedKernel(names[name], language) for name in names if name.endswith("_kernel")}
    names.update(kernels, tl=language, **replaced)
    return module
