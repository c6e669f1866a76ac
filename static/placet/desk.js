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
  const day = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
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
  const KEYS = "placet-single-keys";
  const keysOn = () => localStorage.getItem(KEYS) !== "off";
  const showSwitch = (button) => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(keysOn()));
    button.textContent = keysOn() ? "Single keys are on" : "Single keys are off";
  };
  const rows = () => all(".item > a, .table tbody a.stretch").filter((link) => link.offsetParent);
  // In the pane, what is decided offers the next one; from a row in focus, keys move over the rows as ever.
  const offersNext = () => document.querySelector("#pane #decide[data-over]") && !document.activeElement.closest(".item");
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
  const follow = (rel) => document.querySelector(`main a[rel="${rel}"]`)?.click();
  const shown = (element) => element && element.getClientRects().length > 0;
  const press = (sheet) => {
    const button = document.querySelector(`[popovertarget="${sheet}"]`);
    if (shown(button)) document.getElementById(sheet)?.showPopover();
    // A sheet that stands in the bar after a refusal is open already.
    else document.querySelector(`#${sheet}.still :is(textarea, input)`)?.focus();
    return shown(button);
  };
  const nextNeed = () => {
    const need = document.querySelector("input[data-need]:not(:checked), .shown[data-need] button");
    need?.focus();
    need?.scrollIntoView({ block: "center" });
  };
  const find = () => [...all(".queue input[type=search], .filters input[type=search]"), document.getElementById("find")].find(shown)?.focus();
  const ACTIONS = {
    j: () => step(1),
    k: () => step(-1),
    a: () => press("sheet-approve") || nextNeed(),
    r: () => press("sheet-reject"),
    c: () => press("sheet-changes"),
    "/": find,
    "?": () => document.getElementById("sheet-keys")?.showPopover(),
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (event.key === "Escape") return escape(event, field);
    // Enter on a tick or a choice of the decision form would submit it: deciding takes a button.
    if (event.key === "Enter" && event.target.form?.id === "decide" && event.target.matches("input")) event.preventDefault();
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keysOn()) return;
    if (document.querySelector(":popover-open") || !Object.hasOwn(ACTIONS, event.key)) return;
    event.preventDefault();
    ACTIONS[event.key]();
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

  // ── Swaps
  // The pane opens the first row by itself: not any more once a person has chosen one, or it would push that aside.
  let chosen = false;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => { chosen ||= detail.target.id === "pane" && detail.elt !== detail.target; });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (target.id === "pane" && event.detail.requestConfig.elt === target && chosen) event.detail.shouldSwap = false;
    // A whole page where a fragment was asked for: signed out, or refused before the view. Show it as a page.
    const page = /^\s*<!doctype/i.test(xhr.responseText);
    if (page && target !== document.body && (xhr.status === 200 || xhr.status === 403)) {
      event.detail.shouldSwap = false;
      location.assign(xhr.status === 200 ? xhr.responseURL : location.href);
    }
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const target = event.detail.target;
    decorate(target.isConnected ? target : document);
    if (target.id !== "pane") return;
    const opened = new URL(event.detail.pathInfo.requestPath, location).pathname;
    all(".item > a").forEach((link) => link.toggleAttribute("aria-current", link.pathname === opened));
    all(".item > a[aria-current]").forEach((link) => link.setAttribute("aria-current", "true"));
    target.scrollTop = 0;
    if (event.detail.requestConfig.triggeringEvent?.type === "click") document.getElementById("say")?.focus();
  });
  // A toast says what was done and goes; what needs a decision is never told by one.
  const fade = () => all("#toasts .toast").forEach((toast) => setTimeout(() => toast.remove(), 8000));
  document.addEventListener("htmx:oobAfterSwap", (event) => { if (event.detail.target.id === "toasts") fade(); });
  const lost = () => {
    const toasts = document.getElementById("toasts");
    if (!toasts) return;
    const note = document.createElement("p");
    note.className = "toast";
    note.dataset.tone = "unknown";
    note.innerHTML = '<svg class="i" aria-hidden="true"><use href="#i-unknown"/></svg><span></span>';
    note.lastElementChild.textContent = "The server did not answer. Reload the page to see what was recorded.";
    toasts.replaceChildren(note);
  };
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:responseError", lost);

  decorate(document);
  fade();
})();
