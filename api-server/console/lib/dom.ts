/** The properties of an element: attributes by name, listeners by `on…`. What is undefined or false is left out. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | ((event: never) => void) | undefined>
>;
export type Child = Node | string | undefined;

/**
 * Creates an HTML element. Text becomes text nodes alone, so nothing in it is ever markup; the page's policy has no sink that
 * would take any (`require-trusted-types-for`).
 */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly (Child | readonly Child[])[]
): HTMLElementTagNameMap[Name] {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an SVG element. */
export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly (Child | readonly Child[])[]
): SVGElementTagNameMap[Name] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill<Made extends Element>(
  element: Made,
  attributes: Attributes,
  children: readonly (Child | readonly Child[])[],
): Made {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) {
      continue;
    }
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    }
    // An ARIA state has the value `true`; a boolean attribute of HTML is present or absent.
    else {
      element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== undefined));
  return element;
}

/**
 * Replaces what is in an element. An element in it that has the focus, and a `data-key`, passes it on to the new one of that
 * key, and what was folded out stays so: an automatic refresh does not scroll back to the beginning of the page.
 */
export function replace(container: Element, ...children: readonly (Child | readonly Child[])[]): void {
  const key = container.contains(document.activeElement)
    ? (document.activeElement?.closest("[data-key]")?.getAttribute("data-key") ?? undefined)
    : undefined;
  const foldedOut = [...container.querySelectorAll<HTMLElement>("details[open] > summary")].map(keyOf);
  container.replaceChildren(...children.flat().filter((child) => child !== undefined));
  for (const one of container.querySelectorAll<HTMLElement>("details > summary")) {
    if (one.dataset.key !== undefined && foldedOut.includes(one.dataset.key)) {
      one.parentElement?.setAttribute("open", "");
    }
  }
  if (key === undefined) {
    return;
  }
  const same = [...container.querySelectorAll<HTMLElement>("[data-key]")].find((one) => keyOf(one) === key);
  same?.focus({ preventScroll: true });
}

const keyOf = (element: HTMLElement): string | undefined => element.dataset.key;

/** An announcement for users who do not see the page change. */
export function announce(text: string): void {
  const region = document.querySelector("#announcer");
  if (region) {
    region.textContent = text;
  }
}
