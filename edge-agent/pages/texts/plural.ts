/** The form of a word that goes with a number. German and English have two. */
export function pluralOf(language: string): (count: number, one: string, other: string) => string {
  const rules = new Intl.PluralRules(language)
  return (count, one, other) => `${count} ${rules.select(count) === 'one' ? one : other}`
}
