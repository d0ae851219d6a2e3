import ts from "typescript";

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
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found = new Map<number, Annotation>();
  const visit = (node: ts.Node): void => {
    const title = titleOf(node);
    if (title !== undefined) {
      for (const { pos, end } of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []) {
        const comment = text.slice(pos, end);
        if (comment.startsWith(MARK) && !found.has(pos)) {
          found.set(pos, { file, line: lineAt(source, pos), title, ...parse(file, comment) });
        }
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  const written = text.split("\n").filter((line) => line.trim().startsWith(MARK)).length;
  if (found.size !== written) {
    throw new Error(`${file}: ${written - found.size} of its lines "${MARK}…" are above no test`);
  }
  return [...found.values()];
}

function parse(file: string, comment: string): Pick<Annotation, "page" | "section" | "promise"> {
  const [, page, section, promise] = FORM.exec(comment) ?? [];
  if (page === undefined || section === undefined || promise === undefined) {
    throw new Error(`${file}: "${comment}" is not of the form "${MARK}docs/<page>.md#<section>: <promise>"`);
  }
  return { page, section, promise };
}

const lineAt = (source: ts.SourceFile, position: number): number =>
  source.getLineAndCharacterOfPosition(position).line + 1;

/** The title of a statement that is a test or a group of tests; the strings of an element of an array. */
function titleOf(node: ts.Node): string | undefined {
  if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) {
    const [title] = node.expression.arguments;
    return title === undefined ? undefined : plain(title);
  }
  if (ts.isArrayLiteralExpression(node.parent ?? node) && node.parent !== undefined) {
    return stringsIn(node).join(", ");
  }
  return undefined;
}

/** A string or a template as it is written, without its quotes. */
function plain(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  return ts.isTemplateExpression(node) ? node.getText().slice(1, -1) : undefined;
}

function stringsIn(node: ts.Node): string[] {
  const text = plain(node);
  if (text !== undefined) {
    return [text];
  }
  const strings: string[] = [];
  ts.forEachChild(node, (child) => {
    strings.push(...stringsIn(child));
  });
  return strings;
}
