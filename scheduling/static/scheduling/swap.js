/* Replaces the content of a part of the page with new HTML. The focus, open <details> and the scroll positions of wide
   or long boxes are kept. A new element counts as the old one if both have the same data-key, id, address or name; a
   <summary> has that of its <details>. Elements that share it, or have none, are told apart by their order.

   A click begins with a press and ends with a release of the same element, so callers wait for released() first. */
"use strict";
window.schedulingSwap = (() => {
    const SCROLLING = ".sch-scroll, .sch-code";
    const MOST_PRESSED = 5000; // milliseconds; a release outside of the window may not be seen
    let pressed = 0;

    function mark(element) {
        const owner = element.tagName === "SUMMARY" ? element.parentElement : element;
        return owner.dataset.key || owner.id || owner.getAttribute("href") || owner.getAttribute("name")
            || `.${owner.className}`;
    }

    function alike(part, element) {
        const wanted = mark(element);
        return [...part.querySelectorAll(element.tagName)].filter((other) => mark(other) === wanted);
    }

    /* Where the element is now. Asked before and answered after the content is replaced. */
    function follow(part, element) {
        const place = alike(part, element).indexOf(element);
        return () => { const found = alike(part, element); return found[place] || found[0]; };
    }

    function press(event) { if (event.type !== "keydown" || event.key === " ") pressed = Date.now(); }
    function release() { pressed = 0; }
    for (const type of ["pointerdown", "keydown"]) document.addEventListener(type, press, true);
    for (const type of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(type, release, true);

    /* Resolves when no pointer and no space bar is pressed. The click follows its release in the same task. */
    async function released() {
        do await new Promise((resolve) => setTimeout(resolve, pressed ? 50 : 0));
        while (Date.now() - pressed < MOST_PRESSED);
    }

    function swap(part, html) {
        const active = document.activeElement;
        const focused = active !== part && part.contains(active) && follow(part, active);
        const open = [...part.querySelectorAll("details[open]")].map((details) => follow(part, details));
        const scrolled = [...part.querySelectorAll(SCROLLING)].map((box) => [box.scrollLeft, box.scrollTop]);
        part.innerHTML = html;
        for (const found of open) { const details = found(); if (details) details.open = true; }
        part.querySelectorAll(SCROLLING).forEach((box, place) => {
            [box.scrollLeft, box.scrollTop] = scrolled[place] || [0, 0];
        });
        if (focused) {
            const found = focused();
            if (found) found.focus({ preventScroll: true });
            else { part.tabIndex = -1; part.focus({ preventScroll: true }); } // the element is gone: focus its part
        }
    }
    return Object.assign(swap, { released });
})();
