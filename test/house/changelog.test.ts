import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { EVENT_TYPES } from '../../cloud/platform/webhooks/event-types.ts'
import { ROOT } from './sources.ts'

/** Headings of https://keepachangelog.com/en/1.1.0/. */
const HEADINGS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']
const MOST_LINES = 80
const LONGEST_LINE = 400

const page = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
const [, ...sections] = page.split(/^## /m)
const fix =
  'A merge may have brought back lines that were removed: restore CHANGELOG.md of main and add your line again.'

describe('CHANGELOG.md', () => {
  it('has an unreleased section first, and one section for each release', () => {
    const titles = sections.map((section) => section.split('\n')[0] ?? '')
    expect(titles[0], fix).toBe('[Unreleased]')
    expect(
      titles.slice(1).filter((title) => !/^\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$/.test(title)),
      fix,
    ).toEqual([])
  })

  it('has each heading of Keep a Changelog at most once in a section, and no other', () => {
    for (const section of sections) {
      const headings = [...section.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading)
      expect(headings, fix).toEqual(HEADINGS.filter((heading) => headings.includes(heading)))
    }
  })

  it('has one line for each entry', () => {
    const entries = page.split(/^### .*$/m).slice(1)
    const others = entries.flatMap((part) =>
      part.split('\n').filter((line) => line !== '' && !/^(?:- |## )/.test(line)),
    )
    expect(others, fix).toEqual([])
    expect(
      page.split('\n').filter((line) => line.length > LONGEST_LINE),
      `no line over ${LONGEST_LINE} characters`,
    ).toEqual([])
  })

  it('has at most 80 lines in the unreleased section', () => {
    expect(sections[0]?.trim().split('\n').length, `Shorten or join entries. ${fix}`).toBeLessThanOrEqual(MOST_LINES)
  })

  it('names each operation and each event', () => {
    const names = [...OPERATION_TABLE.keys(), ...EVENT_TYPES.keys()]
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  })
})
