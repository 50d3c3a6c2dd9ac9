"use strict";
(() => {
  const find = document.getElementById("page.find");
  const name = document.getElementById("page.name");
  const verdict = document.getElementById("page.verdict");
  const count = document.getElementById("page.count");
  const ops = [...document.querySelectorAll("section.op")];
  const rows = document.querySelectorAll(".map tbody tr");
  // Without scripts a page shows all. With them the charts and tables of an op are text until they are near, or until there is time: hundreds of thousands of elements would take seconds.
  const fill = (op) => {
    const rest = op.querySelector("noscript");
    if (rest) rest.outerHTML = rest.textContent;
  };
  const near = new IntersectionObserver(
    (all) => {
      for (const seen of all.filter((seen) => seen.isIntersecting)) {
        fill(seen.target);
        near.unobserve(seen.target);
      }
    },
    { rootMargin: "100%" },
  );
  let filled = 0;
  const fillSome = () => {
    const until = performance.now() + 8;
    while (filled < ops.length && performance.now() < until) fill(ops[filled++]);
    if (filled < ops.length) setTimeout(fillSome, 4);
  };
  const fits = (op) =>
    op.id.toLowerCase().includes(name.value.trim().toLowerCase()) &&
    (verdict.value === "" || op.dataset.verdicts.split(" ").includes(verdict.value));
  const filter = () => {
    ops.forEach((op, place) => {
      op.hidden = rows[place].hidden = !fits(op);
    });
    const shown = ops.filter((op) => !op.hidden).length;
    count.textContent = `${shown} of ${ops.length} ops`;
  };
  let stepped = null;
  const step = (by) => {
    const shown = ops.filter((op) => !op.hidden);
    if (shown.length === 0) return;
    const here = shown.findIndex((op) => `#${op.id}` === decodeURIComponent(location.hash).split("/")[0]);
    const next = here < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(here + by, 0), shown.length - 1);
    if (next !== here) {
      location.hash = shown[next].id;
      stepped = location.hash;
    }
    shown[next].querySelector("h2 a").focus({ preventScroll: true });
  };
  name.addEventListener("input", filter);
  verdict.addEventListener("change", filter);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === name || event.target === verdict) {
      if (event.key === "Escape") {
        name.value = "";
        verdict.value = "";
        filter();
        event.target.blur();
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      name.focus();
      name.select();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    }
  });
  // A link to an op shows it, whatever the filter hides.
  addEventListener("hashchange", () => {
    // The event comes late: the filter may have changed since a key was pressed.
    if (location.hash === stepped) {
      stepped = null;
      return;
    }
    const to = document.getElementById(decodeURIComponent(location.hash).slice(1));
    const op = to?.closest("section.op");
    if (op?.hidden) {
      name.value = "";
      verdict.value = "";
      filter();
      to.scrollIntoView();
      // Ops above it are laid out only now, and are not as high as the style guesses.
      requestAnimationFrame(() => requestAnimationFrame(() => to.scrollIntoView()));
    }
  });
  addEventListener("beforeprint", () => ops.forEach(fill));
  find.hidden = false;
  filter();
  for (const op of ops) near.observe(op);
  addEventListener("load", () => setTimeout(fillSome));
})();
