// What a page of the desk does on its own: count down by the server's clock, show the reader's local time,
// answer single keys, and keep focus where a person expects it. Every page works without this file.
"use strict";
(() => {
  document.documentElement.dataset.script = "";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const pad = (number) => String(number).padStart(2, "0");

  // ── The server's clock counts: the difference to ours is taken once, when the page arrives.
  const meta = document.querySelector('meta[name="placet-now"]');
  const offset = meta ? Date.parse(meta.content) - Date.now() : 0;
  const now = () => Date.now() + offset;

  // ── Countdowns
  const words = (seconds) => {
    if (seconds < 3600) return `${Math.floor(seconds / 60)}:${pad(seconds % 60)}`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${pad(Math.floor((seconds % 3600) / 60))}`;
    const days = Math.floor(seconds / 86400);
    const hours = Math.floor((seconds % 86400) / 3600);
    return `${days} day${days === 1 ? "" : "s"}${hours && days < 7 ? ` ${hours} h` : ""}`;
  };
  const urgency = (seconds) => (seconds < 900 ? "bad" : seconds < 3600 ? "wait" : "mute");

  const tick = (element) => {
    const until = Date.parse(element.dataset.until);
    const left = Math.floor((until - now()) / 1000);
    if (left < 0) return over(element);
    element.dataset.tone = urgency(left);
    const text = element.querySelector("b");
    if (text && text.textContent !== words(left)) text.textContent = words(left);
    const ring = element.querySelector(".ring");
    if (!ring) return;
    ring.dataset.tone = element.dataset.tone;
    if (element.dataset.since) {
      const share = (100 * (until - now())) / (until - Date.parse(element.dataset.since));
      ring.lastElementChild.setAttribute("stroke-dasharray", `${Math.max(0, Math.min(100, Math.round(share)))} 100`);
    }
  };
  const over = (element) => {
    delete element.dataset.until;
    element.dataset.tone = "mute";
    const text = element.querySelector("span");
    if (text) text.textContent = "Time is over";
    // The decision bar asks the server what that means; nothing is decided here.
    document.body.dispatchEvent(new CustomEvent("time-over"));
  };
  setInterval(() => all("[data-until]").forEach(tick), 1000);

  // ── Local time beside UTC. Inside the slip it stands after the text, which itself is never changed.
  const zone = (date) => {
    const minutes = -date.getTimezoneOffset();
    return `${minutes < 0 ? "−" : "+"}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
  };
  const clock = (date) => date.toTimeString().slice(0, 8);
  const day = (date) => {
    // The year where it is another one: a token that ends in twelve months must not seem to end today.
    const year = date.getFullYear() === new Date(now()).getFullYear() ? undefined : "numeric";
    return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
  };
  const localize = (element) => {
    const date = new Date(element.dateTime);
    const mode = element.dataset.local;
    delete element.dataset.local;
    if (Number.isNaN(date.getTime())) return;
    const today = date.toDateString() === new Date(now()).toDateString();
    const where = today ? clock(date) : `${day(date)}, ${clock(date)}`;
    if (mode === "beside") {
      element.textContent = `${where} for you (${zone(date)})`;
    } else if (mode === "first") {
      element.title = element.textContent;
      element.textContent = date.getTimezoneOffset() === 0 ? `${where} UTC` : `${where} (${date.toISOString().slice(11, 19)} UTC)`;
    } else if (date.getTimezoneOffset() !== 0) {
      const note = document.createElement("span");
      note.className = "local";
      note.textContent = ` ${where} for you (${zone(date)})`;
      element.after(note);
    }
  };

  const decorate = (root) => {
    all("time[data-local]", root).forEach(localize);
    all("[data-until]", root).forEach(tick);
    all("#keys-switch", root).forEach(showSwitch);
  };

  // ── Single keys: only while no field has the focus and no modifier is down, and they can be turned off.
  // What stands on the page says which key presses it (data-key); only moving about is known here.
  const KEYS = "placet-single-keys";
  const keysOn = () => localStorage.getItem(KEYS) !== "off";
  const showSwitch = (button) => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(keysOn()));
    button.textContent = keysOn() ? "Single keys are on" : "Single keys are off";
  };
  const shown = (element) => element && element.getClientRects().length > 0;
  const rows = () => all(".item > a, .table tbody a.stretch, input[data-row]").filter(shown);
  const rowInFocus = () => document.activeElement.closest(".item");
  // In the pane, what is decided offers the next one; from a row in focus, keys move over the rows as ever.
  const offersNext = () => document.querySelector("#pane #decide[data-over]") && !rowInFocus();
  const follow = (rel) => { document.querySelector(`main a[rel="${rel}"]`)?.click(); };
  const step = (by) => {
    const links = rows();
    if (!links.length || (by > 0 && offersNext())) return follow(by > 0 ? "next" : "prev");
    const here = links.findIndex((link) => link === document.activeElement || link.hasAttribute("aria-current"));
    const focused = links.indexOf(document.activeElement);
    const at = (focused >= 0 ? focused : here) + by;
    const link = links[Math.max(0, Math.min(links.length - 1, at))];
    link.focus();
    link.scrollIntoView({ block: "nearest" });
  };
  // To the row behind the open one, which opens; from a proposal's own page, or the last row, to what the server says.
  // A row that is on its way to the pane counts as open: who skips twice in a breath means two.
  const skip = () => {
    const links = rows();
    const at = links.findIndex((link) => (coming ? link.pathname === coming : link.hasAttribute("aria-current")));
    const next = links[at + 1];
    if (!next || !shown(document.getElementById("pane"))) return follow("next");
    next.scrollIntoView({ block: "nearest" });
    next.click();
  };
  const need = () => all("input[data-need]:not(:checked), .shown[data-need] button").find(shown);
  const goTo = (element) => {
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "center" });
  };
  const inSight = (element) => {
    const box = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
  };
  // Ticks the line in focus, else the next one, and goes on to what follows; but only one that the person has in front
  // of them: else it is brought there first. A tick in focus is taken back by Space as everywhere.
  const OPEN = "input[data-need]:not(:checked)";
  const tickNext = () => {
    const here = document.activeElement.matches(OPEN) ? document.activeElement : need();
    if (!here.matches("input") || !inSight(here)) return goTo(here);
    here.click();
    goTo(need() ?? here);
  };
  const find = () => [...all(".queue input[type=search], .filters input[type=search]"), document.getElementById("find")].find(shown)?.focus();
  const MOVES = {
    j: () => step(1),
    k: () => step(-1),
    s: skip,
    "/": find,
    "?": () => document.getElementById("sheet-keys")?.showPopover(),
  };
  // What has this key: in the row in focus first, else anywhere. A row that is not the open one is opened instead,
  // so that nobody decides on another proposal than the one they stand on.
  const keyed = (key) => {
    const has = `[data-key="${CSS.escape(key)}"]`;
    const row = rowInFocus();
    const own = row && all(has, row).find(shown);
    const other = row && shown(document.getElementById("pane")) && !row.querySelector(":scope > a[aria-current]");
    return own || (other && document.querySelector(has) ? row.querySelector("a") : all(has).find(shown));
  };
  const press = (element) => {
    // A closed button leads to the next thing to look at. One key never decides: it opens a sheet, or goes to it.
    if (element.getAttribute("aria-disabled") === "true") return need() && goTo(need());
    if (element.matches(".sheet")) return element.querySelector("textarea, input, button")?.focus();
    // A sheet gives the focus back to what had it: that is its button, not wherever the key was pressed.
    element.focus({ preventScroll: true });
    if (!element.matches("[type=submit][name=decision]")) element.click();
  };
  const idle = (element) => !element.closest("a, button, input, textarea, select, summary");
  const actionOf = (event) => {
    if (event.key === " ") return (idle(event.target) || event.target.matches(OPEN)) && need() ? tickNext : null;
    if (Object.hasOwn(MOVES, event.key)) return MOVES[event.key];
    const element = event.key.length === 1 && keyed(event.key);
    return element ? () => press(element) : null;
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (event.key === "Escape") return escape(event, field);
    // Enter on a tick or a choice of the decision form would submit it: deciding takes a button.
    if (event.key === "Enter" && event.target.form?.matches("#decide, #bulk") && event.target.matches("input")) event.preventDefault();
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keysOn()) return;
    const action = document.querySelector(":popover-open") ? null : actionOf(event);
    if (!action) return;
    event.preventDefault();
    action();
  });
  const escape = (event, field) => {
    const menu = document.querySelector(".me-menu[open]");
    if (menu) { menu.open = false; return menu.querySelector("summary").focus(); }
    if (document.querySelector(":popover-open")) return;
    if (field) return field.blur();
    document.querySelector(".item > a[aria-current]")?.focus();
  };
  document.addEventListener("click", (event) => {
    if (event.target.id === "keys-switch") {
      localStorage.setItem(KEYS, keysOn() ? "off" : "on");
      showSwitch(event.target);
    }
    all(".me-menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });

  // ── Where the stylesheet leaves out the pane, a row opens the proposal's own page: htmx never hears of the click.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[hx-target="#pane"]');
    if (link && !shown(document.getElementById("pane"))) event.stopPropagation();
  }, true);

  // ── After a decision the focus goes to what it led to: the result, or the bar where there is none yet.
  document.addEventListener("proposal-decided", () => {
    const result = [document.getElementById("result"), document.querySelector("#decide .why")].find(shown);
    result?.focus({ preventScroll: true });
    result?.scrollIntoView({ block: "center" });
  });

  // ── What a swap must not lose: the place of the focus, and what somebody was writing.
  const place = (target) => {
    const here = document.activeElement;
    if (here === document.body || !target.contains(here)) return null;
    const row = here.closest(".item");
    return { row: row?.id, at: all(".item", target).indexOf(row) };
  };
  // The list was made anew: to the same row, else to what stands in its place, else to the heading.
  const putBack = ({ row, at }, target) => {
    if (document.activeElement !== document.body) return;
    const there = [document.getElementById(row)?.querySelector("a"), at >= 0 && all(".item > a", target).at(at), document.getElementById("queue-title")];
    there.find(shown)?.focus({ preventScroll: true });
  };
  const writing = (target) => ({
    fields: all("textarea", target).filter((field) => field.value !== field.defaultValue).map(({ id, value }) => ({ id, value })),
    picked: all("input[type=radio]:checked", target).map(({ name, value }) => ({ name, value })),
    sheet: target.querySelector(":popover-open")?.id,
    focus: target.contains(document.activeElement) ? document.activeElement.id : null,
  });
  // The bar was made anew by somebody else's act: words that have no field any more are shown, not dropped.
  const writeBack = ({ fields, picked, sheet, focus }) => {
    for (const { name, value } of picked) {
      const radio = all(`#decide input[type=radio][name="${CSS.escape(name)}"]`).find((one) => one.value === value);
      if (radio) radio.checked = true;
    }
    for (const { id, value } of fields) {
      const field = document.getElementById(id);
      if (field) field.value = value;
      else keepWords(value);
    }
    const open = sheet && document.getElementById(sheet);
    if (open?.popover) open.showPopover();
    if (focus !== null) (document.getElementById(focus) ?? all("#decide .why").find(shown))?.focus({ preventScroll: true });
  };
  const keepWords = (words) => {
    const note = document.createElement("p");
    note.className = "hint kept";
    const quote = document.createElement("q");
    quote.textContent = words;
    note.append("You were writing: ", quote);
    document.getElementById("decide")?.prepend(note);
  };
  const announce = (words) => {
    const region = document.getElementById("announce");
    if (region && words) region.textContent = words.replace(/\s+/g, " ").trim();
  };
  const kept = new WeakMap();
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const { target, xhr, requestConfig } = detail;
    if (target.id === "queue") kept.set(xhr, { place: place(target) });
    if (target.id === "decide" && requestConfig.verb === "get") kept.set(xhr, { bar: writing(target) });
  });
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    const { place: was, bar } = kept.get(detail.xhr) ?? {};
    kept.delete(detail.xhr);
    if (was) putBack(was, document.getElementById("queue"));
    if (!bar) return;
    writeBack(bar);
    // Somebody else decided, or the time is over: said once, to whoever looks elsewhere.
    if (document.querySelector("#decide[data-over]")) announce(document.querySelector("#decide .why").textContent);
  });

  // ── The on-screen keyboard covers what stands at the foot of a page: sheets and the bar move above it.
  const keyboard = () => {
    const { height, offsetTop, scale } = window.visualViewport;
    const covered = scale === 1 ? Math.max(0, window.innerHeight - height - offsetTop) : 0;
    document.documentElement.style.setProperty("--keyboard", `${Math.round(covered)}px`);
  };
  for (const change of ["resize", "scroll"]) window.visualViewport?.addEventListener(change, keyboard);

  // ── Swaps
  // The pane opens the first row by itself: not any more once a person has chosen one, or it would push that aside.
  let chosen = false;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => { chosen ||= detail.target.id === "pane" && detail.elt !== detail.target; });
  // The row that a person has chosen and whose proposal the server has not sent yet.
  let coming = null;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => { if (detail.target.id === "pane" && detail.elt !== detail.target) coming = pathOf(detail); });
  document.addEventListener("htmx:afterRequest", ({ detail }) => { if (detail.target?.id === "pane" && coming === pathOf(detail)) coming = null; });
  const pathOf = ({ pathInfo }) => new URL(pathInfo.requestPath, location).pathname;
  // An answer for a place that has left the page meanwhile is not put anywhere. Only that place still hears of it: an
  // element outside of the page has no parents for its events to rise to.
  document.addEventListener("htmx:beforeRequest", ({ detail }) => detail.target.addEventListener("htmx:beforeSwap", leftOut));
  const leftOut = ({ currentTarget, detail }) => { if (detail.target === currentTarget && !currentTarget.isConnected) tooLate(detail); };
  const tooLate = (detail) => {
    detail.shouldSwap = false;
    if (detail.requestConfig.verb === "get") return;
    const done = (detail.xhr.getResponseHeader("HX-Trigger-After-Settle") || "").includes("proposal-decided");
    if (done) document.body.dispatchEvent(new CustomEvent("queue-stale"));
    else say("What you sent was answered after you had left that proposal. Open it again to see what was recorded.");
  };
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (target.id === "pane" && event.detail.requestConfig.elt === target && chosen) event.detail.shouldSwap = false;
    // Too busy for the moment: the answer is a bar with the reason and all that was typed.
    if (xhr.status === 503 && target.id === "decide" && /^\s*<form/.test(xhr.responseText)) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
    // A whole page where a fragment was asked for: signed out, or refused before the view. Show it as a page.
    const page = /^\s*<!doctype/i.test(xhr.responseText);
    if (page && target !== document.body && (xhr.status === 200 || xhr.status === 403)) {
      event.detail.shouldSwap = false;
      location.assign(xhr.status === 200 ? xhr.responseURL : location.href);
    }
  });
  // At once with the swap, not when it has settled: keys go by the row that is marked.
  document.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target.id !== "pane") return;
    const opened = pathOf(detail);
    all(".item > a").forEach((link) => link.toggleAttribute("aria-current", link.pathname === opened));
    all(".item > a[aria-current]").forEach((link) => link.setAttribute("aria-current", "true"));
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const target = event.detail.target;
    decorate(target.isConnected ? target : document);
    if (target.id !== "pane") return;
    target.scrollTop = 0;
    if (event.detail.requestConfig.triggeringEvent?.type === "click") document.getElementById("say")?.focus();
  });
  // A toast says what was done and goes; what needs a decision is never told by one.
  const fade = () => all("#toasts .toast").forEach((toast) => setTimeout(() => toast.remove(), 8000));
  document.addEventListener("htmx:oobAfterSwap", (event) => { if (event.detail.target.id === "toasts") fade(); });
  const LOST = "The server did not answer. Reload the page to see what was recorded.";
  const whyLost = (xhr) => {
    const wait = xhr?.getResponseHeader?.("Retry-After");
    if (xhr?.status === 429) return `That was too quick: nothing was recorded. What you wrote is still here; send it again${wait ? ` in ${wait} s` : ""}.`;
    return xhr?.status === 503 ? "It cannot be done at the moment. What you wrote is still here; send it again, it counts once." : LOST;
  };
  const lost = ({ detail }) => say(whyLost(detail.xhr));
  const say = (words) => {
    const toasts = document.getElementById("toasts");
    if (!toasts) return;
    const note = document.createElement("p");
    note.className = "toast";
    note.dataset.tone = "unknown";
    note.innerHTML = '<svg class="i" aria-hidden="true"><use href="#i-unknown"/></svg><span></span>';
    note.lastElementChild.textContent = words;
    toasts.replaceChildren(note);
  };
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:responseError", lost);

  decorate(document);
  fade();
})();
