"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const fold = document.getElementById("fold");
  const words = ["auto", "light", "dark"];
  let word = "auto";
  try { word = localStorage.getItem("swink-theme") || "auto"; } catch { /* a page from a file may have no storage */ }
  const show = () => {
    if (!words.includes(word)) word = "auto";
    if (word === "auto") root.removeAttribute("data-theme"); else root.dataset.theme = word;
    theme.textContent = `Theme: ${word}`;
  };
  theme.addEventListener("click", () => {
    word = words[(words.indexOf(word) + 1) % words.length];
    try { localStorage.setItem("swink-theme", word); } catch { /* then it holds for this visit */ }
    show();
  });
  let unfolded = false;
  fold.addEventListener("click", () => {
    unfolded = !unfolded;
    for (const item of document.querySelectorAll("main details")) item.open = unfolded;
    fold.textContent = unfolded ? "Fold all" : "Unfold all";
  });
  const wide = matchMedia("(min-width: 75rem)");
  const contents = document.querySelector("nav details");
  const place = () => { if (contents) contents.open = wide.matches; };
  wide.addEventListener("change", place);
  place();
  show();
  document.querySelector(".tools").hidden = false;
})();
