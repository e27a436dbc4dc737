// A choice of versions in the sidebar, where several are built side by side: versions.json is beside their directories.
"use strict";

async function showVersions() {
    const here = new URL(document.documentElement.dataset.content_root || "./", window.location.href);
    if (here.protocol === "file:") {
        return; // A page that was opened as a file may not read others.
    }
    const answer = await fetch(new URL("../versions.json", here));
    if (!answer.ok) {
        return;
    }
    const names = await answer.json();
    const current = here.pathname.split("/").filter(Boolean).at(-1);
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", "Version");
    for (const name of names) {
        choice.add(new Option(name, name, false, name === current));
    }
    choice.addEventListener("change", async () => {
        const other = new URL(`../${choice.value}/`, here);
        const { pathname, search, hash } = window.location;
        const page = new URL(pathname.slice(here.pathname.length) + search + hash, other);
        // Another version may not have this page.
        const found = await fetch(page, { method: "HEAD" });
        window.location.href = (found.ok ? page : new URL("index.html", other)).href;
    });
    const place = document.createElement("div");
    place.className = "versions";
    place.append(choice);
    document.querySelector(".sidebar-brand")?.after(place);
}

showVersions();
