/* Fetches the parts of a page again and again, each at its own interval, and replaces their content.

   <div data-poll-url="..." data-poll-seconds="5">     a part, and the seconds between two requests
   <p data-poll-bar data-on="..." data-off="..." ...>   the on/off button and the time of the last update
   <p data-poll-live aria-live="polite">                announces the text in a part's data-poll-said when it changes
   <span data-poll-end>                                 in the new content: the part will not change any more

   An empty part is filled at once, on a page with a bar even if the user has chosen "off". A page may have no bar. A
   hidden tab sends no requests. The browser remembers the choice "off". Pages must load swap.js first. */
"use strict";
(() => {
    const KEY = "scheduling.poll";
    const bar = document.querySelector("[data-poll-bar]");
    const parts = [...document.querySelectorAll("[data-poll-url]")];
    if (!parts.length) return;
    const words = bar?.dataset || {};
    const button = bar?.querySelector("button");
    const status = bar?.querySelector("[data-poll-status]");
    const live = document.querySelector("[data-poll-live]");
    const due = new Map(parts.map((part) => [part, part.hasChildNodes() ? later(part) : 0]));
    const shown = new Map();
    let on = true, busy = false;
    try { on = localStorage.getItem(KEY) !== "off"; } catch { /* storage is forbidden: polling is on */ }

    function later(part) {
        return Date.now() + 1000 * Math.max(1, Number(part.dataset.pollSeconds) || 5);
    }

    function isMissing(part) {
        return Boolean(bar) && !part.hasChildNodes();
    }

    function show(problem) {
        if (!bar) return;
        button.hidden = false;
        button.textContent = on ? words.on : words.off;
        bar.classList.toggle("dash-stale", Boolean(problem));
        if (problem !== undefined) status.textContent = problem || `${words.updated} ${clock()}`;
    }

    function clock() {
        const options = { timeStyle: "medium", hourCycle: "h23", timeZone: words.zone };
        try {
            return `${new Intl.DateTimeFormat("en-GB", options).format(new Date())} ${words.zone}`;
        } catch { return new Date().toISOString().slice(11, 19) + " UTC"; }
    }

    function swap(part, html) {
        if (shown.get(part) === html) return; // a screen reader would read the same again
        shown.set(part, html);
        window.schedulingSwap(part, html);
        if (part.querySelector("[data-poll-end]")) due.set(part, Infinity);
        const said = part.querySelector("[data-poll-said]");
        if (said && live && live.textContent !== said.dataset.pollSaid) live.textContent = said.dataset.pollSaid;
    }

    async function refresh(part) {
        due.set(part, later(part));
        const chosen = document.getSelection();
        if (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode)) return; // the user copies text
        const response = await fetch(part.dataset.pollUrl, { credentials: "same-origin", redirect: "manual" });
        const out = response.status === 403 || response.type === "opaqueredirect"; // logged out
        if (out) on = false;
        if (out || !response.ok || !response.headers.get("X-Part")) throw new Error(words[out ? "out" : "failed"]);
        const html = await response.text();
        await window.schedulingSwap.released();
        if (on || isMissing(part)) swap(part, html);
    }

    async function tick() {
        if (busy || document.hidden) return;
        busy = true;
        try {
            let any = false;
            for (const part of parts) {
                if ((on || isMissing(part)) && due.get(part) <= Date.now()) { await refresh(part); any = true; }
            }
            if (any) show("");
        } catch (error) {
            show(error instanceof TypeError ? words.failed : error.message); // a TypeError means no network
        } finally { busy = false; }
    }

    button?.addEventListener("click", () => {
        on = !on;
        try { localStorage.setItem(KEY, on ? "on" : "off"); } catch { /* the choice is not remembered */ }
        if (on) parts.forEach((part) => due.set(part, 0));
        show();
        tick();
    });
    document.addEventListener("visibilitychange", tick);
    show();
    tick();
    setInterval(tick, 1000);
})();
