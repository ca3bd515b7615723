// Bundles the page into one file: src/causet/view/page.html. The same sources give the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "causet", "view", "page.html");
const LARGEST = 200_000;

const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["chrome111", "firefox115", "safari16.4"],
  charset: "ascii",
  legalComments: "none",
});

const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text.trim();
const script = textOf(".js");
const style = textOf(".css");
if (/<\/(script|style)/i.test(script + style)) throw new Error("The bundle closes its own element.");
if (script.length + style.length > LARGEST) throw new Error(`The bundle has ${script.length + style.length} bytes, more than ${LARGEST}.`);

const hashOf = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "img-src data: blob:",
  "worker-src blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

// Functions as replacements, because the bundle may hold $ signs.
const page = readFileSync(join(here, "src", "page.html"), "utf8")
  .replace("{{policy}}", () => policy)
  .replace("{{style}}", () => style)
  .replace("{{script}}", () => script);

for (const marker of ["@@CAUSET-DATA@@", "@@CAUSET-TITLE@@"])
  if (page.split(marker).length !== 2) throw new Error(`${marker} must occur exactly once.`);

mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, page);
console.log(`page.html: ${Buffer.byteLength(page)} bytes (script ${script.length}, style ${style.length})`);
