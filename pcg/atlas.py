"""The map: UMAP of the target's embedding table, made once, stored with the table's hash.

UMAP's picture differs between machines, so it is shipped and never recomputed for display.
Source: McInnes et al., arXiv 1802.03426.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from pcg.codec.codec import Codec
from pcg.errors import PcgError
from pcg.groups import table_hash

SOUND_CONTEXT = 6  # repeats of a code around which its sound is measured


@dataclass(frozen=True)
class Feature:
    """One number a code to colour the map by; ``digits`` after the point when it is shown."""

    name: str
    label: str
    unit: str
    digits: int
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Atlas:
    """``xy`` (n_codes, 2) float32 in [-1, 1], and what each code sounds like."""

    xy: npt.NDArray[np.float32]
    features: tuple[Feature, ...]
    table: str

    def save(self, folder: Path | str) -> None:
        """Writes ``atlas.safetensors`` and ``atlas.json`` into ``folder``."""
        from safetensors.numpy import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {f.name: f.values.astype(np.float16) for f in self.features}
        save_file({"xy": self.xy, **arrays}, folder / "atlas.safetensors")
        about = {
            "version": 1,
            "table": self.table,
            "features": [
                {"name": f.name, "label": f.label, "unit": f.unit, "digits": f.digits}
                for f in self.features
            ],
        }
        (folder / "atlas.json").write_text(json.dumps(about, indent=1))


def load(model: Path | str = "bundled", table: Tensor | None = None) -> Atlas:
    """The stored atlas of a catalogue name or folder; checked against ``table`` when given.

    Raises:
        PcgError: when it is missing, damaged, or of another table.
    """
    from safetensors.numpy import load_file

    from pcg.settings import BUNDLED_DIR

    folder = (BUNDLED_DIR if str(model) == "bundled" else Path(model)) / "atlas"
    try:
        about = json.loads((folder / "atlas.json").read_text())
        arrays = load_file(folder / "atlas.safetensors")
        features = tuple(
            Feature(**one, values=arrays[one["name"]].astype(np.float32))
            for one in about["features"]
        )
        atlas = Atlas(arrays["xy"], features, str(about["table"]))
    except Exception as error:
        raise PcgError(
            "There is no stored map of this model: make it with `train atlas`."
        ) from error
    if table is not None and table_hash(table) != atlas.table:
        raise PcgError("The stored map is of another embedding table: make it again.")
    return atlas


def make_atlas(table: Tensor, codec: Codec | None = None, seed: int = 0) -> Atlas:
    """UMAP (cosine, 2-D) of ``table`` ``(n_codes, d)``, and how each code sounds."""
    import umap

    reducer = umap.UMAP(metric="cosine", n_neighbors=20, min_dist=0.08, random_state=seed)
    points = np.asarray(reducer.fit_transform(table.float().numpy()), np.float32)
    middle = (points.max(0) + points.min(0)) / 2
    points = (points - middle) / float(np.abs(points - middle).max())
    return Atlas(points.astype(np.float32), code_features(codec), table_hash(table))


def code_features(codec: Codec | None) -> tuple[Feature, ...]:
    """Loudness, voicing and pitch of each code, and its quantiser digits where they are known."""
    if codec is None:
        return ()
    sounds = code_sounds(codec)
    features = [
        Feature("loudness", "Loudness", "dB", 1, sounds["loudness"]),
        Feature("voicing", "Voicing", "", 2, sounds["voicing"]),
        Feature("pitch", "Pitch", "Hz", 0, sounds["pitch"]),
    ]
    codes, step = np.arange(codec.n_codes), 1
    for number, levels in enumerate(getattr(codec, "levels", ()), 1):
        digit = (codes // step % levels).astype(np.float32)
        features.append(Feature(f"digit{number}", f"FSQ digit {number}", "", 0, digit))
        step *= levels
    return tuple(features)


def code_sounds(codec: Codec) -> dict[str, npt.NDArray[np.float32]]:
    """Loudness (dB), voicing (0..1) and pitch (Hz, 0 unvoiced) of each code held for a moment.

    From the codec's own features where it has them, else from the decoded sound.
    """
    held = getattr(codec, "held_features", None)
    if held is not None:
        return _from_features(held(SOUND_CONTEXT))
    rows = [
        _measured(codec.decode([code] * SOUND_CONTEXT), codec.sample_rate)
        for code in range(codec.n_codes)
    ]
    columns = np.asarray(rows, np.float32).T
    return dict(zip(("loudness", "voicing", "pitch"), columns, strict=True))


def _from_features(features: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """The same from WORLD features ``(n_codes, frames, N_FEATURES)``, voicing as a logit."""
    from pcg.codec import world

    voiced = features[..., world.VOICED] > 0
    count = np.maximum(voiced.sum(1), 1)
    pitch = np.exp((features[..., world.LOG_F0] * voiced).sum(1) / count)
    level = 10 / np.log(10) * features[..., : world.N_BANDS].mean((1, 2))
    return {
        "loudness": level.astype(np.float32),
        "voicing": voiced.mean(1).astype(np.float32),
        "pitch": np.where(voiced.any(1), pitch, 0.0).astype(np.float32),
    }


def _measured(audio: npt.NDArray[np.float32], rate: int) -> tuple[float, float, float]:
    """Level, periodicity and pitch by autocorrelation of the middle of a sound."""
    middle = audio[len(audio) // 4 : -len(audio) // 4].astype(np.float64)
    level = 10 * float(np.log10(np.mean(middle**2) + 1e-10))
    centred = middle - middle.mean()
    correlation = np.correlate(centred, centred, "full")[len(centred) - 1 :]
    lags = slice(rate // 500, min(rate // 60, len(correlation)))
    if lags.stop <= lags.start or correlation[0] <= 0:
        return level, 0.0, 0.0
    best = int(correlation[lags].argmax()) + lags.start
    voicing = float(max(0.0, correlation[best] / correlation[0]))
    return level, voicing, rate / best if voicing > 0.4 else 0.0


def mel_table(codec: Codec) -> npt.NDArray[np.float32]:
    """Mel features ``(n_codes, bands)`` of each code decoded on its own: Table 3's rival.

    A code is repeated so that the decoder has some context; features are centred over codes.
    """
    held = getattr(codec, "held_features", None)
    if held is not None:
        from pcg.codec import world

        table = held(SOUND_CONTEXT)[..., : world.N_BANDS].mean(1)
    else:
        edges = np.unique(np.geomspace(1, 2047, 64).astype(int)) - 1
        spectra = [
            np.abs(np.fft.rfft(codec.decode([code] * SOUND_CONTEXT)))[:2048]
            for code in range(codec.n_codes)
        ]
        table = np.log(np.add.reduceat(np.asarray(spectra), edges, axis=1) + 1e-4)
    return np.asarray(table - table.mean(0), np.float32)
