/* The parameters of a form: written as fields or as JSON, and made anew when the target changes.

   <div data-params="address, or empty for the page's own" data-params-failed="...">
   <form data-params-targets="worker report reminder">  or no such attribute: the target is fixed

   The server turns one way of writing into the other, for only it knows the model. Without this script the
   style sheet shows the way that is chosen, each as it was when the page was loaded. */
"use strict";
(() => {
    const TARGETS = ["worker", "report", "reminder"];
    let asked = null;

    async function ask(box, wanted, focus) {
        const form = box.closest("form");
        const data = new FormData(form);
        data.set("params.wanted", wanted);
        // What the radio shows is what is wanted; what was written is in the other way.
        if (focus) data.set("params.as", wanted === "json" ? "fields" : "json");
        if (asked) asked.abort();
        const mine = asked = new AbortController();
        // What would be typed meanwhile, the answer would replace.
        box.inert = true;
        box.setAttribute("aria-busy", "true");
        try {
            const response = await fetch(box.dataset.params || location.href, {
                method: "POST", body: data, credentials: "same-origin", redirect: "manual", signal: mine.signal,
            });
            if (!response.ok || response.headers.get("X-Part") !== "params") throw new Error();
            const holder = document.createElement("template");
            holder.innerHTML = await response.text();
            const made = holder.content.querySelector("[data-params]");
            box.replaceWith(made);
            if (focus) made.querySelector('[name="params.as"]:checked')?.focus();
            say(made, made.querySelector(".errorlist")?.textContent || "");
        } catch (error) {
            if (error.name === "AbortError") return; // the newer question's answer replaces the same box
            box.inert = false;
            box.removeAttribute("aria-busy");
            say(box, box.dataset.paramsFailed);
            if (focus) { // back to the way in which they are written
                const other = box.querySelector(`[name="params.as"][value="${wanted === "json" ? "fields" : "json"}"]`);
                if (other) { other.checked = true; other.focus(); }
            }
        }
    }

    function say(box, words) {
        const status = box.querySelector("[role=status]");
        if (status) setTimeout(() => { status.textContent = words; }, 50); // a region just inserted says nothing
    }

    // A browser that brings back what was chosen before, or a choice made before this script was there.
    function chosenSince(select) {
        const drawn = [...select.options].find((option) => option.defaultSelected) ?? select.options[0];
        return drawn !== undefined && drawn.value !== select.value;
    }
    const drawn = document.querySelector("[data-params]");
    const selects = TARGETS.map((name) => drawn?.closest("form")?.elements[name]);
    if (drawn?.dataset.params && selects.some((select) => select?.options && chosenSince(select))) ask(drawn, "", false);

    document.addEventListener("change", (event) => {
        const box = event.target.form?.querySelector("[data-params]");
        if (!box) return;
        if (event.target.name === "params.as") ask(box, event.target.value, true);
        else if (TARGETS.includes(event.target.name) && box.dataset.params) ask(box, "", false);
    });
})();
