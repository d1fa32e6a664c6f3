/* Follows an execution's output while it runs, and what the page says of its state.

   <div data-follow-url="..." data-cursor="1.4.0" data-version="..." data-over="false" data-...>   all of it
     [data-follow-state]    the state's part of the page, replaced when it changes
     [data-follow-log]      the scrolled box; lines are only ever added below
     [data-follow-toggle]   whether the box scrolls along
     [data-follow-status]   a word on how it goes
     [data-follow-live]     says a new state to a screen reader

   A hidden tab asks for nothing. Needs swap.js before it. */
"use strict";
(() => {
    const root = document.querySelector("[data-follow-url]");
    if (!root) return;
    const EVERY = 1000, AFTER_ERROR = 5000, NEAR = 40, MOST = 10000;
    const [state, log, toggle, status, live, choice] = ["state", "log", "toggle", "status", "live", "attempt"].map(
        (name) => root.querySelector(`[data-follow-${name}]`));
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

    /* The lines of an attempt stand in a <pre> of its own, below its heading. */
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
        if (lines.length > MOST) { // a tab that stays open for days must not grow for days
            for (let each = 0; each < lines.length - MOST; each++) lines[each].remove();
            root.querySelector("[data-follow-dropped]").hidden = false;
        }
        if (along) toEnd();
    }

    function offer(attempts) {
        for (let each = choice.options.length; each <= attempts; each++) choice.add(new Option(each, each));
    }

    function renew(answer) {
        const chosen = document.getSelection();
        if (chosen && !chosen.isCollapsed && state.contains(chosen.anchorNode)) return; // somebody copies from it
        window.schedulingSwap(state, answer.state);
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
            if (answer.state !== null) renew(answer);
            offer(answer.attempts);
            if (answer.said !== said) live.textContent = said = answer.said;
            if (answer.more) wait = 0;
            // Over, and everything it printed is here.
            over = answer.over && !answer.more && version === answer.version;
            show(over ? words.ended : words.following);
            const empty = over && log.querySelector("[data-when-over]");
            if (empty) empty.textContent = empty.dataset.whenOver;
        } catch (error) {
            wait = AFTER_ERROR;
            show(error instanceof TypeError ? words.failed : error.message, true); // a TypeError: no network
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
        along = atEnd(); // who scrolls up reads; who comes back to the end follows again
        toggle.setAttribute("aria-pressed", String(along));
    });
    document.addEventListener("visibilitychange", turn);
    if (over) return;
    toggle.hidden = false;
    toEnd();
    show(words.following);
    turn();
})();
