import { hasReferenceSyntax, parseValue } from "@slipway/crds";

/**
 * Variables without those that refer to other projects; an escape becomes the text that it stands for.
 * @param hasReferences whether the values have references at all: otherwise everything in them is literal
 */
export function literalVariables(
  variables: Readonly<Partial<Record<string, string>>>,
  hasReferences: boolean,
): Readonly<Partial<Record<string, string>>> {
  if (!hasReferences) {
    return variables;
  }
  const literal = Object.entries(variables).flatMap(([name, value = ""]): [string, string][] => {
    if (!hasReferenceSyntax(value)) {
      return [[name, value]];
    }
    const texts = parseValue(value).map((part) => ("text" in part ? part.text : undefined));
    return texts.includes(undefined) ? [] : [[name, texts.join("")]];
  });
  return Object.fromEntries(literal);
}
