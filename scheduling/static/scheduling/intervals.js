/* Builds the expression of an interval, such as "@every 2w on fri at 08:00", from a few inputs.

   <details data-every="id of the input" hidden>  the builder; the script shows it
   <input data-every-part="number">      the parts: number, unit, time, date, instant (in UTC)
   <label data-every-for="dw">           a part that only these units have
   <input type="checkbox" value="mon">   a weekday
   <button>                              writes the expression into the input

   The inputs have no names, so the form does not send them. The server checks what is written, and its preview says
   what is wrong. */
"use strict";
(() => {
    function help(box) {
        const input = document.getElementById(box.dataset.every);
        if (!input) return;
        const parts = {};
        for (const part of box.querySelectorAll("[data-every-part]")) parts[part.dataset.everyPart] = part;

        function expression() {
            const unit = parts.unit.value, words = [`@every ${parts.number.value}${unit}`];
            if ("dw".includes(unit)) {
                const days = [...box.querySelectorAll("input[type=checkbox]:checked")].map((day) => day.value);
                if (unit === "w" && days.length) words.push(`on ${days.join(",")}`);
                if (parts.time.value) words.push(`at ${parts.time.value.slice(0, 5)}`);
                if (parts.date.value) words.push(`from ${parts.date.value}`);
            } else if (parts.instant.value) {
                words.push(`from ${parts.instant.value}Z`);
            }
            return words.join(" ");
        }

        function use() {
            input.value = expression();
            input.dispatchEvent(new Event("input", { bubbles: true }));
        }

        function offer() {
            for (const part of box.querySelectorAll("[data-every-for]")) {
                part.hidden = !part.dataset.everyFor.includes(parts.unit.value);
            }
        }

        parts.unit.addEventListener("change", offer);
        box.querySelector("button").addEventListener("click", use);
        box.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" || !event.target.matches("input, select")) return;
            event.preventDefault(); // it would save the schedule
            use();
        });
        // The names of the five fields mean nothing for an interval or an alias.
        const names = input.closest(".sch-cron-box")?.querySelector(".sch-cron-parts");
        const name = () => { if (names) names.hidden = input.value.trimStart().startsWith("@"); };
        input.addEventListener("input", name);
        name();

        offer();
        box.hidden = false;
    }

    document.querySelectorAll("[data-every]").forEach(help);
})();
