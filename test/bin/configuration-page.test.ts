import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configurationTables } from '../../bin/configuration-page.ts'
import { configSchema, readConfig } from '../../edge-agent/config.ts'
import { ROOT } from '../house/sources.ts'

const FILE = join(ROOT, 'docs/configuration.md')
const page = readFileSync(FILE, 'utf8')

/** What is written from the code is written anew by `npm test -- -u`. */
describe('the pages about configuration', () => {
  it('have the options as they are', async () => {
    const current = page.replace(
      /<!-- from bin\/settings\.ts -->[\s\S]*?<!-- end -->/,
      () => `<!-- from bin/settings.ts -->\n\n${configurationTables()}\n\n<!-- end -->`,
    )
    await expect(current).toMatchFileSnapshot(FILE)
  })

  it('have the schema as it is', async () => {
    await expect(`${JSON.stringify(configSchema(), null, 2)}\n`).toMatchFileSnapshot(
      join(ROOT, 'docs/edge-config.schema.json'),
    )
  })

  it('show files that are right', () => {
    const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map((m) => m[1] ?? '')
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) expect(readConfig(example)).toMatchObject({ ok: true })
  })
})
