// Text from an execution may try to deceive: control characters, marks that turn the writing direction, letters
// without width. All of these are shown as escapes, and long texts are cut.

// C0 and C1 controls, soft hyphen, Arabic and Syriac format marks, zero-width and direction marks, line and paragraph
// separators, invisible operators, fillers, variation selectors, byte order mark, interlinear marks, tags.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const escape = (character: string): string => {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  if (character === "\r") return "\\r";
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

export const LONGEST_TEXT = 400;

/** A text that is safe to show, at most `longest` characters of the original and an ellipsis. */
export function visible(value: string, longest = LONGEST_TEXT): string {
  let cut = value.length > longest ? value.slice(0, longest) : value;
  // Never cut a pair of surrogates in the middle.
  if (cut.length < value.length && /[\ud800-\udbff]$/.test(cut)) cut = cut.slice(0, -1);
  const escaped = cut.replace(INVISIBLE, escape);
  return cut.length < value.length ? `${escaped}…` : escaped;
}

/** Numbers as a reader writes them: 12,345 and 1.5, never 1.4999999999. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "none";
  if (Number.isInteger(value)) return value.toLocaleString("en-GB");
  return Number(value.toPrecision(9)).toLocaleString("en-GB", { maximumFractionDigits: 9 });
}

export function count(value: number, noun: string, plural = `${noun}s`): string {
  return `${figure(value)} ${value === 1 ? noun : plural}`;
}
