// What is wrong on a page of the admin: inputs without borders, buttons that touch, texts that are hard to read.
() => {
    const shown = (e) => e.checkVisibility() && e.getBoundingClientRect().width > 1;
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const painted = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const solid = (color) => painted(color)[3] > 127;
    const behind = (e) => {
        for (; e; e = e.parentElement) if (solid(getComputedStyle(e).backgroundColor)) return getComputedStyle(e).backgroundColor;
        return "rgb(255, 255, 255)";
    };
    const light = (color) => {
        const [r, g, b] = painted(color).slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one, other) => {
        const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    };
    const content = document.querySelector("#content");
    const inputs = [...content.querySelectorAll("input:not([type=hidden], [type=checkbox], [type=radio], [type=submit]), select, textarea")];
    const tools = [...document.querySelectorAll("#content :is(.button, button), ul.container > li > a")];
    const leaves = [...content.querySelectorAll("p, td, th, h2, pre, dd, dt, .sch-chip, .button, a")].filter(
        (e) => shown(e) && [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
    const boxes = tools.filter(shown).map((e) => [e.textContent.trim(), e.getBoundingClientRect(), getComputedStyle(e)]);
    const apart = (a, b) => a.right + 2 <= b.left || b.right + 2 <= a.left || a.bottom + 2 <= b.top || b.bottom + 2 <= a.top;
    return {
        inputs: inputs.filter(shown).length,
        borderless: inputs.filter(shown).filter((e) => parseFloat(getComputedStyle(e).borderTopWidth) < 1
            || contrast(getComputedStyle(e).borderTopColor, behind(e.parentElement)) < 2.5).map((e) => e.name),
        buttons: boxes.length,
        touching: boxes.flatMap(([name, box], i) => boxes.slice(i + 1).filter(([, other]) => !apart(box, other))
            .map(([other]) => `${name} | ${other}`)),
        bare: boxes.filter(([, box, style]) => parseFloat(style.paddingLeft) < 3 || box.height < 20).map(([name]) => name),
        faint: leaves.filter((e) => contrast(getComputedStyle(e).color, behind(e)) < 4)
            .map((e) => `${e.tagName} ${e.className} ${e.textContent.trim().slice(0, 40)}`),
        wide: document.documentElement.scrollWidth > window.innerWidth,
    };
}
