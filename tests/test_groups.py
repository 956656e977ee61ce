"""Acoustic Similarity Groups: building, nesting, sizes, files."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups, check_theta, table_hash


def table(codes: int = 60, width: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(codes, width, generator=torch.Generator().manual_seed(seed))


def dense(rows: Tensor, theta: float) -> Tensor:
    unit = rows / rows.norm(dim=1, keepdim=True)
    close = unit @ unit.T > theta
    return close | close.T | torch.eye(len(rows), dtype=torch.bool)


def as_dense(groups: AcousticGroups) -> Tensor:
    out = torch.zeros(groups.vocab_size, groups.vocab_size, dtype=torch.bool)
    out[groups.rows, groups.indices.long()] = True
    return out


@pytest.mark.parametrize("block", [7, 60, 1024])
@pytest.mark.parametrize("theta", [-0.5, 0.2, 0.9, 1.0])
def test_blocks_give_what_a_dense_table_gives(block: int, theta: float) -> None:
    rows = table()
    groups = AcousticGroups.from_table(rows, theta, 63, block=block)
    found = as_dense(groups)
    assert torch.equal(found[:60, :60], dense(rows, theta))
    assert torch.equal(found[60:], torch.eye(63, dtype=torch.bool)[60:]), "other ids are alone"
    assert groups.indices.dtype == torch.int32
    assert groups.n_codes == 60
    for k in range(63):
        assert groups.members(k).tolist() == found[k].nonzero()[:, 0].tolist()
        assert groups.size(k) == len(groups.members(k))
        assert int(groups.indices[groups.start(k)]) == int(groups.members(k)[0])


@given(st.integers(1, 30), st.integers(1, 5), st.floats(-0.9, 1.0), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_groups_that_hold_a_token_are_its_own_members(
    codes: int, width: int, theta: float, seed: int
) -> None:
    """S(t) = G_t, for tables with equal rows and rows of zeros too."""
    rows = table(codes, width, seed)
    rows[codes // 2 :: 3] = rows[0].clone()
    rows[1::5] = 0
    found = as_dense(AcousticGroups.from_table(rows, theta, codes + 2, block=7))
    assert torch.equal(found, found.T)
    assert bool(found.diagonal().all())


def test_a_row_of_zeros_is_alone() -> None:
    rows = table(10)
    rows[3] = 0
    assert AcousticGroups.from_table(rows, 0.0).members(3).tolist() == [3]


def test_nothing_is_nearer_than_one() -> None:
    """Equal rows may have a cosine of 1.0000001 in float32; at theta 1 they are still alone."""
    rows = table(12, 7).repeat(3, 1) * torch.tensor([1.0, 3.0, 0.7]).repeat_interleave(12)[:, None]
    assert AcousticGroups.from_table(rows, 1.0).sizes.tolist() == [1] * 36
    nested = NestedGroups.from_table(rows, 0.2)
    assert nested.at(1.0).sizes.tolist() == [1] * 36
    assert nested.at(0.999).sizes.tolist() == [3] * 36


def test_every_higher_theta_is_a_filter() -> None:
    rows = table(80)
    nested = NestedGroups.from_table(rows, 0.1, 81, block=32)
    for theta in (0.1, 0.35, 0.7, 0.99, 1.0):
        groups = nested.at(theta)
        assert torch.equal(as_dense(groups), as_dense(AcousticGroups.from_table(rows, theta, 81)))
        assert nested.mean_size(theta) == pytest.approx(groups.stats()["mean"])
        assert nested.at(theta) is groups, "kept"
    for theta in nested.thetas:
        nested.at(theta)
    assert len(nested._cache) <= 8
    assert nested.thetas[0] == 0.1
    assert nested.thetas[-1] == 0.95


def test_stored_cosines() -> None:
    rows = table(20)
    nested = NestedGroups.from_table(rows, 0.3)
    unit = rows / rows.norm(dim=1, keepdim=True)
    for one in range(20):
        for other in range(20):
            exact = float(unit[one] @ unit[other])
            found = nested.cosine(one, other)
            if one == other:
                assert found == 1.0
            elif exact > 0.3 + 1e-5:
                assert found == pytest.approx(exact, abs=1e-5)
            elif exact < 0.3 - 1e-5:
                assert found is None


def test_calibration_gives_the_size_that_was_asked_for() -> None:
    nested = NestedGroups.from_table(table(200), 0.0)
    for size in (1.0, 2.0, 8.0, 20.0):
        assert nested.mean_size(nested.calibrate(size)) == pytest.approx(size, abs=0.02)
    assert nested.calibrate(nested.mean_size(0.0)) == 0.0
    for wrong in (0.5, 150.0):
        with pytest.raises(PcgError, match="mean group size"):
            nested.calibrate(wrong)


def test_sizes() -> None:
    groups = AcousticGroups.from_sets([[0, 1], [1, 2], [2], [3]], n_codes=3)
    assert groups.sizes.tolist() == [2, 3, 2, 1]
    stats = groups.stats()
    assert stats["mean"] == pytest.approx(7 / 3)
    assert (stats["largest"], stats["singletons"], stats["pairs"]) == (3, 0.0, 8)
    assert AcousticGroups.singletons(5).stats()["singletons"] == 1.0
    assert AcousticGroups.everything(5).sizes.tolist() == [5] * 5


def test_several_groups_at_once() -> None:
    groups = AcousticGroups.from_table(table(), 0.3)
    members, starts, sizes = groups.gather([5, 0, 5])
    wanted = [groups.members(k).tolist() for k in (5, 0, 5)]
    assert members.tolist() == [one for part in wanted for one in part]
    assert sizes.tolist() == [len(part) for part in wanted]
    assert starts.tolist() == [0, len(wanted[0]), len(wanted[0]) + len(wanted[1])]


def test_files_come_back_as_they_were(tmp_path: Path) -> None:
    rows = table(90)
    nested = NestedGroups.from_table(rows, 0.2, 92, kind="mel")
    nested.save(tmp_path)
    again = NestedGroups.load(tmp_path, "mel", table=rows)
    for theta in (0.2, 0.5, 0.81):
        assert torch.equal(nested.at(theta).indices, again.at(theta).indices)
        assert torch.equal(nested.at(theta).indptr, again.at(theta).indptr)
    assert (again.kind, again.vocab_size, again.n_codes) == ("mel", 92, 90)
    assert again.at(0.5).kind == "mel"


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rows = table(30)
    NestedGroups.from_table(rows, 0.2).save(tmp_path)
    with pytest.raises(PcgError, match="another embedding table"):
        NestedGroups.load(tmp_path, table=rows + 1e-3)
    with pytest.raises(PcgError, match="No usable mel groups"):
        NestedGroups.load(tmp_path, "mel")
    about = tmp_path / "embedding.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "version": 99}))
    with pytest.raises(PcgError, match="version 99"):
        NestedGroups.load(tmp_path)
    (tmp_path / "embedding.safetensors").write_bytes(b"")
    with pytest.raises(PcgError, match="No usable embedding groups"):
        NestedGroups.load(tmp_path)


@pytest.mark.parametrize("theta", [-1.0, 1.01, float("nan"), float("inf")])
def test_theta_out_of_range(theta: float) -> None:
    with pytest.raises(PcgError, match="theta"):
        check_theta(theta)
    with pytest.raises(PcgError, match="theta"):
        AcousticGroups.from_table(table(), theta)


def test_bad_tables_and_damaged_groups() -> None:
    broken = table()
    broken[3, 1] = float("nan")
    for rows in (broken, torch.zeros(0, 4), torch.zeros(5)):
        with pytest.raises(PcgError, match="embedding table"):
            AcousticGroups.from_table(rows, 0.4)
    with pytest.raises(PcgError, match="smaller"):
        AcousticGroups.from_table(table(), 0.4, vocab_size=59)
    with pytest.raises(PcgError, match="stored from theta"):
        NestedGroups.from_table(table(), 0.4).at(0.3)
    empty = torch.zeros(0, dtype=torch.long)
    with pytest.raises(PcgError, match="empty or damaged"):
        AcousticGroups(torch.tensor([0]), empty, 0, 0.4)
    with pytest.raises(PcgError, match="without members"):
        AcousticGroups(torch.tensor([0, 0, 1]), torch.tensor([1]), 2, 0.4)
    with pytest.raises(PcgError, match="empty or damaged"):
        AcousticGroups(torch.tensor([0, 1, 3]), torch.tensor([0, 1]), 2, 0.4)


def test_the_hash_tells_tables_apart() -> None:
    rows = table()
    assert table_hash(rows) == table_hash(rows.double())
    assert table_hash(rows) != table_hash(rows.reshape(30, 8))


def test_progress_reaches_the_end() -> None:
    seen: list[float] = []
    AcousticGroups.from_table(table(), 0.4, block=20, progress=seen.append)
    assert seen == pytest.approx([1 / 3, 2 / 3, 1.0])
