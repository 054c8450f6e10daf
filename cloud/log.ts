/** The log as the rooms see it: one line of JSON to stderr, made in bin/. Never a token, a key or a secret. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
