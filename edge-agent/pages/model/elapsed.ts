/** Texts for elapsed times. */
interface ElapsedTexts {
  since: string
  underAMinute: string
  minutes: string
  hours: string
  days: string
}

/** Formats an elapsed time, such as "seit 12 min", "seit 3 h 5 min" or "seit 2 Tagen". */
export function elapsedText(ms: number, texts: ElapsedTexts): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${texts.since} ${texts.underAMinute}`
  if (minutes < 60) return `${texts.since} ${minutes} ${texts.minutes}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${texts.since} ${hours} ${texts.hours} ${minutes % 60} ${texts.minutes}`
  return `${texts.since} ${Math.floor(hours / 24)} ${texts.days}`
}
