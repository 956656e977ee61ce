"""Learn: lessons, bars, groups, the stepper, and laws that Python agrees with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Open, open_tab

pytestmark = pytest.mark.browser


@pytest.fixture
def learn(visit: Open) -> Any:
    """A visitor in the Learn tab."""
    tab = visit()
    open_tab(tab, "Learn")
    tab.wait_for_selector("#learn-world .learn-lesson")
    return tab


def test_the_three_lessons_run_to_their_end(learn: Any) -> None:
    steps = 0
    while learn.locator("#learn-world .learn-lesson").count():
        learn.locator("#learn-world .learn-lesson .primary").click()
        steps += 1
        assert steps < 30
    assert steps == 13


def test_moving_a_bar_by_key_moves_the_numbers(learn: Any) -> None:
    table = learn.inner_text("#learn-world .pcg-table")
    bar = learn.locator("#learn-world .learn-bar.draft").first
    bar.focus()
    learn.keyboard.press("ArrowUp")
    assert learn.inner_text("#learn-world .pcg-table") != table
    total = learn.locator("#learn-world .learn-bar.draft").evaluate_all(
        "bars => bars.reduce((s, b) => s + Number.parseFloat(b.getAttribute('aria-valuetext')), 0)"
    )
    assert total == pytest.approx(100, abs=0.5)


def test_groups_follow_theta_and_clicks(learn: Any) -> None:
    links = learn.locator("#learn-world .learn-link")
    assert links.count() == 7
    learn.locator("#learn-world .learn-node").nth(0).focus()
    learn.keyboard.press("Enter")
    learn.locator("#learn-world .learn-node").nth(3).focus()
    learn.keyboard.press("Enter")
    assert links.count() == 8
    learn.get_by_label("theta", exact=True).last.fill("0.99")
    assert links.count() == 0


def test_one_group_each_makes_pcg_the_exact_rule(learn: Any) -> None:
    learn.get_by_label("theta", exact=True).last.fill("1")
    kept = learn.locator("#learn-world .learn-column .pcg-dl dd:first-of-type")
    assert kept.nth(0).inner_text() == kept.nth(2).inner_text()


def test_draws_agree_with_the_laws_and_python_too(learn: Any) -> None:
    learn.get_by_role("button", name="Draw 10,000").click()
    assert learn.locator("#learn-world .seen").count() == 24
    learn.get_by_role("button", name="Check with the Python library").click()
    learn.wait_for_function(
        "() => document.querySelector('#learn-world').innerText.includes('largest difference')"
    )
    text = learn.inner_text("#learn-world")
    assert float(text.split("largest difference ")[1].split(".\n")[0].rstrip(".")) < 1e-6


def test_the_stepper_reveals_four_steps(learn: Any) -> None:
    button = learn.locator("#learn-world .learn-nav .primary", has_text="Draft a token")
    hidden = learn.locator("#learn-world .learn-steps .hid")
    assert hidden.count() == 12
    button.click()
    assert hidden.count() == 9
