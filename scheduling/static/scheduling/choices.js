"use strict";
// Select2 makes a search field without a name for each field with several choices, and makes it anew after each choice.
(() => {
    const name = () => {
        for (const field of document.querySelectorAll("input.select2-search__field:not([aria-label])")) {
            const label = field.closest(".form-row")?.querySelector("label");
            if (label) field.setAttribute("aria-label", label.textContent.trim().replace(/:$/, ""));
        }
    };
    name();
    new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
})();
