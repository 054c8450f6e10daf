/** Number with the right word form. German and English have two forms. */
export function pluralOf(language: string): (count: number, one: string, other: string) => string {
  const rules = new Intl.PluralRules(language)
  return (count, one, other) => `${count} ${rules.select(count) === 'one' ? one : other}`
}
