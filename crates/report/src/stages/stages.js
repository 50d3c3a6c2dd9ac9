"use strict";
for (const section of document.querySelectorAll("section")) {
  const said = section.querySelector("output");
  const panes = [...section.querySelectorAll("ol")];
  const lines = new Map();
  for (const line of section.querySelectorAll("[data-l]")) {
    for (const key of line.dataset.l.split(" ")) {
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(line);
    }
  }
  let marked = new Set();
  const mark = (line) => {
    for (const old of marked) old.classList.remove("on");
    marked = new Set(line.dataset.l.split(" ").flatMap((key) => lines.get(key)));
    for (const other of marked) other.classList.add("on");
    const counts = panes.map((pane) => [pane.dataset.pane, [...marked].filter((other) => other.parentElement === pane).length]);
    said.textContent = counts.map(([name, count]) => `${name}: ${count} line${count === 1 ? "" : "s"}`).join(", ");
  };
  // The first line that is marked in each other pane comes into view.
  const show = (line) => {
    for (const pane of panes) {
      const first = [...marked].find((other) => other.parentElement === pane);
      if (first && pane !== line.parentElement) pane.scrollTop = first.offsetTop - pane.clientHeight / 3;
    }
  };
  const on = (kind, then) =>
    section.addEventListener(kind, (event) => {
      const line = event.target.closest("[data-l]");
      if (!line) return;
      mark(line);
      if (then) then(line);
    });
  on("mouseover");
  on("focusin", show);
  on("click", show);
}
