"""Opens pages of `t2t report` in a real browser and uses them: every view, link, key and filter. It ends with 1 where anything is wrong.

It needs Playwright (`pip install playwright`) and a Chromium, named by `--chromium` or found by Playwright. CI has neither.

    python tests/browser.py logs/report.html [--chromium PATH] [--screenshots FOLDER]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

WIDTHS = (400, 900, 1400)
OPENS = 2.0
"""In how many seconds a page is open, also one of a thousand ops."""
SOME = 20
"""How many links, and how many views, are tried at least where there are as many."""
PRINTED = 100
"""How many ops a page has at most that is printed."""
FAR = 120
"""How far below the top of the window, in px, what a link leads to may stand: the filter is above it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--chromium", help="the program; by default Playwright's own")
    parser.add_argument("--screenshots", type=Path, help="a folder for a picture at each width, light and dark")
    arguments = parser.parse_args()
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
        for file in arguments.pages:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            found = used(page, file.resolve())
            if arguments.screenshots:
                take(page, file, arguments.screenshots)
            page.close()
            print(f"{file}: {'; '.join(found) or 'nothing is wrong'}")
            wrong += found
        browser.close()
    return 1 if wrong else 0


def used(page: Page, file: Path) -> list[str]:
    """Opens a page and uses it. Returns what is wrong with it, in words."""
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    begun = time.perf_counter()
    page.goto(file.as_uri())
    count = page.locator("section.op").count()
    counted = page.locator("[id='page.count']")
    if counted.inner_text() != f"{count} of {count} ops":
        wrong.append(f"it counts {counted.inner_text()!r} of {count} ops")
    if (took := time.perf_counter() - begun) > OPENS:
        wrong.append(f"it took {took:.1f} s to open")
    for view in some(page.locator("details").all()):
        view.locator("summary").click()
        if view.get_attribute("open") is None:
            wrong.append(f"a view does not open: {view.inner_text()[:40]}")
    return wrong + keys(page) + links(page) + widths(page)


def some(elements: list[Locator]) -> list[Locator]:
    """Returns the elements; of many, some at equal distances."""
    return elements[:: max(len(elements) // SOME, 1)]


def shown(page: Page) -> list[tuple[str, str]]:
    """Returns the ops that the filter shows, each with its verdicts."""
    found = page.eval_on_selector_all(
        "section.op", "all => all.filter(op => !op.hidden).map(op => [op.id, op.dataset.verdicts])"
    )
    return [(name, verdicts) for name, verdicts in found]


def keys(page: Page) -> list[str]:
    """Goes from op to op, and filters, by the keyboard. Returns what is wrong."""
    wrong = []
    names = [name for name, _ in shown(page)]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    if names and not page.url.endswith(f"#{names[0]}"):
        wrong.append(f"`j`, `j`, `k` lead to {page.url}")
    page.keyboard.press("/")
    page.keyboard.type(names[-1] if names else "none")
    filtered = [name for name, _ in shown(page)]
    if filtered != [name for name in names if names[-1].lower() in name.lower()]:
        wrong.append(f"the filter {names[-1]!r} shows {len(filtered)} ops: {', '.join(filtered[:5])}")
    if len(names) > 1 and names[0] not in filtered:
        # A link to what is hidden shows it.
        page.evaluate("name => { location.hash = name }", names[0])
        page.wait_for_timeout(300)
        wrong += stands(page, names[0])
    page.keyboard.press("Escape")
    verdict = page.locator("[id='page.verdict']")
    for option in page.locator("[id='page.verdict'] option").all():
        value = option.get_attribute("value") or ""
        verdict.select_option(value)
        others = [name for name, verdicts in shown(page) if value and value not in verdicts.split()]
        if others:
            wrong.append(f"the verdict {value} shows {len(others)} others: {', '.join(others[:5])}")
    verdict.select_option("")
    return wrong


def links(page: Page) -> list[str]:
    """Follows links of the page to itself, of many some. Returns what is wrong."""
    wrong = []
    for link in (link for link in some(page.locator("a[href^='#']").all()) if link.is_visible()):
        target = (link.get_attribute("href") or "")[1:]
        link.click()
        page.wait_for_timeout(100)
        wrong += stands(page, target)
    return wrong


def stands(page: Page, name: str) -> list[str]:
    """Returns what is wrong with where the element of this name stands after a link to it was followed."""
    place = page.evaluate(
        "name => [document.getElementById(name).getBoundingClientRect().top,"
        " scrollY + innerHeight >= document.documentElement.scrollHeight - 1]",
        name,
    )
    top, is_end = place
    return [] if -1 <= top <= FAR or is_end else [f"a link to {name} shows it at {top:.0f} px"]


def widths(page: Page) -> list[str]:
    """Makes the window narrow and wide, and prints the page. Returns what is wrong."""
    wrong = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wrong.append(f"at {width} px it scrolls sideways")
    # To print a thousand ops takes minutes.
    if len(shown(page)) <= PRINTED:
        page.pdf()
    return wrong


def take(page: Page, file: Path, folder: Path) -> None:
    """Takes pictures of the page from its top."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 1150})
            page.goto(file.resolve().as_uri())
            page.screenshot(path=folder / f"{file.stem}-{width}-{scheme}.png")


if __name__ == "__main__":
    raise SystemExit(main())
