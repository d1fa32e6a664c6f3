/* Keyboard shortcuts, menus that Escape closes, and the sidebar of narrow windows.

   <script src="keys.js" data-help="..." data-label="...">    the address of the help, and the name of its button

   A shortcut is one key without Ctrl, Alt or Meta. It does nothing while the user types in a field or while a dialog is
   open, and it leaves all other keys alone. j and k move the focus itself, so Tab and a screen reader go on from there.
   The user switches the shortcuts off in the help (WCAG 2.1.4); the browser remembers it. The button of the help needs
   no shortcut. */
"use strict";
(() => {
    const { help, label } = document.currentScript.dataset;
    const KEY = "scheduling.keys";
    const WAIT = 1500; // milliseconds between the two keys of g d
    const ROWS = "#result_list tbody tr, .sch-groups tbody tr, .dash-table tbody tr";
    const FIELDS = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select, "
        + "[contenteditable]:not([contenteditable=false]), .select2-container";
    let on = true, dialog = null, first = 0;
    try { on = localStorage.getItem(KEY) !== "off"; } catch { /* storage is forbidden: the shortcuts are on */ }

    // --- the help

    async function loaded() {
        if (dialog || !help) return dialog;
        const response = await fetch(help, { credentials: "same-origin", redirect: "manual" });
        if (!response.ok || response.headers.get("X-Part") !== "keys") return null;
        const holder = document.createElement("div");
        holder.innerHTML = await response.text();
        dialog = dialog || document.body.appendChild(holder.querySelector("dialog"));
        const box = dialog.querySelector("[data-keys-on]");
        box.checked = on;
        box.addEventListener("change", () => {
            on = box.checked;
            try { localStorage.setItem(KEY, on ? "on" : "off"); } catch { /* the choice is not remembered */ }
        });
        dialog.querySelector("[data-keys-close]").addEventListener("click", () => dialog.close());
        return dialog;
    }

    async function open() {
        const found = await loaded().catch(() => null); // no network: no help
        if (found && !found.open) found.showModal();
    }

    async function go(key) {
        const found = await loaded().catch(() => null);
        found?.querySelector(`a[data-keys="g ${CSS.escape(key)}"]`)?.click();
    }

    function addButton() {
        const place = document.querySelector("#user-tools") || document.querySelector("#footer");
        if (!place || !help) return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sch-keys-button";
        button.textContent = "?";
        button.title = label;
        button.setAttribute("aria-label", label);
        button.addEventListener("click", open);
        place.append(button);
    }

    // --- shortcuts

    function move(step) {
        const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.querySelector("a[href]"));
        const here = rows.indexOf(document.activeElement.closest(ROWS));
        const row = rows[here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step];
        if (!row) return;
        (row.querySelector("a.sch-error[href], th a[href]") || row.querySelector("a[href]")).focus();
        row.scrollIntoView({ block: "nearest" });
    }

    function republish() {
        const row = document.activeElement.closest(ROWS);
        const list = document.querySelector(ROWS);
        const place = row || (list ? null : document.querySelector("#content"));
        place?.querySelector('a[href*="/republish/"], button[name=action][value=republish_selected]')?.click();
    }

    function search() {
        const box = document.querySelector("#searchbar");
        box?.focus();
        box?.select();
        return Boolean(box);
    }

    const ACTIONS = {
        "/": search, "?": open, j: () => move(1), k: () => move(-1), r: republish, g: () => { first = Date.now(); },
    };

    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && closeMenus()) return;
        if (!on || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
        if (event.target.closest?.(FIELDS) || document.querySelector("dialog[open]")) return;
        const second = Date.now() - first < WAIT && "dfes".includes(event.key);
        first = 0;
        if (second) go(event.key);
        else if (!Object.hasOwn(ACTIONS, event.key) || ACTIONS[event.key]() === false) return;
        event.preventDefault();
    });

    // --- menus close by Escape, and by a click outside

    const MENUS = "details.sch-menu[open], .sch-filters details[open]";

    function closeMenus(outside = null) {
        const open = [...document.querySelectorAll(MENUS)].filter((menu) => !outside || !menu.contains(outside));
        for (const menu of open) {
            if (!outside && menu.contains(document.activeElement)) menu.querySelector("summary").focus();
            menu.open = false;
        }
        return open.length > 0;
    }

    document.addEventListener("click", (event) => {
        // A choice of Select2 is not inside of its menu.
        if (event.target.isConnected && !event.target.closest(".select2-container")) closeMenus(event.target);
    });

    // --- the sidebar of a narrow window lies over the page, and is closed at first

    const toggle = document.querySelector("#toggle-nav-sidebar"), main = document.querySelector("#main");
    const narrow = matchMedia("(min-width: 768px) and (max-width: 1279px)");

    function state() {
        const shown = main.classList.contains(narrow.matches ? "sch-nav-open" : "shifted");
        document.querySelector("#nav-sidebar").setAttribute("aria-expanded", shown);
    }

    if (toggle && main) {
        // This listener comes before that of Django's script, which would remember the choice for wide windows, too.
        document.addEventListener("click", (event) => {
            if (!narrow.matches || !toggle.contains(event.target)) return;
            event.stopPropagation();
            main.classList.toggle("sch-nav-open");
            state();
        }, { capture: true });
        narrow.addEventListener("change", state);
        state();
    }

    addButton();
})();
