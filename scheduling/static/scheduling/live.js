/* Updates panels while the user types, and helps the user to write a cron expression.

   <div data-live-url="..." data-live-fields="schedule timezone" data-live-failed="...">  a panel
   <div ... data-live-post>              likewise, with a POST: the values may be too long for an address
   <p role="status" aria-live="polite">  follows the panel; announces the text in data-live-said of the new content
   <span data-live-hint="name">          in a panel: the value that the field of that name inherits if it is empty
   <button data-live-fill="name" value="..." hidden>  in a panel: writes its value into the field of that name
   <time datetime="..." data-viewer>     a time that the script shows in the viewer's zone
   <span data-viewer-zone="...: %(zone)s">  the heading of the column with these times; the script hides the column if
                                         data-zone, the zone of the other times in the table, is the viewer's
   <div data-cron="id of the input">     holds [data-preset] buttons and the names of the five fields

   The server renders each panel. The script requests a panel 250 ms after the last key, and aborts older requests. */
"use strict";
(() => {
    const WAIT = 250;
    const zone = (() => { try { return new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"; } catch { return "UTC"; } })();
    const format = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone });

    function localise(root) {
        for (const time of root.querySelectorAll("time[data-viewer]")) {
            const instant = new Date(time.dateTime);
            if (!Number.isNaN(instant.getTime())) time.textContent = format.format(instant);
        }
        for (const head of root.querySelectorAll("[data-viewer-zone]")) {
            head.textContent = head.dataset.viewerZone.replace("%(zone)s", zone);
            head.closest("table").classList.toggle("sch-same-zone", head.dataset.zone === zone);
        }
    }

    function follow(panel) {
        const form = panel.closest("form");
        const status = panel.nextElementSibling;
        const names = panel.dataset.liveFields.split(" ");
        if (!form || !names.some((name) => form.elements[name])) return; // a read-only page
        let timer = 0, asked = null;

        function query() {
            const typed = new FormData(form), values = new URLSearchParams();
            for (const name of names) if (typed.has(name)) values.set(name, typed.get(name));
            return values;
        }

        async function ask() {
            if (asked) asked.abort();
            const mine = asked = new AbortController();
            try {
                const options = { credentials: "same-origin", redirect: "manual", signal: mine.signal };
                const token = form.elements.csrfmiddlewaretoken?.value || "";
                const response = panel.dataset.livePost === undefined
                    ? await fetch(`${panel.dataset.liveUrl}?${query()}`, options)
                    : await fetch(panel.dataset.liveUrl, { ...options, method: "POST", body: query(), headers: { "X-CSRFToken": token } });
                if (!response.ok || !response.headers.get("X-Part")) throw new Error();
                const html = await response.text();
                if (asked !== mine) return;
                panel.innerHTML = html;
                panel.classList.remove("sch-live-old");
                localise(panel);
                hint();
                say(panel.querySelector("[data-live-said]")?.dataset.liveSaid || "");
            } catch (error) {
                if (error.name === "AbortError" || asked !== mine) return;
                panel.classList.add("sch-live-old");
                say(panel.dataset.liveFailed);
            }
        }

        function hint() {
            for (const span of panel.querySelectorAll("[data-live-hint]")) {
                const field = form.elements[span.dataset.liveHint];
                if (field?.options) field.options[0].textContent = span.textContent;
                else if (field) field.placeholder = span.textContent;
            }
            for (const button of panel.querySelectorAll("[data-live-fill]")) button.hidden = false;
        }

        function say(words) {
            if (status && status.textContent !== words) status.textContent = words;
        }

        function fill(event) {
            const button = event.target.closest("[data-live-fill]");
            if (!button) return;
            const field = form.elements[button.dataset.liveFill];
            field.value = button.value;
            field.focus(); // the panel that comes next no longer has the button
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }

        function changed(event) {
            if (!names.includes(event.target.name)) return;
            clearTimeout(timer);
            timer = setTimeout(ask, WAIT);
        }
        panel.addEventListener("click", fill);
        form.addEventListener("input", changed);
        form.addEventListener("change", changed);
        hint(); // a page with errors was rendered with the hints of the stored target
    }

    function help(box) {
        const input = document.getElementById(box.dataset.cron);
        const parts = [...box.querySelectorAll(".sch-cron-parts li")];
        if (!input) return;
        const presets = box.querySelector(".sch-presets");
        presets.hidden = false;
        presets.addEventListener("click", (event) => {
            const button = event.target.closest("[data-preset]");
            if (!button) return;
            input.value = button.dataset.preset;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        });
        function mark() {
            const before = document.activeElement === input ? input.value.slice(0, input.selectionStart).trimStart() : null;
            const place = before === null || before.startsWith("@") ? -1 : before.split(/\s+/).length - 1;
            parts.forEach((part, number) => part.classList.toggle("sch-here", number === place));
        }
        for (const name of ["input", "keyup", "click", "focus", "blur"]) input.addEventListener(name, mark);
    }

    localise(document);
    document.querySelectorAll("[data-live-url]").forEach(follow);
    document.querySelectorAll("[data-cron]").forEach(help);
})();
