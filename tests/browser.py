"""Opens pages of `t2t report` in a real browser and uses them: every view, link, key and filter, and once without scripts. It ends with 1 where anything is wrong.

It needs Playwright (`pip install playwright`) and a Chromium, named by `--chromium` or found by Playwright. CI has neither.

    python tests/browser.py logs/report.html [--chromium PATH] [--screenshots FOLDER]

With `--served FOLDER` it also opens the page that `t2t report --serve` serves of that workspace, and sees it follow edits of a kernel and of ops.yaml, which are taken back. Give it a copy
in which at least one kernel of at least two ops passed.

    python tests/browser.py --served COPY --t2t target/debug/t2t
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

WIDTHS = (400, 900, 1400)
OPENS = 2.0
"""In how many seconds a page is open, also one of a thousand ops."""
SOME = 20
"""How many links, and how many views, are tried at least where there are as many."""
PRINTED = 100
"""How many ops a page has at most that is printed."""
WHOLE = 60_000
"""In how many ms all charts and tables of a page are there."""
PARTS = ("section", "figure", "svg", "table", "tr", "td", "th", "caption", "details", "li", "p", "[id]", "a[href]")
"""What a page has the same number of where it may run no script."""
FAR = 120
"""How far below the top of the window, in px, what a link leads to may stand: the filter is above it."""
FOLLOWS = 20.0
"""In how many seconds a served page has followed an edit."""
STAYS = 2.0
"""By how many px what a reader sees may move when the page is renewed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument(
        "--served", type=Path, help="a workspace whose page is served; its files are edited and restored"
    )
    parser.add_argument("--t2t", default="t2t", help="the program that serves it")
    parser.add_argument("--chromium", help="the program; by default Playwright's own")
    parser.add_argument("--screenshots", type=Path, help="a folder for a picture at each width, light and dark")
    arguments = parser.parse_args()
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
        for file in arguments.pages:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            found = used(page, file.resolve().as_uri(), "file:")
            if arguments.screenshots:
                take(page, file, arguments.screenshots)
            found += unscripted(browser, page, file.resolve())
            page.close()
            print(f"{file}: {'; '.join(found) or 'nothing is wrong'}")
            wrong += found
        if arguments.served:
            with serving(arguments.t2t, arguments.served) as address:
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                found = used(page, address, address)
                page.close()
                # What a browser calls by its name is this machine, too.
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                found += followed(page, address.replace("127.0.0.1", "localhost"), arguments.served)
                page.close()
            print(f"{arguments.served}, served: {'; '.join(found) or 'nothing is wrong'}")
            wrong += found
        browser.close()
    return 1 if wrong else 0


@contextmanager
def serving(program: str, workspace: Path) -> Iterator[str]:
    """Serves the page of the workspace, and yields its address."""
    command = [str(Path(program).resolve()) if "/" in program else program, "report", "--serve"]
    process = subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        if process.wait() != 0:
            raise RuntimeError(f"{program} ended with {process.returncode}")


@contextmanager
def edited(file: Path, addition: str) -> Iterator[None]:
    """Adds a text to a file for a while."""
    before = file.read_text()
    file.write_text(before + addition)
    try:
        yield
    finally:
        file.write_text(before)


def followed(page: Page, address: str, workspace: Path) -> list[str]:
    """Opens a served page, and edits a kernel, then ops.yaml, while it is open. Returns what is wrong with how it follows."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.goto(address)
    names = [name for name, verdicts in shown(page) if "passed" in verdicts.split()]
    if not names:
        return ["no op has a kernel that passed: build the copy first"]
    last = names[-1]
    live = page.locator("[id='page.live']")
    until(lambda: live.inner_text() == "no build runs")
    passed = page.locator(f"section:not(.op) td:has(a[href^='#{last}/']):has-text('✓')").first
    link = passed.locator("a").first.get_attribute("href") or ""
    cell = page.locator(f"section:not(.op) td:has(a[href='{link}'])").first
    kernel = workspace / "kernels" / f"{link[1:]}.py"
    page.locator("[id='page.name']").fill(last)
    for view in page.locator(f"section[id='{last}'] details").all():
        view.locator("summary").click()
    page.evaluate("name => document.getElementById(name).scrollIntoView()", last)
    page.wait_for_timeout(300)
    before = state(page, last)

    def stays(what: str) -> None:
        page.wait_for_timeout(500)
        now = state(page, last)
        if now[:-1] != before[:-1] or abs(now[-1] - before[-1]) > STAYS:
            wrong.append(f"after {what} it shows {now}, not {before}")

    with edited(kernel, "\nADDED = 1\n"):
        until(lambda: "…" in cell.inner_text())
        stays("a kernel became stale")
    until(lambda: "✓" in cell.inner_text())
    added = page.locator("section[id='t2t_added']")
    with edited(
        workspace / "ops.yaml", "  t2t_added: {torch: relu, inputs: {input: [M, N]}, variants: [v1_baseline]}\n"
    ):
        until(lambda: added.count() == 1)
        stays("an op was added")
    until(lambda: added.count() == 0)
    with edited(workspace / "ops.yaml", "opps: 1\n"):
        until(lambda: "not renewed: " in live.inner_text())
        stays("ops.yaml could not be read")
    until(lambda: live.inner_text() == "no build runs")
    return wrong


def until(is_so: Callable[[], bool]) -> None:
    """Waits until something is so. The policy of a page forbids what Playwright waits by."""
    end = time.monotonic() + FOLLOWS
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("the served page does not follow")
        time.sleep(0.05)


def state(page: Page, name: str) -> tuple[str, str, int, float]:
    """Returns what a reader did: the filter, what it shows, how many views of the op are open, and where that stands in the window."""
    text, ops, views, top = page.evaluate(
        "name => { const op = document.getElementById(name); return ["
        " document.getElementById('page.name').value,"
        " [...document.querySelectorAll('section.op')].filter(op => !op.hidden).map(op => op.id).join(' '),"
        " op.querySelectorAll('details[open]').length,"
        " op.getBoundingClientRect().top] }",
        name,
    )
    return text, ops, views, top


def used(page: Page, address: str, own: str) -> list[str]:
    """Opens a page at an address and uses it; its own addresses begin with `own`. Returns what is wrong with it, in words."""
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
    begun = time.perf_counter()
    page.goto(address)
    count = page.locator("section.op").count()
    counted = page.locator("[id='page.count']")
    if counted.inner_text() != f"{count} of {count} ops":
        wrong.append(f"it counts {counted.inner_text()!r} of {count} ops")
    if (took := time.perf_counter() - begun) > OPENS:
        wrong.append(f"it took {took:.1f} s to open")
    page.locator("main noscript").first.wait_for(state="detached", timeout=WHOLE)
    for view in some(page.locator("details").all()):
        view.locator("summary").click()
        if view.get_attribute("open") is None:
            wrong.append(f"a view does not open: {view.inner_text()[:40]}")
    return wrong + keys(page) + links(page) + widths(page)


def counts(page: Page) -> dict[str, int]:
    """Returns how many elements of each kind the body has."""
    return {part: page.locator(f"body {part}").count() for part in PARTS}


def unscripted(browser: Browser, used: Page, file: Path) -> list[str]:
    """Opens the page without scripts. Returns what it has another number of than the page that was used."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    has, had = counts(page), counts(used)
    context.close()
    return [
        f"without scripts it has {has[part]} of {part}, not {had[part]}" for part in PARTS if has[part] != had[part]
    ]


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
