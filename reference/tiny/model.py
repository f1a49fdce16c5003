"""A fast training forward over one flat vector of the library model's weights.

Names, shapes and arithmetic are those of `MiniCPMV4_6ForConditionalGeneration`; `python model.py` compares the two. What differs
is order and grouping: patches come with every merged token's 16 patches side by side, so that neither merger has to gather;
projections that read one input are one matrix; the delta rule runs over chunks and a log-depth scan; rows hold several conversations.
"""

import math

import torch
import torch.nn.functional as F

AUX = 4 * (1 + 6 + 36 + 9)  # helper head: four places per merged token, what is there and its colour
CHUNK = 64
HALF = True  # on a GPU: the tower in bfloat16, and queries, keys and values of softmax attention; off for evaluation
PAD_HEAD = 80  # a head of 72 with room for the column that hides padded keys


def spec(cfg):
    """Entries (key, shape, library names or None, init std); names of one key are rows of one matrix."""
    t, v = cfg["text_config"], cfg["vision_config"]
    d, n, out = v["hidden_size"], v["intermediate_size"], []
    h, m = t["hidden_size"], t["intermediate_size"]

    def linear(key, rows, cols, names, gain=1.0, bias=True):
        out.append((key + ".w", (rows, cols), [x + ".weight" for x in names], gain / math.sqrt(cols)))
        if bias:
            out.append((key + ".b", (rows,), [x + ".bias" for x in names], 0.0))

    def norm(key, width, name):
        out.append((key + ".w", (width,), [name + ".weight"], 1.0))
        out.append((key + ".b", (width,), [name + ".bias"], 0.0))

    def attention(key, name):
        linear(key + ".qkv", 3 * d, d, [f"{name}.{x}_proj" for x in "qkv"])
        linear(key + ".out", d, d, [name + ".out_proj"], 0.4)

    top = "model.vision_tower."
    linear("v.patch", d, 3 * v["patch_size"] ** 2, [top + "embeddings.patch_embedding"])
    side = v["image_size"] // v["patch_size"]
    out.append(("v.pos", (2 * side, d), None, 0.06))
    for i in range(v["num_hidden_layers"]):
        name, key = f"{top}encoder.layers.{i}.", f"v.{i}"
        norm(key + ".n1", d, name + "layer_norm1")
        attention(key, name + "self_attn")
        norm(key + ".n2", d, name + "layer_norm2")
        linear(key + ".fc1", n, d, [name + "mlp.fc1"])
        linear(key + ".fc2", d, n, [name + "mlp.fc2"], 0.4)
    norm("v.w.n1", d, top + "vit_merger.layer_norm1")
    attention("v.w", top + "vit_merger.self_attn")
    norm("v.w.n2", 4 * d, top + "vit_merger.pre_norm")
    linear("v.w.fc1", 4 * n, 4 * d, [top + "vit_merger.linear_1"])
    linear("v.w.fc2", d, 4 * n, [top + "vit_merger.linear_2"], 0.4)
    norm("v.post", d, top + "post_layernorm")
    norm("v.m.n", 4 * d, "model.merger.mlp.0.pre_norm")
    linear("v.m.fc1", 4 * d, 4 * d, ["model.merger.mlp.0.linear_1"])
    linear("v.m.fc2", h, 4 * d, ["model.merger.mlp.0.linear_2"])
    linear("v.aux", AUX, h, ["aux"])
    top = "model.language_model."
    out.append(("embed", (t["vocab_size"], h), [top + "embed_tokens.weight"], 0.06))
    kd, vd = t["linear_num_key_heads"] * t["linear_key_head_dim"], t["linear_num_value_heads"] * t["linear_value_head_dim"]
    for i, kind in enumerate(t["layer_types"]):
        name, key = f"{top}layers.{i}.", f"t.{i}"
        out.append((key + ".n1", (h,), [name + "input_layernorm.weight"], 0.0))
        out.append((key + ".n2", (h,), [name + "post_attention_layernorm.weight"], 0.0))
        if kind == "full_attention":
            a, hd = name + "self_attn.", t["head_dim"]
            wide = (2 * t["num_attention_heads"] + 2 * t["num_key_value_heads"]) * hd
            linear(key + ".in", wide, h, [a + x for x in ("q_proj", "k_proj", "v_proj")], bias=False)
            linear(key + ".out", h, t["num_attention_heads"] * hd, [a + "o_proj"], 0.4, False)
            out += [(key + ".qn", (hd,), [a + "q_norm.weight"], 0.0), (key + ".kn", (hd,), [a + "k_norm.weight"], 0.0)]
        else:
            a = name + "linear_attn."
            wide = 2 * kd + 2 * vd + 2 * t["linear_num_value_heads"]
            linear(key + ".in", wide, h, [a + "in_proj_" + x for x in ("qkv", "z", "b", "a")], bias=False)
            linear(key + ".out", h, vd, [a + "out_proj"], 0.4, False)
            out.append((key + ".conv", (2 * kd + vd, 1, t["linear_conv_kernel_dim"]), [a + "conv1d.weight"], 0.5))
            out += [(key + ".A", (t["linear_num_value_heads"],), [a + "A_log"], None)]
            out += [(key + ".dt", (t["linear_num_value_heads"],), [a + "dt_bias"], None)]
            out.append((key + ".on", (t["linear_value_head_dim"],), [a + "norm.weight"], 1.0))
        linear(key + ".up", 2 * m, h, [name + "mlp.gate_proj", name + "mlp.up_proj"], bias=False)
        linear(key + ".down", h, m, [name + "mlp.down_proj"], 0.4, False)
    out.append(("t.norm", (h,), [top + "norm.weight"], 0.0))
    return out


class Flat:
    """Where each entry lies in the flat vector; every entry starts at a multiple of 64 values."""

    def __init__(self, cfg):
        self.cfg, self.spec, self.sizes = cfg, spec(cfg), []
        self.sizes = [-(-math.prod(shape) // 64) * 64 for _, shape, _, _ in self.spec]
        self.total = sum(self.sizes)
        self.vision = sum(s for s, (k, *_) in zip(self.sizes, self.spec) if k.startswith("v."))

    def init(self, seed):
        g = torch.Generator().manual_seed(seed)
        flat, at = torch.zeros(self.total), 0
        for size, (key, shape, _, std) in zip(self.sizes, self.spec):
            n = math.prod(shape)
            if key.endswith(".A"):
                value = torch.empty(n).uniform_(1, 16, generator=g).log()
            elif key.endswith(".dt"):  # steps of 0.001 to 0.1, through the inverse of softplus
                dt = torch.exp(torch.empty(n).uniform_(math.log(0.001), math.log(0.1), generator=g))
                value = dt + torch.log(-torch.expm1(-dt))
            elif std == 1.0 and len(shape) == 1:
                value = torch.ones(n)
            else:
                value = torch.empty(n).normal_(generator=g) * std
            flat[at : at + n] = value
            at += size
        return flat

    def decay_mask(self):
        """1 where weight decay applies: matrices."""
        return torch.cat([torch.full((s,), float(len(e[1]) == 2)) for s, e in zip(self.sizes, self.spec)])

    def views(self, flat, lo=0, hi=None):
        """Entries as tensors, by splits whose backward is one concatenation."""
        names = list(zip(self.sizes, self.spec))[lo:hi]
        parts = flat.split([s for s, _ in names])
        return {e[0]: p[: math.prod(e[1])].view(e[1]) for p, (_, e) in zip(parts, names)}

    def both(self, flat):
        """Vision entries in bfloat16 on a GPU, text entries in float32."""
        cut = next(i for i, e in enumerate(self.spec) if e[0] == "embed")
        vis, text = flat.split([self.vision, self.total - self.vision])
        return self.views(vis.bfloat16() if flat.is_cuda and HALF else vis, 0, cut), self.views(text, cut)

    def from_library(self, state):
        """Entries, split as `both` does, from the library's names; the position table stays as it is."""
        table = "model.vision_tower.embeddings.position_embedding.weight"
        out = {}
        for key, shape, names, _ in self.spec:
            if key == "v.pos":
                out[key] = state[table].float()
            elif not key.startswith("v.aux"):
                out[key] = torch.cat([state[n].float() for n in names]).view(shape)
        return {k: v for k, v in out.items() if k.startswith("v.")}, {k: v for k, v in out.items() if not k.startswith("v.")}

    def state_dict(self, flat):
        """The library's names and shapes; the position table written out; the helper head left off."""
        w, out = self.views(flat), {}
        side = self.cfg["vision_config"]["image_size"] // 14
        for key, shape, names, _ in self.spec:
            if key == "v.pos":
                table = (w[key][:side, None] + w[key][None, side:]).reshape(side * side, -1)
                out["model.vision_tower.embeddings.position_embedding.weight"] = table
            elif key == "v.patch.w":
                out[names[0]] = w[key].view(-1, 3, 14, 14)
            elif not key.startswith("v.aux"):
                rows = [shape[0] // len(names)] * len(names)
                if key.endswith(".in.w"):
                    t = self.cfg["text_config"]
                    if len(names) == 3:
                        rows = [2 * t["num_attention_heads"] * t["head_dim"]] + [t["num_key_value_heads"] * t["head_dim"]] * 2
                    else:
                        vd, vh = t["linear_num_value_heads"] * t["linear_value_head_dim"], t["linear_num_value_heads"]
                        rows = [shape[0] - vd - 2 * vh, vd, vh, vh]
                out |= dict(zip(names, w[key].split(rows)))
        return {k: v.clone().contiguous() for k, v in out.items()}


def attend(x, w, key, hide, head):
    """Full self-attention over the second dimension of [S, N, D]; `hide` [S, N] is 1 on padded keys, or None."""
    s, n, d = x.shape
    q, k, v = F.linear(x, w[key + ".qkv.w"], w[key + ".qkv.b"]).view(s, n, 3, d // head, head).permute(2, 0, 3, 1, 4)
    if hide is not None:
        extra = torch.zeros(s, d // head, n, PAD_HEAD - head, dtype=x.dtype, device=x.device)
        one = extra + (torch.arange(PAD_HEAD - head, device=x.device) == 0).to(x.dtype)
        far = one * (hide.to(x.dtype) * -8192.0)[:, None, :, None]
        q, k, v = torch.cat((q, one), -1), torch.cat((k, far), -1), torch.cat((v, extra), -1)
    o = F.scaled_dot_product_attention(q, k, v, scale=head**-0.5)[..., :head]
    return F.linear(o.transpose(1, 2).reshape(s, n, d), w[key + ".out.w"], w[key + ".out.b"])


def layer_norm(x, w, key):
    return F.layer_norm(x, x.shape[-1:], w[key + ".w"], w[key + ".b"], 1e-6)


def mlp(x, w, key, approximate="tanh"):
    x = F.gelu(F.linear(x, w[key + ".fc1.w"], w[key + ".fc1.b"]), approximate=approximate)
    return F.linear(x, w[key + ".fc2.w"], w[key + ".fc2.b"])


def vision_layer(x, w, hide, head=72):
    """`w` holds one layer's entries under the key `l`."""
    x = x + attend(layer_norm(x, w, "l.n1"), w, "l", hide, head)
    return x + mlp(layer_norm(x, w, "l.n2"), w, "l")


def window_merge(x, w, head=72):
    """[S, 4 n, D] with windows side by side to [S, n, D]."""
    s, n, d = x.shape
    x = x.reshape(s * n // 4, 4, d)
    q, k, v = F.linear(layer_norm(x, w, "w.n1"), w["w.qkv.w"], w["w.qkv.b"]).view(-1, 4, 3, d // head, head).unbind(2)
    # four keys: a sum over products is far cheaper than an attention call per window
    score = (q[:, :, None] * k[:, None]).sum(-1, dtype=torch.float32) * head**-0.5
    p = score.softmax(2).to(x.dtype)
    o = (p[..., None] * v[:, None]).sum(2).reshape(-1, 4, d)
    x = x + F.linear(o, w["w.out.w"], w["w.out.b"])
    flat = layer_norm(x.reshape(-1, 4 * d), w, "w.n2")
    return (mlp(flat, w, "w") + x.mean(1)).view(s, n // 4, d)


def project(x, w):
    """[S, 4 n, D] to the language width, [S, n, H]."""
    s, n, d = x.shape
    x = layer_norm(layer_norm(x, w, "post").reshape(s, n // 4, 4 * d), w, "m.n")
    return mlp(x, w, "m", "none")


def sub(w, prefix, key):
    return {key + k[len(prefix) :]: v for k, v in w.items() if k.startswith(prefix + ".")}


class Model:
    """The forward; `fast` maps a function to its compiled form (or to itself)."""

    def __init__(self, cfg, fast=lambda f: f):
        self.cfg = cfg
        self.layer, self.window, self.last = fast(vision_layer), fast(window_merge), fast(project)
        self.chunk_in, self.chunk_out = fast(chunk_inputs), fast(chunk_outputs)
        self.soft_in, self.soft_out, self.ends = fast(attention_in), fast(attention_out), fast(loss_of)

    def vision(self, pixels, rows, cols, w, hide=None):
        """pixels [S, 16 T, 588] and position buckets [S, 16 T] to [S, T, H]; `hide` [S, T] marks padded tokens."""
        v = self.cfg["vision_config"]
        side = v["image_size"] // v["patch_size"]
        lanes = torch.arange(side, device=rows.device)
        if w["v.pos"].shape[0] == 2 * side:  # rows and columns; a product has a far cheaper backward than two look-ups
            place = torch.cat((rows[..., None] == lanes, cols[..., None] == lanes), -1).to(pixels.dtype) @ w["v.pos"]
        else:
            place = w["v.pos"][rows * side + cols]
        x = F.linear(pixels, w["v.patch.w"], w["v.patch.b"]) + place
        for i in range(v["num_hidden_layers"]):
            per = 16 if i <= v["insert_layer_id"] else 4
            x = self.layer(x, sub(w, f"v.{i}", "l"), None if hide is None else hide.repeat_interleave(per, 1))
            if i == v["insert_layer_id"]:
                x = self.window(x, sub(w, "v.w", "w"))
        return self.last(x, sub(w, "v.post", "post") | sub(w, "v.m", "m"))

    def text(self, x, pos, w, rows, bias=None):
        """x [N, H] and positions [N], 0 where a conversation starts, so that one long row serves for any batch.

        Softmax attention sees `rows` rows of N / rows tokens: causal, or masked by `bias`.
        """
        t = self.cfg["text_config"]
        half = int(t["head_dim"] * 0.25) // 2
        freq = t["rope_parameters"]["rope_theta"] ** (-torch.arange(half, device=x.device) / half)
        angle = pos[:, None].float() * freq
        cos, sin = angle.cos(), angle.sin()
        start = (pos == 0).float()
        reach = torch.stack([pos >= j for j in range(4)], 1).float()  # which taps of the convolution stay inside
        for i, kind in enumerate(t["layer_types"]):
            p = sub(w, f"t.{i}", "l")
            if kind == "full_attention":
                q, k, v, gate = self.soft_in(x, p, cos, sin)
                q, k, v = (z.view(rows, -1, *z.shape[1:]).transpose(1, 2) for z in (q, k, v))
                o = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=bias is None, scale=t["head_dim"] ** -0.5)
                x = self.soft_out(x, p, o.transpose(1, 2).reshape(x.shape[0], -1), gate)
            else:
                low, *rest = self.chunk_in(x, p, start, reach)
                x = self.chunk_out(x, p, UnitInverse.apply(low), *rest)
        return x


def rms(x, w, plus=1.0):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * (plus + w)


def feed(x, w):
    gate, up = F.linear(rms(x, w["l.n2"]), w["l.up.w"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, w["l.down.w"])


def attention_in(x, w, cos, sin, head=64):
    """Queries, keys and values [N, heads, head] (keys and values repeated per query head) and the gate."""
    n, heads = x.shape[0], w["l.out.w"].shape[1] // head
    y = F.linear(rms(x, w["l.n1"]), w["l.in.w"])
    rest = (y.shape[-1] - 2 * heads * head) // 2
    qg, k, v = y.split([2 * heads * head, rest, rest], -1)
    q, gate = qg.view(n, heads, 2, head).unbind(2)
    q, k, v = rms(q, w["l.qn"]), rms(k.view(n, -1, head), w["l.kn"]), v.view(n, -1, head)

    def turn(z):
        half = cos.shape[-1]
        a, c, still = z[..., :half], z[..., half : 2 * half], z[..., 2 * half :]
        co, si = cos[:, None], sin[:, None]
        return torch.cat((a * co - c * si, c * co + a * si, still), -1)

    low = torch.bfloat16 if x.is_cuda and HALF else x.dtype
    q, k, v = turn(q).to(low), turn(k).to(low), v.to(low)
    return q, k.expand(-1, heads, -1).contiguous(), v.expand(-1, heads, -1).contiguous(), gate.reshape(n, -1)


def attention_out(x, w, o, gate):
    return feed(x + F.linear(o.to(x.dtype) * torch.sigmoid(gate), w["l.out.w"]), w)


class UnitInverse(torch.autograd.Function):
    """Inverse of I + L for strictly lower triangular L, by one triangular solve; the backward is two products."""

    @staticmethod
    def forward(ctx, low):
        eye = torch.eye(low.shape[-1], device=low.device, dtype=low.dtype)
        inv = torch.linalg.solve_triangular(low + eye, eye.expand_as(low), upper=False, unitriangular=True)
        ctx.save_for_backward(inv)
        return inv

    @staticmethod
    def backward(ctx, grad):
        (inv,) = ctx.saved_tensors
        t = inv.transpose(-1, -2)
        return -(t @ grad @ t).tril(-1)


def chunk_inputs(x, w, start, reach, kh=2, kd=32):
    """Everything of a delta layer up to the triangular solve: tensors [heads, chunks, CHUNK, ...]."""
    n, vh = x.shape[0], w["l.A"].shape[0]
    y = F.linear(rms(x, w["l.n1"]), w["l.in.w"])
    qkv, z, bt, a = y.split([w["l.conv"].shape[0], w["l.out.w"].shape[1], vh, vh], -1)
    conv = qkv * w["l.conv"][:, 0, 3]
    for j in (1, 2, 3):
        conv = conv + F.pad(qkv, (0, 0, j, 0))[:n] * reach[:, j : j + 1] * w["l.conv"][:, 0, 3 - j]
    q, k, v = F.silu(conv).split([kh * kd, kh * kd, conv.shape[-1] - 2 * kh * kd], -1)

    def heads(u, count):
        u = u.reshape(n, count, -1)
        u = u.repeat_interleave(vh // count, 1) if count != vh else u
        return u.transpose(0, 1).reshape(vh, n // CHUNK, CHUNK, -1)

    def unit(u):
        u = u.reshape(n, kh, kd)
        return (u * torch.rsqrt(u.square().sum(-1, keepdim=True) + 1e-6)).reshape(n, -1)

    q, k, v = heads(unit(q) * kd**-0.5, kh), heads(unit(k), kh), heads(v, vh)
    g = -torch.exp(w["l.A"]) * F.softplus(a + w["l.dt"]) - 40.0 * start[:, None]  # e^-40 forgets what came before
    beta, g = heads(torch.sigmoid(bt), vh), heads(g, vh)[..., 0].cumsum(-1)
    upper = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).triu(1)
    decay = (g[..., :, None] - g[..., None, :]).masked_fill(upper, -1e4).exp()
    low = (k @ k.transpose(-1, -2) * decay * beta).tril(-1)
    near = q @ k.transpose(-1, -2) * decay
    gain = g.exp()[..., None]
    left = k * (g[..., -1:] - g).exp()[..., None]
    return low, torch.cat((v * beta, k * beta * gain), -1), near, q * gain, left, g[..., -1].exp(), z


def scan_states(trans, add):
    """State before each chunk, from S' = trans S + add, by doubling: [H, C, K, K] and [H, C, K, V]."""
    both, step = torch.cat((trans, add), -1), 1
    k, count = trans.shape[-1], trans.shape[1]
    while step < count:
        joined = both[:, step:, :, :k] @ both[:, :-step]
        joined = joined + F.pad(both[:, step:, :, k:], (k, 0))
        both, step = torch.cat((both[:, :step], joined), 1), 2 * step
    return F.pad(both[:, :-1, :, k:], (0, 0, 0, 0, 1, 0))


def chunk_outputs(x, w, inv, rhs, near, q, left, carry, z):
    """States and outputs once the inverse is known."""
    vh, kd = q.shape[0], q.shape[-1]
    vd = rhs.shape[-1] - kd
    u, wk = (inv @ rhs).split([vd, kd], -1)
    lt = left.transpose(-1, -2)
    trans = carry[..., None, None] * torch.eye(kd, device=x.device) - lt @ wk
    state = scan_states(trans, lt @ u)
    o = q @ state + near @ (u - wk @ state)
    o = o.reshape(vh, -1, vd).transpose(0, 1)
    o = rms(o, w["l.on"], 0.0) * F.silu(z.view(-1, vh, vd))
    return feed(x + F.linear(o.reshape(x.shape[0], -1), w["l.out.w"]), w)


def loss_of(x, w, norm, goal):
    """Losses [N] of the next tokens `goal` (0 where it is -100) and whether the best token is the goal."""
    logits = F.linear(rms(x, norm), w)
    return F.cross_entropy(logits, goal, ignore_index=-100, reduction="none"), logits.argmax(-1) == goal
