import { Api, ApiFailure } from "../lib/api.ts";
import { h } from "../lib/dom.ts";

/** Bytes of a header that servers accept. */
const LONGEST_KEY = 4_096;

/**
 * The form for an API key. The key is checked before it is stored.
 * @param reason why a key is requested again
 * @param signedIn receives a valid key
 */
export function signIn(
  reason: string | undefined,
  signedIn: (key: string) => void,
  signal: AbortSignal,
): HTMLElement {
  const input = h("input", {
    id: "key",
    name: "key",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
    required: true,
    maxlength: LONGEST_KEY,
    "aria-describedby": "key-help key-problem",
  });
  const problem = h("p", { id: "key-problem", class: "problem", role: "alert" }, reason);
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const showError = (text: string) => {
    problem.textContent = text;
    input.setAttribute("aria-invalid", text === "" ? "false" : "true");
    button.disabled = false;
    if (text !== "") {
      input.focus();
    }
  };
  const submit = async () => {
    const key = input.value.trim();
    // What is no header would be refused by the browser, with words for programmers.
    if (!/^[\x21-\x7e]+$/.test(key)) {
      return showError("That is not an API key.");
    }
    button.disabled = true;
    problem.textContent = "";
    try {
      await new Api(key, () => undefined).get("/v1/project", { limit: 1 }, signal);
      signedIn(key);
    } catch (error) {
      if (!signal.aborted) {
        showError(explain(error));
      }
    }
  };
  const form = h(
    "form",
    { class: "card sign-in", novalidate: true },
    h("h1", { tabindex: -1 }, "Sign in"),
    h(
      "p",
      { class: "quiet" },
      "See your organization's projects, their logs, runs, builds and traffic. Nothing but notifications can be changed here.",
    ),
    h("label", { for: "key" }, "API key"),
    input,
    problem,
    button,
    h(
      "p",
      { id: "key-help", class: "quiet" },
      "The key stays in this tab until you sign out or close it. One with reading grants alone is enough.",
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  return form;
}

function explain(error: unknown): string {
  if (!(error instanceof ApiFailure)) {
    return "The page could not make sense of the answer.";
  }
  if (error.status === 401) {
    return "This API key is not accepted.";
  }
  if (error.code === "ORGANIZATION_REQUIRED") {
    return "That is a user token. Use an API key of an organization.";
  }
  if (error.status === 0) {
    return error.message;
  }
  return `The key cannot be checked: ${error.message}.`;
}
