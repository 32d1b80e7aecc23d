"""Generation at size: continuous batching over a transformers model's own layers and weights.

Hugging Face's `generate_batch` schedules every token in Python (`bench.py rollout --engine hf` measures it with our attention); here a
decode step, sampling and stopping included, is one CUDA graph, and the host looks at what came out once in WINDOW steps, while the
next ones run. Keys and values lie in pages: those of a prompt are computed once for all its samples, those of a trajectory's earlier
turns are kept while there is room. Where the pages run out, a sequence is put back and computed again later.

The weights are the model's, read in place (those of maps with the same input are laid side by side); on a GPU its layers are compiled,
one graph for all of them. Log-probs are those of the policy at the sampling temperature before top-p, in fp32. On the CPU the same
code runs without graphs, for the tests.

Shapes: S slots (sequences at a time), B of them in a step, L layers, N pages of P tokens, M pages per sequence, V vocabulary.
Not covered: sliding windows, encoder-decoders, several GPUs per model; `supports` says what is.
"""

import functools
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import attention
from attention import Step
from model import ModelError
from packed import head_size

PAGE = 256 if attention.FLASH_ATTN else 64  # tokens; flash-attn knows pages of 256
WINDOW = 8  # steps between two looks of the host
PREFILL = 16_384  # prompt tokens at a time


@dataclass(eq=False)
class Request:
    """ids: the prompt; limit: the most new tokens; key: of the trajectory, under which the cache is kept for its next turn.
    new, logp: what has been sampled so far; the stop token is part of it."""

    ids: list[int]
    limit: int
    key: Hashable = None
    new: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)


@dataclass(eq=False)
class Running:
    """A request in a slot. length: tokens in its pages as far as the host knows; flying: steps that the host has not looked at."""

    request: Request
    pages: list[int]
    length: int
    flying: int = 0


def supports(model: PreTrainedModel) -> bool:
    """Whether an Engine can run it: a decoder whose `forward` is embedding, layers and norm, with full attention and fixed rotations."""
    config, d = model.config, head_size(model.config)
    known = config.model_type in ("llama", "qwen2", "qwen3") and d >= 16 and d & (d - 1) == 0
    full = set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    return known and full and config.rope_parameters["rope_type"] in ("default", "linear", "llama3", "yarn")


def joined(*maps: torch.nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of one linear map that has the outputs of all these, which have the same input: one product instead of several.
    Nothing is held twice: their parameters become parts of it."""
    weight = _joined([m.weight for m in maps])
    return weight, None if maps[0].bias is None else _joined([m.bias for m in maps])


def _joined(parts: list[torch.nn.Parameter]) -> Tensor:
    sizes, first = [len(p) for p in parts], parts[0].detach()
    there = [first.data_ptr() + first[:1].nbytes * n for n in itertools.accumulate(sizes, initial=0)]
    memory = first.untyped_storage().data_ptr()
    if all(p.data_ptr() == at and p.untyped_storage().data_ptr() == memory for p, at in zip(parts, there)):
        return first.as_strided((sum(sizes), *first.shape[1:]), first.stride())
    whole = torch.cat([p.detach() for p in parts])
    for p, part in zip(parts, whole.split(sizes), strict=True):
        p.data = part
    return whole


def _layer(layer, qkv, gate_up, hidden, late, cos, sin, k_pages, v_pages):
    """A layer of the models that `supports` knows; qkv, gate_up: see `joined`. hidden (T, d), and what is still to be added to it, to the
    same: a sum with the norm after it is one kernel."""
    attn, mlp, hidden = layer.self_attn, layer.mlp, hidden + late
    heads = F.linear(layer.input_layernorm(hidden), *qkv).unflatten(-1, (-1, attn.head_dim))  # (T, H + 2 K, D)
    kv = k_pages.shape[-2]
    q, k, v = heads.split([heads.shape[1] - 2 * kv, kv, kv], 1)
    if hasattr(attn, "q_norm"):
        q, k = attn.q_norm(q), attn.k_norm(k)
    q, k = apply_rotary_pos_emb(q, k, cos, sin)
    hidden = hidden + attn.o_proj(attention.attend(q, k, v, k_pages, v_pages, attn.scaling).flatten(1))
    gate, up = F.linear(layer.post_attention_layernorm(hidden), *gate_up).chunk(2, -1)
    return hidden, mlp.down_proj(mlp.act_fn(gate) * up)


def _choose(logits: Tensor, temperature: Tensor, noise: Tensor, race: Tensor, least: Tensor | None):
    """race (B, V): Exp(1); least (B, 1): the smallest probability that can come. Tokens (B,), their log-probs (B,)."""
    logp = (logits.float() / temperature).log_softmax(-1)
    score = logp if least is None else logp.masked_fill(logp.exp() < least, float("-inf"))
    token = (score - noise * race.clamp_min(1e-30).log()).argmax(-1)  # -log Exp(1) is Gumbel(0, 1)
    return token, logp.gather(1, token[:, None])[:, 0]


@functools.cache
def _compiled_layer():
    # without its patterns, which make one product of a product and a sum, whose other term is copied first
    return torch.compile(_layer, fullgraph=True, options={"pattern_matcher": False})


@functools.cache
def _compiled_choose():
    return torch.compile(_choose, fullgraph=True)


def sample(logits: Tensor, temperature: Tensor, noise: Tensor, top_p: float, generator, choose=_choose):
    """(B, V) -> tokens (B,) and their log-probs under softmax(logits / temperature), before top-p, (B,) fp32.

    token = argmax(log p + noise * g), g ~ Gumbel(0, 1): a draw from p for noise 1, greedy for 0. Top-p keeps the most probable tokens up
    to the one with which their sum reaches top_p; the least probability that is kept is found by bisection, several times faster than a sort.
    """
    least = None
    if top_p < 1:
        p = (logits.float() / temperature).softmax(-1)
        low, high = torch.zeros_like(p[:, :1]), p.amax(-1, keepdim=True)  # those of `low` or more sum up to top_p
        for _ in range(32):
            middle = (low + high) / 2
            enough = torch.where(p >= middle, p, 0).sum(-1, keepdim=True) >= top_p
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        least = low * (1 - 1e-6)  # `choose` may round otherwise
    race = torch.empty(logits.shape, device=logits.device).exponential_(generator=generator)
    return choose(logits, temperature, noise, race, least)


class Engine:
    """A context manager that lives for one batch of rollouts: on leaving it, cache and graphs are gone and the memory is free for training.

    slots: sequences at a time; context: the longest prompt and answer together; pages: of the cache (None: what
    `share` of the GPU's free memory holds, the rest being the gym's, and no more than all slots can use); stop_ids end an answer. temperature 0 is greedy, with log-probs at 1. compiled: the layers (None: on a GPU).
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        slots: int,
        context: int,
        stop_ids: set[int],
        temperature: float = 1.0,
        top_p: float = 1.0,
        pages: int | None = None,
        page: int = PAGE,
        share: float = 0.5,
        compiled: bool | None = None,
    ):
        config, self.device, self.cuda = model.config, model.device, model.device.type == "cuda"
        self.model, self.page, self.context, self.top_p = model, page, context, top_p
        compiled = self.cuda if compiled is None else compiled
        self.layer, self.choose = (_compiled_layer(), _compiled_choose()) if compiled else (_layer, _choose)
        maps = [(layer.self_attn, layer.mlp) for layer in model.base_model.layers]
        self.maps = [
            (joined(a.q_proj, a.k_proj, a.v_proj), joined(mlp.gate_proj, mlp.up_proj)) for a, mlp in maps
        ]  # of each layer
        self.per_sequence = -(-context // page) + 1  # M
        shape = page, config.num_key_value_heads, head_size(config)
        if pages is None:
            most = slots * self.per_sequence + 1
            pages = min(most, self._pages_that_fit(shape, slots, share)) if self.cuda else most
        shape = config.num_hidden_layers, max(pages, 2), *shape
        self.k, self.v = (torch.zeros(shape, dtype=model.dtype, device=self.device) for _ in "kv")  # (L, N, P, K, D)
        self.free, self.references = list(range(pages - 1, 0, -1)), [0] * pages  # page 0 takes what nobody reads
        self.kept: OrderedDict[Hashable, tuple[list[int], list[int]]] = OrderedDict()  # key -> ids, pages
        self.shared: dict[tuple, tuple[list[int], list[int]]] = {}  # prompt of which samples are to come -> ids, pages
        self.queue: deque[Request] = deque()
        self.coming: Counter[tuple] = Counter()  # prompt -> how many in the queue
        self.running: list[Running | None] = [None] * slots
        self.stale, self.stop_ids = False, stop_ids

        number = dict(dtype=torch.int32, device=self.device)
        self.token, self.length = torch.zeros(slots, **number), torch.zeros(slots, **number)
        self.left = torch.zeros(slots, **number)  # tokens it may still sample
        self.table = torch.zeros(slots, self.per_sequence, **number)
        self.step = torch.zeros(1, dtype=torch.long, device=self.device)  # of the window
        self.tokens, self.logps = torch.zeros(WINDOW, slots, **number), torch.zeros(WINDOW, slots, device=self.device)
        self.stop = torch.tensor(sorted(stop_ids), **number)
        self.temperature = torch.tensor(temperature if temperature > 0 else 1.0, device=self.device)
        self.noise = torch.tensor(float(temperature > 0), device=self.device)
        self.generator = torch.Generator(self.device)
        self.graphs, self.pool = {}, None
        self.counts = Counter()  # tokens sampled, prefilled, found in the cache; sequences put back; graphs

    def _pages_that_fit(self, shape: tuple, slots: int, share: float) -> int:
        config = self.model.config
        spare = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        free = torch.cuda.mem_get_info(self.device)[0] + spare
        wide = 4 * config.intermediate_size + 8 * config.hidden_size
        work = 2 * wide * max(PREFILL, self.context) + 32 * slots * config.vocab_size  # bytes: activations, logits
        one = 2 * config.num_hidden_layers * torch.Size(shape).numel() * self.model.dtype.itemsize
        return int(min(share * free, free - work)) // one

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_):
        self.graphs, self.k, self.v, attention.current = {}, None, None, None
        if self.cuda:
            torch.cuda.empty_cache()  # other processes judge on this GPU

    # ------------------------------------------------------------------------------------------------- on the device

    @torch.no_grad()
    def _forward(self, ids: Tensor, positions: Tensor, step: Step) -> Tensor:
        """ids, positions (T,) -> last hidden states (T, d), with keys and values written where `step` says."""
        base, attention.current = self.model.base_model, step
        hidden = base.embed_tokens(ids)
        cos, sin = (x[0] for x in base.rotary_emb(hidden, positions[None]))
        late = torch.zeros_like(hidden)
        for layer, maps, k, v in zip(base.layers, self.maps, self.k, self.v, strict=True):
            hidden, late = self.layer(layer, *maps, hidden, late, cos, sin, k, v)
        return base.norm(hidden + late)

    @torch.no_grad()
    def _decode(self, B: int) -> None:
        """One step of the first B slots: the state before it is the last token and its position, the state after it the next one's."""
        token, length, left, table = self.token[:B], self.length[:B], self.left[:B], self.table[:B]
        active = left > 0
        page = table.gather(1, (length // self.page).long()[:, None])[:, 0]
        slots = torch.where(active, page * self.page + length % self.page, 0)
        lengths = torch.where(active, length + 1, 0)
        hidden = self._forward(token, length, Step(slots, table=table, lengths=lengths))
        logits = self.model.get_output_embeddings()(hidden)  # (B, V)
        new, logp = sample(logits, self.temperature, self.noise, self.top_p, self.generator, self.choose)
        new = torch.where(active, new.int(), -1)
        self.tokens[:, :B].index_copy_(0, self.step, new[None])
        self.logps[:, :B].index_copy_(0, self.step, logp[None])
        self.step.add_(1)
        stopped = (new[:, None] == self.stop).any(1)
        token.copy_(torch.where(active, new, token))
        length.add_(active)
        left.copy_(torch.where(stopped, 0, left - active.int()))

    def _graph(self, B: int) -> torch.cuda.CUDAGraph:
        """The captured step of B slots. It is warmed up with nobody active, which changes nothing."""
        if B not in self.graphs:
            left, step = self.left.clone(), self.step.clone()
            self.left.zero_()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._decode(B)
            torch.cuda.current_stream().wait_stream(side)
            self.left.copy_(left)
            self.step.copy_(step)
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                self._decode(B)
            self.pool, self.graphs[B] = self.pool or graph.pool(), graph
            self.counts["graphs"] += 1
        return self.graphs[B]

    def _to_device(self, values: list | Tensor, dtype: torch.dtype = torch.int32) -> Tensor:
        """On the device, without waiting for it."""
        tensor = torch.as_tensor(values, dtype=dtype)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.cuda else tensor

    def _prefill(self, group: list[tuple[list[int], int, list[int]]]) -> None:
        """Keys and values of (all tokens of a sequence, how many of them are there already, its pages), packed."""
        at = [torch.arange(len(tokens)) for tokens, _, _ in group]
        slots = [torch.tensor(p)[t // self.page] * self.page + t % self.page for t, (_, _, p) in zip(at, group)]
        new = [torch.cat([x[past:] for x, (_, past, _) in zip(xs, group)]) for xs in (at, slots)]
        ids = [token for tokens, past, _ in group for token in tokens[past:]]
        sizes = [len(tokens) - past for tokens, past, _ in group], [len(tokens) for tokens, _, _ in group]
        cu_q, cu_k = (self._to_device(list(itertools.accumulate(size, initial=0))) for size in sizes)
        history = self._to_device(torch.cat(slots), torch.long) if any(past for _, past, _ in group) else None
        positions, slots = map(self._to_device, new)
        step = Step(slots, None, None, cu_q, cu_k, *map(max, sizes), history)
        self._forward(self._to_device(ids), positions, step)
        self.counts["prefilled"] += len(ids)

    # -------------------------------------------------------------------------------------------------------- pages

    def _take(self, n: int) -> list[int] | None:
        """n pages, if need be from kept caches, the oldest first, then from prompts; None where there are not so many."""
        while len(self.free) < n and (self.kept or self.shared):
            kept = self.kept or self.shared
            self._give(kept.pop(next(iter(kept)))[1])
        if len(self.free) < n:
            return None
        pages = [self.free.pop() for _ in range(n)]
        self._hold(pages)
        return pages

    def _hold(self, pages: list[int]) -> None:
        for page in pages:
            self.references[page] += 1

    def _give(self, pages: list[int]) -> None:
        for page in pages:
            self.references[page] -= 1
            if not self.references[page]:
                self.free.append(page)

    def _until(self, request: Request, length: int) -> int:
        """Pages that a sequence of `length` needs for the next two windows: what the host knows of it is up to a window old."""
        return -(-min(length + 2 * WINDOW, len(request.ids) + request.limit) // self.page)

    def _grow(self) -> bool:
        """Gives every running sequence the pages that it will need; False where there are not enough."""
        for r in filter(None, self.running):
            missing = self._until(r.request, r.length) - len(r.pages)
            if missing > 0:
                pages = self._take(missing)
                if pages is None:
                    return False
                r.pages += pages
                self.stale = True
        return True

    # ------------------------------------------------------------------------------------------------------ schedule

    def submit(self, request: Request, first: bool = False) -> None:
        """Into the queue. Raises ModelError for what can never be run."""
        most, cache = len(request.ids) + request.limit, (len(self.references) - 2) * self.page
        if not request.ids or request.limit < 1 or most > min(self.context, cache):
            raise ModelError(
                f"A prompt of {len(request.ids)} and {request.limit} new tokens do not fit: the context is {self.context}, the cache "
                f"{cache} tokens. Lower --max-response or --context, or free memory of this GPU."
            )
        self.queue.insert(0 if first else len(self.queue), request)
        self.coming[tuple(request.ids + request.new)] += 1

    def _admit(self) -> None:
        """Fills free slots. All but the last token of a prompt is prefilled, once for all its samples: these share its whole pages and
        copy the last, begun one. The decode step takes the last token, and samples."""
        placed, work, copies, done = [], [], [], []
        for slot in (i for i, r in enumerate(self.running) if r is None):
            if not self.queue:
                break
            request = self.queue[0]
            tokens = request.ids + request.new
            prompt, n, pages, past, begun = tuple(tokens), len(tokens) - 1, [], 0, None
            kept = self.kept.pop(request.key, None)
            if kept and kept[0] == tokens[: len(kept[0])]:
                pages, past = kept[1], min(n, len(kept[0]))
            elif prompt in self.shared:
                whole = self.shared[prompt][1]
                pages, past, begun = whole[: n // self.page], n, whole[n // self.page :]
                self._hold(whole)
            spare = sum(r is not None for r in self.running)  # one for everybody else to grow
            more = self._take(max(0, self._until(request, n) - len(pages)) + spare)
            if more is None:
                if begun is not None:
                    self._give(pages + begun)
                if kept:
                    self.kept[request.key] = kept
                break
            if kept and kept[1] is not pages:
                self._give(kept[1])
            self._give([more.pop() for _ in range(spare)])
            if begun:
                copies.append((begun[0], more[0]))
                done += begun  # not before they are copied
            del self.queue[0]
            self.coming[prompt] -= 1
            self.counts["found"] += past
            pages = pages + more
            if past < n:
                work.append((tokens[:n], past, pages))
                if prompt not in self.shared:
                    self.shared[prompt] = (tokens, pages[: -(-n // self.page)])
                    self._hold(self.shared[prompt][1])
            if not self.coming[prompt]:
                del self.coming[prompt]
                done += self.shared.pop(prompt, (None, []))[1]
            self.running[slot] = Running(request, pages, n)
            placed.append((slot, tokens[-1], n, request.limit - len(request.new)))
        while work:
            part, size = [], 0
            while work and (not part or size + len(work[0][0]) <= PREFILL):
                part.append(work.pop(0))
                size += len(part[-1][0])
            self._prefill(part)
        if copies:
            source, target = (self._to_device(list(pages), torch.long) for pages in zip(*copies, strict=True))
            for cache in (self.k, self.v):
                cache[:, target] = cache[:, source]
        self._give(done)
        if placed:
            slots, *values = zip(*placed, strict=True)
            slots = self._to_device(list(slots), torch.long)
            for state, new in zip((self.token, self.length, self.left), values, strict=True):
                state[slots] = self._to_device(list(new))
            self.stale = True

    def _put_back(self) -> None:
        """The running sequence with the fewest new tokens returns to the queue; its pages are free."""
        slot, r = min(((i, r) for i, r in enumerate(self.running) if r), key=lambda pair: len(pair[1].request.new))
        self.running[slot] = None
        self.left[slot].zero_()
        self._give(r.pages)
        self.submit(r.request, first=True)
        self.counts["put back"] += 1

    def _steps(self) -> int:
        """B of the next window: all slots, or a quarter of them again and again, as long as it holds everybody, who moves down for it."""
        B, count = len(self.running), sum(r is not None for r in self.running)
        while count <= B // 4 and B >= 32:
            B //= 4
        gaps = [i for i, r in enumerate(self.running[:B]) if r is None]
        moves = [(i, gaps.pop(0)) for i, r in enumerate(self.running) if r and i >= B]
        for source, target in moves:
            self.running[target], self.running[source] = self.running[source], None
            for state in (self.token, self.length, self.left):
                state[target].copy_(state[source])
            self.left[source].zero_()
            self.stale = True
        return B

    def _launch(self):
        """Starts a window: (who is in which row, what comes out, when)."""
        B = self._steps()
        if self.stale:
            rows = [r.pages if r else [] for r in self.running]
            self.table.copy_(self._to_device([row + [0] * (self.per_sequence - len(row)) for row in rows]))
            self.stale = False
        self.step.zero_()
        for _ in range(WINDOW):
            self._graph(B).replay() if self.cuda else self._decode(B)
        out, event = [self.tokens[:, :B].clone(), self.logps[:, :B].clone()], None
        if self.cuda:
            out = [torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x, non_blocking=True) for x in out]
            event = torch.cuda.Event()
            event.record()
        rows = [(i, r) for i, r in enumerate(self.running[:B]) if r]
        for _, r in rows:
            r.flying += WINDOW
        return rows, out, event

    def _settle(self, flight) -> list[Request]:
        """What a window sampled goes to its requests; those that are finished leave their slots."""
        rows, out, event = flight
        if event:
            event.synchronize()
        tokens, logps = (x.t().tolist() for x in out)
        finished = []
        for row, r in rows:
            n = next((i for i, token in enumerate(tokens[row]) if token < 0), WINDOW)
            request, r.length, r.flying = r.request, r.length + n, r.flying - WINDOW
            request.new += tokens[row][:n]
            request.logp += logps[row][:n]
            self.counts["sampled"] += n
            if r in self.running and (len(request.new) == request.limit or (n and request.new[-1] in self.stop_ids)):
                self.running[self.running.index(r)] = None
                keep = -(-r.length // self.page) if request.key is not None else 0
                self._give(r.pages[keep:])
                if keep:
                    self.kept[request.key] = ((request.ids + request.new)[: r.length], r.pages[:keep])
                finished.append(request)
        return finished

    def idle(self) -> bool:
        return not self.queue and not any(self.running)

    def stream(self, more: Callable[[], bool] = lambda: False) -> Iterator[Request | None]:
        """Generates what was and will be submitted, and yields each request once it is finished. The caller may submit further ones
        meanwhile: as long as more() says that some may come, None is yielded after every window, and when the engine is idle."""
        flight = None
        while True:
            self._admit()
            if not self._grow():
                yield from self._settle(flight) if flight else ()
                flight = None
                while not self._grow():
                    self._put_back()
            due = any(r and len(r.request.new) + r.flying < r.request.limit for r in self.running)
            last, flight = flight, self._launch() if due else None
            yield from self._settle(last) if last else ()
            if more():
                yield None
            elif not flight and self.idle():
                return

    def generate(self, requests: list[Request], seed: int, progress: bool = False) -> None:
        """Fills in new and logp of all requests. Deterministic in `seed` on one device."""
        self.generator.manual_seed(seed)
        for request in requests:
            self.submit(request)
        for _ in tqdm(self.stream(), "answers", len(requests), leave=False, disable=not progress):
            pass
