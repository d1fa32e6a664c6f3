/* Follows the output and the state of an execution while it runs.

   <div data-follow-url="..." data-cursor="1.4.0" data-version="..." data-over="false" data-...>   holds all others
     [data-follow-state]    the part with the state, above the output; the script replaces it when the state changes
     [data-follow-rest]     the part with the timeline, below the output; it is replaced together with the state
     [data-follow-log]      a scrolling box with the output; the script adds new lines at the end
     [data-follow-toggle]   a button that turns scrolling to new lines on and off
     [data-follow-status]   a text that says whether following works
     [data-follow-live]     a text for screen readers that announces a new state

   A hidden tab sends no requests. The page must load swap.js before this script. */
"use strict";
(() => {
    const root = document.querySelector("[data-follow-url]");
    if (!root) return;
    const EVERY = 1000, AFTER_ERROR = 5000, NEAR = 40, MOST = 10000;
    const [state, rest, log, toggle, status, live, choice] = [
        "state", "rest", "log", "toggle", "status", "live", "attempt",
    ].map((name) => root.querySelector(`[data-follow-${name}]`));
    const words = root.dataset;
    let cursor = words.cursor, version = words.version, over = words.over === "true";
    let along = !over, busy = false, timer = 0, said = words.said;

    function atEnd() { return log.scrollHeight - log.scrollTop - log.clientHeight <= NEAR; }
    function toEnd() { log.scrollTop = log.scrollHeight; }

    function show(word, bad = false) {
        status.textContent = word;
        status.classList.toggle("sch-error", bad);
        toggle.setAttribute("aria-pressed", String(along));
    }

    /* Each attempt has a heading, and below the heading a <pre> with its lines. */
    function place(attempt) {
        const found = log.querySelector(`pre[data-attempt="${attempt}"]`);
        if (found) return found;
        const heading = document.createElement("h3");
        heading.className = "sch-group";
        heading.textContent = words.heading.replace("0", attempt);
        const box = document.createElement("pre");
        box.dataset.attempt = attempt;
        log.append(heading, box);
        return box;
    }

    function append(groups) {
        if (!groups.length) return;
        log.querySelector("[data-follow-empty]")?.remove();
        for (const [attempt, html] of groups) place(attempt).insertAdjacentHTML("beforeend", html);
        const lines = log.querySelectorAll(".sch-line");
        if (lines.length > MOST) { // a tab may stay open for days, so its memory is limited
            for (let number = 0; number < lines.length - MOST; number++) lines[number].remove();
            root.querySelector("[data-follow-dropped]").hidden = false;
        }
        if (along) toEnd();
    }

    function offer(attempts) {
        for (let number = choice.options.length; number <= attempts; number++) choice.add(new Option(number, number));
    }

    function renew(answer) {
        const chosen = document.getSelection(), parts = [state, rest];
        const copies = (part) => chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
        if (parts.some(copies)) return; // the user copies text
        parts.forEach((part, place) => window.schedulingSwap(part, answer.state[place]));
        version = answer.version;
    }

    async function ask() {
        const query = new URLSearchParams(location.search);
        query.set("after", cursor);
        query.set("version", version);
        const response = await fetch(`${words.followUrl}?${query}`, { credentials: "same-origin", redirect: "manual" });
        if (response.type === "opaqueredirect" || response.status === 403) { over = true; throw new Error(words.out); }
        if (response.status === 404) { over = true; throw new Error(words.gone); }
        if (!response.ok) throw new Error(words.failed);
        return response.json();
    }

    async function turn() {
        clearTimeout(timer);
        if (busy || over || document.hidden) return;
        busy = true;
        let wait = EVERY;
        try {
            const answer = await ask();
            cursor = answer.cursor;
            append(answer.groups);
            if (answer.state !== null) { await window.schedulingSwap.released(); renew(answer); }
            offer(answer.attempts);
            if (answer.said !== said) live.textContent = said = answer.said;
            if (answer.more) wait = 0;
            // The script stops when the execution is over and all of its output has arrived.
            over = answer.over && !answer.more && version === answer.version;
            words.over = String(over); // the style sheet gives a run that goes on the whole window
            show(over ? words.ended : words.following);
            const empty = over && log.querySelector("[data-when-over]");
            if (empty) empty.textContent = empty.dataset.whenOver;
        } catch (error) {
            wait = AFTER_ERROR;
            show(error instanceof TypeError ? words.failed : error.message, true); // a TypeError means no network
        } finally { busy = false; }
        if (!over) timer = setTimeout(turn, wait);
    }

    toggle.addEventListener("click", () => {
        along = !along;
        toggle.setAttribute("aria-pressed", String(along));
        if (along) toEnd();
    });
    log.addEventListener("scroll", () => {
        if (over || atEnd() === along) return;
        along = atEnd(); // scrolling up turns following off, scrolling to the end turns it on
        toggle.setAttribute("aria-pressed", String(along));
    });
    document.addEventListener("visibilitychange", turn);
    if (over) return;
    toggle.hidden = false;
    toEnd();
    show(words.following);
    turn();
})();
