"""A page in a real browser, logged in, which remembers every error it said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dashboard.stage import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SHOTS = Path(__file__).parents[2] / "docs/screenshots"


@dataclass(slots=True)
class Visit:
    page: Page
    dashboard: Dashboard
    errors: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def open(self, where: str = "") -> None:
        self.page.goto(f"{self.dashboard.address}/#/{where}")

    def expect(self, text: str) -> None:
        """Chromium itself reports a refusal of the API; those a test provokes are no error of the page."""
        self.expected.append(text)

    def note(self, text: str) -> None:
        if not any(known in text for known in self.expected):
            self.errors.append(text)

    def shoot(self, name: str) -> None:
        """A picture for the documentation, where it has none of that name."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        if not (SHOTS / f"{name}.png").exists():
            self.page.screenshot(path=str(SHOTS / f"{name}.png"), animations="disabled")

    def has_sideways_scrolling(self) -> bool:
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(wide))


def visiting(
    browser: Browser,
    dashboard: Dashboard,
    *,
    width: int = 1280,
    height: int = 800,
    dark: bool = False,
    log_in: bool = True,
    **options: Any,
) -> Visit:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="UTC",
        **options,
    )
    page = context.new_page()
    visit = Visit(page, dashboard)
    page.on("console", lambda said: visit.note(f"{said.type}: {said.text}") if said.type == "error" else None)
    page.on("pageerror", lambda error: visit.note(f"exception: {error}"))
    if log_in:
        page.goto(dashboard.login_address())
        page.wait_for_url(f"{dashboard.address}/")
        page.wait_for_selector("#connection[data-state=live]")
    return visit
