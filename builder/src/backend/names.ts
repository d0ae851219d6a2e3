/** What makes images, in the order in which it is tried. */
export const engineNames = ["buildkit", "buildah"] as const;
export type EngineName = (typeof engineNames)[number];

/** What an installation may ask for: `auto` is the first of them that is seen to run. */
export const engineSettings = ["auto", ...engineNames] as const;
export type EngineSetting = (typeof engineSettings)[number];
