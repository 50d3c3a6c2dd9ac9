"use strict";
// Renews the page where what stands has changed. It runs before the page's own script, and compares the page with the next one as both were made, so that what a reader opened, filtered, scrolled
// to or selected stays.
(() => {
  const KEPT = "t2t.kept";
  const NAMED = 4;
  // It covers the lower edge, so that nothing moves where it says more.
  const STYLE = `
    #page\\.live{position:fixed;inset:auto 0 0;z-index:2;padding:.25rem 1rem;background:var(--soft);border-top:1px solid var(--line);
      color:var(--dim);font-size:.87em;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
    body{padding-bottom:2rem}
    @media print{#page\\.live{display:none}}`;
  const name = document.getElementById("page.name");
  const verdict = document.getElementById("page.verdict");
  const versionOf = (page) => page.querySelector('meta[name="t2t.version"]').content;
  const partsOf = (page) => [page.title, ...page.querySelectorAll("header > p, main")];
  const said = document.createElement("p");
  said.id = "page.live";
  document.body.append(said);
  const style = new CSSStyleSheet();
  style.replaceSync(STYLE);
  document.adoptedStyleSheets = [style];

  let version = versionOf(document);
  let before = partsOf(document).map((part) => (typeof part === "string" ? part : part.cloneNode(true)));
  const held = [...document.querySelectorAll("section.op, .map tbody tr")];
  const filtered = () => name.dispatchEvent(new Event("input"));

  // Of two views of one place that are open, the words that are clicked tell which is which.
  const viewsOf = (part) =>
    [...part.querySelectorAll("details")].map((view) => [
      `${view.closest("section")?.id} ${view.querySelector("summary")?.textContent}`,
      view,
    ]);
  const opened = (part) => viewsOf(part).flatMap(([key, view]) => (view.open ? [key] : []));
  const open = (part, keys) => {
    for (const [key, view] of viewsOf(part)) if (keys.includes(key)) view.open = true;
  };

  // Makes `live` of the next page, where it was made as `old`. An element stays the same one as far as it can.
  const renew = (live, old, next) => {
    if (old.isEqualNode(next)) return;
    if (live.nodeType !== Node.ELEMENT_NODE) {
      live.nodeValue = next.nodeValue;
      return;
    }
    for (const { name } of old.attributes) if (!next.hasAttribute(name)) live.removeAttribute(name);
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) live.setAttribute(name, value);
    const lists = [live, old, next].map((element) => [...element.childNodes]);
    const isAlike = lists.every((list) => list.length === lists[2].length && list.every((child, at) => child.nodeName === lists[2][at].nodeName));
    if (isAlike) {
      lists[0].forEach((child, at) => renew(child, lists[1][at], lists[2][at]));
    } else {
      const keys = opened(live);
      live.replaceChildren(...lists[2].map((child) => document.importNode(child, true)));
      open(live, keys);
    }
  };

  // Other ops: the page is loaded anew, and what a reader did is done again.
  const load = () => {
    const kept = { name: name.value, verdict: verdict.value, opened: opened(document), top: scrollY };
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
    location.reload();
  };
  const restore = () => {
    const text = sessionStorage.getItem(KEPT);
    if (text === null) return;
    sessionStorage.removeItem(KEPT);
    const kept = JSON.parse(text);
    name.value = kept.name;
    verdict.value = kept.verdict;
    filtered();
    open(document, kept.opened);
    scrollTo(0, kept.top);
  };

  const opsOf = (parts) => parts.flatMap((part) => (typeof part === "string" ? [] : [...part.querySelectorAll("section.op")].map((op) => op.id)));
  const show = (page) => {
    const next = partsOf(page);
    if (opsOf(next).join(" ") !== opsOf(before).join(" ")) {
      load();
      return;
    }
    const first = held.find((element) => element.matches("section") && element.getBoundingClientRect().bottom > 0);
    const top = first?.getBoundingClientRect().top;
    document.title = next[0];
    partsOf(document).slice(1).forEach((live, at) => renew(live, before[at + 1], next[at + 1]));
    // The page's own script holds these.
    if (!held.every((element) => element.isConnected)) {
      load();
      return;
    }
    before = next;
    version = versionOf(page);
    filtered();
    if (first) scrollBy(0, first.getBoundingClientRect().top - top);
  };

  let waiting = Promise.resolve();
  const fetched = async (wanted) => {
    if (wanted === version) return;
    const answer = await fetch("/", { cache: "no-store" });
    if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  };

  let atWork = null;
  let trouble = null;
  const say = () => {
    const actions = atWork?.actions ?? [];
    const more = actions.length > NAMED ? ` and ${actions.length - NAMED} more` : "";
    const runs = actions.length ? `: ${actions.slice(0, NAMED).join(", ")}${more}` : "";
    // Of the program the name, without its folder.
    const work = atWork ? `${atWork.command.replace(/^\S*\//, "")} runs${runs}` : "no build runs";
    said.textContent = trouble ? `${work}; not renewed: ${trouble}` : work;
    said.title = said.textContent;
  };
  const events = new EventSource("/events");
  events.addEventListener("page", (event) => {
    waiting = waiting.then(() => fetched(event.data)).catch(() => {});
  });
  events.addEventListener("build", (event) => {
    atWork = JSON.parse(event.data);
    say();
  });
  events.addEventListener("trouble", (event) => {
    trouble = JSON.parse(event.data);
    say();
  });
  events.addEventListener("error", () => {
    said.textContent = "no longer renewed: t2t report has ended";
  });
  // A page that is left asks for nothing more.
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  document.addEventListener("DOMContentLoaded", restore);
})();
