import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../scripts/generate/configuration-page.ts'
import type { Options } from '../../host/options.ts'
import * as cloud from '../../host/settings/cloud.ts'
import * as data from '../../host/settings/cloud-data.ts'
import * as edge from '../../host/settings/edge.ts'
import * as tools from '../../host/settings/tools.ts'
import { readConfig } from '../../edge-agent/config.ts'
import { readSources, ROOT } from '../house/sources.ts'

const page = readFileSync(join(ROOT, 'docs/reference/configuration.md'), 'utf8')
const constants = Object.entries({ ...cloud, ...data, ...edge, ...tools }).filter(([name]) => name.endsWith('_OPTIONS'))
const declared = [...constants, ['simulatePspOptions', COMMANDS['untag simulate psp']]] as [string, Options][]

describe('the pages about configuration', () => {
  it('have the options of every command', () => {
    const documented = new Set(Object.values(COMMANDS))
    expect(
      declared.filter(([, options]) => !documented.has(options)).map(([name]) => name),
      'list these options with their command in COMMANDS of scripts/generate/configuration-page.ts',
    ).toEqual([])
  })

  it('have only options that a command reads', () => {
    const readers = readSources(['bin', 'host']).filter(({ path }) => !path.startsWith('host/settings/'))
    const isRead = (key: string) => readers.some(({ code }) => new RegExp(`\\b${key}\\b`).test(code))
    const unread = declared.flatMap(([name, options]) =>
      Object.keys(options).flatMap((key) => (isRead(key) ? [] : [`${key} of ${name}`])),
    )
    expect(unread, 'use these settings in bin/ or host/, or remove them from host/settings').toEqual([])
  })

  it('name each option and each environment variable of a command once', () => {
    for (const [name, options] of declared) {
      const names = Object.values(options).flatMap(({ flag, env }) => [flag, env])
      expect([name, names]).toEqual([name, [...new Set(names)]])
    }
  })

  it('show valid configuration files', () => {
    const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map((m) => m[1] ?? '')
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) expect(readConfig(example)).toMatchObject({ ok: true })
  })
})
