/* Puts what the server has rendered anew in the place of the old: focus, open <details> and the scrolled
   place of wide tables stay. An element of the new content is the old one's if its data-key, id, address
   or name says so. */
"use strict";
window.schedulingSwap = (() => {
    function mark(element) {
        return element.dataset.key || element.id || element.getAttribute("href") || element.getAttribute("name");
    }

    function same(part, element) {
        const wanted = mark(element);
        return wanted && [...part.querySelectorAll(element.tagName)].find((other) => mark(other) === wanted);
    }

    return function swap(part, html) {
        const focused = part.contains(document.activeElement) && document.activeElement;
        const open = [...part.querySelectorAll("details[open]")];
        const scrolled = [...part.querySelectorAll(".sch-scroll")].map((each) => each.scrollLeft);
        part.innerHTML = html;
        for (const each of open) { const found = same(part, each); if (found) found.open = true; }
        part.querySelectorAll(".sch-scroll").forEach((each, place) => { each.scrollLeft = scrolled[place] || 0; });
        if (focused) {
            const found = same(part, focused);
            if (found) found.focus({ preventScroll: true });
            else { part.tabIndex = -1; part.focus({ preventScroll: true }); } // it is gone; the place is kept
        }
    };
})();
