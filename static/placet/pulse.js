// What an open page of the desk does with the pulse: rows that are over are marked in place, the open proposal turns
// read-only, new ones are announced. Rows never move by themselves. Every page works without this file.
"use strict";
(() => {
  const beat = document.getElementById("pulse");
  if (!beat) return;
  const EVERY_MS = 1200, HIDDEN_MS = 15000, LOST_MS = 20000, PATIENCE_MS = 5000;
  const queue = () => document.getElementById("queue");
  const ask = (name) => document.body.dispatchEvent(new CustomEvent(name));
  const rowOf = (id) => document.querySelector(`.item[data-row="${CSS.escape(id)}"]`);
  // Whatever is made here is made of text: names and words are somebody else's.
  const node = (tag, name, text, ...inside) => {
    const made = document.createElement(tag);
    made.className = name;
    made.append(...inside, text);
    return made;
  };
  const icon = (name) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    svg.setAttribute("class", "i");
    svg.setAttribute("aria-hidden", "true");
    use.setAttribute("href", `#i-${name}`);
    svg.append(use);
    return svg;
  };
  const toned = (element, tone) => { element.dataset.tone = tone; return element; };

  // ── What happened
  const over = ({ id, who, tone, icon: sign, word }) => {
    arrived.delete(id);
    const row = rowOf(id);
    if (row && !row.classList.contains("gone")) {
      // What is said takes the place of what stood there, so that no row below moves.
      row.style.minBlockSize = `${row.getBoundingClientRect().height}px`;
      row.classList.add("gone");
      (row.querySelector(":scope > .ring, :scope > .i") || row.firstElementChild).replaceWith(icon("check-circle"));
      const meta = row.querySelector(".meta");
      meta.replaceChildren(meta.firstElementChild, toned(node("span", "mini", `${word} by ${who}`, icon(sign)), tone));
      const left = row.querySelector(".left");
      delete left.dataset.until;
      left.replaceChildren("over");
      toned(left, "mute");
    }
    if (isOpen(id)) tell(`${word} by ${who}`, sign, tone);
    if (holdOf(id)) ask("hold-moved");
  };
  const holdOf = (id) => document.querySelector(`#hold[data-proposal="${CSS.escape(id)}"]`);
  const isOpen = (id) => document.querySelector(`#decide[action*="/${CSS.escape(id)}/"]`);
  const tell = (text, sign, tone) => {
    const form = document.getElementById("decide");
    if (!form || form.hasAttribute("data-over")) return;
    let line = document.getElementById("decided-by");
    if (!line) {
      line = node("p", "toast", "", icon(sign));
      line.id = "decided-by";
      document.getElementById("toasts")?.append(line);
    }
    toned(line, tone).replaceChildren(icon(sign), node("span", "", text));
    ask("time-over");  // the bar asks the server what it is now
  };
  // What this page has held: the line may say so no more by the time that it is heard who took it over.
  const mine = new Set();
  const remember = () => { const held = document.querySelector("#hold[data-mine]"); if (held) mine.add(held.dataset.proposal); };
  document.addEventListener("htmx:afterSettle", remember);
  remember();
  const held = ({ id, is, who, taken }) => {
    const mark = rowOf(id)?.querySelector(".held");
    const hold = holdOf(id);
    if (mark) {
      mark.hidden = is === "free";
      mark.querySelector("span").textContent = is === "free" ? "" : `Held by ${who}`;
    }
    if (taken && who !== beat.dataset.me && mine.has(id)) document.getElementById("toasts")?.append(toned(node("p", "toast", "", icon("users"), node("span", "", `${who} has taken it over. You may still decide.`)), "wait"));
    if (hold) ask("hold-moved");
  };

  // One of several people has voted: the row says who, and the open page asks for its bar and its people.
  const voted = ({ id, who, given }) => {
    const meta = rowOf(id)?.querySelector(".meta");
    if (meta && !meta.closest(".gone")) {
      let mark = meta.querySelector(".voted");
      if (!mark) meta.append(mark = toned(node("span", "mini voted", "", icon("users"), node("span", "", "")), "act"));
      const names = new Set((mark.dataset.who || "").split("\n").filter(Boolean)).add(who);
      mark.dataset.who = [...names].join("\n");
      mark.lastElementChild.textContent = `${[...names].join(", ")} voted`;
      const count = meta.querySelector(".given");
      if (count && given) {
        count.dataset.tone = given.startsWith("0") ? "mute" : "act";
        count.lastElementChild.textContent = given;
      }
    }
    if (isOpen(id) && who !== beat.dataset.me) ask("vote-given");
  };

  // ── What is new: counted here where the list is of all that waits, by the server where it is of some.
  let arrived = new Set(), asking = 0;
  const announce = () => {
    const pill = queue()?.querySelector(".newpill");
    if (!pill) return;
    const { all, list } = pill.dataset;
    if (all !== undefined) {
      if (!arrived.size) return pill.replaceChildren();
      const link = node("a", "", `${arrived.size} new, show ${arrived.size === 1 ? "it" : "them"}`, icon("to"));
      link.href = list;
      for (const [name, value] of [["get", list], ["target", "#queue"], ["swap", "innerHTML"], ["push-url", "true"]]) link.setAttribute(`hx-${name}`, value);
      pill.replaceChildren(link);
      window.htmx?.process(pill);
    } else if (arrived.size && !asking) {
      // Many pages hear of it in the same second: they do not all ask in it.
      asking = setTimeout(() => { asking = 0; ask("queue-arrivals"); }, 1000 + Math.random() * 9000);
    }
  };
  const since = () => Date.parse(queue()?.querySelector(".newpill")?.dataset.at || "");
  const fresh = ({ id, at }) => { if (!rowOf(id) && Date.parse(at) > since()) arrived.add(id); };
  document.addEventListener("htmx:afterSwap", ({ detail }) => { if (detail.target.id === "queue") arrived = new Set(); });

  // Signed out, or with other rights: the server says what there is to see now. Words are not thrown away for it: they
  // stay in this tab, for this person and this page, until they are back in their fields.
  const KEPT = "placet.words";
  const written = () => [...document.querySelectorAll("textarea")].filter((field) => field.value.trim() && field.value !== field.defaultValue);
  const keepWords = () => {
    const words = Object.fromEntries(written().filter((field) => field.name).map((field) => [field.name, field.value]));
    const kept = { at: location.pathname, me: beat.dataset.me, words };
    try { sessionStorage.setItem(KEPT, JSON.stringify(kept)); } catch { /* no storage: the fields are all there is */ }
  };
  const giveBack = () => {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(KEPT)); } catch { return; }
    if (!kept || kept.at !== location.pathname || kept.me !== beat.dataset.me) return;
    let given = 0;
    for (const [name, value] of Object.entries(kept.words)) {
      const field = document.querySelector(`textarea[name="${CSS.escape(name)}"]`);
      if (field && !field.value) { field.value = value; given++; }
    }
    sessionStorage.removeItem(KEPT);
    if (given) document.getElementById("toasts")?.append(toned(node("p", "toast", "", icon("pencil"), node("span", "", "What you wrote before is back in its field.")), "act"));
  };
  giveBack();
  // What was sent without a session leads to the sign-in page: the words come along.
  document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    if (detail.xhr.getResponseHeader("HX-Redirect") && written().length) keepWords();
  });
  const leave = () => {
    if (!written().length) return location.reload();
    keepWords();
    const text = "You are signed out, or may do other things than before. What you wrote is still here, and comes back when you sign in again in this tab.";
    document.getElementById("toasts")?.append(toned(node("p", "toast", "", icon("lock"), node("span", "", text)), "wait"));
  };
  // The number at the bell, as the server wrote it.
  const bell = document.querySelector(".bell");
  let unread = bell?.dataset.unread ?? "";
  const ring = (count) => {
    unread = String(count);
    if (!bell) return;
    const [icon_, said] = [bell.querySelector(".i"), node("span", "sr", "Notices, unread: ")];
    bell.replaceChildren(icon_, said, count ? node("span", "n", count >= 100 ? "99+" : unread) : node("span", "sr", "none"));
  };
  const hear = ({ waiting, changes, stale, rights, unread: told }) => {
    if (rights) return leave();
    if (told !== undefined && String(told) !== unread) ring(told);
    for (const change of changes) ({ over, new: fresh, vote: voted }[change.is] || held)(change);
    announce();
    if (stale) { ask("time-over"); ask("queue-arrivals"); ask("hold-moved"); }
    const count = document.getElementById("nav-review");
    if (count && waiting !== null) count.textContent = waiting;
  };

  // ── Asking. A hidden page asks seldom; when it comes to light, at once.
  let { pulse: address, since: place, rights } = beat.dataset, timer = 0, lostAt = 0;
  const again = (ms) => { clearTimeout(timer); timer = setTimeout(poll, ms); };
  const lost = () => {
    // What a page did before there was a pulse: the bar and the list ask for themselves.
    if (Date.now() - lostAt > LOST_MS) { lostAt = Date.now(); ask("time-over"); ask("queue-arrivals"); }
    again(PATIENCE_MS);
  };
  const poll = async () => {
    try {
      const asked = new URLSearchParams({ since: place, rights, unread });
      const answer = await fetch(`${address}?${asked}`, { headers: { "HX-Request": "true" }, redirect: "manual", signal: AbortSignal.timeout(8000) });
      if (answer.type === "opaqueredirect" || answer.headers.has("HX-Redirect")) return leave();
      if (!answer.ok) return lost();
      place = answer.headers.get("X-Placet-Pulse") || place;
      if (answer.status === 200) hear(await answer.json());
      again(document.hidden ? HIDDEN_MS : EVERY_MS);
    } catch { lost(); }
  };
  // Two hundred pages that were opened by one reload do not ask in one instant.
  again(EVERY_MS * Math.random());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(0); });

  // ── Whoever holds a proposal holds it for longer while they do something.
  for (const name of ["keydown", "pointerdown", "wheel", "touchmove"]) document.addEventListener(name, () => ask("desk-used"), { passive: true });
})();
