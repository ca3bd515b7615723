// Making elements without ever turning data into markup: texts only become text nodes.

type Child = Node | string | null | false;
type Properties = Record<string, string | number | boolean | ((event: any) => void) | null>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.replace(/^on/, ""), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== false) made.append(child);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svgElement(tag: string, attributes: Record<string, string | number>, ...children: Child[]): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  for (const child of children) if (child !== null && child !== false) made.append(child);
  return made;
}

export function button(label: string, title: string, press: () => void, more: Properties = {}): HTMLButtonElement {
  return element("button", { type: "button", title, onclick: press, ...more }, label);
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== false));
}

export function offerDownload(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name for a file that every system accepts. */
export const fileName = (title: string): string => title.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "").slice(0, 60) || "causet";
