import { z } from "zod";

/** The words of a command, each of them taken literally. */
export const words = (about: string) =>
  z.array(z.string().max(1024)).max(64).meta({ "x-kubernetes-list-type": "atomic" }).describe(about);
