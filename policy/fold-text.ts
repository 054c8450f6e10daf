import { normalForm } from './normal-form.ts'

/**
 * Comparable form of a text that people typed: a category, brand, name or tag number. Such a text is stored as typed
 * and compared only in this form. Case, Unicode form, outer blanks and the width of inner blanks do not matter.
 */
export function foldText(text: string): string {
  const trimmed = normalForm(text).trim().replaceAll(/\s+/gu, ' ')
  // Upper case first makes ß equal to SS. The second NFC composes what only the lower-case letters can compose.
  return normalForm(trimmed.toLowerCase().toUpperCase().toLowerCase())
}

/** A list of names, or a record whose keys are names. */
type Named = readonly string[] | Readonly<Record<string, unknown>>

function namesOf(named: Named): readonly string[] {
  return Array.isArray(named) ? (named as readonly string[]) : Object.keys(named)
}

const indexes = new WeakMap<Named, ReadonlyMap<string, string>>()

/** Index of names by their folded form. Caches the index, so `named` must not change. */
export function byFoldedName(named: Named): ReadonlyMap<string, string> {
  const known = indexes.get(named)
  if (known) return known
  const index = new Map(namesOf(named).map((name) => [foldText(name), name]))
  indexes.set(named, index)
  return index
}

/** Zod check: no name is blank, and no two names are equal when folded. */
export function refuseSameNames(named: Named, context: { addIssue(message: string): void }): void {
  const known = new Map<string, string>()
  for (const name of namesOf(named)) {
    const folded = foldText(name)
    const first = known.get(folded)
    if (folded === '') return context.addIssue('must not be blank')
    if (first !== undefined) return context.addIssue(`"${first}" and "${name}" are the same name: keep one of them`)
    known.set(folded, name)
  }
}
