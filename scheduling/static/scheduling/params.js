/* Replaces the inputs of the parameters when the user chooses another target. The server renders the new inputs.

   <div data-params="address, or empty if the target is fixed" data-params-failed="...">   holds the inputs
   <select data-params-target>   chooses the target; absent if the target is fixed

   Without this script, the user gets the inputs of the new target after saving the form. */
"use strict";
(() => {
    const TARGETS = [...document.querySelectorAll("[data-params-target]")].map((select) => select.name);
    let asked = null;

    async function follow(box) {
        if (asked) asked.abort();
        const mine = asked = new AbortController();
        // The inputs are locked until the answer comes, because it overwrites them.
        box.inert = true;
        box.setAttribute("aria-busy", "true");
        try {
            const response = await fetch(box.dataset.params, {
                method: "POST", body: new FormData(box.closest("form")),
                credentials: "same-origin", redirect: "manual", signal: mine.signal,
            });
            if (!response.ok || response.headers.get("X-Part") !== "params") throw new Error();
            const holder = document.createElement("template");
            holder.innerHTML = await response.text();
            const made = holder.content.querySelector("[data-params]");
            box.replaceWith(made);
            say(made, made.querySelector(".errorlist")?.textContent || "");
        } catch (error) {
            if (error.name === "AbortError") return; // the answer to the newer request replaces the same box
            box.inert = false;
            box.removeAttribute("aria-busy");
            say(box, box.dataset.paramsFailed);
        }
    }

    function say(box, words) {
        const status = box.querySelector("[role=status]");
        setTimeout(() => { status.textContent = words; }, 50); // screen readers ignore a live region at first
    }

    // True if the browser restored an earlier choice, or the user chose a target before this script ran.
    function chosenSince(select) {
        const drawn = [...select.options].find((option) => option.defaultSelected) ?? select.options[0];
        return drawn !== undefined && drawn.value !== select.value;
    }
    const drawn = document.querySelector("[data-params]");
    const selects = TARGETS.map((name) => drawn?.closest("form").elements[name]);
    if (drawn?.dataset.params && selects.some((select) => select?.options && chosenSince(select))) follow(drawn);

    document.addEventListener("change", (event) => {
        const box = event.target.form?.querySelector("[data-params]");
        if (box?.dataset.params && TARGETS.includes(event.target.name)) follow(box);
    });
})();
