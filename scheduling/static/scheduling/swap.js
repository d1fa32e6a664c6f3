/* Replaces the content of a part of the page with new HTML. The focus, open <details> and the scroll positions of wide
   tables are kept. A new element counts as the old one if both have the same data-key, id, address or name. */
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
        const scrolled = [...part.querySelectorAll(".sch-scroll")].map((box) => box.scrollLeft);
        part.innerHTML = html;
        for (const details of open) { const found = same(part, details); if (found) found.open = true; }
        part.querySelectorAll(".sch-scroll").forEach((box, place) => { box.scrollLeft = scrolled[place] || 0; });
        if (focused) {
            const found = same(part, focused);
            if (found) found.focus({ preventScroll: true });
            else { part.tabIndex = -1; part.focus({ preventScroll: true }); } // the element is gone: focus its part
        }
    };
})();
