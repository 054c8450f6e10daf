import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'

/** Formats a time of day with seconds, in the time zone of the store. */
export function clockTime(atMs: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: STORE_TIME_ZONE,
  }).format(atMs)
}
