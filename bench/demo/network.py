"""DiffusionGemma's text model for training: small, on CPU, numerically that of Hugging Face's implementation.

Prompt and canvas go through in one pass: prompt rows see what is before them, canvas rows see the prompt and the whole
canvas. With tied weights that is the encoder and then the first denoising step of
transformers/models/diffusion_gemma/modeling_diffusion_gemma.py; `tests/bench/demo/test_network.py` compares the two.
Experts are all computed and weighted, which for a few small ones is faster than sorting tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

MASKED = -1e9
SOFTCAP = 30.0
SLIDING_THETA, FULL_THETA = 10_000.0, 1_000_000.0
# Of the dimensions of a head, those that full attention rotates.
FULL_ROTARY_SHARE = 0.25
# How much of a random row is added to a known word's vector at first, so that spellings of one word differ.
KNOWN_OWN_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSizes:
    """How large the network is. All layers but the last have sliding attention."""

    vocabulary: int
    hidden: int = 128
    layers: int = 5
    heads: int = 4
    kv_heads: int = 2
    head: int = 32
    mlp: int = 128
    experts: int = 4
    chosen_experts: int = 2
    expert_mlp: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Prompts and canvases side by side: prompts padded at their end, then canvases padded at theirs.

    Attributes:
        token_ids: [reads, prompt width + canvas width].
        positions: the same shape; canvases go on where their own prompt ends.
        prompt_tokens, canvas_tokens: [reads], without padding.
        prompt_width: columns of the prompts.
        slot_reads, slot_columns: [slots], where the slots are.
        is_causal: [reads], canvases whose rows see nothing behind them, which is a fault.
    """

    token_ids: Tensor
    positions: Tensor
    prompt_tokens: Tensor
    canvas_tokens: Tensor
    prompt_width: int
    slot_reads: Tensor
    slot_columns: Tensor
    is_causal: Tensor

    def attention_bias(self) -> Tensor:
        """[reads, 1, rows, columns], 0 where a row sees a column."""
        width = self.token_ids.shape[1]
        column = torch.arange(width)
        is_prompt = column < self.prompt_width
        in_prompt = column[None] < self.prompt_tokens[:, None]
        in_canvas = (column[None] >= self.prompt_width) & (
            column[None] < self.prompt_width + self.canvas_tokens[:, None]
        )
        is_behind = column[:, None] < column[None]
        prompt_sees = ~is_behind & is_prompt[None]
        canvas_sees = (in_prompt | in_canvas)[:, None, :] & ~(self.is_causal[:, None, None] & is_behind)
        sees = torch.where(is_prompt[None, :, None], prompt_sees[None], canvas_sees)
        return torch.zeros(sees.shape).masked_fill_(~sees, MASKED)[:, None]


def rms_norm(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """RMSNorm over the last dimension."""
    return functional.rms_norm(values, (values.shape[-1],), weight, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPass:
    """What a layer gives.

    Attributes:
        rows: [reads, rows, hidden].
        routed: the router's probabilities, [reads, rows, experts].
        query, key: as attention compares them, [reads, rows, heads, head] and [reads, rows, kv heads, head].
    """

    rows: Tensor
    routed: Tensor
    query: Tensor
    key: Tensor


class Layer(nn.Module):
    """Attention, then a dense MLP and experts side by side."""

    def __init__(self, sizes: NetworkSizes, *, is_full: bool) -> None:
        super().__init__()
        self.sizes, self.is_full, self.dropout = sizes, is_full, 0.0
        hidden, query, key = sizes.hidden, sizes.heads * sizes.head, sizes.kv_heads * sizes.head
        self.query, self.key, self.output = _matrix(query, hidden), _matrix(key, hidden), _matrix(hidden, query)
        self.value = None if is_full else _matrix(key, hidden)  # full attention takes the keys for values
        # Attention has no scale of its own, so the norms carry it.
        self.query_norm = nn.Parameter(torch.full((sizes.head,), 1.5 * sizes.head**-0.5))
        self.key_norm = nn.Parameter(torch.ones(sizes.head))
        self.gate, self.up, self.down = (
            _matrix(sizes.mlp, hidden),
            _matrix(sizes.mlp, hidden),
            _matrix(hidden, sizes.mlp),
        )
        self.expert_gate = _matrix(sizes.experts, sizes.expert_mlp, hidden)
        self.expert_up = _matrix(sizes.experts, sizes.expert_mlp, hidden)
        self.expert_down = _matrix(sizes.experts, hidden, sizes.expert_mlp)
        self.router = nn.Parameter(torch.randn(sizes.experts, hidden))
        self.router_scale, self.expert_scale = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.ones(sizes.experts))
        self.input_norm, self.attention_norm = _norm(hidden), _norm(hidden, 0.5)
        self.mlp_norm, self.expert_norm, self.output_norm = _norm(hidden), _norm(hidden), _norm(hidden, 0.5)
        self.after_mlp_norm, self.after_expert_norm = _norm(hidden, 0.7), _norm(hidden, 0.7)

    def forward(self, rows: Tensor, cosine: Tensor, sine: Tensor, bias: Tensor) -> LayerPass:
        """[reads, rows, hidden] to the same."""
        seen, query, key = self._attend(rms_norm(rows, self.input_norm), cosine, sine, bias)
        rows = rows + self._dropped(rms_norm(seen, self.attention_norm))
        dense = functional.gelu(rms_norm(rows, self.mlp_norm) @ self.gate.T, approximate="tanh")
        dense = (dense * (rms_norm(rows, self.mlp_norm) @ self.up.T)) @ self.down.T
        mixed, routed = self._experts(rows)
        both = rms_norm(dense, self.after_mlp_norm) + rms_norm(mixed, self.after_expert_norm)
        rows = rows + self._dropped(rms_norm(both, self.output_norm))
        return LayerPass(rows=rows, routed=routed, query=query, key=key)

    def _dropped(self, added: Tensor) -> Tensor:
        return functional.dropout(added, self.dropout, self.training) if self.dropout else added

    def _attend(self, rows: Tensor, cosine: Tensor, sine: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sizes = self.sizes
        query = _rotate(rms_norm(_heads(rows @ self.query.T, sizes.heads), self.query_norm), cosine, sine)
        keys = _heads(rows @ self.key.T, sizes.kv_heads)
        key = _rotate(rms_norm(keys, self.key_norm), cosine, sine)
        value = rms_norm(keys if self.value is None else _heads(rows @ self.value.T, sizes.kv_heads))
        shared = sizes.heads // sizes.kv_heads
        seen = functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2).repeat_interleave(shared, dim=1),
            value.transpose(1, 2).repeat_interleave(shared, dim=1),
            attn_mask=bias,
            scale=1.0,
        )
        return seen.transpose(1, 2).flatten(2) @ self.output.T, query, key

    def _experts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        sizes = self.sizes
        scores = (rms_norm(rows) * (self.router_scale * sizes.hidden**-0.5)) @ self.router.T
        routed = scores.softmax(-1)
        best, chosen = routed.topk(sizes.chosen_experts, dim=-1)
        weights = torch.zeros_like(routed).scatter(-1, chosen, best / best.sum(-1, keepdim=True)) * self.expert_scale
        inner = rms_norm(rows, self.expert_norm)
        gate = functional.gelu(inner @ self.expert_gate.flatten(0, 1).T, approximate="tanh")
        hidden = (gate * (inner @ self.expert_up.flatten(0, 1).T)).unflatten(-1, (sizes.experts, sizes.expert_mlp))
        weighted = (hidden * weights[..., None]).flatten(-2)
        return weighted @ self.expert_down.permute(0, 2, 1).flatten(0, 1), routed


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a pass gives.

    Attributes:
        logits: [slots, vocabulary].
        layers: what each layer gave.
        bias: 0 where a row sees a column, [reads, 1, columns, columns].
        embedding: [vocabulary, hidden].
    """

    logits: Tensor
    layers: list[LayerPass]
    bias: Tensor
    embedding: Tensor

    def slot_attention(self, batch: Batch, layer: int, head: int) -> Tensor:
        """Log of how much each slot attends to each column in a head, [slots, columns]."""
        found = self.layers[layer]
        shared = found.query.shape[2] // found.key.shape[2]
        query = found.query[batch.slot_reads, batch.slot_columns, head]
        key = found.key[batch.slot_reads, :, head // shared]
        seen = torch.einsum("sh,sch->sc", query, key) + self.bias[batch.slot_reads, 0, batch.slot_columns]
        return seen.log_softmax(-1)


class Embedding(nn.Module):
    """Tokens' rows: what word vectors say, turned the way the network wants it, and what training adds to each.

    While training, a token is now and then read without what training added to it: so the network learns to go by the
    word vectors, which also know words that no sample has.
    """

    def __init__(self, sizes: NetworkSizes, vectors: Tensor | None) -> None:
        super().__init__()
        self.dropout = 0.0
        known = torch.zeros(sizes.vocabulary, 1) if vectors is None else vectors
        self.vectors = nn.Buffer(known)
        self.projection = nn.Parameter(torch.zeros(known.shape[1], sizes.hidden))
        nn.init.orthogonal_(self.projection)
        self.own = nn.Parameter(torch.randn(sizes.vocabulary, sizes.hidden) * sizes.hidden**-0.5)
        with torch.no_grad():
            self.own[self._is_known] *= KNOWN_OWN_SHARE

    @property
    def weight(self) -> Tensor:
        """[vocabulary, hidden]."""
        return self.own + self.vectors @ self.projection

    @property
    def _is_known(self) -> Tensor:
        return self.vectors.any(dim=1)

    def forward(self, token_ids: Tensor, weight: Tensor) -> Tensor:
        """Rows of tokens, [..., hidden]."""
        rows = functional.embedding(token_ids, weight)
        if not self.training or not self.dropout:
            return rows
        dropped = self._is_known[token_ids] & (torch.rand(token_ids.shape) < self.dropout)
        return rows - functional.embedding(token_ids, self.own) * dropped[..., None]


class Network(nn.Module):
    """The whole model, embeddings tied."""

    def __init__(self, sizes: NetworkSizes, vectors: Tensor | None = None) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = Embedding(sizes, vectors)
        self.layers = nn.ModuleList(Layer(sizes, is_full=number == sizes.layers - 1) for number in range(sizes.layers))
        self.norm = _norm(sizes.hidden)

    def set_dropout(self, share: float) -> None:
        """While training: how much of what a layer adds is dropped, and of what is added to word vectors."""
        for part in (self.embedding, *self.layers):
            part.dropout = share

    def forward(self, batch: Batch, layers: int | None = None) -> Read:
        """Read every slot of a batch; or only run the first so many layers, for what is known there."""
        width = batch.prompt_width
        weight = self.embedding.weight
        rows = self.embedding(batch.token_ids, weight) * self.sizes.hidden**0.5
        # Self-conditioning of the first denoising step: nothing is added, but what is there is normalised.
        rows = torch.cat((rows[:, :width], rms_norm(rows[:, width:])), dim=1)
        bias = batch.attention_bias()
        sliding, full = (_rotation(batch.positions, self.sizes.head, is_full=is_full) for is_full in (False, True))
        passes: list[LayerPass] = []
        for layer in self.layers[:layers]:
            passes.append(layer(rows, *(full if layer.is_full else sliding), bias))
            rows = passes[-1].rows
        slots = rms_norm(rows[batch.slot_reads, batch.slot_columns], self.norm) @ weight.T
        return Read(logits=SOFTCAP * torch.tanh(slots / SOFTCAP), layers=passes, bias=bias, embedding=weight)


def _matrix(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape) * shape[-1] ** -0.5)


def _norm(size: int, value: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.full((size,), value))


def _heads(rows: Tensor, count: int) -> Tensor:
    """[reads, rows, heads * head] to [reads, rows, heads, head]."""
    return rows.unflatten(-1, (count, -1))


def _rotation(positions: Tensor, head: int, *, is_full: bool) -> tuple[Tensor, Tensor]:
    """Cosine and sine, [reads, rows, 1, head]; full attention leaves most dimensions where they are."""
    theta, share = (FULL_THETA, FULL_ROTARY_SHARE) if is_full else (SLIDING_THETA, 1.0)
    rotated = int(share * head // 2)
    frequencies = theta ** (-torch.arange(0, 2 * rotated, 2) / head)
    frequencies = torch.cat((frequencies, torch.zeros(head // 2 - rotated)))
    angles = (positions[..., None] * frequencies).repeat(1, 1, 2)[:, :, None]
    return angles.cos(), angles.sin()


def _rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    return heads * cosine + torch.cat((-second, first), dim=-1) * sine
