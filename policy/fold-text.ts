import { normalForm } from './printable.ts'

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

/** Maximum compared length, characters. A longer name is compared by its beginning. */
const LONGEST = 40

/**
 * Names closest to a mistyped name. A name is close if it contains the mistyped name, if the mistyped name begins with
 * it and goes on with another word (`store-id` for `store`), or if it differs in up to a third of its letters. Compares
 * folded names. Returns at most `limit` names, the closest first.
 */
export function closestNames(word: string, known: Iterable<string>, limit = 3): string[] {
  const typed = foldText(word.slice(0, LONGEST))
  if (typed === '') return []
  const far = Math.max(1, Math.floor(typed.length / 3))
  const near: { name: string; distance: number }[] = []
  for (const name of known) {
    const folded = foldText(name).slice(0, LONGEST)
    const isPart = typed.length >= 3 && folded.includes(typed)
    const one = folded.replace(/s$/, '')
    const isBegin = one.length >= 3 && typed.startsWith(one) && /^s?[-_.A-Z]/.test(word.slice(one.length))
    const isFar = Math.abs(folded.length - typed.length) > far
    const distance = isPart || isBegin ? 0.5 : isFar ? Infinity : editDistance(typed, folded, far)
    if (distance <= far) near.push({ name, distance })
  }
  return near
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map(({ name }) => name)
}

/** Returns `; did you mean a or b?`, or an empty text if no name is close. */
export function spellingHint(word: string, known: Iterable<string>): string {
  const near = closestNames(word, known).filter((name) => name !== word)
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`
}

/**
 * Number of insertions, deletions, replacements and swaps of neighbours between two texts; Infinity beyond `most`. Ends
 * as soon as a row is beyond it, because a name is compared with thousands of others.
 */
function editDistance(a: string, b: string, most: number): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const cost = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (before[j - 2] ?? 0) + 1 : Infinity,
      )
      row.push(cost)
    }
    if (Math.min(...row) > most) return Infinity
    ;[before, last] = [last, row]
  }
  return last[b.length] ?? 0
}
