import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../house/sources.ts'

export interface DocExample {
  /** Documented method or function. */
  name: string
  code: string
}

/** Finds the `@example` blocks of a source file. */
export function docstringExamples(path: string): DocExample[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  return [
    ...text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*@example[\s\S]*?)\*\/\s*(?:export (?:async )?function )?(\w+)/g),
  ].flatMap(([, comment = '', name = '']) =>
    comment
      .split('@example')
      .slice(1)
      .map((block) => ({ name, code: block.replaceAll(/^\s*\* ?/gm, '').trim() })),
  )
}
