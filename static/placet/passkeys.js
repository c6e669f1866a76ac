// Passkeys. A form with data-passkey="get" or "create" carries its options, or fetches them from data-from; pressing its
// button asks the browser for the key and sends the answer. Such forms stay hidden where there is no script,
// and where the browser knows no passkeys. An approval that a passkey signs: its button has data-sign, the address of what
// is signed; without script, and in browsers without passkeys, it stays closed.
"use strict";
(() => {
  if (!window.PublicKeyCredential || !navigator.credentials) return;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (sign) => sign.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const known = (list) => (list || []).map((key) => ({ ...key, id: bytes(key.id) }));

  const asked = (options) => ({
    ...options,
    challenge: bytes(options.challenge),
    ...(options.user ? { user: { ...options.user, id: bytes(options.user.id) } } : {}),
    ...(options.excludeCredentials ? { excludeCredentials: known(options.excludeCredentials) } : {}),
    ...(options.allowCredentials ? { allowCredentials: known(options.allowCredentials) } : {}),
  });

  const told = (key) => {
    const parts = key.response;
    const response = { clientDataJSON: text(parts.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"])
      if (parts[name]) response[name] = text(parts[name]);
    if (parts.getTransports) response.transports = parts.getTransports();
    return {
      id: key.id, rawId: text(key.rawId), type: key.type, response,
      authenticatorAttachment: key.authenticatorAttachment, clientExtensionResults: key.getClientExtensionResults(),
    };
  };

  const optionsOf = async (form) => {
    if (form.dataset.options) return JSON.parse(form.dataset.options).publicKey;
    const answer = await fetch(form.dataset.from, { headers: { Accept: "application/json" } });
    return (await answer.json()).request_options.publicKey;
  };

  // ── Approvals that a passkey signs. The stylesheet shows what belongs to them once this is set.
  document.documentElement.dataset.passkeys = "";
  const SIGNING = {
    SecurityError: "Passkeys work at this site's own address only, and at localhost, not at 127.0.0.1.",
    NotAllowedError: "Nothing was signed, and nothing was recorded. Try again when you are ready.",
  };
  const asking = async (button) => {
    const headers = { Accept: "application/json", "X-CSRFToken": button.form.elements.csrfmiddlewaretoken.value };
    const answer = await fetch(button.dataset.sign, { method: "POST", headers });
    const found = answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : {};
    if (!answer.ok || !found.options) throw Object.assign(new Error(), { says: found.says });
    return found;
  };
  const sign = async (button) => {
    const { form } = button;
    const word = form.querySelector(".sign-error");
    word.hidden = true;
    button.setAttribute("aria-busy", "true");
    try {
      const { ticket, options } = await asking(button);
      const key = await navigator.credentials.get({ publicKey: asked(options.publicKey) });
      form.elements.signature.value = JSON.stringify({ ticket, credential: told(key) });
      form.requestSubmit(button);
    } catch (error) {
      word.querySelector("span").textContent = error.says || SIGNING[error.name] || "The server did not answer. Nothing was signed.";
      word.hidden = false;
    } finally {
      button.removeAttribute("aria-busy");
      form.elements.signature.value = "";
    }
  };
  // Before htmx hears of it: without a signature nothing is sent, and with one it goes its ordinary way.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.sign || event.target.elements.signature.value) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!button.hasAttribute("aria-busy")) sign(button);
  }, true);

  for (const word of document.querySelectorAll(".passkey-none")) word.hidden = true;
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    const button = form.querySelector("[type=submit]");
    const word = form.querySelector(".passkey-error");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.setAttribute("aria-busy", "true");
      word.hidden = true;
      try {
        const publicKey = asked(await optionsOf(form));
        const key = await navigator.credentials[form.dataset.passkey]({ publicKey });
        form.elements.credential.value = JSON.stringify(told(key));
        form.submit();
      } catch (error) {
        // The browser says the same whether the person said no or the time was over.
        word.hidden = false;
        word.querySelector("span").textContent =
          error.name === "SecurityError"
            ? "Passkeys work at this site's own address only, and at localhost, not at 127.0.0.1."
            : error.name === "InvalidStateError"
              ? "This key is one of yours already."
              : "Nothing was confirmed. Try again, or take another way.";
      } finally {
        button.removeAttribute("aria-busy");
      }
    });
  }
})();
