import { childrenOf, parseTypeScript, type SyntaxNode, stringOf } from "../lib/syntax.ts";

/** One line `// Shows: docs/<page>.md#<section>: <promise>` above a test, or above a row of a table of tests. */
export interface Annotation {
  /** The test file, from the repository's root. */
  readonly file: string;
  readonly line: number;
  /** Of the test, or the strings of the row. */
  readonly title: string;
  /** Path of the page from the repository's root. */
  readonly page: string;
  /** The section's anchor, as GitHub makes it of its heading. */
  readonly section: string;
  /** Words of the section: of a row of a table, or of a sentence. */
  readonly promise: string;
}

const MARK = "// Shows: ";
const FORM = /^\/\/ Shows: (docs\/[\w./-]+\.md)#([\w-]+): (\S.*)$/;

/**
 * Reads the annotations of a test file.
 * @throws when one has another form, or is above neither a test nor a row
 */
export function annotationsOf(file: string, text: string): Annotation[] {
  if (!text.includes(MARK)) {
    return [];
  }
  const { program, comments } = parseTypeScript(file, text);
  const titles = new Map<number, string>();
  const visit = (node: SyntaxNode, parent?: SyntaxNode): void => {
    const title = titleOf(text, node, parent);
    // Of nodes that begin at the same place the outermost is visited first.
    if (title !== undefined && !titles.has(node.start)) {
      titles.set(node.start, title);
    }
    for (const child of childrenOf(node)) {
      visit(child, node);
    }
  };
  visit(program);
  const ends = new Map(comments.map(({ start, end }) => [start, end]));
  const found: Annotation[] = [];
  for (const { start, end } of comments) {
    const comment = text.slice(start, end);
    const title = comment.startsWith(MARK) ? titles.get(nextCode(text, end, ends)) : undefined;
    if (title !== undefined) {
      found.push({ file, line: lineAt(text, start), title, ...parse(file, comment) });
    }
  }
  const written = text.split("\n").filter((line) => line.trim().startsWith(MARK)).length;
  if (found.length !== written) {
    throw new Error(`${file}: ${written - found.length} of its lines "${MARK}…" are above no test`);
  }
  return found;
}

function parse(file: string, comment: string): Pick<Annotation, "page" | "section" | "promise"> {
  const [, page, section, promise] = FORM.exec(comment) ?? [];
  if (page === undefined || section === undefined || promise === undefined) {
    throw new Error(`${file}: "${comment}" is not of the form "${MARK}docs/<page>.md#<section>: <promise>"`);
  }
  return { page, section, promise };
}

const lineAt = (text: string, position: number): number => text.slice(0, position).split("\n").length;

/** Where code follows next, comments apart. */
function nextCode(text: string, from: number, commentEnds: ReadonlyMap<number, number>): number {
  let position = from;
  for (;;) {
    position += text.slice(position).search(/\S|$/);
    const end = commentEnds.get(position);
    if (end === undefined) {
      return position;
    }
    position = end;
  }
}

/** The title of a statement that is a test or a group of tests; the strings of an element of an array. */
function titleOf(text: string, node: SyntaxNode, parent: SyntaxNode | undefined): string | undefined {
  if (node.type === "ExpressionStatement") {
    const { expression } = node as unknown as { expression: SyntaxNode & { arguments?: SyntaxNode[] } };
    const title = expression.type === "CallExpression" ? expression.arguments?.[0] : undefined;
    return title && plain(text, title);
  }
  return parent?.type === "ArrayExpression" ? stringsIn(text, node).join(", ") : undefined;
}

/** A string or a template as it is written, without its quotes. */
const plain = (text: string, node: SyntaxNode): string | undefined =>
  stringOf(node) ?? (node.type === "TemplateLiteral" ? text.slice(node.start + 1, node.end - 1) : undefined);

function stringsIn(text: string, node: SyntaxNode): string[] {
  const own = plain(text, node);
  return own === undefined ? childrenOf(node).flatMap((child) => stringsIn(text, child)) : [own];
}
