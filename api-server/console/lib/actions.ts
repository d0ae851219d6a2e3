import { type Child, h } from "./dom.ts";
import { explained } from "./view.ts";

/** What changes something: off while it does, and beside it why it could not. */

/** Where a change says what became of it. */
export interface Outcome {
  element: HTMLElement;
  say: (text: string) => void;
  fail: (error: unknown) => void;
}

/** @param ofCode what is said of a refusal by its code, in place of the API's words */
export function outcome(ofCode: Readonly<Record<string, string>> = {}): Outcome {
  const element = h("p", { class: "refusal", role: "alert" });
  const say = (text: string) => {
    element.className = "quiet";
    element.textContent = text;
  };
  return {
    element,
    say,
    fail: (error) => {
      element.className = "refusal";
      element.textContent = explained(error, ofCode);
    },
  };
}

interface Change {
  /** What is done; what it resolves with is said. */
  run: () => Promise<string | undefined>;
  outcome: Outcome;
  signal: AbortSignal;
}

async function carriedOut(button: HTMLButtonElement, { run, outcome: to, signal }: Change): Promise<void> {
  button.disabled = true;
  try {
    const said = await run();
    if (!signal.aborted && said !== undefined) {
      to.say(said);
    }
  } catch (error) {
    if (!signal.aborted) {
      to.fail(error);
    }
  } finally {
    button.disabled = false;
  }
}

/** A button that changes something. @param isFinal what cannot be undone needs a second click */
export function action(name: string, change: Change, isFinal = false): HTMLButtonElement {
  const button = h("button", { type: "button", "data-key": name }, name);
  let isAsked = !isFinal;
  button.addEventListener("click", () => {
    if (!isAsked) {
      isAsked = true;
      button.textContent = `${name}: really?`;
      return;
    }
    void carriedOut(button, change);
  });
  return button;
}

/** A form that changes something when it is sent. */
export function changeForm(name: string, change: Change, ...fields: readonly Child[]): HTMLFormElement {
  const button = h("button", { type: "submit", class: "primary", "data-key": name }, name);
  const form = h("form", { class: "change" }, ...fields, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void carriedOut(button, change);
  });
  return form;
}
