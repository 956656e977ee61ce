"""The page's theme, style sheet and scripts, all read from `assets/web`, none from outside."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gradio as gr

WEB = Path(__file__).resolve().parents[2] / "assets" / "web"
SCRIPTS = (
    "base.js",
    "charts.js",
    "player.js",
    "timeline.js",
    "picker.js",
    "tune.js",
    "map.js",
    "learn_math.js",
    "lessons.js",
    "learn.js",
)
SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def theme() -> gr.themes.Base:
    """Quiet surfaces, one accent, system fonts (no font is fetched)."""
    return gr.themes.Base(
        primary_hue="teal",
        neutral_hue="slate",
        radius_size="lg",
        text_size="md",
        font=list(SANS),
        font_mono=list(MONO),
    ).set(
        body_background_fill="#f8f9fb",
        body_background_fill_dark="#12171e",
        body_text_color="#1d2530",
        body_text_color_dark="#e7ebf1",
        body_text_color_subdued="#566172",
        body_text_color_subdued_dark="#a3adbb",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1a2029",
        block_border_color="#dde1e7",
        block_border_color_dark="#333c49",
        block_label_text_color="#566172",
        block_label_text_color_dark="#a3adbb",
        block_info_text_color="#566172",
        block_info_text_color_dark="#a3adbb",
        block_title_text_color="#1d2530",
        block_title_text_color_dark="#e7ebf1",
        input_background_fill="#ffffff",
        input_background_fill_dark="#222a35",
        input_placeholder_color="#6a7484",
        input_placeholder_color_dark="#a3adbb",
        button_primary_background_fill="#0b6e78",
        button_primary_background_fill_hover="#095c65",
        button_primary_background_fill_dark="#5cc4cd",
        button_primary_background_fill_hover_dark="#7fdbe2",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#06262a",
        button_secondary_background_fill="#ffffff",
        button_secondary_background_fill_hover="#f3f5f8",
        button_secondary_background_fill_dark="#1a2029",
        button_secondary_background_fill_hover_dark="#222a35",
        button_secondary_border_color="#dde1e7",
        button_secondary_border_color_dark="#333c49",
        button_secondary_text_color="#1d2530",
        button_secondary_text_color_dark="#e7ebf1",
        button_border_width="1px",
        button_large_text_size="15px",
        button_large_text_weight="550",
        button_small_text_weight="450",
        block_radius="12px",
        input_radius="10px",
        button_large_radius="10px",
        button_small_radius="10px",
        block_shadow="none",
        slider_color="#0b6e78",
        slider_color_dark="#5cc4cd",
        color_accent="#0b6e78",
        link_text_color="#0b6e78",
        link_text_color_dark="#5cc4cd",
    )


@cache
def head() -> str:
    """The scripts in one block for the document head; small enough to be worth no extra request."""
    code = "\n".join((WEB / name).read_text(encoding="utf-8") for name in SCRIPTS)
    if "</script" in code:
        raise RuntimeError("A script of the page must not contain a closing script tag.")
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<script>{code}</script>"
    )


def css_path() -> Path:
    """The style sheet."""
    return WEB / "page.css"
