import type { FormState } from './form.ts'
import type { PageContext } from './page.ts'

/** Lines with an error that a form names. */
const ERRORS_NAMED = 5
/** Characters of a line that its error repeats. */
const REPEATED = 40

/**
 * Lists in a text field: one entry a line, its cells separated by semicolons, or by tabs as spreadsheets copy them. Omits
 * empty lines.
 */
export function cellsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.split(/[;\t]/).map((cell) => cell.trim()))
}

/** A text as a cell of a line. */
export const cellText = (text: string) => text.replaceAll(/[;\t\n]/g, ',')

/** An amount in EUR as a person types it. */
export function amountText(amount: number, { language }: Pick<PageContext, 'language'>): string {
  const text = amount.toFixed(2)
  return language === 'de' ? text.replace('.', ',') : text
}

/** The form with the first wrong lines of a list in the error of its field. The operation names them by their index. */
export function withLineErrors(at: PageContext, form: FormState, field: string): FormState {
  const lines = cellsOf(form.values[field]?.replaceAll('\r\n', '\n') ?? '')
  const named = new Map<number, string>()
  for (const [path, text] of Object.entries(form.errors)) {
    const [, name, index] = /^(\w+)\[(\d+)\]/.exec(path) ?? []
    if (name === field && !named.has(Number(index))) named.set(Number(index), text)
  }
  if (named.size === 0) return form
  const texts = [...named].slice(0, ERRORS_NAMED).map(([index, text]) => {
    const head = (lines[index]?.[0] ?? '').slice(0, REPEATED)
    return `${at.texts.errors.line(String(index + 1), head)}: ${text}`
  })
  return { ...form, errors: { ...form.errors, [field]: texts.join(' ') } }
}
