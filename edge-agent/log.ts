/** The log as the agent sees it: lines of JSON to stderr, made in bin/. Never a token, a receipt or a PIN. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
