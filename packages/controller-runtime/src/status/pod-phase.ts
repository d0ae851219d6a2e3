/** Whether a pod is in a phase that it never leaves: none of its containers runs, or will. Pure. */
export const isInTerminalPhase = ({ status }: { status?: { phase?: string } }): boolean =>
  status?.phase === "Succeeded" || status?.phase === "Failed";
