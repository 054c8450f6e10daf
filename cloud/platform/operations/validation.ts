import type { z } from 'zod'
import {
  validationFindings,
  findingMessage,
  pathText,
  type ValidationFinding,
} from '../../../policy/validation-findings.ts'
import { Failure, type ErrorDetail } from '../foundation/failure.ts'

/** Parses the input of an operation. Throws a 400 that names each wrong field and the rule that the field breaks. */
export function validate<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const details = validationFindings(parsed.error.issues, input).map((finding) => detailOf(finding, schema))
  throw new Failure(
    'invalid-argument',
    details
      .map((d) => d.message)
      .slice(0, 3)
      .join('; '),
    { details },
  )
}

function detailOf(finding: ValidationFinding, schema: z.ZodType): ErrorDetail {
  const { path, code } = finding
  const suggestion =
    code === 'unknown_field' ? closestName(String(path.at(-1)), fieldsAt(schema, path.slice(0, -1))) : undefined
  return {
    path: pathText(path),
    code,
    message: `${findingMessage(finding)}${suggestion ? `; did you mean "${suggestion}"?` : ''}`,
  }
}

/** Names of the fields that the schema has at a path. */
function fieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const def = schema._zod.def as z.core.$ZodTypeDef & {
    shape?: Record<string, z.core.$ZodType>
    element?: z.core.$ZodType
    innerType?: z.core.$ZodType
    in?: z.core.$ZodType
    options?: z.core.$ZodType[]
    valueType?: z.core.$ZodType
  }
  if (def.innerType) return fieldsAt(def.innerType, path)
  if (def.in) return fieldsAt(def.in, path)
  if (def.options) return def.options.flatMap((option) => fieldsAt(option, path))
  const [step, ...rest] = path
  if (step === undefined) return Object.keys(def.shape ?? {})
  const next = def.shape?.[String(step)] ?? def.element ?? def.valueType
  return next ? fieldsAt(next, rest) : []
}

/**
 * The known name with the fewest edits from a misspelt one. Allows at most two edits, or one for words of at most 4
 * characters.
 */
function closestName(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = word.length <= 4 ? 1 : 2
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance <= bestDistance) {
      if (best !== undefined && distance === bestDistance) continue
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Edits between two names (insert, delete, replace, swap of neighbours), or a number over `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit || a.length > 64) return limit + 1
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? limit + 1
}
