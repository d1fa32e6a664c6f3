"""JavaScript that finds texts which a reader cannot read in full, and controls that a user cannot reach.

Each script returns one line for each fault.
"""

CUT_TEXTS = """() => {
    const wrong = [], visible = {visibilityProperty: true, opacityProperty: true};
    const name = element => element.outerHTML.replace(/\\s+/g, " ").slice(0, 140);
    // An element whose text goes on beside or below it, where it is hidden. A box that scrolls is no fault: a reader
    // reaches the rest. A text in a `title` can be read there.
    for (const element of document.querySelectorAll("#content *, .breadcrumbs, #header *")) {
        const style = getComputedStyle(element);
        if (!element.checkVisibility(visible) || element.closest(".sch-hidden, svg, select, [title]")) continue;
        // A box of one pixel is a text for screen readers.
        if (!element.innerText?.trim() || element.clientWidth < 2) continue;
        if (["hidden", "clip"].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
            wrong.push(`cut at its end (${element.scrollWidth} > ${element.clientWidth}): ${name(element)}`);
        if (["hidden", "clip"].includes(style.overflowY) && element.scrollHeight > element.clientHeight + 2)
            wrong.push(`cut at its bottom (${element.scrollHeight} > ${element.clientHeight}): ${name(element)}`);
    }
    const pen = document.createElement("canvas").getContext("2d");
    for (const input of document.querySelectorAll("#content input[placeholder]")) {
        if (!input.checkVisibility(visible) || input.value) continue;
        const style = getComputedStyle(input);
        pen.font = style.font;
        const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        const needed = pen.measureText(input.placeholder).width;
        if (needed > room + 1)
            wrong.push(`placeholder is cut (${Math.round(needed)} > ${Math.round(room)}): ${name(input)}`);
    }
    return wrong;
}"""

BROKEN_WORDS = """() => {
    const wrong = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (!parent.checkVisibility() || parent.getBoundingClientRect().width < 2) continue;
        if (parent.closest("pre, code, .sch-code, .sch-key, .sch-hidden, svg, select")) continue;
        // Names of classes, addresses and files may be longer than a column. A hyphen is a good place for a break.
        for (const word of node.data.matchAll(/(?<=^|[\\s-])[^\\s-]{2,24}(?=$|[\\s-])/gu)) {
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const boxes = [...range.getClientRects()].filter(box => box.width);
            if (new Set(boxes.map(box => Math.round(box.top))).size > 1)
                wrong.push(`a word is broken: ${word[0]}: ${parent.outerHTML.replace(/\\s+/g, " ").slice(0, 140)}`);
        }
    }
    return wrong;
}"""
"""Finds words of at most 24 characters that stand on two lines."""

SQUEEZED = """() => [...document.querySelectorAll("#content :is(td, th, dd)")]
    .filter(cell => cell.checkVisibility() && !cell.querySelector("table, li, button, a.button")
        && cell.innerText.trim().length > 6 && cell.getBoundingClientRect().width < 60
        && cell.getBoundingClientRect().height > 80)
    .map(cell => `squeezed into a narrow column: ${cell.innerText.slice(0, 40)}`)"""
"""Finds cells that are narrower than a word and have many lines."""

CUT = """() => [...document.querySelectorAll(innerWidth < 768 ? ".results" : "#content :is(.results, .sch-scroll)")]
    .filter(box => box.scrollWidth > box.clientWidth + 1)
    .map(box => `columns are cut: ${box.scrollWidth} > ${box.clientWidth}: ${box.innerText.slice(0, 60)}`)"""
"""Finds a list or a table whose last columns are beside its box. On a phone, a table of details may scroll."""

OUT_OF_REACH = """() => {
    scrollTo(0, 0);
    const wrong = [], width = document.documentElement.clientWidth;
    for (const control of document.querySelectorAll(
            "#content :is(button, a.button, a.dash-button, input[type=submit], summary, .object-tools a, .sch-menu)")) {
        if (!control.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
        control.scrollIntoView({block: "center", inline: "nearest"});
        document.querySelectorAll(".results, .sch-scroll").forEach(box => { box.scrollLeft = 0; });
        const box = control.getBoundingClientRect();
        if (box.width < 2) continue;
        const name = control.outerHTML.slice(0, 120);
        if (box.left < 0 || box.right > width + 0.5) wrong.push(`outside of the window: ${name}`);
        for (let around = control.parentElement; around && around.id !== "content"; around = around.parentElement) {
            const rect = around.getBoundingClientRect();
            if (getComputedStyle(around).overflowX !== "visible" && box.right > rect.right + 0.5)
                wrong.push(`cut by ${around.className} (${box.right} > ${rect.right}): ${name}`);
        }
        const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        if (top && !control.contains(top) && !top.contains(control))
            wrong.push(`covered by ${top.outerHTML.slice(0, 80)}: ${name}`);
    }
    return wrong;
}"""
"""Finds controls that a user cannot reach: the window or a box around the control cuts it, or another element is at its
middle. Texts for screen readers are left out."""

FIRST_ROW = "document.querySelector('#result_list tbody tr, .sch-groups tbody tr').getBoundingClientRect().top"
"""The distance of a list's first row from the top of the page, in pixels."""
