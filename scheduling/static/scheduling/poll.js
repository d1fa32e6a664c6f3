/* Fetches the parts of a page again and again, each at its own interval, and replaces their content.

   <div data-poll-url="..." data-poll-seconds="5">     a part, and the seconds between two requests
   <p data-poll-bar data-on="..." data-off="..." ...>   the on/off button and the time of the last update
   <p data-poll-live aria-live="polite">                announces the text in a part's data-poll-said when it changes

   A hidden tab sends no requests. The browser remembers the choice "off". Pages must load swap.js first. */
"use strict";
(() => {
    const KEY = "scheduling.poll";
    const bar = document.querySelector("[data-poll-bar]");
    const parts = [...document.querySelectorAll("[data-poll-url]")];
    if (!bar || !parts.length) return;
    const button = bar.querySelector("button");
    const status = bar.querySelector("[data-poll-status]");
    const live = document.querySelector("[data-poll-live]");
    const due = new Map(parts.map((part) => [part, later(part)]));
    let on = true, busy = false;
    try { on = localStorage.getItem(KEY) !== "off"; } catch { /* storage is forbidden: polling is on */ }

    function later(part) {
        return Date.now() + 1000 * Math.max(1, Number(part.dataset.pollSeconds) || 5);
    }

    function show(problem) {
        button.hidden = false;
        button.textContent = on ? bar.dataset.on : bar.dataset.off;
        bar.classList.toggle("dash-stale", Boolean(problem));
        if (problem !== undefined) status.textContent = problem || `${bar.dataset.updated} ${clock()}`;
    }

    function clock() {
        const options = { timeStyle: "medium", hourCycle: "h23", timeZone: bar.dataset.zone };
        try {
            return `${new Intl.DateTimeFormat("en-GB", options).format(new Date())} ${bar.dataset.zone}`;
        } catch { return new Date().toISOString().slice(11, 19) + " UTC"; }
    }

    function swap(part, html) {
        window.schedulingSwap(part, html);
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
        if (out || !response.ok || !response.headers.get("X-Part")) throw new Error(bar.dataset[out ? "out" : "failed"]);
        const html = await response.text();
        if (on) swap(part, html);
    }

    async function tick() {
        if (!on || busy || document.hidden) return;
        busy = true;
        try {
            let any = false;
            for (const part of parts) if (on && due.get(part) <= Date.now()) { await refresh(part); any = true; }
            if (any) show("");
        } catch (error) {
            show(error instanceof TypeError ? bar.dataset.failed : error.message); // a TypeError means no network
        } finally { busy = false; }
    }

    button.addEventListener("click", () => {
        on = !on;
        try { localStorage.setItem(KEY, on ? "on" : "off"); } catch { /* the choice is not remembered */ }
        if (on) parts.forEach((part) => due.set(part, 0));
        show();
        tick();
    });
    document.addEventListener("visibilitychange", tick);
    show();
    setInterval(tick, 1000);
})();
