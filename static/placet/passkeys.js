// Passkeys. A form with data-passkey="get" or "create" carries its options, or fetches them from data-from; pressing its
// button asks the browser for the key and sends the answer. Such forms stay hidden where there is no script,
// and where the browser knows no passkeys.
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
