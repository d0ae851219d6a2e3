/** Syntax trees of TypeScript, as ESTree has them: https://oxc.rs/docs/guide/usage/parser */
import { parseSync } from "oxc-parser";

/** A node of any type; `start` and `end` are offsets in the text. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

export interface Comment {
  readonly start: number;
  readonly end: number;
}

export interface Syntax {
  readonly program: SyntaxNode;
  readonly comments: readonly Comment[];
}

/** @throws Error with the first mistake of a text that is no TypeScript */
export function parseTypeScript(file: string, text: string): Syntax {
  const { program, comments, errors } = parseSync(file, text, { preserveParens: false });
  if (errors[0] !== undefined) {
    throw new Error(`${file}: ${errors[0].message}`);
  }
  return { program: program as unknown as SyntaxNode, comments };
}

export const isSyntaxNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";

/** The nodes that a node consists of, in the order of the text. */
export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return Object.values(node)
    .flat()
    .filter(isSyntaxNode)
    .sort((a, b) => a.start - b.start);
}

/** A string, or a template without expressions: what it stands for. */
export function stringOf(node: SyntaxNode): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") {
    return node.value;
  }
  if (node.type === "TemplateLiteral") {
    const { quasis } = node as unknown as { quasis: { value: { cooked: string | null } }[] };
    return quasis.length === 1 ? (quasis[0]?.value.cooked ?? undefined) : undefined;
  }
  return undefined;
}
