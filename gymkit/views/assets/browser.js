// Keys and clicks for a browser of rollouts (navigator.py). Python draws everything; this sends back which row, which
// column. The table's element stays while its content comes and goes, so focus stays there too. Without this script the
// buttons still work.
(function (id) {
  "use strict";

  // What a key moves by; a page has 25 rows (grid.py).
  const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 25, PageUp: -25, Home: -Infinity, End: Infinity };
  const TYPING = "input:not([type=checkbox]), textarea, select, [role=slider], [contenteditable=true]";

  function wire(root, table, input) {
    const body = root.querySelector(".gk-body .widget-html-content");
    const status = root.querySelector(".gk-message .widget-html-content");
    let sent = 0;
    let wanted = null; // the row asked for and not yet drawn by Python

    function send(what) {
      input.value = JSON.stringify({ n: ++sent, ...what });
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }

    function rows() {
      return Array.from(table.querySelectorAll("tr[data-row]"));
    }

    function current() {
      const row = table.querySelector("tr[aria-selected=true]");
      return wanted ?? (row ? Number(row.dataset.row) : -1);
    }

    function highlight(place) {
      for (const row of rows()) row.setAttribute("aria-selected", String(Number(row.dataset.row) === place));
    }

    function reveal() {
      const row = table.querySelector("tr[aria-selected=true]");
      if (!row) return table.removeAttribute("aria-activedescendant");
      table.setAttribute("aria-activedescendant", row.id);
      const pane = table.closest(".gk-scroll");
      const [inner, outer] = [row.getBoundingClientRect(), pane.getBoundingClientRect()];
      const head = table.querySelector("thead")?.getBoundingClientRect().height ?? 0;
      if (inner.top < outer.top + head) pane.scrollTop -= outer.top + head - inner.top;
      if (inner.bottom > outer.bottom) pane.scrollTop += inner.bottom - outer.bottom;
    }

    function go(place) {
      const total = Number(table.querySelector("table")?.dataset.total ?? 0);
      if (!total) return;
      wanted = Math.max(0, Math.min(total - 1, place));
      highlight(wanted);
      reveal();
      send({ row: wanted });
    }

    function drawn() {
      const row = table.querySelector("tr[aria-selected=true]");
      if (row && Number(row.dataset.row) === wanted) wanted = null;
      if (wanted !== null && rows().some((row) => Number(row.dataset.row) === wanted)) highlight(wanted);
      reveal();
    }

    function press(selector) {
      const button = root.querySelector(selector);
      if (button && !button.disabled) button.click();
    }

    function act(event) {
      const target = event.target;
      if (event.key === "Escape") return table.focus(), true;
      if (target.matches(TYPING)) return false;
      const inTable = table.contains(target);
      const arrow = event.key.length > 1 && event.key in STEPS;
      if (event.key in STEPS && (inTable || !arrow)) return go(current() + STEPS[event.key]), true;
      if (event.key === "/") return root.querySelector(".gk-query input").focus(), true;
      if (event.key === "n") return press(".gk-later"), true;
      if (event.key === "p") return press(".gk-earlier"), true;
      if (event.key === "x") return send({ mark: current() }), true;
      if (event.key === "Enter" && target === table) return body.focus(), true;
      return false;
    }

    function onKey(event) {
      if (!root.contains(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (act(event)) {
        event.preventDefault();
        event.stopPropagation();
      }
    }

    function onClick(event) {
      const sort = event.target.closest("[data-sort]");
      const row = event.target.closest("tr[data-row]");
      const copy = event.target.closest("[data-copy]");
      if (sort) send({ sort: sort.dataset.sort });
      else if (copy) copied(copy);
      else if (row && (event.ctrlKey || event.metaKey)) send({ mark: Number(row.dataset.row) });
      else if (row) go(Number(row.dataset.row));
    }

    function copied(button) {
      navigator.clipboard?.writeText(button.dataset.copy).then(() => {
        const text = button.textContent;
        button.textContent = "copied";
        setTimeout(() => (button.textContent = text), 1500);
      });
    }

    table.tabIndex = 0;
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", "rows, the open one is read beside");
    body.tabIndex = 0;
    body.setAttribute("role", "region");
    body.setAttribute("aria-label", "the open row");
    status.setAttribute("role", "status");
    root.addEventListener("click", onClick);
    // In the capturing phase of the window: a notebook has shortcuts of its own for j, k, x and the arrows, and
    // listens on the document.
    window.addEventListener("keydown", onKey, true);
    new MutationObserver(drawn).observe(table, { childList: true });
    new MutationObserver(() => (body.closest(".gk-scroll").scrollTop = 0)).observe(body, { childList: true });
    drawn();
  }

  function find(tries) {
    let found = false;
    for (const root of document.querySelectorAll(`.gk-live-${id}:not([data-wired])`)) {
      const content = root.querySelector(".gk-rows .widget-html-content");
      const input = root.querySelector(".gk-command input");
      if (content && input && root.querySelector(".gk-body .widget-html-content")) {
        root.dataset.wired = "";
        wire(root, content, input);
        found = true;
      }
    }
    if (!found && tries) setTimeout(find, 50, tries - 1);
  }

  find(200);
})
