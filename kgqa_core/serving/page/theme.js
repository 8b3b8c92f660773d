// Before the page is drawn: the colours that somebody chose here, else those of the system.
"use strict";
{
  let chosen = null;
  try { chosen = localStorage.getItem("kgqa-theme"); } catch { /* storage is switched off */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
