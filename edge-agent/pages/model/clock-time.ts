/** A time of day with seconds, as the reader's language writes it. */
export function clockTime(atMs: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).format(atMs)
}
