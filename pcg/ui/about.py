"""About: the model, what it was made of, what ran on what, where numbers come from."""

from __future__ import annotations

import html
import os
import platform
from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.ui import runtime

NOT_SHOWN = ("codec", "n_codes", "default_theta", "prompts", "name")
METHOD = """
## What this page shows

A large speech model (the **target**) is slow because it makes one token at a time. A small
**draft** guesses a few tokens ahead; the target checks them all in one pass. The rule of
checking decides how many guesses survive, and what the result is worth:

| rule | keeps a draft when | promise |
|---|---|---|
| exact (SD) | `u < Q/P` | every token has the target's own probabilities |
| lenient (SSD) | `u < min(1, Q/P) + beta` | none |
| group (PCG) | `u · P_c < Q_c`, its sound | each *sound* has the target's own probabilities |

**P** is the draft's probability, **Q** the target's, **P_c** and **Q_c** those of a group of tokens
that sound alike (cosine of their embeddings above **theta**), each token's share split equally
among its groups.

## How to read the numbers

* *kept*: share of judged drafts that were kept. The free bonus token is not counted.
* *tokens a round*: mean, bonus or replacement included.
* *speed-up*: tokens a second over those of target-only, same engine, same run, same machine.
* *expected*: what the acceptance rate and the measured costs of draft and check predict.
* *WER, similarity*: by small recognisers on this one sentence; they jump by whole words.
  Judge by ear.

Every number here can also be had from `python -m pcg … --json`.

## Keys

`1`–`9` choose an output, `space` plays, `L` loops, `←` `→` seek; in the token strip `←` `→` `↑` `↓`
move and `Enter` plays the place.
"""


def build() -> None:
    """The tab's content; call inside a `gr.Tab`."""
    with gr.Row(equal_height=False):
        with gr.Column(scale=3, min_width=320):
            gr.Markdown(METHOD)
        with gr.Column(scale=2, min_width=320):
            panel = gr.HTML(apply_default_css=False, elem_id="facts")
    gr.on(None, facts, None, panel, api_visibility="private")  # no trigger: at page load


def facts() -> str:
    """The model's card and this machine as an escaped definition list; filled at page load."""
    try:
        model = runtime.model()
    except (PcgError, ImportError) as error:
        return f"<p class='pcg-note bad'>{html.escape(str(error))}</p>"
    rows: list[tuple[str, Any]] = [("voice model", model.name)]
    shown = {k: v for k, v in (model.card or {}).items() if k not in NOT_SHOWN}
    rows += [(key.replace("_", " "), text) for key, text in shown.items()]
    codec = model.codec
    rate = codec.sample_rate / codec.hop
    rows.append(("codec", f"{codec.name}: {codec.n_codes:,} codes, {rate:g} tokens a second"))
    rows.append(("default theta", f"{model.default_theta:g}"))
    measured = model.measured or {}
    rows += [
        (f"measured {key.replace(chr(95), chr(32))}", value) for key, value in measured.items()
    ]
    rows.append(("machine", machine()))
    items = "".join(
        f"<dt>{html.escape(str(key))}</dt><dd>{html.escape(_words(text))}</dd>"
        for key, text in rows
        if text not in (None, "", {}, [])
    )
    body = f"<h2>What runs here</h2><dl class='pcg-facts'>{items}</dl>"
    return f"<div class='pcg-root'><section class='pcg-card'>{body}</section></div>"


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_words(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(v) for v in value)
    return str(value)


def machine() -> str:
    """The processor's name and the number of its cores."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next((s.split(":", 1)[1].strip() for s in lines if "model name" in s), name)
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} cores"
