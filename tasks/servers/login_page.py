"""The page that logs a browser in: its link carries the auth string behind `#`, which browsers send to nobody."""

from __future__ import annotations

import secrets

PREFECT = """
const known = btoa(typed);
const reply = await fetch("/api/admin/version", {headers: {Authorization: "Basic " + known}});
if (reply.ok) localStorage.setItem("prefect-password", known);
return reply.ok;
"""
"""Prefect's own pages keep the login there, for their origin alone."""

MLFLOW = """
const cut = typed.indexOf(":");
return new Promise(done => {
  const request = new XMLHttpRequest();
  request.open("GET", "/version", true, typed.slice(0, cut), typed.slice(cut + 1));
  request.onloadend = () => done(request.status === 200);
  const settings = {"workflowType_v1": '"machine_learning"', "assistant.fab.autoOpenedOnFirstLoad_v1": "true"};
  for (const [key, value] of Object.entries(settings))
    localStorage.getItem("mlflow." + key) ?? localStorage.setItem("mlflow." + key, value);
  request.send();
});
"""
"""The browser keeps a login of HTTP for the origin until it is closed; a cookie would go to every port of the host.
MLflow's pages start with those of runs, not of chat traces, and its assistant opens when it is clicked, not by itself
over a quarter of the window."""

HTML = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Log in</title><meta name="referrer" content="no-referrer">
<style nonce="NONCE">body { font: 16px system-ui, sans-serif; max-width: 36em; margin: 4em auto; padding: 0 1em }
input { font: inherit; width: 100%; margin: 1em 0 }</style>
<h1>Log in</h1>
<p id="message">The login is one line, <code>user:password</code>: the file <code>prefect/auth_string</code> of the
home, or what its administrator gave you.</p>
<form><input type="password" autocomplete="off" aria-label="login" autofocus><button>Log in</button></form>
<script nonce="NONCE">
const check = async typed => { CHECK };
const enter = async typed => {
  if (typed && await check(typed)) location.replace("/" + page);
  else document.getElementById("message").textContent = "This login is not valid here.";
};
const behind = location.hash;
const page = behind.startsWith("#/") ? behind : "";  // of a link that was opened without a login
if (behind && !page) { history.replaceState(null, "", location.pathname); enter(decodeURIComponent(behind.slice(1))); }
document.querySelector("form").addEventListener("submit", event => {
  event.preventDefault();
  enter(document.querySelector("input").value.trim());
});
</script>
"""


def page(*, basic: bool) -> tuple[int, str, bytes, dict[str, str]]:
    """Status, type, body and headers of the page.  basic: whether the server wants a login of HTTP."""
    nonce = secrets.token_urlsafe(16)
    rules = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
    rules += "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    html = HTML.replace("NONCE", nonce).replace("CHECK", MLFLOW if basic else PREFECT)
    headers = {"content-security-policy": rules, "referrer-policy": "no-referrer"}
    return 200, "text/html; charset=utf-8", html.encode(), headers
