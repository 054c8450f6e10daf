import { expect, it } from 'vitest'
import { CODE_TABLES } from '../../scripts/generate/contract-page.ts'

it('docs/reference/errors.md explains each code in at most two short sentences', () => {
  for (const { code, text } of Object.values(CODE_TABLES).flat())
    for (const sentence of text.split(/(?<=[.;:])\s/))
      expect(sentence.split(' ').length, `${code}: ${sentence}`).toBeLessThanOrEqual(25)
})
