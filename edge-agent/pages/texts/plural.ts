/** Formats a number with its noun in singular or plural. German and English have these two forms. */
export function pluralOf(language: string): (count: number, one: string, other: string) => string {
  const rules = new Intl.PluralRules(language)
  return (count, one, other) => `${count} ${rules.select(count) === 'one' ? one : other}`
}
