/** Words for how long something has lasted. */
export interface ElapsedWords {
  since: string
  underAMinute: string
  minutes: string
  hours: string
  days: string
}

/** "seit 12 min", "seit 3 h 5 min", "seit 2 Tagen": as exact as anybody needs. */
export function elapsedText(ms: number, words: ElapsedWords): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${words.since} ${words.underAMinute}`
  if (minutes < 60) return `${words.since} ${minutes} ${words.minutes}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${words.since} ${hours} ${words.hours} ${minutes % 60} ${words.minutes}`
  return `${words.since} ${Math.floor(hours / 24)} ${words.days}`
}
