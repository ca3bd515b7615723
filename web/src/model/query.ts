// The search language: terms joined by and.
//   field=value  field!=value  field~/regex/flags  field!~/regex/flags  seq>=5  "free text"  word

export class QueryError extends Error {}

export const TEXT_FIELDS = ["process", "kind", "id", "message", "text", "group", "fault", "control"] as const;
export const NUMBER_FIELDS = ["seq", "time", "block", "position"] as const;
export type TextField = (typeof TEXT_FIELDS)[number];
export type NumberField = (typeof NUMBER_FIELDS)[number];
export type Field = TextField | NumberField;
export type Comparison = "=" | "!=" | "<" | "<=" | ">" | ">=";

export type Term =
  | { type: "text"; field: TextField; negated: boolean; value: string }
  | { type: "number"; field: NumberField; comparison: Comparison; value: number }
  | { type: "regex"; field: Field; negated: boolean; source: string; flags: string }
  | { type: "free"; value: string };

const FIELDS: readonly string[] = [...TEXT_FIELDS, ...NUMBER_FIELDS];
const KIND_WORDS = ["local", "send", "receive", "deliver"];
const YES = ["yes", "true", "1", "on"];
const NO = ["no", "false", "0", "off"];
const OPERATOR = /^([\p{L}_][\p{L}\p{N}_]*)(!=|>=|<=|!~|=|~|<|>)/u;

export function parseQuery(query: string): Term[] {
  const terms: Term[] = [];
  let rest = query.trimStart();
  while (rest !== "") {
    const operator = OPERATOR.exec(rest);
    let term: Term;
    if (operator) [term, rest] = fieldTerm(operator[1], operator[2], rest.slice(operator[0].length));
    else {
      const [value, after] = readValue(rest);
      [term, rest] = [{ type: "free", value: value.toLowerCase() }, after];
    }
    terms.push(term);
    rest = rest.trimStart();
  }
  return terms;
}

function fieldTerm(name: string, operator: string, rest: string): [Term, string] {
  const field = name.toLowerCase() as Field;
  if (!FIELDS.includes(field)) throw new QueryError(`There is no field “${name}”; the fields are ${FIELDS.join(", ")}.`);
  if (operator === "~" || operator === "!~") return regexTerm(field, operator === "!~", rest);
  const [value, after] = readValue(rest);
  if (value === "") throw new QueryError(`A value is missing after ${name}${operator}.`);
  if ((NUMBER_FIELDS as readonly string[]).includes(field)) {
    const number = Number(value);
    if (Number.isNaN(number)) throw new QueryError(`${field} is a number, “${value}” is not.`);
    return [{ type: "number", field: field as NumberField, comparison: operator as Comparison, value: number }, after];
  }
  if (operator !== "=" && operator !== "!=")
    throw new QueryError(`${field} is a text: use =, != or ~; only ${NUMBER_FIELDS.join(", ")} can be compared with ${operator}.`);
  return [{ type: "text", field: field as TextField, negated: operator === "!=", value: checkedValue(field, value) }, after];
}

function checkedValue(field: Field, value: string): string {
  const lower = value.toLowerCase();
  if (field === "kind") {
    if (!KIND_WORDS.includes(lower)) throw new QueryError(`There is no kind “${value}”; the kinds are ${KIND_WORDS.join(", ")}.`);
    return lower;
  }
  if (field === "control") {
    if (YES.includes(lower)) return "yes";
    if (NO.includes(lower)) return "no";
    throw new QueryError(`control is yes or no, not “${value}”.`);
  }
  return value;
}

/** A value: quoted with \" and \\ inside, or everything up to the next space. */
function readValue(rest: string): [string, string] {
  if (!rest.startsWith('"')) {
    const [word] = /^\S*/.exec(rest) as RegExpExecArray;
    return [word, rest.slice(word.length)];
  }
  const quoted = /^"((?:[^"\\]|\\.)*)"/s.exec(rest);
  if (!quoted) throw new QueryError("A quotation mark is not closed.");
  return [quoted[1].replace(/\\(.)/gs, "$1"), rest.slice(quoted[0].length)];
}

function regexTerm(field: Field, negated: boolean, rest: string): [Term, string] {
  if (!rest.startsWith("/")) throw new QueryError(`A regular expression stands between slashes: ${field}~/…/.`);
  const written = /^\/((?:[^/\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+)\/([a-z]*)(?=\s|$)/s.exec(rest);
  if (!written) throw new QueryError(`The regular expression after ${field}~ is not closed by a slash.`);
  const flags = written[2].replace(/[gy]/g, "");
  try {
    new RegExp(written[1], flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^Invalid regular expression: /, "") : "";
    throw new QueryError(`The regular expression is not valid: ${reason}.`);
  }
  return [{ type: "regex", field, negated, source: written[1], flags }, rest.slice(written[0].length)];
}
