/** Writes log lines as JSON to stderr; the implementation is in bin/. Never log a token, a receipt or a PIN. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
