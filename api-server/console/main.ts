import { Api } from "./lib/api.ts";
import { announce, h, replace } from "./lib/dom.ts";
import { link, parseRoute } from "./lib/route.ts";
import { type Context, empty } from "./lib/view.ts";
import { costs } from "./views/costs.ts";
import { invoice } from "./views/invoice.ts";
import { notifications } from "./views/notifications.ts";
import { forgetProjects, project } from "./views/project.ts";
import { projects } from "./views/projects.ts";
import { signIn } from "./views/sign-in.ts";
import { forgetSamples } from "./views/usage.ts";

/** The page: who is signed in, and which view is open. */

const place = document.querySelector("main") as HTMLElement;
const account = document.querySelector("#account") as HTMLElement;

/** Where the key is kept while the tab is open: nowhere that another tab, or the next visitor, reads it. */
const NAME = "slipway-api-key";

let key = readKey();
/** Ends what the view that is open does. */
let open = new AbortController();

/** The key of this tab; undefined before a user has signed in. */
function readKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Stores the key, or removes it. Where nothing may be stored it lasts until the page is left. */
function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) {
      sessionStorage.removeItem(NAME);
    } else {
      sessionStorage.setItem(NAME, key);
    }
  } catch {
    // Storage is off: nothing is stored, and nothing has to be removed.
  }
}

function signOut(reason?: string): void {
  key = undefined;
  keepKey(undefined);
  forgetProjects();
  forgetSamples();
  show(reason);
}

function signedIn(good: string): void {
  key = good;
  keepKey(good);
  show();
}

/** Opens the view that the address names. @param reason why a key is requested again */
function show(reason?: string): void {
  open.abort();
  open = new AbortController();
  const { signal } = open;
  const view = key === undefined ? signIn(reason, signedIn, signal) : signedInView(key, signal);
  if (key === undefined) {
    document.title = "Sign in · Slipway";
  }
  replace(
    account,
    key === undefined ? [] : h("button", { type: "button", onclick: () => signOut() }, "Sign out"),
  );
  const had = document.activeElement?.getAttribute("data-key") ?? undefined;
  place.replaceChildren(view);
  moveFocus(had);
}

function signedInView(good: string, signal: AbortSignal): HTMLElement {
  const api = new Api(good, () => {
    if (!signal.aborted) {
      signOut("This API key is not accepted any more.");
    }
  });
  const context: Context = { api, signal };
  const route = parseRoute(location.hash);
  if (route.view === "projects") {
    document.title = "Projects · Slipway";
    return projects(context, route);
  }
  if (route.view === "project") {
    document.title = "Project · Slipway";
    return project(context, route);
  }
  if (route.view === "costs") {
    document.title = route.invoice === undefined ? "Costs · Slipway" : "Invoice · Slipway";
    return route.invoice === undefined ? costs(context, route) : invoice(context, route.invoice, route);
  }
  if (route.view === "notifications") {
    document.title = "Notifications · Slipway";
    return notifications(context, route);
  }
  document.title = "Not found · Slipway";
  return h(
    "div",
    { class: "card" },
    h("h1", { tabindex: -1, class: "unseen" }, "Not found"),
    empty("There is nothing here", h("p", {}, h("a", { href: link(["projects"]) }, "All projects"))),
  );
}

/** To where it was, if that is still there; else to the view's heading, so that keyboard navigation continues there. */
function moveFocus(had: string | undefined): void {
  const same = [...place.querySelectorAll<HTMLElement>("[data-key]")].find((one) => one.dataset.key === had);
  if (same && had !== undefined && !(same instanceof HTMLAnchorElement)) {
    same.focus();
    if (same instanceof HTMLInputElement) {
      same.setSelectionRange(same.value.length, same.value.length);
    }
    return;
  }
  const input = key === undefined ? place.querySelector<HTMLElement>("input") : null;
  (input ?? place.querySelector<HTMLElement>("h1"))?.focus({ preventScroll: true });
  announce(document.title);
}

document.querySelector("#skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  place.querySelector<HTMLElement>("h1")?.focus();
});
window.addEventListener("hashchange", () => {
  window.scrollTo(0, 0);
  show();
});
show();
