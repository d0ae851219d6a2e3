/** What a reader of a page copies into a shell. */

/** The shell blocks of a section of a page, in order. @throws when there are none */
export function shellOf(markdown: string, heading: string): string {
  const [, section = ""] = markdown.split(`\n## ${heading}\n`);
  const [text = ""] = section.split(/^## /m);
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  if (blocks.length === 0) {
    throw new Error(`the page has no shell block under ${heading}`);
  }
  return blocks.join("\n");
}

/** Functions of one line that a section defines for those after it, such as `field`. @throws when one is not there */
export function functionsOf(shell: string, names: readonly string[]): string {
  return names
    .map((name) => {
      const found = shell.split("\n").find((line) => line.startsWith(`${name}() {`));
      if (found === undefined) {
        throw new Error(`no line defines ${name}`);
      }
      return `${found}\n`;
    })
    .join("");
}
