/** `STORE_TIME_ZONE` of the policy, which browsers cannot load. */
const TIME_ZONE = 'Europe/Berlin'

/** Formats a time of day with seconds, in the time zone of the store. */
export function clockTime(atMs: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: TIME_ZONE,
  }).format(atMs)
}
